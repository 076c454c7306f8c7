//! What a service says, whole.

use penstock_model::Usage;
use serde_json::{Map, Value};

use super::content::Part;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The service's id of it.
    pub id: Option<String>,
    /// The model as the service calls it.
    pub model: Option<String>,
    /// When it was made, seconds since 1970.
    pub created: Option<u64>,
    /// In the order of their indexes; never empty, even when the prompt was blocked.
    pub choices: Vec<Choice>,
    /// What it consumed; `None` when the service does not say.
    pub usage: Option<Usage>,
    /// Top-level fields that no other field here covers, in the words of the answer's dialect.
    pub extra: Map<String, Value>,
}

/// One of the answers to a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// Which.
    pub index: u32,
    /// What it says.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: Option<Stop>,
    /// The vendor's own word for why it ended, where it says more than `stop`.
    pub native_stop: Option<String>,
    /// The stop sequence that ended it.
    pub stop_sequence: Option<String>,
    /// Log-probabilities, in OpenAI's shape.
    pub logprobs: Option<Value>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// It was done.
    End,
    /// A stop sequence came.
    Sequence,
    /// It is as long as it may be.
    Length,
    /// Tools are to be called.
    ToolCalls,
    /// The content is not allowed, or the model declined.
    ContentFilter,
}
