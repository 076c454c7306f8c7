//! `contents`.

use penstock_model::vendor::Wire;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::model;
use crate::dialect::TargetFacts;
use crate::exchange::shape::image_type;
use crate::exchange::{
    Field, Media, Part, Reasoning, Request, Role, Text, ToolCall, ToolResult, Turn, Unwritable,
};
use crate::gemini::ids;
use crate::gemini::wire::{OutCall, OutContent, OutPart, OutResponse, Piece};

/// Writes turns for one target.
pub(super) struct Writer<'a> {
    pub(super) request: &'a Request,
    pub(super) target: &'a TargetFacts<'a>,
}

/// Texts, each a part of its own (TR-01).
pub(super) fn texts<'a>(texts: &[&'a Text]) -> Vec<Piece<'a>> {
    texts.iter().map(|text| Piece::text(&text.text, None)).collect()
}

impl<'a> Writer<'a> {
    /// Turns that alternate (TR-02), results in the order of their calls (TR-03).
    pub(super) fn turns(&self, turns: &'a [Turn]) -> Result<Vec<OutContent<'a>>, Unwritable> {
        let mut contents: Vec<OutContent<'a>> = Vec::with_capacity(turns.len());
        let mut calls: Vec<&ToolCall> = Vec::new();
        for turn in turns {
            let parts = match turn.role {
                Role::Assistant => self.model_turn(turn)?,
                _ => self.user_turn(turn, &calls),
            };
            calls.clear();
            calls.extend(
                turn.parts
                    .iter()
                    .filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None }),
            );
            let role = if turn.role == Role::Assistant { "model" } else { "user" };
            match contents.last_mut().filter(|last| last.role == Some(role)) {
                _ if parts.is_empty() => {}
                // What stood between them could not be written.
                Some(last) => last.parts.extend(parts),
                None => contents.push(OutContent { role: Some(role), parts }),
            }
        }
        Ok(contents)
    }

    fn model_turn(&self, turn: &'a Turn) -> Result<Vec<Piece<'a>>, Unwritable> {
        let mut pieces = Vec::with_capacity(turn.parts.len());
        let mut first_call = true;
        for part in &turn.parts {
            match part {
                Part::ToolCall(call) => {
                    pieces.push(self.call(call, first_call)?);
                    first_call = false;
                }
                Part::Reasoning(reasoning) => self.reasoning(reasoning, &mut pieces),
                other => pieces.extend(self.plain(other)),
            }
        }
        Ok(pieces)
    }

    /// Signatures go back to whoever made them, and to nobody else.
    fn call(&self, call: &'a ToolCall, first: bool) -> Result<Piece<'a>, Unwritable> {
        let text = call.arguments.trim();
        let text = if text.is_empty() { "{}" } else { text };
        let args: &RawValue = serde_json::from_str(text).map_err(|_| {
            Unwritable::Wrong(Field::new("arguments", "a tool call's arguments are not JSON"))
        })?;
        let own = call.signature.as_ref().and_then(|signature| signature.for_wire(Wire::Gemini));
        // Of calls made together only the first is signed. A client of this dialect answers for its own history.
        let foreign = first && self.request.wire != Wire::Gemini && model::signs_calls(self.target.model);
        let signature = own.or(foreign.then_some(model::FOREIGN_CALL)).map(Into::into);
        Ok(Piece::call(OutCall { id: ids::given(&call.id), name: &call.name, args }, signature))
    }

    /// Thoughts of other models are left out: they are of no use to this one.
    fn reasoning(&self, reasoning: &'a Reasoning, pieces: &mut Vec<Piece<'a>>) {
        let signature = reasoning.signature.as_ref();
        let own = signature.and_then(|signature| signature.for_wire(Wire::Gemini));
        if own.is_none() && (self.request.wire != Wire::Gemini || signature.is_some()) {
            return;
        }
        match (reasoning.text.as_str(), own) {
            ("", None) => {}
            // The signature of a text, which streams report after it.
            ("", Some(own)) if self.request.wire != Wire::Gemini => match pieces.last_mut() {
                Some(Piece::Made(part)) if part.text.is_some() && part.thought_signature.is_none() => {
                    part.thought_signature = Some(own.into());
                }
                _ => pieces.push(Piece::text("", Some(own.into()))),
            },
            (text, own) => pieces.push(Piece::thought(text, own.map(Into::into))),
        }
    }

    fn user_turn(&self, turn: &'a Turn, calls: &[&'a ToolCall]) -> Vec<Piece<'a>> {
        let results: Vec<&ToolResult> = turn
            .parts
            .iter()
            .filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None })
            .collect();
        let mut pieces = Vec::with_capacity(turn.parts.len());
        let mut beside = Vec::new();
        for call in calls {
            if let Some(result) = results.iter().find(|result| result.call_id == call.id) {
                pieces.push(self.result(result, call, &mut beside));
            }
        }
        pieces.extend(beside);
        for part in turn.parts.iter().filter(|part| !matches!(part, Part::ToolResult(_))) {
            pieces.extend(self.plain(part));
        }
        pieces
    }

    /// A result, under the name of the function that was called. Where results cannot hold pictures, these go `beside`.
    fn result(&self, result: &'a ToolResult, call: &'a ToolCall, beside: &mut Vec<Piece<'a>>) -> Piece<'a> {
        let mut text = String::new();
        let mut parts = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text(one) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&one.text);
                }
                other => parts.extend(self.plain(other)),
            }
        }
        if !model::takes_media_in_results(self.target.model) {
            beside.append(&mut parts);
        }
        let response = response(text, result.is_error);
        let function_response =
            Some(OutResponse { id: ids::given(&call.id), name: &call.name, response, parts });
        Piece::Made(Box::new(OutPart { function_response, ..OutPart::default() }))
    }

    fn plain(&self, part: &'a Part) -> Option<Piece<'a>> {
        match part {
            Part::Text(text) => {
                let signature =
                    text.signature.as_ref().and_then(|signature| signature.for_wire(Wire::Gemini));
                let says = !text.text.is_empty() || signature.is_some();
                says.then(|| Piece::text(&text.text, signature.map(Into::into)))
            }
            Part::Image(media) => self.image(media),
            Part::Audio(media) | Part::File(media) => {
                OutPart::media(media).map(|part| Piece::Made(Box::new(part)))
            }
            Part::Refusal(text) => (!text.is_empty()).then(|| Piece::text(text, None)),
            Part::Other { wire: Wire::Gemini, value } => Some(Piece::AsCame(value)),
            Part::Other { .. } | Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        }
    }

    /// A picture. Where nobody said its type, it is known by its first bytes or by the end of its address.
    fn image(&self, media: &'a Media) -> Option<Piece<'a>> {
        let mut part = OutPart::media(media)?;
        if media.media_type.is_none() {
            if let Some(blob) = &mut part.inline_data
                && let Ok(kind) = image_type(media, &self.target.vendor.parameters.image_types, "image")
            {
                blob.mime_type = Some(kind.into());
            }
            if let Some(file) = &mut part.file_data {
                file.mime_type = type_by_address(file.file_uri).map(Into::into);
            }
        }
        Some(Piece::Made(Box::new(part)))
    }
}

/// The type of an image by the end of its address.
fn type_by_address(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => return None,
    })
}

/// A result as the object that it has to be: `output` and `error` are Google's names for one that is none.
fn response(text: String, is_error: bool) -> Box<RawValue> {
    let object = text.trim_start().starts_with('{');
    let object = object.then(|| RawValue::from_string(text.trim().to_owned()).ok()).flatten();
    let raw = match (object, is_error) {
        (Some(object), false) => return object,
        (Some(object), true) => RawValue::from_string(format!("{{\"error\":{object}}}")),
        (None, true) => to_raw_value(&json!({ "error": text })),
        (None, false) => to_raw_value(&json!({ "output": text })),
    };
    raw.expect("an object made of JSON is JSON")
}
