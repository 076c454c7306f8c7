//! Parts of a request as content blocks.

use std::borrow::Cow;
use std::fmt::Write as _;

use penstock_model::vendor::Wire;

use super::block::{Block, Content, Source, arguments};
use crate::dialect::TargetFacts;
use crate::exchange::shape::{image_type, locate};
use crate::exchange::{
    Dropped, Field, Media, Part, Request, Role, Source as From, Text, ToolCall, ToolResult, Turn, Unwritable,
};
use crate::json::clip;

/// What is needed to write a request's parts.
pub(super) struct Writer<'a, 't> {
    pub(super) request: &'a Request,
    pub(super) target: &'a TargetFacts<'t>,
    pub(super) dropped: &'a mut Dropped,
}

impl Writer<'_, '_> {
    /// A turn's blocks. Thoughts that this dialect signed come first in a turn that does not begin with one (TR-08).
    pub(super) fn turn<'p>(&mut self, turn: &'p Turn) -> Result<Vec<Block<'p>>, Unwritable> {
        if turn.name.is_some() {
            self.dropped.add("name");
        }
        let mut blocks = self.blocks(&turn.parts, turn.role)?;
        let is_thought =
            |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
        if !blocks.first().is_some_and(is_thought) && blocks.iter().any(is_thought) {
            blocks.sort_by_key(|block| !is_thought(block));
        }
        Ok(blocks)
    }

    fn blocks<'p>(&mut self, parts: &'p [Part], role: Role) -> Result<Vec<Block<'p>>, Unwritable> {
        let mut blocks = Vec::with_capacity(parts.len());
        for part in parts {
            blocks.extend(self.block(part, role)?);
        }
        Ok(blocks)
    }

    /// A part's block; `None` when there is nothing to say, or nobody to say it to.
    fn block<'p>(&mut self, part: &'p Part, role: Role) -> Result<Option<Block<'p>>, Unwritable> {
        Ok(match part {
            Part::Text(text) => Some(self.text(text)),
            Part::Refusal(text) if text.is_empty() => None,
            Part::Refusal(text) => Some(Block::Text { text, citations: &[], cache_control: None }),
            Part::Reasoning(thought) => {
                let own =
                    thought.signature.as_ref().and_then(|signature| signature.for_wire(Wire::Anthropic));
                own.map(|value| match thought.redacted {
                    true => Block::RedactedThinking { data: Cow::Borrowed(value) },
                    false => Block::Thinking { thinking: &thought.text, signature: Cow::Borrowed(value) },
                })
            }
            Part::Image(media) => Some(self.image(media, part)?),
            Part::File(media) => Some(self.document(media, part)?),
            Part::Audio(_) => return Err(self.unsupported(part, "audio is not taken")),
            Part::ToolCall(call) => Some(tool_use(call)?),
            Part::ToolResult(result) => Some(self.tool_result(result, part)?),
            Part::Other { wire: Wire::Anthropic, value } => Some(Block::Other(value)),
            Part::Other { .. } if role == Role::Assistant => {
                self.dropped.add(locate(self.request, part));
                None
            }
            Part::Other { .. } => return Err(self.unsupported(part, "this kind of content is not taken")),
        })
    }

    pub(super) fn text<'p>(&mut self, text: &'p Text) -> Block<'p> {
        let citations: &[_] = if self.own() { &text.citations } else { &[] };
        if citations.len() != text.citations.len() {
            self.dropped.add("annotations");
        }
        Block::Text { text: &text.text, citations, cache_control: text.cache.map(Into::into) }
    }

    fn image<'p>(&mut self, media: &'p Media, part: &Part) -> Result<Block<'p>, Unwritable> {
        if media.detail.as_deref().is_some_and(|detail| detail != "auto") {
            self.dropped.add("detail");
        }
        let parameters = &self.target.vendor.parameters;
        let source = match &media.source {
            From::Base64(data) => {
                let kind = image_type(media, &parameters.image_types, &locate(self.request, part))?;
                Source::Base64 { media_type: Cow::Owned(kind), data }
            }
            From::Url(url) if parameters.image_urls => Source::Url { url },
            From::Url(_) => return Err(self.unsupported(part, "images by URL are not taken")),
            From::FileId(file_id) if self.own() => Source::File { file_id },
            From::FileId(_) => return Err(self.unsupported(part, "a file of another vendor is not known")),
            From::Text(_) => return Err(self.wrong(part, "an image cannot be text")),
        };
        let cache_control = media.cache.map(Into::into);
        Ok(Block::Image { source, extra: self.extra(media), cache_control })
    }

    /// A document: a PDF, or plain text.
    fn document<'p>(&mut self, media: &'p Media, part: &Part) -> Result<Block<'p>, Unwritable> {
        const PDF: &str = "application/pdf";
        let source = match &media.source {
            From::Base64(data) => match media.media_type.as_deref() {
                // The signature of a PDF, as base64 begins with it.
                None if data.starts_with("JVBERi") => Source::Base64 { media_type: PDF.into(), data },
                Some(PDF) => Source::Base64 { media_type: PDF.into(), data },
                _ => return Err(self.unsupported(part, "of all files, only PDF is taken in base64")),
            },
            From::Text(data) => Source::Text { media_type: "text/plain", data },
            From::Url(url) => Source::Url { url },
            From::FileId(file_id) if self.own() => Source::File { file_id },
            From::FileId(_) => return Err(self.unsupported(part, "a file of another vendor is not known")),
        };
        let (title, cache_control) = (media.name.as_deref(), media.cache.map(Into::into));
        Ok(Block::Document { source, title, extra: self.extra(media), cache_control })
    }

    fn extra<'p>(&mut self, media: &'p Media) -> Option<&'p serde_json::Map<String, serde_json::Value>> {
        if self.own() {
            return Some(&media.extra);
        }
        media.extra.keys().for_each(|name| self.dropped.add(name.clone()));
        None
    }

    fn tool_result<'p>(&mut self, result: &'p ToolResult, part: &Part) -> Result<Block<'p>, Unwritable> {
        let allowed = |inner: &Part| {
            matches!(
                inner,
                Part::Text(_) | Part::Image(_) | Part::File(_) | Part::Other { wire: Wire::Anthropic, .. }
            )
        };
        if !result.parts.iter().all(allowed) {
            return Err(self.unsupported(part, "a tool's result can only be text, images and documents"));
        }
        let filled = |block: &Block<'_>| !matches!(block, Block::Text { text: "", .. });
        let blocks = self.blocks(&result.parts, Role::User)?.into_iter().filter(filled).collect();
        Ok(Block::ToolResult {
            tool_use_id: id(&result.call_id),
            content: Content::new(blocks),
            is_error: result.is_error,
            cache_control: result.cache.map(Into::into),
        })
    }

    /// Was the request written in this dialect's words?
    pub(super) fn own(&self) -> bool {
        self.request.wire == Wire::Anthropic
    }

    fn unsupported(&self, part: &Part, reason: &str) -> Unwritable {
        Unwritable::Unsupported(Field::new(locate(self.request, part), reason))
    }

    fn wrong(&self, part: &Part, reason: &str) -> Unwritable {
        Unwritable::Wrong(Field::new(locate(self.request, part), reason))
    }
}

fn tool_use(call: &ToolCall) -> Result<Block<'_>, Unwritable> {
    let Some(input) = arguments(&call.arguments) else {
        let field = format!("tool call `{}`", clip(&call.id, 100));
        return Err(Unwritable::Wrong(Field::new(field, "its arguments are not a JSON object")));
    };
    let cache_control = call.cache.map(Into::into);
    Ok(Block::ToolUse { id: id(&call.id), name: &call.name, input, cache_control })
}

/// A call's id as the service takes it: letters, digits, `_` and `-`. Other vendors' ids are rewritten, the same in a
/// call and in its result, and different ones differently.
fn id(id: &str) -> Cow<'_, str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if id.bytes().all(|byte| plain(&byte)) && !id.is_empty() {
        return Cow::Borrowed(id);
    }
    let mut out = String::with_capacity(id.len() + 16);
    for byte in id.bytes() {
        if plain(&byte) {
            out.push(byte.into());
        } else {
            write!(out, "_{byte:02x}").expect("a string takes all");
        }
    }
    if out.is_empty() { Cow::Borrowed("_") } else { Cow::Owned(out) }
}
