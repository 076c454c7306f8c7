//! Token counts. Cached tokens are not among `inputTokens`, as with Anthropic.

use penstock_model::Usage;
use serde::Deserialize;

use crate::json::count;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Raw {
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_write_input_tokens: Option<u64>,
    cache_details: Option<Vec<CacheWrite>>,
}

/// What was written to the cache, by how long it is kept.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CacheWrite {
    ttl: String,
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
}

impl Raw {
    pub(super) fn normalise(self) -> Usage {
        let read = self.cache_read_input_tokens;
        let written = self.cache_write_input_tokens;
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        let for_an_hour = self.cache_details.map(|details| {
            let hour = details.iter().filter(|write| write.ttl == "1h");
            hour.fold(0_u64, |sum, write| sum.saturating_add(write.input_tokens.unwrap_or(0)))
        });
        Usage {
            input_tokens: self.input_tokens.map(|input| input.saturating_add(cached)),
            cached_input_tokens: read,
            cache_write_tokens: written.map(|all| all.saturating_sub(for_an_hour.unwrap_or(0))),
            cache_write_1h_tokens: for_an_hour,
            output_tokens: self.output_tokens,
            ..Usage::default()
        }
    }
}

/// The usage in a whole answer.
pub(super) fn find(body: &[u8]) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Answer {
        usage: Option<Raw>,
    }
    let answer: Answer = serde_json::from_slice(body).ok()?;
    answer.usage.map(Raw::normalise).filter(|usage| !usage.is_empty())
}
