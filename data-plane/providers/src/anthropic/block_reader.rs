//! Content blocks, of requests and answers alike, as parts.
//!
//! A block of a kind that is not listed here (a server tool's call or result, a search result, whatever comes next) is
//! kept whole as [`Part::Other`].
//!
//! Signatures of other dialects come marked (see [`Signature::to_text`]). Gemini signs pieces that have no signature here:
//! such a one travels as an empty thinking block just before the text or the tool call that it belongs to.

use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exchange::shape::media_type;
use crate::exchange::{
    CacheHint, Field, Media, Part, Reasoning, Signature, Source, Text, ToolCall, ToolResult,
};
use crate::json::{self, JsonStr};

/// Reads a message's content: a string, or blocks. `place` is where it stands.
pub(super) fn content(raw: &RawValue, place: &str) -> Result<Vec<Part>, Field> {
    if let Some(text) = JsonStr::new(raw) {
        return Ok(vec![Part::text(text.decode())]);
    }
    let blocks: Vec<&RawValue> = typed(raw, place)?;
    let mut parts = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let part = block_at(block, place, index)?;
        push(&mut parts, part);
    }
    Ok(parts)
}

/// A value of type `T`, or an error that names the field.
pub(super) fn typed<'a, T: Deserialize<'a>>(raw: &'a RawValue, place: &str) -> Result<T, Field> {
    serde_json::from_str(raw.get()).map_err(|error| {
        let full = error.to_string();
        let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
        Field::new(place, json::clip(reason, 200))
    })
}

/// `cache_control`.
#[derive(Deserialize)]
pub(super) struct CacheControl<'a> {
    #[serde(borrow, default, deserialize_with = "json::strict_text")]
    ttl: Option<Cow<'a, str>>,
}

impl CacheControl<'_> {
    /// Lifetimes are the two that there are; any other is the default.
    pub(super) fn hint(&self) -> CacheHint {
        match self.ttl.as_deref() {
            Some("5m") => CacheHint::FiveMinutes,
            Some("1h") => CacheHint::Hour,
            _ => CacheHint::Default,
        }
    }
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow, default, deserialize_with = "json::strict_text")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cache_control: Option<CacheControl<'a>>,
    citations: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Thinking<'a> {
    #[serde(borrow, default, deserialize_with = "json::strict_text")]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::strict_text")]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::strict_text")]
    data: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ToolUse<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_control: Option<CacheControl<'a>>,
}

#[derive(Deserialize)]
struct ToolResultBlock<'a> {
    #[serde(borrow)]
    tool_use_id: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow)]
    cache_control: Option<CacheControl<'a>>,
}

fn block_at(raw: &RawValue, place: &str, index: usize) -> Result<Part, Field> {
    block(raw).map_err(|problem| {
        let inner = if problem.field.is_empty() { String::new() } else { format!(".{}", problem.field) };
        Field::new(format!("{place}[{index}]{inner}"), problem.reason)
    })
}

/// One block. A field's place is relative to it.
pub(super) fn block(raw: &RawValue) -> Result<Part, Field> {
    let kind: Kind<'_> = typed(raw, "")?;
    match kind.r#type.as_ref() {
        "text" => {
            let block: TextBlock<'_> = typed(raw, "")?;
            Ok(Part::Text(Text {
                text: block.text.unwrap_or_default().into_owned(),
                cache: hint(block.cache_control),
                citations: block.citations.unwrap_or_default(),
                signature: None,
            }))
        }
        "thinking" => Ok(Part::Reasoning(thinking(&typed(raw, "")?))),
        "redacted_thinking" => {
            let block: Thinking<'_> = typed(raw, "")?;
            let signature = Signature::from_text(&block.data.unwrap_or_default(), Wire::Anthropic);
            Ok(Part::Reasoning(Reasoning { text: String::new(), signature: Some(signature), redacted: true }))
        }
        "image" => media(raw, false).map(Part::Image),
        "document" => media(raw, true).map(Part::File),
        "tool_use" => tool_use(&typed(raw, "")?).map(Part::ToolCall),
        "tool_result" => tool_result(typed(raw, "")?).map(Part::ToolResult),
        _ => Ok(Part::Other { wire: Wire::Anthropic, value: typed(raw, "")? }),
    }
}

fn hint(cache: Option<CacheControl<'_>>) -> Option<CacheHint> {
    cache.map(|cache| cache.hint())
}

fn thinking(block: &Thinking<'_>) -> Reasoning {
    let signature = block.signature.as_deref().filter(|text| !text.is_empty());
    let signature = signature.map(|text| Signature::from_text(text, Wire::Anthropic));
    // What OpenAI signs with is the thought itself, encrypted.
    let redacted = signature.as_ref().is_some_and(|signature| signature.wire == Wire::OpenaiResponses);
    Reasoning { text: block.thinking.as_deref().unwrap_or_default().to_owned(), signature, redacted }
}

fn tool_use(block: &ToolUse<'_>) -> Result<ToolCall, Field> {
    let arguments = block.input.map_or("{}", RawValue::get);
    if !arguments.starts_with('{') {
        return Err(Field::new("input", "a tool call's input must be an object"));
    }
    Ok(ToolCall {
        id: block.id.clone().into_owned(),
        name: block.name.clone().into_owned(),
        arguments: arguments.to_owned(),
        signature: None,
        cache: block.cache_control.as_ref().map(CacheControl::hint),
    })
}

fn tool_result(block: ToolResultBlock<'_>) -> Result<ToolResult, Field> {
    let parts = block.content.map(|raw| content(raw, "content")).transpose()?.unwrap_or_default();
    if parts.iter().any(|part| matches!(part, Part::ToolResult(_) | Part::ToolCall(_))) {
        return Err(Field::new("content", "a tool's result holds neither calls nor results"));
    }
    Ok(ToolResult {
        call_id: block.tool_use_id.into_owned(),
        name: None,
        parts,
        is_error: block.is_error.unwrap_or(false),
        cache: hint(block.cache_control),
    })
}

/// An image or a document. Its fields beside these are kept as they are.
fn media(raw: &RawValue, document: bool) -> Result<Media, Field> {
    let mut fields: Map<String, Value> = typed(raw, "")?;
    fields.remove("type");
    let wrong = |reason: &str| Field::new("source", reason);
    let Some(Value::Object(mut source)) = fields.remove("source") else {
        return Err(wrong("a source is an object"));
    };
    let mut take = |name: &str| match source.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (kind, written) = (take("type"), take("media_type"));
    let found = match kind.as_deref() {
        Some("base64") => take("data").map(Source::Base64),
        Some("text") => take("data").map(Source::Text),
        Some("url") => take("url").map(Source::Url),
        Some("file") => take("file_id").map(Source::FileId),
        // A document made of blocks.
        Some("content") if document => {
            return Err(wrong("a document whose source is `content` cannot be translated"));
        }
        _ => None,
    };
    let found = found.ok_or_else(|| wrong("a source is `base64`, `text`, `url` or `file`, with its data"))?;
    let mut media = Media::new(found, written.as_deref().map(media_type));
    media.cache = match fields.remove("cache_control") {
        None | Some(Value::Null) => None,
        Some(cache) => match cache.get("ttl").and_then(Value::as_str) {
            Some("5m") => Some(CacheHint::FiveMinutes),
            Some("1h") => Some(CacheHint::Hour),
            _ => Some(CacheHint::Default),
        },
    };
    if let Some(Value::String(title)) = fields.get_mut("title") {
        media.name = Some(std::mem::take(title));
    }
    if document {
        fields.remove("title");
    }
    fields.retain(|_, value| !value.is_null());
    media.extra = fields;
    Ok(media)
}

/// Adds a part. A Gemini signature just before it, in an empty thinking block, becomes its own.
pub(super) fn push(parts: &mut Vec<Part>, mut part: Part) {
    let slot = match &mut part {
        Part::ToolCall(call) => Some(&mut call.signature),
        Part::Text(text) => Some(&mut text.signature),
        _ => None,
    };
    if let Some(slot) = slot
        && let Some(Part::Reasoning(before)) = parts.last_mut()
        && before.text.is_empty()
        && before.signature.as_ref().is_some_and(|signature| signature.wire == Wire::Gemini)
    {
        *slot = before.signature.take();
        parts.pop();
    }
    parts.push(part);
}
