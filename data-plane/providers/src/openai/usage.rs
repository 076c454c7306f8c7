//! Token counts, as OpenAI and the services that copied it report them.

use std::sync::LazyLock;

use memchr::memmem::FinderRev;
use penstock_model::Usage;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json::member_value;

/// How far back `find` goes through occurrences of the key, and how long a usage object may be.
const MAX_CANDIDATES: usize = 8;
const MAX_OBJECT: usize = 16 << 10;

static KEY: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\"usage\""));

#[derive(Deserialize)]
struct Raw {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    /// Moonshot.
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    /// DeepSeek.
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
    /// Mistral, Perplexity.
    #[serde(default, deserialize_with = "count")]
    num_search_queries: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
}

#[derive(Deserialize, Clone, Copy, Default)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    /// OpenRouter; Qwen.
    #[serde(default, alias = "cache_creation_input_tokens", deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
    /// Ours, see [`WrittenUsage`].
    #[serde(default, deserialize_with = "count")]
    cache_write_1h_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    audio_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

/// A count, or nothing when the service sent `null`, −1 or other nonsense.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(<&RawValue>::deserialize(deserializer)?.get().parse().ok())
}

impl From<Raw> for Usage {
    fn from(raw: Raw) -> Self {
        let input = raw.prompt_tokens_details.or(raw.input_tokens_details).unwrap_or_default();
        let output = raw.completion_tokens_details.or(raw.output_tokens_details).unwrap_or_default();
        Self {
            input_tokens: raw.prompt_tokens.or(raw.input_tokens),
            cached_input_tokens: input.cached_tokens.or(raw.prompt_cache_hit_tokens).or(raw.cached_tokens),
            cache_write_tokens: input.cache_write_tokens,
            cache_write_1h_tokens: input.cache_write_1h_tokens,
            output_tokens: raw.completion_tokens.or(raw.output_tokens),
            reasoning_tokens: output.reasoning_tokens,
            audio_input_tokens: input.audio_tokens,
            audio_output_tokens: output.audio_tokens,
            images: None,
            searches: raw.num_search_queries,
        }
    }
}

/// A usage report as we write it, unknown counts left out. OpenAI has no field for what was written to a cache: the first
/// is OpenRouter's name for it, the second ours.
#[derive(Debug, Serialize)]
pub(crate) struct WrittenUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_search_queries: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct PromptDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_1h_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_tokens: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct CompletionDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_tokens: Option<u64>,
}

impl From<Usage> for WrittenUsage {
    fn from(usage: Usage) -> Self {
        let prompt = PromptDetails {
            cached_tokens: usage.cached_input_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cache_write_1h_tokens: usage.cache_write_1h_tokens,
            audio_tokens: usage.audio_input_tokens,
        };
        let completion = CompletionDetails {
            reasoning_tokens: usage.reasoning_tokens,
            audio_tokens: usage.audio_output_tokens,
        };
        let total = usage.input_tokens.zip(usage.output_tokens);
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: total.map(|(input, output)| input.saturating_add(output)),
            prompt_tokens_details: (prompt != PromptDetails::default()).then_some(prompt),
            completion_tokens_details: (completion != CompletionDetails::default()).then_some(completion),
            num_search_queries: usage.searches,
        }
    }
}

/// The last usage object in `json`, which may be a whole body, one stream event, or the tail of either.
///
/// Works by the key's bytes rather than by parsing all of it: inside a JSON string the quotes would be escaped, so the
/// key cannot be mistaken for text.
#[must_use]
pub fn find(json: &[u8]) -> Option<Usage> {
    KEY.rfind_iter(json).take(MAX_CANDIDATES).find_map(|at| {
        let value = member_value(&json[at + KEY.needle().len()..])?;
        if value.first() != Some(&b'{') {
            return None;
        }
        // Not to the end of the input: what follows the object is of no interest.
        let value = &value[..value.len().min(MAX_OBJECT)];
        let raw = Raw::deserialize(&mut serde_json::Deserializer::from_slice(value)).ok()?;
        let usage = Usage::from(raw);
        (usage != Usage::default()).then_some(usage)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: Option<u64>, output: u64, reasoning: Option<u64>) -> Option<Usage> {
        Some(Usage {
            input_tokens: Some(input),
            cached_input_tokens: cached,
            output_tokens: Some(output),
            reasoning_tokens: reasoning,
            ..Usage::default()
        })
    }

    #[test]
    fn every_vendors_way_of_counting_is_understood() {
        let cases: [(&str, Option<Usage>); 7] = [
            (
                r#"{"usage":{"prompt_tokens":2510,"completion_tokens":100,"total_tokens":2610,
                "prompt_tokens_details":{"cached_tokens":500},
                "completion_tokens_details":{"reasoning_tokens":64}}}"#,
                usage(2510, Some(500), 100, Some(64)),
            ),
            (
                r#"{"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"completion_tokens":2}}"#,
                usage(10, Some(4), 2, None),
            ),
            (
                r#"{"usage":{"prompt_tokens":10,"cached_tokens":3,"completion_tokens":2}}"#,
                usage(10, Some(3), 2, None),
            ),
            (
                r#"{"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":8,"completion_tokens":1}}]}"#,
                usage(8, None, 1, None),
            ),
            (
                r#"{"usage" : {"input_tokens":1,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}"#,
                usage(1, None, 2, Some(1)),
            ),
            (
                r#"{"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":null}}"#,
                usage(1, None, 2, None),
            ),
            (
                r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":-1}}}"#,
                usage(5, None, 2, None),
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(find(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn no_usage_is_none_and_not_zero() {
        for body in [
            r#"{"usage":null}"#,
            r#"{"usage":{}}"#,
            r#"{"type":"usage"}"#,
            r#"{"usage":{"prompt_tokens":"#,
            "",
        ] {
            assert_eq!(find(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn text_that_talks_about_usage_is_not_taken_for_it() {
        let body = r#"{"usage":{"prompt_tokens":1,"completion_tokens":2},"content":"\"usage\":{\"prompt_tokens\":9}"}"#;
        assert_eq!(find(body.as_bytes()), usage(1, None, 2, None));
    }
}
