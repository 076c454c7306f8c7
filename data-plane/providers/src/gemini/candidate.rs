//! `GenerateContentResponse` as it comes: a whole answer, and each event of a stream.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::usage;

/// A response. An event that carries an error has no other field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<usage::Raw<'a>>,
    #[serde(borrow)]
    pub(super) model_version: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) finish_message: Option<&'a RawValue>,
    #[serde(borrow)]
    grounding_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    citation_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    url_context_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) logprobs_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

/// Fields of a candidate that say where its text comes from.
pub(super) const CITATIONS: [&str; 3] = ["groundingMetadata", "citationMetadata", "urlContextMetadata"];

impl<'a> Candidate<'a> {
    /// Its parts; a candidate that has ended may have no content.
    pub(super) fn parts(&self) -> &[&'a RawValue] {
        self.content.as_ref().and_then(|content| content.parts.as_deref()).unwrap_or_default()
    }

    /// Where its text comes from, each as an object of one of [`CITATIONS`].
    pub(super) fn citations(&self) -> impl Iterator<Item = Value> {
        let fields = [self.grounding_metadata, self.citation_metadata, self.url_context_metadata];
        CITATIONS.into_iter().zip(fields).filter_map(|(name, raw)| {
            let value: Value = serde_json::from_str(raw?.get()).ok()?;
            let empty = value.as_object().is_none_or(serde_json::Map::is_empty);
            (!empty).then(|| json!({ name: value }))
        })
    }
}

/// Why the prompt was blocked, if it was.
pub(super) fn block_reason(feedback: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Feedback {
        #[serde(rename = "blockReason")]
        reason: Option<String>,
    }
    let feedback: Feedback = serde_json::from_str(feedback?.get()).ok()?;
    feedback.reason.filter(|reason| reason != "BLOCK_REASON_UNSPECIFIED" && !reason.is_empty())
}
