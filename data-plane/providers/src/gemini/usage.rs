//! `usageMetadata`.
//!
//! `candidatesTokenCount` is without the thoughts, unlike the output of other vendors. What tools of the service's own
//! put into the prompt (`toolUsePromptTokenCount`) is counted apart from it, and paid as input.

use std::sync::LazyLock;

use memchr::memmem::FinderRev;
use penstock_model::Usage;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json::member_value;

/// How far back [`find`] goes through occurrences of the key, and how long the object may be.
const MAX_CANDIDATES: usize = 8;
const MAX_OBJECT: usize = 16 << 10;

static KEY: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\"usageMetadata\""));

/// As it comes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Raw<'a> {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(borrow)]
    prompt_tokens_details: Option<Vec<Modality<'a>>>,
    #[serde(borrow)]
    candidates_tokens_details: Option<Vec<Modality<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Modality<'a> {
    #[serde(borrow)]
    modality: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "count")]
    token_count: Option<u64>,
}

/// A count, also as text (proto3 writes 64-bit numbers so); nothing when it is nonsense.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(<&RawValue>::deserialize(deserializer)?.get().trim_matches('"').parse().ok())
}

impl From<&Raw<'_>> for Usage {
    fn from(raw: &Raw<'_>) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| {
            a.or(b)?;
            Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0)))
        };
        let audio = |details: &Option<Vec<Modality<'_>>>| {
            let is_audio = |one: &&Modality<'_>| one.modality.is_some_and(|raw| raw.get() == "\"AUDIO\"");
            details.iter().flatten().find(is_audio)?.token_count
        };
        Self {
            input_tokens: sum(raw.prompt_token_count, raw.tool_use_prompt_token_count),
            cached_input_tokens: raw.cached_content_token_count,
            output_tokens: sum(raw.candidates_token_count, raw.thoughts_token_count),
            reasoning_tokens: raw.thoughts_token_count,
            audio_input_tokens: audio(&raw.prompt_tokens_details),
            audio_output_tokens: audio(&raw.candidates_tokens_details),
            ..Self::default()
        }
    }
}

/// The last usage object in `json`, a whole body or the tail of one. Works by the key's bytes: inside a JSON string its
/// quotes would be escaped.
pub(super) fn find(json: &[u8]) -> Option<Usage> {
    KEY.rfind_iter(json).take(MAX_CANDIDATES).find_map(|at| {
        let value = member_value(&json[at + KEY.needle().len()..])?;
        let value = value.strip_prefix(b"{").map(|_| &value[..value.len().min(MAX_OBJECT)])?;
        let raw = Raw::deserialize(&mut serde_json::Deserializer::from_slice(value)).ok()?;
        let usage = Usage::from(&raw);
        (!usage.is_empty()).then_some(usage)
    })
}

/// As it is written for clients.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts_token_count: Option<u64>,
}

impl From<&Usage> for Written {
    fn from(usage: &Usage) -> Self {
        let total = usage.input_tokens.zip(usage.output_tokens);
        Self {
            prompt_token_count: usage.input_tokens,
            candidates_token_count: usage
                .output_tokens
                .map(|all| all.saturating_sub(usage.reasoning_tokens.unwrap_or(0))),
            total_token_count: total.map(|(input, output)| input.saturating_add(output)),
            cached_content_token_count: usage.cached_input_tokens,
            thoughts_token_count: usage.reasoning_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_output_and_the_tools_prompt_is_input_met_04() {
        let body = br#"{"usageMetadata": {"promptTokenCount":10,"toolUsePromptTokenCount":5,"candidatesTokenCount":7,
            "thoughtsTokenCount":30,"cachedContentTokenCount":4,"totalTokenCount":52,
            "promptTokensDetails":[{"modality":"TEXT","tokenCount":8},{"modality":"AUDIO","tokenCount":2}]}}"#;
        let usage = find(body).unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens),
            (Some(15), Some(37), Some(30))
        );
        assert_eq!((usage.cached_input_tokens, usage.audio_input_tokens), (Some(4), Some(2)));
        let written = serde_json::to_string(&Written::from(&usage)).unwrap();
        assert_eq!(
            written,
            r#"{"promptTokenCount":15,"candidatesTokenCount":7,"totalTokenCount":52,"cachedContentTokenCount":4,"thoughtsTokenCount":30}"#
        );
    }

    #[test]
    fn what_is_not_said_is_unknown() {
        for body in [
            r#"{"usageMetadata":null}"#,
            r#"{"usageMetadata":{}}"#,
            r#"{"usageMetadata":{"promptTokenCount":-1}}"#,
            "",
        ] {
            assert_eq!(find(body.as_bytes()), None, "{body}");
        }
        let usage = find(br#"{"usageMetadata":{"promptTokenCount":3}}"#).unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(3), None));
    }
}
