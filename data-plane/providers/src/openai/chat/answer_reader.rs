//! Reads a service's whole answer.

use serde_json::Value;
use serde_json::value::RawValue;

use super::members::{Members, elements, string, typed, value};
use super::{finish, media, reasoning, tool_reader};
use crate::exchange::{Answer, Choice, Media, Part, Reasoning, Source, Text, ToolCall};
use crate::openai::error_body::VendorError;
use crate::openai::usage;

/// Reads a body that came with a status of success. What it does not understand of a choice it leaves out: it is the
/// service's answer, and the client is not to blame.
pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let text = String::from_utf8_lossy(body);
    if let Some(error) = VendorError::in_band(text.as_bytes()) {
        return Err(error);
    }
    let members = Members::read(&text, "").map_err(|_| VendorError::default())?;
    let mut answer = Answer { usage: usage::find(text.as_bytes()), ..Answer::default() };
    let mut calls = Calls { id, choice: 0, made: 0 };
    for (name, raw) in &members.0 {
        match name.as_ref() {
            "object" | "usage" | "error" => {}
            "id" => answer.id = filled(raw),
            "model" => answer.model = filled(raw),
            "created" => answer.created = typed(raw, name).ok(),
            "choices" => {
                for raw in elements(raw, name).unwrap_or_default() {
                    calls = Calls { choice: answer.choices.len() as u32, made: 0, ..calls };
                    answer.choices.extend(choice(raw, &mut calls)?);
                }
            }
            _ => {
                answer.extra.extend(value(raw, name).ok().map(|value| (name.to_string(), value)));
            }
        }
    }
    if answer.choices.is_empty() {
        return Err(VendorError::default());
    }
    Ok(answer)
}

/// Makes ids for calls that have none.
struct Calls<'a> {
    id: &'a str,
    choice: u32,
    made: usize,
}

impl Calls<'_> {
    fn make(&mut self) -> String {
        self.made += 1;
        made_id(self.id, self.choice, self.made - 1)
    }
}

/// The id of a call to which the service gave none.
pub(super) fn made_id(answer: &str, choice: u32, call: usize) -> String {
    format!("call_{answer}_{choice}_{call}")
}

/// A string that says something.
pub(super) fn filled(raw: &RawValue) -> Option<String> {
    string(raw, "").ok().filter(|text| !text.is_empty())
}

fn choice(raw: &RawValue, calls: &mut Calls<'_>) -> Result<Option<Choice>, VendorError> {
    let Ok(members) = Members::read(raw.get(), "") else { return Ok(None) };
    let parts = members.get("message").map(|message| parts(message, calls)).unwrap_or_default();
    let mut choice = Choice {
        index: members.get("index").and_then(|raw| typed(raw, "").ok()).unwrap_or(calls.choice),
        logprobs: members.get("logprobs").and_then(|raw| value(raw, "").ok()),
        // vLLM; a number when a token ended it.
        stop_sequence: members.get("stop_reason").and_then(filled),
        ..Choice::default()
    };
    if let Some(word) = members.get("finish_reason").and_then(filled) {
        let stop = match finish::read(&word) {
            finish::Meaning::Failed(_) => return Err(finish::failure(&word)),
            finish::Meaning::Stop(stop) => stop,
        };
        let calls_tools = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop = finish::refine(stop, calls_tools, choice.stop_sequence.is_some());
        choice.stop = Some(stop);
        // OpenRouter's name for it.
        let native = members.get("native_finish_reason").and_then(filled).unwrap_or(word);
        choice.native_stop = Some(native).filter(|native| native != finish::word(stop));
    }
    choice.parts = parts;
    Ok(Some(choice))
}

fn parts(message: &RawValue, calls: &mut Calls<'_>) -> Vec<Part> {
    let Ok(members) = Members::read(message.get(), "") else { return Vec::new() };
    let mut parts: Vec<Part> =
        reasoning::read(&members, "").unwrap_or_default().into_iter().map(Part::Reasoning).collect();
    parts.extend(members.get("content").map(content).unwrap_or_default());
    if let Some(found) = members.get("annotations").and_then(|raw| typed(raw, "").ok())
        && let Some(Part::Text(Text { citations, .. })) = parts.last_mut()
    {
        *citations = found;
    }
    parts.extend(members.get("refusal").and_then(filled).map(Part::Refusal));
    parts.extend(members.get("images").map(images).unwrap_or_default());
    parts.extend(members.get("audio").and_then(audio).map(Part::Audio));
    for raw in members.get("tool_calls").and_then(|raw| elements(raw, "").ok()).unwrap_or_default() {
        parts.extend(tool_call(raw, calls));
    }
    if let Some(old) = members.get("function_call") {
        parts.extend(function(old, calls.make()).map(Part::ToolCall));
    }
    parts
}

/// A content: a text, or Mistral's list of chunks, in which thoughts are among the texts. Nothing that is empty.
pub(super) fn content(raw: &RawValue) -> Vec<Part> {
    if raw.get().starts_with('"') {
        return filled(raw).map(Part::text).into_iter().collect();
    }
    let chunks: Vec<Value> = typed(raw, "").unwrap_or_default();
    chunks.iter().filter_map(chunk).collect()
}

fn chunk(chunk: &Value) -> Option<Part> {
    let text = |value: &Value| value.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    match chunk.get("type")?.as_str()? {
        "text" => Some(Part::text(text(chunk))).filter(|_| !text(chunk).is_empty()),
        "thinking" => {
            let thoughts = chunk.get("thinking")?.as_array()?;
            let text: String = thoughts.iter().map(text).collect();
            let block = Reasoning { text, signature: None, redacted: false };
            (!block.text.is_empty()).then_some(Part::Reasoning(block))
        }
        _ => None,
    }
}

/// Pictures, where OpenRouter puts them.
pub(super) fn images(raw: &RawValue) -> Vec<Part> {
    let images: Vec<Value> = typed(raw, "").unwrap_or_default();
    let url = |image: &Value| image.get("image_url")?.get("url")?.as_str().map(str::to_owned);
    let media = images.iter().filter_map(url).filter_map(|url| media::from_url(url, "").ok());
    media.map(Part::Image).collect()
}

/// What the model says aloud: data, a transcript, an id.
pub(super) fn audio(raw: &RawValue) -> Option<Media> {
    let mut extra: serde_json::Map<String, Value> = typed(raw, "").ok()?;
    let data = match extra.remove("data") {
        Some(Value::String(data)) => data,
        _ => String::new(),
    };
    (!extra.is_empty() || !data.is_empty()).then(|| Media { extra, ..Media::new(Source::Base64(data), None) })
}

fn tool_call(raw: &RawValue, calls: &mut Calls<'_>) -> Option<Part> {
    let members = Members::read(raw.get(), "").ok()?;
    let Some(inner) = members.get("function") else {
        let value = value(raw, "").ok()?;
        return Some(Part::Other { wire: penstock_model::vendor::Wire::Openai, value });
    };
    let id = members.get("id").and_then(filled).unwrap_or_else(|| calls.make());
    let signature = members.get("extra_content").and_then(tool_reader::thought_signature);
    Some(Part::ToolCall(ToolCall { signature, ..function(inner, id)? }))
}

/// Arguments as they came: models that are cut off, or err, write what is no JSON.
fn function(raw: &RawValue, id: String) -> Option<ToolCall> {
    let members = Members::read(raw.get(), "").ok()?;
    let arguments = match members.get("arguments") {
        Some(raw) if raw.get().starts_with('{') => raw.get().to_owned(),
        Some(raw) => filled(raw).unwrap_or_else(|| "{}".to_owned()),
        None => "{}".to_owned(),
    };
    let name = members.get("name").and_then(filled)?;
    Some(ToolCall { id, name, arguments, signature: None, cache: None })
}
