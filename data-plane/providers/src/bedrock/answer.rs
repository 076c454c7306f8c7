//! Whole answers.

use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::usage;
use crate::exchange::{Answer, Choice, Media, Part, Reasoning, Signature, Source, Stop, Text, ToolCall};
use crate::json::JsonStr;
use crate::openai::error_body::VendorError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Converse<'a> {
    #[serde(borrow)]
    output: Option<Output<'a>>,
    #[serde(default)]
    stop_reason: String,
    usage: Option<usage::Raw>,
    additional_model_response_fields: Option<Value>,
    /// `trace`, `metrics`, `performanceConfig` and what else there may be.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
}

/// A block of which we know the type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(#[serde(borrow)] &'a RawValue),
    ToolUse(#[serde(borrow)] ToolUse<'a>),
    ReasoningContent(#[serde(borrow)] Thought<'a>),
    Image(Image),
    CitationsContent(Cited),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    #[serde(default)]
    tool_use_id: String,
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Thought<'a> {
    ReasoningText {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        signature: Option<String>,
    },
    RedactedContent(String),
}

#[derive(Deserialize)]
struct Image {
    format: String,
    source: Bytes,
}

#[derive(Deserialize)]
struct Bytes {
    bytes: String,
}

#[derive(Deserialize)]
struct Cited {
    #[serde(default)]
    content: Vec<CitedText>,
    #[serde(default)]
    citations: Vec<Value>,
}

#[derive(Deserialize)]
struct CitedText {
    #[serde(default)]
    text: String,
}

/// Why an answer ended.
pub(super) enum Ended {
    /// As answers do.
    As(Stop),
    /// The model broke: what there is of the answer is of no use.
    Failed,
}

/// What a `stopReason` means. One that nobody knows yet is the end of an answer.
pub(super) fn ended(reason: &str) -> Ended {
    Ended::As(match reason {
        "stop_sequence" => Stop::Sequence,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::ToolCalls,
        "guardrail_intervened" | "content_filtered" => Stop::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => return Ended::Failed,
        _ => Stop::End,
    })
}

/// The error for an answer that ended like that.
pub(super) fn failure(reason: &str) -> VendorError {
    VendorError {
        code: Some(reason.to_owned()),
        message: Some(format!("the model stopped with \"{reason}\"")),
        ..VendorError::default()
    }
}

/// The stop sequence that ended an answer: only some models tell, and only when asked.
pub(super) fn stop_sequence(fields: Option<&Value>) -> Option<String> {
    Some(fields?.get("stop_sequence")?.as_str()?.to_owned())
}

/// A string, with halves of surrogate pairs replaced; nothing for any other value.
pub(super) fn text(raw: Option<&RawValue>) -> Cow<'_, str> {
    raw.and_then(JsonStr::new).map(JsonStr::decode).unwrap_or_default()
}

pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let converse: Converse<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    let Some(message) = converse.output.and_then(|output| output.message) else {
        return Err(VendorError::read(body));
    };
    let Ended::As(stop) = ended(&converse.stop_reason) else { return Err(failure(&converse.stop_reason)) };
    let mut parts = Vec::with_capacity(message.content.len());
    for block in message.content {
        read_block(block, id, &mut parts);
    }
    let says_more = !matches!(
        converse.stop_reason.as_str(),
        "" | "end_turn" | "stop_sequence" | "max_tokens" | "tool_use"
    );
    let choice = Choice {
        parts,
        stop: Some(stop),
        native_stop: says_more.then_some(converse.stop_reason),
        stop_sequence: stop_sequence(converse.additional_model_response_fields.as_ref()),
        ..Choice::default()
    };
    let mut extra = converse.extra;
    if let Some(fields) = converse.additional_model_response_fields {
        extra.insert("additionalModelResponseFields".to_owned(), fields);
    }
    let usage = converse.usage.map(usage::Raw::normalise).filter(|usage| !usage.is_empty());
    Ok(Answer { choices: vec![choice], usage, extra, ..Answer::default() })
}

fn read_block(raw: &RawValue, id: &str, parts: &mut Vec<Part>) {
    let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else {
        // Of a type that came later than this was written.
        let value = serde_json::from_str(raw.get()).unwrap_or_default();
        return parts.push(Part::Other { wire: Wire::Bedrock, value });
    };
    match block {
        Block::Text(raw) => {
            let text = text(Some(raw));
            if !text.is_empty() {
                parts.push(Part::text(text));
            }
        }
        Block::ToolUse(tool) => {
            let number = parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
            parts.push(Part::ToolCall(ToolCall {
                id: call_id(&tool.tool_use_id, id, number).into_owned(),
                name: tool.name,
                arguments: tool.input.map_or("{}", RawValue::get).to_owned(),
                signature: None,
                cache: None,
            }));
        }
        Block::ReasoningContent(thought) => parts.extend(read_thought(thought)),
        Block::Image(image) => {
            let kind = format!("image/{}", image.format);
            parts.push(Part::Image(Media::new(Source::Base64(image.source.bytes), Some(kind))));
        }
        Block::CitationsContent(cited) => {
            let text = cited.content.into_iter().map(|content| content.text).collect();
            parts.push(Part::Text(Text { text, citations: cited.citations, ..Text::default() }));
        }
    }
}

/// The id of a call; where the service gives none, one made of ours and the call's number.
pub(super) fn call_id<'a>(given: &'a str, id: &str, number: usize) -> Cow<'a, str> {
    if given.is_empty() { Cow::Owned(format!("call_{id}_{number}")) } else { Cow::Borrowed(given) }
}

/// A thought with neither text nor signature is none (TR-08).
fn read_thought(thought: Thought<'_>) -> Option<Part> {
    let signature = |value| Signature { wire: Wire::Bedrock, value };
    let reasoning = match thought {
        Thought::ReasoningText { text: raw, signature: mark } => Reasoning {
            text: text(raw).into_owned(),
            signature: mark.filter(|mark| !mark.is_empty()).map(signature),
            redacted: false,
        },
        Thought::RedactedContent(data) => {
            Reasoning { text: String::new(), signature: Some(signature(data)), redacted: true }
        }
    };
    let says_something = !reasoning.text.is_empty() || reasoning.signature.is_some();
    says_something.then_some(Part::Reasoning(reasoning))
}
