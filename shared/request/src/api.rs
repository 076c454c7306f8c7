//! What a path stands for.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Version};
use penstock_model::vendor::{Call, Wire};
use penstock_providers::grpc;

/// What a client wants of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Api<'a> {
    /// A conversation, in the protocol of `wire`. Where the path says the model and whether to stream, it is here.
    Conversation {
        /// Which protocol.
        wire: Wire,
        /// The model that the path names.
        model: Option<Cow<'a, str>>,
        /// Does the path ask for a stream?
        stream: bool,
    },
    /// How many tokens a conversation has.
    CountTokens {
        /// In which protocol.
        wire: Wire,
        /// The model that the path names.
        model: Option<Cow<'a, str>>,
    },
    /// A call that only services of its own shape can take.
    Other(Call),
    /// The models.
    Models {
        /// In which protocol, by the path.
        wire: Wire,
    },
    /// One model.
    Model {
        /// In which protocol, by the path.
        wire: Wire,
        /// Its name.
        id: Cow<'a, str>,
    },
    /// Our own simple call.
    Invoke,
    /// Are we alive?
    Health,
    /// A path of no protocol: what a route makes of it.
    Generic,
    /// A method of a gRPC service, likewise.
    Grpc,
}

impl<'a> Api<'a> {
    /// Reads a path, without its query.
    #[must_use]
    pub fn of(path: &'a str) -> Self {
        let talk = |wire| Self::Conversation { wire, model: None, stream: false };
        match path {
            "/v1/chat/completions" => talk(Wire::Openai),
            "/v1/responses" => talk(Wire::OpenaiResponses),
            "/v1/messages" => talk(Wire::Anthropic),
            "/v1/messages/count_tokens" => Self::CountTokens { wire: Wire::Anthropic, model: None },
            "/v1/completions" => Self::Other(Call::Completions),
            "/v1/embeddings" => Self::Other(Call::Embeddings),
            "/v1/rerank" => Self::Other(Call::Rerank),
            "/v1/moderations" => Self::Other(Call::Moderations),
            "/v1/images/generations" => Self::Other(Call::ImagesGenerations),
            "/v1/images/edits" => Self::Other(Call::ImagesEdits),
            "/v1/images/variations" => Self::Other(Call::ImagesVariations),
            "/v1/audio/speech" => Self::Other(Call::AudioSpeech),
            "/v1/audio/transcriptions" => Self::Other(Call::AudioTranscriptions),
            "/v1/audio/translations" => Self::Other(Call::AudioTranslations),
            "/v1/models" => Self::Models { wire: Wire::Openai },
            "/v1beta/models" => Self::Models { wire: Wire::Gemini },
            "/api/invoke" => Self::Invoke,
            "/health" => Self::Health,
            _ => Self::of_model(path).unwrap_or(Self::Generic),
        }
    }

    /// Reads the head of a request.
    #[must_use]
    pub fn of_request(head: &'a Parts) -> Self {
        let media_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        match Self::of(head.uri.path()) {
            // gRPC ends with trailers, for which there is no place in HTTP/1.1 as clients and proxies know it.
            Self::Generic if head.version == Version::HTTP_2 && grpc::is_call(media_type) => Self::Grpc,
            api => api,
        }
    }

    /// `/v1beta/models/MODEL:CALL`, also under `/v1` as newer clients have it, and `/v1/models/MODEL`.
    fn of_model(path: &'a str) -> Option<Self> {
        let beta = path.strip_prefix("/v1beta/models/");
        let rest = beta.or_else(|| path.strip_prefix("/v1/models/"))?;
        let Some((model, call)) = rest.rsplit_once(':') else {
            let wire = if beta.is_some() { Wire::Gemini } else { Wire::Openai };
            return (!rest.is_empty()).then(|| Self::Model { wire, id: decode(rest) });
        };
        let model = Some(decode(model)).filter(|model| !model.is_empty())?;
        match call {
            "generateContent" => {
                Some(Self::Conversation { wire: Wire::Gemini, model: Some(model), stream: false })
            }
            "streamGenerateContent" => {
                Some(Self::Conversation { wire: Wire::Gemini, model: Some(model), stream: true })
            }
            // KServe's and TensorFlow Serving's.
            "predict" | "explain" | "classify" | "regress" => None,
            "countTokens" => Some(Self::CountTokens { wire: Wire::Gemini, model: Some(model) }),
            // A model's name may hold a colon.
            _ if beta.is_none() => Some(Self::Model { wire: Wire::Openai, id: decode(rest) }),
            _ => None,
        }
    }

    /// Is it a call of no protocol?
    #[must_use]
    pub fn is_generic(&self) -> bool {
        matches!(self, Self::Generic | Self::Grpc)
    }

    /// The protocol in which errors are told.
    #[must_use]
    pub fn wire(&self) -> Wire {
        match self {
            Self::Conversation { wire, .. }
            | Self::CountTokens { wire, .. }
            | Self::Models { wire }
            | Self::Model { wire, .. } => *wire,
            Self::Grpc => Wire::Grpc,
            _ => Wire::Openai,
        }
    }

    /// The path as labels and logs have it: one of a few.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Conversation { wire: Wire::Openai, .. } => "/v1/chat/completions",
            Self::Conversation { wire: Wire::OpenaiResponses, .. } => "/v1/responses",
            Self::Conversation { wire: Wire::Anthropic, .. } => "/v1/messages",
            Self::Conversation { stream: false, .. } => "/v1beta/models/{model}:generateContent",
            Self::Conversation { stream: true, .. } => "/v1beta/models/{model}:streamGenerateContent",
            Self::CountTokens { wire: Wire::Gemini, .. } => "/v1beta/models/{model}:countTokens",
            Self::CountTokens { .. } => "/v1/messages/count_tokens",
            Self::Other(call) => other(*call).0,
            Self::Models { .. } => "/v1/models",
            Self::Model { .. } => "/v1/models/{model}",
            Self::Invoke => "/api/invoke",
            Self::Health => "/health",
            Self::Generic => "other",
            Self::Grpc => "grpc",
        }
    }

    /// The protocol as rules, logs and records name it.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Conversation { wire, .. } | Self::CountTokens { wire, .. } => match wire {
                Wire::OpenaiResponses => "openai-responses",
                Wire::Anthropic => "anthropic-messages",
                Wire::Gemini => "gemini",
                _ => "openai-chat",
            },
            Self::Other(call) => other(*call).1,
            Self::Invoke => "invoke",
            Self::Generic => "http",
            Self::Grpc => "grpc",
            Self::Models { .. } | Self::Model { .. } | Self::Health => "openai-chat",
        }
    }

    /// What OpenTelemetry's conventions call the operation (`gen_ai.operation.name`).
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Conversation { wire: Wire::Gemini, .. } => "generate_content",
            Self::Generic | Self::Grpc => "generic",
            Self::Other(Call::Embeddings) => "embeddings",
            Self::Other(Call::Completions) => "text_completion",
            Self::Other(call) => other(*call).2,
            _ => "chat",
        }
    }

    /// The one method that it takes; `None` for any.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match self {
            Self::Models { .. } | Self::Model { .. } | Self::Health => Some(Method::GET),
            Self::Generic => None,
            _ => Some(Method::POST),
        }
    }
}

/// Path, protocol and operation of a call that is only passed through.
fn other(call: Call) -> (&'static str, &'static str, &'static str) {
    match call {
        Call::Completions => ("/v1/completions", "openai-completions", "text_completion"),
        Call::Embeddings => ("/v1/embeddings", "openai-embeddings", "embeddings"),
        Call::Rerank => ("/v1/rerank", "openai-rerank", "rerank"),
        Call::Moderations => ("/v1/moderations", "openai-moderations", "moderation"),
        Call::ImagesGenerations => ("/v1/images/generations", "openai-images", "image_generation"),
        Call::ImagesEdits => ("/v1/images/edits", "openai-images", "image_generation"),
        Call::ImagesVariations => ("/v1/images/variations", "openai-images", "image_generation"),
        Call::AudioSpeech => ("/v1/audio/speech", "openai-audio", "speech"),
        Call::AudioTranscriptions => ("/v1/audio/transcriptions", "openai-audio", "transcription"),
        Call::AudioTranslations => ("/v1/audio/translations", "openai-audio", "transcription"),
        _ => ("other", "http", "chat"),
    }
}

/// Does the path lead where it seems to? Rules see it as it is, while a service would resolve `..`, and be called where
/// no rule allows it. Clients resolve such segments before they ask (RFC 3986 section 5.2.4).
#[must_use]
pub fn is_plain(path: &str) -> bool {
    let is_dots = |segment: &str| {
        let segment = segment.replace("%2e", ".").replace("%2E", ".");
        segment == "." || segment == ".."
    };
    // Some services take an encoded or a backward slash for one as well.
    let path = path
        .replace("%2f", "/")
        .replace("%2F", "/")
        .replace("%5c", "/")
        .replace("%5C", "/")
        .replace('\\', "/");
    path.starts_with('/') && !path.split('/').any(is_dots)
}

/// `%3A` to `:`; what is no such escape, or gives no UTF-8, stays.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let decoded = escape
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(decoded.unwrap_or(bytes[at]));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_calls_are_found_under_both_prefixes_with_their_model() {
        for prefix in ["/v1beta", "/v1"] {
            let path = format!("{prefix}/models/gemini-2.5-pro:streamGenerateContent");
            let expected =
                Api::Conversation { wire: Wire::Gemini, model: Some("gemini-2.5-pro".into()), stream: true };
            assert_eq!(Api::of(&path), expected);
            let path = format!("{prefix}/models/a%2Fb%3Ac:generateContent");
            let expected =
                Api::Conversation { wire: Wire::Gemini, model: Some("a/b:c".into()), stream: false };
            assert_eq!(Api::of(&path), expected);
        }
        assert!(matches!(
            Api::of("/v1beta/models/m:countTokens"),
            Api::CountTokens { wire: Wire::Gemini, .. }
        ));
        assert_eq!(Api::of("/v1beta/models/m:destroy"), Api::Generic);
        assert_eq!(Api::of("/v1beta/models/:generateContent"), Api::Generic);
    }

    #[test]
    fn a_models_page_is_told_from_a_call() {
        assert_eq!(Api::of("/v1/models/gpt-x"), Api::Model { wire: Wire::Openai, id: "gpt-x".into() });
        assert_eq!(Api::of("/v1/models/qwen:7b"), Api::Model { wire: Wire::Openai, id: "qwen:7b".into() });
        assert_eq!(Api::of("/v1beta/models/g"), Api::Model { wire: Wire::Gemini, id: "g".into() });
        assert_eq!(Api::of("/v1/models"), Api::Models { wire: Wire::Openai });
        assert_eq!(Api::of("/v1/models/"), Api::Generic);
        assert_eq!(Api::of("/v1/models/iris:predict"), Api::Generic, "KServe's and TensorFlow Serving's");
    }

    #[test]
    fn every_protocol_is_in_the_reference_of_conditions() {
        let (.., meaning) =
            penstock_model::policy::CONTEXT_FIELDS.iter().find(|field| field.0 == "protocol").unwrap();
        let known: Vec<&str> = meaning.split([',', ' ']).collect();
        for api in [
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/messages",
            "/v1beta/models/m:generateContent",
            "/v1/completions",
            "/v1/embeddings",
            "/v1/rerank",
            "/v1/moderations",
            "/v1/images/edits",
            "/v1/audio/speech",
            "/api/invoke",
            "/else",
        ]
        .map(Api::of)
        .into_iter()
        .chain([Api::Grpc])
        {
            let protocol = api.protocol();
            assert!(known.contains(&protocol), "{protocol}");
        }
    }

    #[test]
    fn a_path_that_a_service_would_resolve_elsewhere_is_none() {
        for good in ["/", "/risk/score", "/v2/models/m/infer", "/a..b/.c", "/a//b/", "/%20/..."] {
            assert!(is_plain(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "/..",
            "/risk/../admin",
            "/risk/./x",
            "/%2e%2E/x",
            "/a/.%2e",
            "/a%2f..%2fb",
            "/a\\..\\b",
            "/a%5C..%5cb",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        for text in ["%", "%4", "%zz", "100%", "%ff", "a%+1b"] {
            assert_eq!(decode(text), text);
        }
        assert_eq!(decode("%E4%BD%A0"), "你");
    }
}
