//! Content blocks as they are written.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exchange::CacheHint;

/// A content block.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        citations: &'a [Value],
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: Cow<'a, str>,
    },
    RedactedThinking {
        data: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
        #[serde(flatten)]
        extra: Option<&'a Map<String, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(flatten)]
        extra: Option<&'a Map<String, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Content::is_empty")]
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// A block of this dialect, whole.
    #[serde(untagged)]
    Other(&'a Value),
}

/// Where a picture or a document is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: Cow<'a, str>, data: &'a str },
    Text { media_type: &'static str, data: &'a str },
    Url { url: &'a str },
    File { file_id: &'a str },
}

/// Blocks; a single plain text is written as a string.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Content<'a> {
    inner: Inner<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Inner<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    pub(super) fn new(blocks: Vec<Block<'a>>) -> Self {
        let inner = match blocks.as_slice() {
            [Block::Text { text, citations: [], cache_control: None }] => Inner::Text(text),
            _ => Inner::Blocks(blocks),
        };
        Self { inner }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.inner, Inner::Blocks(blocks) if blocks.is_empty())
    }
}

/// `cache_control`
#[derive(Serialize, Clone, Copy)]
pub(super) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl From<CacheHint> for CacheControl {
    fn from(hint: CacheHint) -> Self {
        let ttl = match hint {
            CacheHint::Default => None,
            CacheHint::FiveMinutes => Some("5m"),
            CacheHint::Hour => Some("1h"),
        };
        Self { r#type: "ephemeral", ttl }
    }
}

/// A call's arguments as the object that they must be; `None` when they are none. Nothing stands for `{}` (TR-14).
pub(super) fn arguments(text: &str) -> Option<&RawValue> {
    let text = text.trim();
    let raw: &RawValue = serde_json::from_str(if text.is_empty() { "{}" } else { text }).ok()?;
    raw.get().starts_with('{').then_some(raw)
}
