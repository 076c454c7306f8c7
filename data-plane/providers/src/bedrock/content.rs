//! Turns and their blocks.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_model::vendor::Wire;
use serde_json::Value;

use super::body::{Block, Bytes, CachePoint, Document, Image, Message, Reasoning as ReasoningBlock};
use super::family::Family;
use super::write::client_name;
use crate::chat_shaped::{arguments, part_place, unsupported};
use crate::exchange::shape::image_type;
use crate::exchange::{
    CacheHint, Dropped, Media, Part, Request, Role, Source, Text, ToolCall, ToolResult, Turn, Unwritable,
};

/// Documents that Converse takes: media type, ending of a file's name, format.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("application/pdf", "pdf", "pdf"),
    ("text/csv", "csv", "csv"),
    ("application/msword", "doc", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx", "docx"),
    ("application/vnd.ms-excel", "xls", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx", "xlsx"),
    ("text/html", "html", "html"),
    ("text/plain", "txt", "txt"),
    ("text/markdown", "md", "md"),
];

/// Longest id of a tool call.
const MAX_ID: usize = 64;

/// Writes blocks, and notes what they cannot carry.
pub(super) struct Writer<'w> {
    pub request: &'w Request,
    pub family: Family,
    /// Media types of images that the target takes.
    pub image_types: &'w [String],
    pub dropped: &'w mut Dropped,
    /// How many documents there were: their names must differ.
    pub documents: usize,
}

impl<'w> Writer<'w> {
    /// The instructions.
    pub(super) fn system<'a>(&mut self, texts: &[&'a Text]) -> Vec<Block<'a>> {
        let mut blocks = Vec::with_capacity(texts.len());
        for text in texts {
            blocks.push(Block::Text(&text.text));
            self.cache(text.cache, &mut blocks);
        }
        blocks
    }

    /// The conversation, which alternates.
    ///
    /// # Errors
    /// When a part is wrong, or nothing that Converse takes.
    pub(super) fn messages<'a>(&mut self, turns: &'a [Turn]) -> Result<Vec<Message<'a>>, Unwritable> {
        let mut messages: Vec<Message<'a>> = Vec::with_capacity(turns.len());
        for turn in turns {
            let is_answer = turn.role == Role::Assistant;
            let role = if is_answer { "assistant" } else { "user" };
            let mut content = match self.blocks(&turn.parts, is_answer, "messages") {
                Ok(content) => content,
                Err(error) => return Err(self.locate().err().unwrap_or(error)),
            };
            if turn.name.is_some() {
                self.dropped.add("name");
            }
            // A turn of nothing but another service's thoughts leaves nothing behind, and its neighbours meet.
            match messages.last_mut().filter(|last| last.role == role) {
                Some(last) => last.content.append(&mut content),
                None if content.is_empty() => {}
                None => messages.push(Message { role, content }),
            }
        }
        Ok(messages)
    }

    /// Goes through the conversation again in the client's order, so that an error names the client's own place.
    fn locate(&mut self) -> Result<(), Unwritable> {
        let request = self.request;
        for (index, turn) in request.turns.iter().enumerate() {
            for (part, content) in turn.parts.iter().enumerate() {
                let is_answer = turn.role == Role::Assistant;
                self.blocks(std::slice::from_ref(content), is_answer, &part_place(request, index, part))?;
            }
        }
        Ok(())
    }

    /// The blocks of a turn, the model's own if `is_answer`, or of a tool's result.
    fn blocks<'a>(
        &mut self,
        parts: &'a [Part],
        is_answer: bool,
        field: &str,
    ) -> Result<Vec<Block<'a>>, Unwritable> {
        let mut blocks = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Text(text) => {
                    if !text.citations.is_empty() {
                        self.dropped.add("citations");
                    }
                    if !text.text.is_empty() {
                        blocks.push(Block::Text(&text.text));
                    }
                    self.cache(text.cache, &mut blocks);
                }
                Part::Refusal(text) if text.is_empty() => {}
                Part::Refusal(text) => blocks.push(Block::Text(text)),
                Part::Image(media) => {
                    blocks.push(self.image(media, field)?);
                    self.cache(media.cache, &mut blocks);
                }
                Part::File(media) => {
                    blocks.push(self.document(media, field)?);
                    self.cache(media.cache, &mut blocks);
                }
                Part::ToolCall(call) => {
                    blocks.push(tool_use(call, field)?);
                    self.cache(call.cache, &mut blocks);
                }
                Part::ToolResult(result) => {
                    blocks.push(self.tool_result(result, field)?);
                    self.cache(result.cache, &mut blocks);
                }
                Part::Reasoning(_) => blocks.extend(thought(part)),
                Part::Other { wire: Wire::Bedrock, value } => blocks.push(Block::Other(value)),
                Part::Audio(_) => return unsupported(field, "Bedrock takes no sound"),
                // What the model of another service made.
                Part::Other { value, .. } if is_answer => {
                    let kind = value.get("type").and_then(Value::as_str);
                    self.dropped.add(kind.unwrap_or(field));
                }
                Part::Other { .. } => return unsupported(field, "Bedrock has nothing of this type"),
            }
        }
        Ok(blocks)
    }

    fn image<'a>(&mut self, media: &'a Media, field: &str) -> Result<Block<'a>, Unwritable> {
        let kind = image_type(media, self.image_types, field)?;
        let Source::Base64(data) = &media.source else {
            return unsupported(field, "Bedrock fetches no images: send them in base64");
        };
        if media.detail.is_some() {
            self.dropped.add("detail");
        }
        let format = kind.strip_prefix("image/").unwrap_or(&kind).to_owned();
        Ok(Block::Image(Image { format, source: Bytes { bytes: Cow::Borrowed(data) } }))
    }

    fn document<'a>(&mut self, media: &'a Media, field: &str) -> Result<Block<'a>, Unwritable> {
        let bytes = match &media.source {
            Source::Base64(data) => Cow::Borrowed(data.as_str()),
            Source::Text(text) => Cow::Owned(STANDARD.encode(text)),
            Source::Url(_) | Source::FileId(_) => {
                return unsupported(field, "Bedrock fetches no files: send them in base64");
            }
        };
        let Some(format) = document_format(media) else {
            return unsupported(field, "Bedrock takes no documents of this type");
        };
        for key in media.extra.keys().filter(|key| !matches!(key.as_str(), "context" | "citations")) {
            self.dropped.add(key.as_str());
        }
        self.documents += 1;
        let name = document_name(media.name.as_deref(), self.documents);
        let (context, citations) = (media.extra.get("context"), media.extra.get("citations"));
        Ok(Block::Document(Document { name, format, source: Bytes { bytes }, context, citations }))
    }

    fn tool_result<'a>(&mut self, result: &'a ToolResult, field: &str) -> Result<Block<'a>, Unwritable> {
        let mut status = result.is_error.then_some("error");
        if status.is_some() && !self.family.takes_result_status() {
            self.dropped.add("is_error");
            status = None;
        }
        let content = self.blocks(&result.parts, false, field)?;
        Ok(Block::ToolResult { tool_use_id: tool_use_id(&result.call_id), content, status })
    }

    /// A cache point behind a block; one on nothing is left out.
    fn cache(&mut self, hint: Option<CacheHint>, blocks: &mut Vec<Block<'_>>) {
        if !blocks.is_empty() {
            let point = cache_point(hint, self.family, self.request.wire, self.dropped);
            blocks.extend(point.map(Block::CachePoint));
        }
    }
}

/// The cache point for a hint, where the model takes them.
pub(super) fn cache_point(
    hint: Option<CacheHint>,
    family: Family,
    wire: Wire,
    dropped: &mut Dropped,
) -> Option<CachePoint> {
    let hint = hint?;
    if !family.takes_cache_points() {
        dropped.add(client_name(wire, "cache_control"));
        return None;
    }
    // Five minutes is the default, and older models know no other.
    let ttl = (hint == CacheHint::Hour).then_some("1h");
    Some(CachePoint { r#type: "default", ttl })
}

fn tool_use<'a>(call: &'a ToolCall, field: &str) -> Result<Block<'a>, Unwritable> {
    let input = arguments(call, || field.to_owned())?;
    Ok(Block::ToolUse { tool_use_id: tool_use_id(&call.id), name: &call.name, input })
}

/// An id as Converse takes it: letters, digits, `_` and `-`, at most 64. Others are replaced by one that is the same
/// every time, so that calls and results still match, and another for each.
fn tool_use_id(id: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let plain = id.bytes().map(|byte| if is_plain(byte) { char::from(byte) } else { '_' });
    let start: String = plain.take(MAX_ID - 9).collect();
    Cow::Owned(format!("{start}_{:08x}", crc32fast::hash(id.as_bytes())))
}

/// A thought goes back only with Bedrock's own signature; without it, it is refused.
fn thought(part: &Part) -> Option<Block<'_>> {
    let Part::Reasoning(reasoning) = part else { return None };
    let signature = reasoning.signature.as_ref()?.for_wire(Wire::Bedrock)?;
    Some(Block::ReasoningContent(if reasoning.redacted {
        ReasoningBlock::RedactedContent(signature)
    } else {
        ReasoningBlock::ReasoningText { text: &reasoning.text, signature }
    }))
}

fn document_format(media: &Media) -> Option<&'static str> {
    let by_type = media.media_type.as_deref().and_then(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        DOCUMENTS.iter().find(|(known, ..)| *known == kind)
    });
    let by_name = || {
        let (_, ending) = media.name.as_deref()?.rsplit_once('.')?;
        DOCUMENTS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(ending))
    };
    let found = by_type.or_else(by_name).map(|(.., format)| *format);
    found.or_else(|| matches!(media.source, Source::Text(_)).then_some("txt"))
}

/// A document's name as Converse takes it: letters, digits, single spaces, hyphens, brackets; no other has it.
fn document_name(name: Option<&str>, number: usize) -> String {
    let plain: String = name
        .unwrap_or_default()
        .chars()
        .take(150)
        .map(|c| if c.is_ascii_alphanumeric() || "-()[]".contains(c) { c } else { ' ' })
        .collect();
    let words: Vec<&str> = plain.split_ascii_whitespace().collect();
    match (words.is_empty(), number) {
        (true, number) => format!("document {number}"),
        (false, 1) => words.join(" "),
        (false, number) => format!("{} ({number})", words.join(" ")),
    }
}
