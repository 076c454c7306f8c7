//! Turns as items of the input.
//!
//! What one turn holds is several items here, in the order of its parts: a message for neighbouring texts, an item for
//! each thought, call and result. Thoughts go only where they come from: those without a signature of this dialect are
//! left out.

use penstock_model::vendor::{Vendor, Wire};
use serde::Serialize;
use serde_json::Value;

use crate::chat_shaped::{self, Image, part_place, unsupported};
use crate::exchange::{
    CacheHint, Dropped, Media, Part, Reasoning, Request, Role, Source, Text, ToolCall, ToolResult, Turn,
    Unwritable,
};
use crate::responses::OWN;

/// One item of the input.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Message { role: &'static str, content: Content<'a> },
    Reasoning { r#type: &'static str, summary: Vec<Piece<'a>>, encrypted_content: &'a str },
    Call { r#type: &'static str, call_id: &'a str, name: &'a str, arguments: &'a str },
    Output { r#type: &'static str, call_id: &'a str, output: Content<'a> },
    Other(&'a Value),
}

/// What a message, or a tool's output, holds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Pieces(Vec<Piece<'a>>),
}

impl<'a> Content<'a> {
    /// A single plain text is written as a string.
    fn new(mut pieces: Vec<Piece<'a>>) -> Self {
        match pieces.as_mut_slice() {
            [] => Self::Text(""),
            [Piece::InputText { text, prompt_cache_breakpoint: None }] => Self::Text(text),
            [Piece::OutputText { text, annotations: [] }] => Self::Text(text),
            _ => Self::Pieces(pieces),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Piece<'a> {
    InputText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Breakpoint>,
    },
    OutputText {
        text: &'a str,
        annotations: &'a [Value],
    },
    Refusal {
        refusal: &'a str,
    },
    SummaryText {
        text: &'a str,
    },
    InputImage {
        #[serde(skip_serializing_if = "Option::is_none")]
        image_url: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<&'a str>,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
    },
    InputAudio {
        input_audio: Audio<'a>,
    },
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Debug, Serialize)]
pub(super) struct Audio<'a> {
    data: &'a str,
    format: &'a str,
}

/// An explicit cache boundary.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Breakpoint {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// Makes items of turns.
pub(super) struct Input<'a, 'd> {
    pub(super) request: &'a Request,
    pub(super) vendor: &'a Vendor,
    pub(super) dropped: &'d mut Dropped,
    pub(super) items: Vec<Item<'a>>,
}

impl<'a> Input<'a, '_> {
    /// Adds the items of the turn with this index.
    pub(super) fn add(&mut self, index: usize, turn: &'a Turn) -> Result<(), Unwritable> {
        let mut pieces = Vec::new();
        for (number, part) in turn.parts.iter().enumerate() {
            let place = || part_place(self.request, index, number);
            let item = match part {
                Part::ToolCall(call) => Some(call_item(call)),
                Part::ToolResult(result) => Some(self.result_item(result, &place())?),
                Part::Reasoning(reasoning) => match reasoning_item(reasoning) {
                    Some(item) => Some(item),
                    None => continue,
                },
                Part::Other { wire: OWN, value } if !is_piece(value) => Some(Item::Other(value)),
                _ => None,
            };
            if let Some(item) = item {
                self.message(turn.role, &mut pieces);
                self.items.push(item);
            } else if let Some(piece) = self.piece(turn.role, part, &place())? {
                pieces.push(piece);
            }
        }
        if turn.parts.is_empty() && turn.role != Role::Assistant {
            let role = role(turn.role, self.vendor);
            self.items.push(Item::Message { role, content: Content::Text("") });
        }
        self.message(turn.role, &mut pieces);
        Ok(())
    }

    /// Ends the message that is being put together.
    fn message(&mut self, turn_role: Role, pieces: &mut Vec<Piece<'a>>) {
        if !pieces.is_empty() {
            let content = Content::new(std::mem::take(pieces));
            self.items.push(Item::Message { role: role(turn_role, self.vendor), content });
        }
    }

    fn result_item(&mut self, result: &'a ToolResult, place: &str) -> Result<Item<'a>, Unwritable> {
        let mut pieces = Vec::with_capacity(result.parts.len());
        for part in &result.parts {
            pieces.extend(self.piece(Role::User, part, place)?);
        }
        let output = Content::new(pieces);
        Ok(Item::Output { r#type: "function_call_output", call_id: &result.call_id, output })
    }

    /// A part within a message; `None` when there is nothing to say.
    fn piece(&mut self, role: Role, part: &'a Part, place: &str) -> Result<Option<Piece<'a>>, Unwritable> {
        let assistant = role == Role::Assistant;
        Ok(Some(match part {
            Part::Text(text) if assistant && text.text.is_empty() => return Ok(None),
            Part::Text(text) if assistant => {
                let own: &[Value] = if self.request.wire == OWN { &text.citations } else { &[] };
                Piece::OutputText { text: &text.text, annotations: own }
            }
            Part::Text(text) => self.input_text(text),
            Part::Refusal(refusal) if assistant => Piece::Refusal { refusal },
            Part::Refusal(text) => Piece::InputText { text, prompt_cache_breakpoint: None },
            Part::Image(_) | Part::Audio(_) | Part::File(_) if assistant => {
                return unsupported(place, "this target takes only text from the assistant");
            }
            Part::Image(media) => self.image(media, place)?,
            Part::File(media) => self.file(media, place)?,
            Part::Audio(media) => audio(media, place)?,
            Part::Other { wire: OWN, value } => Piece::Other(value),
            Part::Other { .. } => {
                self.dropped.add(place);
                return Ok(None);
            }
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning(_) => return Ok(None),
        }))
    }

    fn input_text(&self, text: &'a Text) -> Piece<'a> {
        let prompt_cache_breakpoint = text.cache.filter(|_| self.request.wire == OWN).map(|hint| {
            let ttl = (hint == CacheHint::Hour).then_some("12h");
            Breakpoint { mode: "explicit", ttl }
        });
        Piece::InputText { text: &text.text, prompt_cache_breakpoint }
    }

    fn image(&self, media: &'a Media, place: &str) -> Result<Piece<'a>, Unwritable> {
        let (mut image_url, mut file_id) = (None, None);
        match &media.source {
            Source::FileId(id) if is_openais(self.request.wire) => file_id = Some(id.as_str()),
            _ => {
                image_url = Some(match chat_shaped::image(media, self.vendor, place)? {
                    Image::Inline { media_type, data } => data_url(&media_type, data),
                    Image::Url(url) => url.to_owned(),
                });
            }
        }
        Ok(Piece::InputImage { image_url, file_id, detail: media.detail.as_deref() })
    }

    fn file(&self, media: &'a Media, place: &str) -> Result<Piece<'a>, Unwritable> {
        let (mut file_data, mut file_url, mut file_id) = (None, None, None);
        let mut filename = media.name.as_deref();
        match &media.source {
            Source::Base64(data) => {
                let kind = media.media_type.as_deref().unwrap_or("application/pdf");
                file_data = Some(data_url(kind, data));
                // Known by its name's ending, which other dialects do not ask for.
                if self.request.wire != OWN {
                    let name = if kind == "application/pdf" { "file.pdf" } else { "file.txt" };
                    filename = Some(filename.unwrap_or(name));
                }
            }
            Source::Url(url) => file_url = Some(url.as_str()),
            Source::FileId(id) if is_openais(self.request.wire) => file_id = Some(id.as_str()),
            Source::FileId(_) => {
                return unsupported(place, "a file stored at one vendor cannot be used at another");
            }
            Source::Text(text) => return Ok(Piece::InputText { text, prompt_cache_breakpoint: None }),
        }
        Ok(Piece::InputFile { filename, file_data, file_url, file_id })
    }
}

fn audio<'a>(media: &'a Media, place: &str) -> Result<Piece<'a>, Unwritable> {
    let Source::Base64(data) = &media.source else {
        return unsupported(place, "this target takes audio only in base64");
    };
    let format = match media.media_type.as_deref() {
        Some("audio/mpeg" | "audio/mp3") => "mp3",
        Some("audio/wav" | "audio/x-wav" | "audio/wave") => "wav",
        _ => return unsupported(place, "this target takes audio as mp3 or wav"),
    };
    Ok(Piece::InputAudio { input_audio: Audio { data, format } })
}

fn call_item(call: &ToolCall) -> Item<'_> {
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
    Item::Call { r#type: "function_call", call_id: &call.id, name: &call.name, arguments }
}

fn reasoning_item(reasoning: &Reasoning) -> Option<Item<'_>> {
    let encrypted_content = reasoning.signature.as_ref()?.for_wire(OWN)?;
    let text = reasoning.text.as_str();
    let summary = if text.is_empty() { vec![] } else { vec![Piece::SummaryText { text }] };
    Some(Item::Reasoning { r#type: "reasoning", summary, encrypted_content })
}

/// Is it a piece of a message that we do not know, rather than an item?
fn is_piece(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    kind.starts_with("input_") || kind.starts_with("output_")
}

/// Is it a dialect of OpenAI's own service?
pub(super) fn is_openais(wire: Wire) -> bool {
    matches!(wire, Wire::Openai | Wire::OpenaiResponses)
}

fn role(role: Role, vendor: &Vendor) -> &'static str {
    match role {
        Role::Developer if vendor.parameters.developer_role => "developer",
        role => chat_shaped::role(role),
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}
