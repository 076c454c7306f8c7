//! What turns and answers are made of.

use penstock_model::vendor::Wire;
use serde_json::{Map, Value};

/// One piece of a turn or of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(Text),
    /// A picture.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// A document, or any other file.
    File(Media),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// What a tool gave back.
    ToolResult(ToolResult),
    /// What the model thought.
    Reasoning(Reasoning),
    /// The model declines, in a field of its own (OpenAI).
    Refusal(String),
    /// A piece that only one dialect knows, whole and in its words.
    Other {
        /// Whose words.
        wire: Wire,
        /// The piece.
        value: Value,
    },
}

impl Part {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), ..Text::default() })
    }
}

/// Text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// A cache boundary behind it.
    pub cache: Option<CacheHint>,
    /// Annotations (OpenAI) or citations (Anthropic, Cohere), in the words of the answer's dialect.
    pub citations: Vec<Value>,
    /// A signature on it (Gemini).
    pub signature: Option<Signature>,
}

/// A picture, a sound, a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// Where it is.
    pub source: Source,
    /// Lower-case, without parameters; `image/jpg` is written `image/jpeg` (TR-07).
    pub media_type: Option<String>,
    /// A file's name, a document's title.
    pub name: Option<String>,
    /// OpenAI's `detail` of an image.
    pub detail: Option<String>,
    /// A cache boundary behind it.
    pub cache: Option<CacheHint>,
    /// Fields of one dialect (a document's `context`, `citations`), as they came.
    pub extra: Map<String, Value>,
}

impl Media {
    /// Without anything but its source and type.
    #[must_use]
    pub fn new(source: Source, media_type: Option<String>) -> Self {
        Self { source, media_type, name: None, detail: None, cache: None, extra: Map::new() }
    }
}

/// Where a picture, a sound or a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Here, in base64 as it came.
    Base64(String),
    /// Here, as text (Anthropic's plain-text documents).
    Text(String),
    /// At an address that the service is to fetch.
    Url(String),
    /// At the vendor, under an id of its own.
    FileId(String),
}

/// The model calls a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Which call: its result names it.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// A JSON object, as text. Never empty: a call without arguments has `{}` (TR-14).
    pub arguments: String,
    /// A signature on it (Gemini).
    pub signature: Option<Signature>,
    /// A cache boundary behind it.
    pub cache: Option<CacheHint>,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Which call.
    pub call_id: String,
    /// The tool's name, where the dialect says it.
    pub name: Option<String>,
    /// Text and pictures.
    pub parts: Vec<Part>,
    /// Did the tool fail?
    pub is_error: bool,
    /// A cache boundary behind it.
    pub cache: Option<CacheHint>,
}

/// What the model thought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasoning {
    /// In clear; may be empty where there is a signature (TR-08).
    pub text: String,
    /// What the vendor needs to take it back: a signature, or the thought itself, encrypted.
    pub signature: Option<Signature>,
    /// Is `signature` the encrypted thought (Anthropic's `redacted_thinking`, OpenAI's `encrypted_content`)?
    pub redacted: bool,
}

/// A vendor's opaque mark on a piece: to be given back verbatim to a service of the same dialect, and to no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Whose.
    pub wire: Wire,
    /// As it came.
    pub value: String,
}

impl Signature {
    /// As a client's protocol carries it in a field of its own: a foreign one is marked with its dialect.
    #[must_use]
    pub fn to_text(&self, own: Wire) -> String {
        if self.wire == own {
            self.value.clone()
        } else {
            format!("{MARK}{}:{}", self.wire.as_str(), self.value)
        }
    }

    /// The reverse of [`Self::to_text`].
    #[must_use]
    pub fn from_text(text: &str, own: Wire) -> Self {
        let foreign =
            text.strip_prefix(MARK).and_then(|rest| rest.split_once(':')).and_then(|(wire, value)| {
                let wire = Wire::ALL.into_iter().find(|known| known.as_str() == wire)?;
                Some(Self { wire, value: value.to_owned() })
            });
        foreign.unwrap_or_else(|| Self { wire: own, value: text.to_owned() })
    }

    /// The value, if it may be given to a service of `wire`.
    #[must_use]
    pub fn for_wire(&self, wire: Wire) -> Option<&str> {
        (self.wire == wire).then_some(self.value.as_str())
    }
}

/// What marks a signature of another dialect.
const MARK: &str = "penstock-";

/// A cache boundary: everything up to here is worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheHint {
    /// For as long as the vendor's default.
    Default,
    /// For five minutes, asked for explicitly.
    FiveMinutes,
    /// For an hour.
    Hour,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_finds_its_way_back_through_a_protocol_of_another_dialect() {
        for wire in Wire::ALL {
            for value in ["c2ln", "", "a:b", "penstock-x"] {
                let signature = Signature { wire, value: value.to_owned() };
                for own in Wire::ALL {
                    let text = signature.to_text(own);
                    assert_eq!(Signature::from_text(&text, own), signature, "{text}");
                }
            }
        }
        let own = Signature::from_text("penstock-nobody:x", Wire::Anthropic);
        assert_eq!(own.for_wire(Wire::Anthropic), Some("penstock-nobody:x"));
        assert_eq!(own.for_wire(Wire::Gemini), None);
    }
}
