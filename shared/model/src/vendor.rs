//! What is known of each vendor, as data: one file a vendor in `vendors/`.
//!
//! A policy's `provider: NAME` is the name of such a file. The file says which wire dialect the vendor speaks, where its
//! calls are, how it wants to be shown a credential, which parameters it takes under which names, and what its error
//! codes mean. Adding a vendor whose dialect is known is adding a file: `build.rs` finds it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::features::{Feature, Features};

include!(concat!(env!("OUT_DIR"), "/vendors.rs"));

static VENDORS: LazyLock<Vec<Vendor>> = LazyLock::new(|| {
    FILES
        .iter()
        .map(|(name, text)| Vendor::read(name, text).expect("a test reads every vendor file"))
        .collect()
});

static COMMON_ERRORS: LazyLock<Vec<ErrorRule>> =
    LazyLock::new(|| read(include_str!("../errors.yaml")).expect("a test reads it"));

/// What errors mean with vendors in general: for what a vendor's own rules do not say. The first that matches decides.
#[must_use]
pub fn common_errors() -> &'static [ErrorRule] {
    &COMMON_ERRORS
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = crate::load::plain_value(text).ok_or("not YAML")?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// One vendor. See the module's documentation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// What a policy calls it: the file's name.
    #[serde(skip)]
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// The dialect of its main call.
    pub wire: Wire,
    /// Where it is when the policy does not say. May hold `{region}` and `{resource}`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Regions with an address that `base_url` does not give, and that address.
    #[serde(default)]
    pub regions: BTreeMap<String, String>,
    /// How it is shown a credential.
    pub auth: Auth,
    /// Its calls: path templates behind the base URL's path. `{model}` stands for the percent-encoded model, `{region}`,
    /// `{resource}`, `{project}` and `{api_version}` for the backend's fields of these names. A client's call whose protocol has an
    /// entry here is passed through; any other conversation is translated to the call of `wire`.
    pub calls: BTreeMap<Call, String>,
    /// Headers that every request carries.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers that a request for a stream carries besides.
    #[serde(default)]
    pub stream_headers: BTreeMap<String, String>,
    /// Top-level body fields that every request carries, in place of those of the client.
    #[serde(default)]
    pub body: Map<String, Value>,
    /// Does the model stand in the path alone, and the service refuse it in the body?
    #[serde(default)]
    pub model_in_path: bool,
    /// Which parameters it takes, and under which names.
    #[serde(default)]
    pub parameters: Parameters,
    /// What its errors mean. The first that matches decides; what none matches is read by its status.
    #[serde(default)]
    pub errors: Vec<ErrorRule>,
}

/// A wire dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// OpenAI chat completions and all that is shaped like them.
    Openai,
    /// OpenAI responses.
    OpenaiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
    /// Bedrock Converse.
    Bedrock,
    /// Cohere v2 chat.
    Cohere,
    /// DashScope's native generation call.
    Dashscope,
    /// Ollama's native chat call.
    Ollama,
    /// No dialect: any HTTP service.
    Http,
    /// No dialect: any gRPC service.
    Grpc,
}

impl Wire {
    /// Every dialect of conversations.
    pub const ALL: [Self; 8] = [
        Self::Openai,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::Cohere,
        Self::Dashscope,
        Self::Ollama,
    ];

    /// Its name in files, signatures and fixtures.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
            Self::Dashscope => "dashscope",
            Self::Ollama => "ollama",
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }

    /// Is it no dialect, but whatever client and service agree on?
    #[must_use]
    pub fn is_generic(self) -> bool {
        matches!(self, Self::Http | Self::Grpc)
    }

    /// The call that carries a conversation.
    #[must_use]
    pub fn call(self, stream: bool) -> Call {
        match self {
            Self::Openai => Call::ChatCompletions,
            Self::OpenaiResponses => Call::Responses,
            Self::Anthropic if stream => Call::MessagesStream,
            Self::Anthropic => Call::Messages,
            Self::Gemini if stream => Call::StreamGenerateContent,
            Self::Gemini => Call::GenerateContent,
            Self::Bedrock if stream => Call::ConverseStream,
            Self::Bedrock => Call::Converse,
            Self::Cohere => Call::CohereChat,
            Self::Dashscope => Call::DashscopeGeneration,
            Self::Ollama => Call::OllamaChat,
            Self::Http => Call::Http,
            Self::Grpc => Call::Grpc,
        }
    }
}

/// A call of a vendor's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `…/chat/completions`
    ChatCompletions,
    /// `…/completions`
    Completions,
    /// `…/responses`
    Responses,
    /// `…/embeddings`
    Embeddings,
    /// `…/rerank`
    Rerank,
    /// `…/moderations`
    Moderations,
    /// `…/images/generations`
    ImagesGenerations,
    /// `…/images/edits`
    ImagesEdits,
    /// `…/images/variations`
    ImagesVariations,
    /// `…/audio/speech`
    AudioSpeech,
    /// `…/audio/transcriptions`
    AudioTranscriptions,
    /// `…/audio/translations`
    AudioTranslations,
    /// `…/messages`
    Messages,
    /// `…/messages` with `stream: true`, where that is a path of its own (Vertex); else the same path again.
    MessagesStream,
    /// `…/messages/count_tokens`
    CountTokens,
    /// `…:generateContent`
    GenerateContent,
    /// `…:streamGenerateContent?alt=sse`
    StreamGenerateContent,
    /// `…:countTokens`
    GeminiCountTokens,
    /// `…/converse`
    Converse,
    /// `…/converse-stream`
    ConverseStream,
    /// `/v2/chat`
    CohereChat,
    /// `…/text-generation/generation`
    DashscopeGeneration,
    /// `…/multimodal-generation/generation`
    DashscopeMultimodal,
    /// `/api/chat`
    OllamaChat,
    /// A path of no protocol.
    Http,
    /// A method of a gRPC service.
    Grpc,
}

/// How a vendor is shown a credential.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// Not at all.
    None,
    /// `Authorization: Bearer SECRET`
    Bearer,
    /// In a header of this name.
    Header(String),
    /// Signature version 4 with `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`; a credential of any other form is a
    /// Bedrock API key and goes as a bearer token.
    Aws,
    /// A Google access token as bearer, or a service account's JSON key from which one is got.
    Google,
}

/// What differs between vendors of one dialect. The default is what OpenAI's own service does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Under which name the output limit goes (TR-05).
    pub max_tokens: MaxTokens,
    /// How the usage of a stream is had.
    pub stream_usage: StreamUsage,
    /// Parameters under another name: `seed: random_seed`.
    pub rename: BTreeMap<String, String>,
    /// Parameters that it refuses: dropped, and reported as dropped, when a request is translated.
    pub drop: Vec<String>,
    /// Kinds of `response_format` that it takes besides text.
    pub json: Vec<JsonOutput>,
    /// How its reasoning is turned on and off.
    pub reasoning: ReasoningSwitch,
    /// Most stop sequences that it takes.
    pub max_stops: Option<u32>,
    /// Does it know the role `developer`?
    pub developer_role: bool,
    /// Must roles alternate?
    pub merge_turns: bool,
    /// Can it give several choices?
    pub many_choices: bool,
    /// Media types of images that it takes.
    pub image_types: Vec<String>,
    /// Does it fetch images by URL?
    pub image_urls: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            max_tokens: MaxTokens::AsGiven,
            stream_usage: StreamUsage::Option,
            rename: BTreeMap::new(),
            drop: Vec::new(),
            json: vec![JsonOutput::Object, JsonOutput::Schema],
            reasoning: ReasoningSwitch::Effort,
            max_stops: None,
            developer_role: true,
            merge_turns: false,
            many_choices: true,
            image_types: ["image/jpeg", "image/png", "image/gif", "image/webp"].map(str::to_owned).to_vec(),
            image_urls: true,
        }
    }
}

/// The name of the output limit in an OpenAI-shaped request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokens {
    /// Both are understood: as the client wrote it.
    AsGiven,
    /// `max_tokens` only.
    MaxTokens,
    /// `max_completion_tokens` only.
    MaxCompletionTokens,
}

/// How the usage of a stream is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamUsage {
    /// By asking, with `stream_options.include_usage`.
    Option,
    /// It comes unasked; asking is refused or of no use.
    Always,
}

/// Structured output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonOutput {
    /// `json_object`
    Object,
    /// `json_schema`
    Schema,
}

/// How an OpenAI-shaped vendor's reasoning is turned on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningSwitch {
    /// `reasoning_effort`
    Effort,
    /// `enable_thinking` and `thinking_budget` (Qwen)
    EnableThinking,
    /// `thinking: {type: enabled | disabled}` (Ark, Zhipu, DeepSeek, Moonshot)
    ThinkingType,
    /// `reasoning: {effort, max_tokens}` (OpenRouter)
    Object,
    /// It has none.
    None,
}

/// What an error of this vendor means. All that is given must match.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRule {
    /// The HTTP status. Inside a stream or a 200 there is none, and only rules without one can match.
    #[serde(default)]
    pub status: Option<u16>,
    /// The code or the type in the body is one of these, or a sub-code of one: `Throttling` stands for
    /// `Throttling.RateQuota` too. Case is ignored.
    #[serde(default)]
    pub codes: Vec<String>,
    /// The message holds this text. Case is ignored.
    #[serde(default)]
    pub message: Option<String>,
    /// Only when there is (or is not) a `retry-after` header.
    #[serde(default)]
    pub retry_after: Option<bool>,
    /// Seconds to leave the key alone when the answer does not say how long: for limits whose window is known to be long.
    #[serde(default)]
    pub wait: Option<u32>,
    /// What it means.
    pub means: Meaning,
}

/// What is to be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The key has used up its share of the moment: cools down, another target serves.
    RateLimited,
    /// The vendor is short of capacity for everyone: another target serves, the breaker counts.
    Overloaded,
    /// The service is broken: another target serves, the breaker counts.
    ServerError,
    /// The key is not accepted, or its account has no money: of no use until a human acts.
    Credential,
    /// The request is wrong: back to the client, never retried.
    Client,
    /// The request is too long for this model: only a target with a larger window can help.
    TooLong,
    /// The content is not allowed: not tried elsewhere.
    ContentFilter,
}

impl Vendor {
    /// The vendor with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        VENDORS.iter().find(|vendor| vendor.name == name)
    }

    /// The path template of a call; `None` when the vendor has no such call.
    #[must_use]
    pub fn path(&self, call: Call) -> Option<&str> {
        let path = self.calls.get(&call).map(String::as_str);
        if call == Call::MessagesStream { path.or_else(|| self.path(Call::Messages)) } else { path }
    }

    /// What its models usually lack.
    #[must_use]
    pub fn lacks(&self) -> Features {
        let parameters = &self.parameters;
        Features::default()
            .with(Feature::JsonSchema, !parameters.json.contains(&JsonOutput::Schema))
            .with(Feature::Vision, parameters.image_types.is_empty())
    }

    /// All vendors, in alphabetical order.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &VENDORS
    }

    fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut vendor: Self = read(text).map_err(|error| format!("{name}: {error}"))?;
        name.clone_into(&mut vendor.name);
        Ok(vendor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Settings;
    use crate::settings::placeholders;

    #[test]
    fn every_vendor_file_is_sound() {
        for (name, text) in FILES {
            let vendor = Vendor::read(name, text).unwrap();
            assert_eq!(vendor.wire.is_generic(), vendor.calls.is_empty(), "{name}");
            for stream in [false, true].into_iter().filter(|_| !vendor.wire.is_generic()) {
                let call = vendor.wire.call(stream);
                assert!(vendor.path(call).is_some(), "{name} lacks {call:?}, the call of its dialect");
            }
            check(name, &vendor.errors);
            let templates = vendor.calls.values().chain(&vendor.base_url).chain(vendor.regions.values());
            for placeholder in templates.flat_map(|template| placeholders(template)) {
                let known = placeholder == "model" || Settings::NAMES.contains(&placeholder);
                assert!(known, "{name}: nothing fills {{{placeholder}}}");
            }
            let in_path = vendor.path(vendor.wire.call(false)).is_some_and(|path| path.contains("{model}"));
            assert!(in_path || !vendor.model_in_path, "{name}: the model is nowhere");
        }
        check("errors", common_errors());
    }

    fn check(name: &str, rules: &[ErrorRule]) {
        for rule in rules {
            let says_something = rule.status.is_some() || !rule.codes.is_empty() || rule.message.is_some();
            assert!(says_something, "{name} has a rule that matches every error");
        }
    }

    #[test]
    fn vendors_are_in_order_and_found_by_name() {
        assert!(Vendor::all().is_sorted_by_key(|vendor| &vendor.name));
        for vendor in Vendor::all() {
            assert_eq!(Vendor::find(&vendor.name), Some(vendor));
        }
        assert_eq!(Vendor::find("telepathy"), None);
    }
}
