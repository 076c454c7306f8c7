//! The response object, as clients get it.
//!
//! The official types require the fields that echo the request (`tools`, `tool_choice`, `parallel_tool_calls`, …). A
//! translated answer has no request to echo: they hold what an empty request would have. Counts that the service did not
//! state are zero within `usage`, because the types know no absence there; without both totals there is no `usage`.

use penstock_model::Usage;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::exchange::Stop;

/// A response, whole or in progress.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created_at: u64,
    pub(super) status: Status,
    pub(super) background: bool,
    pub(super) error: Option<()>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    pub(super) instructions: Option<()>,
    pub(super) max_output_tokens: Option<()>,
    pub(super) metadata: Map<String, Value>,
    pub(super) model: &'a str,
    pub(super) output: &'a [Item],
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<()>,
    pub(super) store: bool,
    pub(super) temperature: Option<()>,
    pub(super) tool_choice: &'static str,
    pub(super) tools: [(); 0],
    pub(super) top_p: Option<()>,
    pub(super) truncation: &'static str,
    pub(super) usage: Option<Counts>,
}

impl<'a> Response<'a> {
    /// One of which nothing has come yet.
    pub(super) fn new(id: &'a str, model: &'a str, created_at: u64) -> Self {
        Self {
            id,
            object: "response",
            created_at,
            status: Status::InProgress,
            background: false,
            error: None,
            incomplete_details: None,
            instructions: None,
            max_output_tokens: None,
            metadata: Map::new(),
            model,
            output: &[],
            parallel_tool_calls: true,
            previous_response_id: None,
            store: false,
            temperature: None,
            tool_choice: "auto",
            tools: [],
            top_p: None,
            truncation: "disabled",
            usage: None,
        }
    }
}

/// How far a response or an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

/// Why a response is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct IncompleteDetails {
    reason: &'static str,
}

impl IncompleteDetails {
    /// `None` when the answer is complete.
    pub(super) fn of(stop: Option<Stop>) -> Option<Self> {
        let reason = match stop {
            Some(Stop::Length) => "max_output_tokens",
            Some(Stop::ContentFilter) => "content_filter",
            Some(Stop::End | Stop::Sequence | Stop::ToolCalls) | None => return None,
        };
        Some(Self { reason })
    }
}

/// One piece of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    Message {
        id: String,
        status: Status,
        role: &'static str,
        content: Vec<Content>,
    },
    Reasoning {
        id: String,
        summary: Vec<Summary>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
    },
    FunctionCall {
        id: String,
        status: Status,
        call_id: String,
        name: String,
        arguments: String,
        /// Gemini's signature, as in Google's own mapping to OpenAI's chat: `{google: {thought_signature}}`.
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<Value>,
    },
    ImageGenerationCall {
        id: String,
        status: Status,
        /// In base64.
        result: String,
    },
}

impl Item {
    pub(super) fn set_status(&mut self, new: Status) {
        match self {
            Self::Message { status, .. }
            | Self::FunctionCall { status, .. }
            | Self::ImageGenerationCall { status, .. } => *status = new,
            Self::Reasoning { .. } => {}
        }
    }
}

/// One piece of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content {
    OutputText { text: String, annotations: Vec<Value>, logprobs: Vec<Value> },
    Refusal { refusal: String },
}

/// One paragraph of what was thought.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    r#type: &'static str,
    pub(super) text: String,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self { r#type: "summary_text", text: String::new() }
    }
}

/// What was consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct InputDetails {
    cache_write_tokens: u64,
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl Counts {
    /// `None` when a total is unknown.
    pub(super) fn of(usage: &Usage) -> Option<Self> {
        let (input_tokens, output_tokens) = (usage.input_tokens?, usage.output_tokens?);
        let known = Option::unwrap_or_default;
        Some(Self {
            input_tokens,
            input_tokens_details: InputDetails {
                cache_write_tokens: known(usage.cache_write_tokens)
                    .saturating_add(known(usage.cache_write_1h_tokens)),
                cached_tokens: known(usage.cached_input_tokens),
            },
            output_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens: known(usage.reasoning_tokens) },
            total_tokens: input_tokens.saturating_add(output_tokens),
        })
    }
}
