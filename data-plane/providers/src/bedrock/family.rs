//! What only some makers' models take. Converse has one shape for all of them, and refuses what a model does not know.
//!
//! A family is told by the model's id (`us.anthropic.claude-…-v1:0`, or the ARN of an inference profile or of a
//! foundation model, which hold it). The ARN of an application's own profile or of a provisioned model tells nothing:
//! then only what any model may take is written, and the rest reported as dropped.

use serde_json::{Map, Value, json};

use crate::exchange::ReasoningRequest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Anthropic's.
    Claude,
    /// Amazon's.
    Nova,
    /// OpenAI's open models.
    GptOss,
    /// The ARN of something that we cannot see into.
    Opaque,
    Other,
}

impl Family {
    pub(super) fn of(model: &str) -> Self {
        if model.contains("anthropic.") || model.contains("claude") {
            Self::Claude
        } else if model.contains("amazon.nova") {
            Self::Nova
        } else if model.contains("openai.gpt-oss") {
            Self::GptOss
        } else if model.starts_with("arn:") {
            Self::Opaque
        } else {
            Self::Other
        }
    }

    /// Cache points. A client asks for them explicitly, so that they are sent wherever they may be understood.
    pub(super) fn takes_cache_points(self) -> bool {
        matches!(self, Self::Claude | Self::Nova | Self::Opaque)
    }

    /// The `status` of a tool's result.
    pub(super) fn takes_result_status(self) -> bool {
        matches!(self, Self::Claude | Self::Nova | Self::Opaque)
    }

    /// Adds `top_k` to the fields for the model. Is there a way?
    pub(super) fn write_top_k(self, top_k: &Value, fields: &mut Map<String, Value>) -> bool {
        match self {
            Self::Claude => fields.insert("top_k".to_owned(), top_k.clone()),
            Self::Nova => fields.insert("inferenceConfig".to_owned(), json!({ "topK": top_k })),
            Self::GptOss | Self::Opaque | Self::Other => return false,
        };
        true
    }
}

/// Does the client want the model to think? `None` when it does not say.
pub(super) fn wanted(request: &ReasoningRequest) -> Option<bool> {
    let off = request.enabled == Some(false)
        || request.effort.as_deref() == Some("none")
        || request.budget_tokens == Some(0);
    let on = request.enabled == Some(true) || request.effort.is_some() || request.budget_tokens.is_some();
    if off { Some(false) } else { on.then_some(true) }
}
