//! The shapes of a request on the wire. All borrow from the exchange model.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    pub messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "InferenceConfig::is_empty")]
    pub inference_config: InferenceConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub additional_model_request_fields: Map<String, Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub additional_model_response_field_paths: &'static [&'static str],
    /// What the vendor's file adds.
    #[serde(flatten)]
    pub more: &'a Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub role: &'static str,
    pub content: Vec<Block<'a>>,
}

/// A block of a message, of a tool's result or of the instructions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Block<'a> {
    Text(&'a str),
    Image(Image<'a>),
    Document(Document<'a>),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: &'a str,
        input: &'a RawValue,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
    },
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
    /// In our words already.
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Serialize)]
pub(super) struct Image<'a> {
    pub format: String,
    pub source: Bytes<'a>,
}

#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub name: String,
    pub format: &'static str,
    pub source: Bytes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citations: Option<&'a Value>,
}

/// Base64.
#[derive(Serialize)]
pub(super) struct Bytes<'a> {
    pub bytes: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a str },
    RedactedContent(&'a str),
}

#[derive(Serialize)]
pub(super) struct CachePoint {
    pub r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<&'static str>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct InferenceConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<&'a str>,
}

impl InferenceConfig<'_> {
    fn is_empty(&self) -> bool {
        self.max_tokens.is_none()
            && self.temperature.is_none()
            && self.top_p.is_none()
            && self.stop_sequences.is_empty()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub tools: Vec<ToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolEntry<'a> {
    #[serde(rename_all = "camelCase")]
    ToolSpec {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Cow<'a, str>>,
        input_schema: InputSchema<'a>,
    },
    CachePoint(CachePoint),
}

#[derive(Serialize)]
pub(super) struct InputSchema<'a> {
    pub json: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolChoice<'a> {
    Auto {},
    Any {},
    Tool { name: Cow<'a, str> },
}
