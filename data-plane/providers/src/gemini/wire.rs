//! Parts as they are written, in requests and in answers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exchange::{Media, Source};

/// A part of our making, or one that came in this dialect and goes back as it is.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Piece<'a> {
    /// Of our making.
    Made(Box<OutPart<'a>>),
    /// As it came.
    AsCame(&'a Value),
}

/// `Part`
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<OutBlob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file_data: Option<OutFile<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<OutCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<OutResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<Cow<'a, str>>,
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutBlob<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<Cow<'a, str>>,
    pub(super) data: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<Cow<'a, str>>,
    pub(super) file_uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct OutCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) args: &'a RawValue,
}

#[derive(Serialize)]
pub(super) struct OutResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) response: Box<RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Piece<'a>>,
}

/// `Content`
#[derive(Serialize)]
pub(super) struct OutContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    pub(super) parts: Vec<Piece<'a>>,
}

impl<'a> Piece<'a> {
    /// Text, with its signature.
    pub(super) fn text(text: impl Into<Cow<'a, str>>, thought_signature: Option<Cow<'a, str>>) -> Self {
        Self::Made(Box::new(OutPart { text: Some(text.into()), thought_signature, ..OutPart::default() }))
    }

    /// A thought, with its signature.
    pub(super) fn thought(text: impl Into<Cow<'a, str>>, thought_signature: Option<Cow<'a, str>>) -> Self {
        let text = Some(text.into());
        Self::Made(Box::new(OutPart { text, thought: Some(true), thought_signature, ..OutPart::default() }))
    }

    /// A call, with its signature.
    pub(super) fn call(call: OutCall<'a>, thought_signature: Option<Cow<'a, str>>) -> Self {
        Self::Made(Box::new(OutPart { function_call: Some(call), thought_signature, ..OutPart::default() }))
    }
}

/// Fields of a part that only this dialect has, which readers keep beside its data.
const EXTRA: [&str; 4] = ["videoMetadata", "mediaResolution", "thoughtSignature", "thought"];

impl<'a> OutPart<'a> {
    /// Data or a file; `None` when it is at another vendor.
    pub(super) fn media(media: &'a Media) -> Option<Self> {
        let written = media.extra.get("mimeType").and_then(Value::as_str);
        let mime_type = written.or(media.media_type.as_deref()).map(Cow::Borrowed);
        let display_name = media.name.as_deref();
        let mut part = match &media.source {
            Source::Base64(data) => {
                let mime_type = mime_type.or(Some("application/octet-stream".into()));
                Self { inline_data: Some(OutBlob { mime_type, data, display_name }), ..Self::default() }
            }
            Source::Url(file_uri) => {
                Self { file_data: Some(OutFile { mime_type, file_uri, display_name }), ..Self::default() }
            }
            Source::Text(text) => Self { text: Some(text.into()), ..Self::default() },
            Source::FileId(_) => return None,
        };
        for (name, value) in media.extra.iter().filter(|(name, _)| EXTRA.contains(&name.as_str())) {
            part.extra.insert(name.clone(), value.clone());
        }
        Some(part)
    }
}
