//! What a client asks.

use penstock_model::vendor::Wire;
use serde_json::{Map, Number, Value};

use super::content::{CacheHint, Part};

/// A conversation, and what is wanted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The dialect that it was written in: `extra`, [`Part::Other`] and [`ToolKind::Other`] are in its words.
    pub wire: Wire,
    /// The model that the client named. Writers write their target's model instead.
    pub model: Option<String>,
    /// The conversation in its order, instructions included wherever they stood.
    pub turns: Vec<Turn>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// Whether it must.
    pub tool_choice: Option<ToolChoice>,
    /// `false`: one call at a time.
    pub parallel_tool_calls: Option<bool>,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// How much, and in which form.
    pub output: Output,
    /// How much the model is to think.
    pub reasoning: Option<ReasoningRequest>,
    /// Is the answer to be streamed?
    pub stream: bool,
    /// Did the client ask for a usage report within the stream?
    pub include_usage: bool,
    /// Who the end user is, as an opaque id.
    pub user: Option<String>,
    /// OpenAI's `prompt_cache_key`.
    pub cache_key: Option<String>,
    /// OpenAI's `service_tier`.
    pub service_tier: Option<String>,
    /// OpenAI's `metadata`; Anthropic's, but for its user id.
    pub metadata: Option<Map<String, Value>>,
    /// Top-level fields that no other field here covers, as they came.
    pub extra: Map<String, Value>,
}

impl Request {
    /// An empty conversation in the words of `wire`.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self {
            wire,
            model: None,
            turns: Vec::new(),
            tools: Vec::new(),
            tool_choice: None,
            parallel_tool_calls: None,
            sampling: Sampling::default(),
            output: Output::default(),
            reasoning: None,
            stream: false,
            include_usage: false,
            user: None,
            cache_key: None,
            service_tier: None,
            metadata: None,
            extra: Map::new(),
        }
    }
}

/// What one side said at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Who.
    pub role: Role,
    /// A participant's name (OpenAI's `name`).
    pub name: Option<String>,
    /// What. Empty where a client sent an empty list.
    pub parts: Vec<Part>,
}

impl Turn {
    /// A turn without a name.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, name: None, parts }
    }
}

/// Who speaks. Results of tools are parts of user turns; in dialects that give them a role of their own, each is a
/// user turn with that one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// Instructions, in OpenAI's newer word.
    Developer,
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
}

/// Something the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it is.
    pub kind: ToolKind,
    /// A cache boundary behind it.
    pub cache: Option<CacheHint>,
}

/// What a tool is.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// A function of the client.
    Function {
        /// JSON Schema of its arguments.
        parameters: Option<Value>,
        /// Are arguments held to the schema?
        strict: Option<bool>,
    },
    /// A tool of the vendor's own, or one that only one dialect knows, whole and in that dialect's words.
    Other(Value),
}

/// Whether tools must be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// Not at all.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
    /// Only these, and at least one of them if `required`.
    Allowed {
        /// Must one be called?
        required: bool,
        /// Which.
        names: Vec<String>,
    },
}

/// How tokens are drawn. Numbers are kept as they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<Number>,
    /// Nucleus.
    pub top_p: Option<Number>,
    /// The k likeliest.
    pub top_k: Option<Number>,
    /// For repeatable draws.
    pub seed: Option<Number>,
    /// Against repetition, by count.
    pub frequency_penalty: Option<Number>,
    /// Against repetition, at all.
    pub presence_penalty: Option<Number>,
    /// Token to bias.
    pub logit_bias: Option<Value>,
    /// Are log-probabilities wanted?
    pub logprobs: Option<bool>,
    /// Of how many alternatives.
    pub top_logprobs: Option<u64>,
}

/// How much, and in which form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The limit, in tokens.
    pub max_tokens: Option<u64>,
    /// Where to stop.
    pub stop: Vec<String>,
    /// How many answers.
    pub choices: Option<u32>,
    /// In which form.
    pub format: Option<Format>,
    /// OpenAI's `verbosity`.
    pub verbosity: Option<String>,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Plain text, asked for explicitly.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema(JsonSchema),
}

/// A schema that an answer is to follow.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchema {
    /// Its name; OpenAI requires one.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// JSON Schema.
    pub schema: Value,
    /// Is the answer held to it?
    pub strict: Option<bool>,
}

/// How much the model is to think. All `None` with `enabled` alone: as much as it likes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReasoningRequest {
    /// On or off, where the client said so.
    pub enabled: Option<bool>,
    /// `minimal`, `low`, `medium`, `high`, or a vendor's own word.
    pub effort: Option<String>,
    /// At most so many tokens of it.
    pub budget_tokens: Option<u64>,
    /// Is it to be shown (Gemini's `includeThoughts`, OpenAI's `summary`)?
    pub visible: Option<bool>,
}
