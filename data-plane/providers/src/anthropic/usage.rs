//! Token counts in Anthropic's words.
//!
//! There, `input_tokens` are only those that neither came from the cache nor went into it; all input is the sum of three
//! (docs: "Prompt caching", "Tracking cache performance"). `output_tokens` include thinking.

use std::sync::LazyLock;

use memchr::memmem::FinderRev;
use penstock_model::Usage;
use serde::{Deserialize, Serialize};

use crate::json::{count, member_value};

/// How far back [`find`] goes through occurrences of the key, and how long a usage object may be.
const MAX_CANDIDATES: usize = 8;
const MAX_OBJECT: usize = 16 << 10;

static KEY: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\"usage\""));

#[derive(Deserialize)]
struct Raw {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<Creation>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
    server_tool_use: Option<ServerTools>,
}

#[derive(Deserialize, Default)]
struct Creation {
    #[serde(default, deserialize_with = "count")]
    ephemeral_5m_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    thinking_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ServerTools {
    #[serde(default, deserialize_with = "count")]
    web_search_requests: Option<u64>,
}

impl From<Raw> for Usage {
    fn from(raw: Raw) -> Self {
        let split = raw.cache_creation.unwrap_or_default();
        let written = raw.cache_creation_input_tokens;
        let hour = split.ephemeral_1h_input_tokens;
        // Without the split, all writes are of the default kind, five minutes.
        let short = split
            .ephemeral_5m_input_tokens
            .or_else(|| written.map(|all| all.saturating_sub(hour.unwrap_or(0))));
        let cached = raw.cache_read_input_tokens;
        let written = short.unwrap_or(0).saturating_add(hour.unwrap_or(0));
        let input =
            raw.input_tokens.map(|rest| rest.saturating_add(cached.unwrap_or(0)).saturating_add(written));
        Self {
            input_tokens: input,
            cached_input_tokens: cached,
            cache_write_tokens: short,
            cache_write_1h_tokens: hour,
            output_tokens: raw.output_tokens,
            reasoning_tokens: raw.output_tokens_details.and_then(|details| details.thinking_tokens),
            searches: raw.server_tool_use.and_then(|tools| tools.web_search_requests),
            ..Self::default()
        }
    }
}

/// Reads a usage object; `None` when it says nothing.
pub(super) fn read(json: &str) -> Option<Usage> {
    let usage = Usage::from(serde_json::from_str::<Raw>(json).ok()?);
    (!usage.is_empty()).then_some(usage)
}

/// Reads a later report of the same stream. Its writes to the cache are not split; where an earlier one's were (`split`),
/// that is kept.
pub(super) fn read_later(json: &str, split: &mut bool) -> Option<Usage> {
    let raw = serde_json::from_str::<Raw>(json).ok()?;
    let has_split = raw.cache_creation.is_some();
    let mut usage = Usage::from(raw);
    if *split && !has_split {
        usage.cache_write_tokens = None;
    }
    *split |= has_split;
    (!usage.is_empty()).then_some(usage)
}

/// The last usage object in `json`, a whole answer or its tail.
///
/// Works by the key's bytes rather than by parsing all of it: inside a JSON string the quotes would be escaped, so the
/// key cannot be mistaken for text.
pub(super) fn find(json: &[u8]) -> Option<Usage> {
    KEY.rfind_iter(json).take(MAX_CANDIDATES).find_map(|at| {
        let value = member_value(&json[at + KEY.needle().len()..])?;
        if value.first() != Some(&b'{') {
            return None;
        }
        // Not to the end of the input: what follows the object is of no interest.
        let value = &value[..value.len().min(MAX_OBJECT)];
        let raw = Raw::deserialize(&mut serde_json::Deserializer::from_slice(value)).ok()?;
        let usage = Usage::from(raw);
        (!usage.is_empty()).then_some(usage)
    })
}

/// A usage object as clients of this protocol get it. The two counts that they require are zero when unknown.
#[derive(Serialize)]
pub(super) struct Written {
    input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation: Option<WrittenCreation>,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<WrittenOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_tool_use: Option<WrittenServerTools>,
}

#[derive(Serialize)]
struct WrittenCreation {
    ephemeral_5m_input_tokens: u64,
    ephemeral_1h_input_tokens: u64,
}

#[derive(Serialize)]
struct WrittenOutput {
    thinking_tokens: u64,
}

#[derive(Serialize)]
struct WrittenServerTools {
    web_search_requests: u64,
}

/// `usage` in Anthropic's words.
pub(super) fn write(usage: &Usage) -> Written {
    let cached = usage.cached_input_tokens.unwrap_or(0);
    let (short, hour) = (usage.cache_write_tokens, usage.cache_write_1h_tokens);
    let written = short.unwrap_or(0).saturating_add(hour.unwrap_or(0));
    let all = usage.input_tokens.unwrap_or(0);
    Written {
        input_tokens: all.saturating_sub(cached).saturating_sub(written),
        cache_creation_input_tokens: short.or(hour).map(|_| written),
        cache_read_input_tokens: usage.cached_input_tokens,
        cache_creation: hour.map(|hour| WrittenCreation {
            ephemeral_5m_input_tokens: short.unwrap_or(0),
            ephemeral_1h_input_tokens: hour,
        }),
        output_tokens: usage.output_tokens.unwrap_or(0),
        output_tokens_details: usage
            .reasoning_tokens
            .map(|thinking_tokens| WrittenOutput { thinking_tokens }),
        server_tool_use: usage.searches.map(|web_search_requests| WrittenServerTools { web_search_requests }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_input_is_the_sum_of_three() {
        let body = br#"{"content":[{"text":"\"usage\":{\"input_tokens\":9}"}],"usage":{"input_tokens":10,"cache_read_input_tokens":200,
            "cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},
            "output_tokens":7,"output_tokens_details":{"thinking_tokens":5},
            "server_tool_use":{"web_search_requests":2},"service_tier":"standard"}}"#;
        let expected = Usage {
            input_tokens: Some(240),
            cached_input_tokens: Some(200),
            cache_write_tokens: Some(20),
            cache_write_1h_tokens: Some(10),
            output_tokens: Some(7),
            reasoning_tokens: Some(5),
            searches: Some(2),
            ..Usage::default()
        };
        assert_eq!(find(body), Some(expected));
    }

    #[test]
    fn writes_without_a_split_are_for_five_minutes_and_silence_is_unknown() {
        let usage =
            read(r#"{"input_tokens":1,"cache_creation_input_tokens":4,"cache_creation":null}"#).unwrap();
        assert_eq!((usage.input_tokens, usage.cache_write_tokens), (Some(5), Some(4)));
        assert_eq!((usage.cached_input_tokens, usage.output_tokens), (None, None));
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"input_tokens":-1}"#), None);
        assert_eq!(find(br#"{"usage":null}"#), None);
    }

    #[test]
    fn a_later_report_without_a_split_does_not_undo_the_first_ones() {
        let mut split = false;
        let first = r#"{"input_tokens":1,"cache_creation_input_tokens":64,
            "cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":64},"output_tokens":1}"#;
        let mut usage = read_later(first, &mut split).unwrap();
        let later = r#"{"input_tokens":1,"cache_creation_input_tokens":64,"output_tokens":9}"#;
        usage.update(read_later(later, &mut split).unwrap());
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(65), Some(9)));
        assert_eq!((usage.cache_write_tokens, usage.cache_write_1h_tokens), (Some(0), Some(64)));
    }

    proptest! {
        #[test]
        fn counts_survive_the_way_out_and_back(
            rest in 0..1000_u64, cached in prop::option::of(0..1000_u64),
            short in prop::option::of(0..1000_u64), hour in prop::option::of(0..1000_u64),
            output in 0..1000_u64, reasoning in prop::option::of(0..10_u64), searches in prop::option::of(0..10_u64),
        ) {
            // An hour's writes are only ever reported beside those of five minutes.
            let short = short.or(hour.map(|_| 0));
            let usage = Usage {
                input_tokens: Some(rest + cached.unwrap_or(0) + short.unwrap_or(0) + hour.unwrap_or(0)),
                cached_input_tokens: cached,
                cache_write_tokens: short,
                cache_write_1h_tokens: hour,
                output_tokens: Some(output),
                reasoning_tokens: reasoning,
                searches,
                ..Usage::default()
            };
            let json = serde_json::to_string(&write(&usage)).unwrap();
            prop_assert_eq!(read(&json), Some(usage));
        }
    }
}
