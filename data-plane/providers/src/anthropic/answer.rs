//! Whole answers.

use std::borrow::Cow;

use bytes::Bytes;
use penstock_model::vendor::Wire;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::block::{Block, arguments};
use super::{block_reader, error, stop, usage};
use crate::dialect::Asked;
use crate::exchange::{Answer, Choice, Part, Reasoning, Signature, Stop};
use crate::openai::error_body::VendorError;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    stop_sequence: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    container: Option<Value>,
    context_management: Option<Value>,
    stop_details: Option<Value>,
}

/// Reads an answer.
///
/// # Errors
/// An error body in spite of the status; an empty error when it is no answer of this dialect.
pub(super) fn read(body: &[u8]) -> Result<Answer, VendorError> {
    let message: Message<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    if message.type_is_error() {
        return Err(
            serde_json::from_slice(body).map_or_else(|_| VendorError::default(), |value| error::read(&value))
        );
    }
    let Some(content) = &message.content else { return Err(VendorError::default()) };
    let mut parts = Vec::with_capacity(content.len());
    for raw in content {
        let part = block_reader::block(raw).map_err(|_| VendorError::default())?;
        if !is_empty(&part) {
            block_reader::push(&mut parts, part);
        }
    }
    let native = message.stop_reason.as_deref();
    let choice = Choice {
        parts,
        stop: native.map(stop::read),
        native_stop: native.map(str::to_owned),
        stop_sequence: message.stop_sequence,
        ..Choice::default()
    };
    let extra = [
        ("container", message.container),
        ("context_management", message.context_management),
        ("stop_details", message.stop_details),
    ];
    Ok(Answer {
        id: message.id.map(Cow::into_owned),
        model: message.model.map(Cow::into_owned),
        created: None,
        choices: vec![choice],
        usage: message.usage.and_then(|raw| usage::read(raw.get())),
        extra: extra.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
    })
}

impl Message<'_> {
    fn type_is_error(&self) -> bool {
        self.r#type.as_deref() == Some("error") || (self.content.is_none() && self.error.is_some())
    }
}

/// Text and thoughts that say nothing.
fn is_empty(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.text.is_empty(),
        Part::Reasoning(thought) => thought.text.is_empty() && thought.signature.is_none(),
        _ => false,
    }
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    #[serde(flatten)]
    extra: Map<String, Value>,
    usage: usage::Written,
}

/// Writes an answer. The protocol knows one choice, the first; requests cannot ask for more.
pub(super) fn write(answer: &Answer, asked: &Asked) -> Bytes {
    let nothing = Choice::default();
    let choice = answer.choices.first().unwrap_or(&nothing);
    let refused = choice.parts.iter().any(|part| matches!(part, Part::Refusal(_)));
    let stop = match choice.stop.unwrap_or(Stop::End) {
        Stop::End if refused => Stop::ContentFilter,
        stop => stop,
    };
    let native = choice.native_stop.as_deref();
    const KNOWN: [&str; 3] = ["container", "context_management", "stop_details"];
    let extra = answer.extra.iter().filter(|(name, _)| KNOWN.contains(&name.as_str()));
    let written = Written {
        id: answer.id.as_deref().unwrap_or(&asked.id),
        r#type: "message",
        role: "assistant",
        model: answer.model.as_deref().unwrap_or(&asked.model),
        content: choice.parts.iter().flat_map(blocks).collect(),
        stop_reason: stop::write(stop, native),
        stop_sequence: choice.stop_sequence.as_deref(),
        extra: extra.map(|(name, value)| (name.clone(), value.clone())).collect(),
        usage: usage::write(&answer.usage.unwrap_or_default()),
    };
    serde_json::to_vec(&written).expect("values made here always serialise").into()
}

/// The blocks that a part becomes. Pictures, sounds and other dialects' own pieces have none in answers.
fn blocks(part: &Part) -> Vec<Block<'_>> {
    let text = |text, citations| Block::Text { text, citations, cache_control: None };
    let (signature, block) = match part {
        Part::Text(piece) if !piece.text.is_empty() => {
            (piece.signature.as_ref(), text(&piece.text, own_citations(&piece.citations)))
        }
        Part::Refusal(piece) if !piece.is_empty() => (None, text(piece, &[])),
        Part::ToolCall(call) => {
            let input = arguments(&call.arguments).or_else(|| arguments("")).expect("an empty object is one");
            let block =
                Block::ToolUse { id: (&call.id).into(), name: &call.name, input, cache_control: None };
            (call.signature.as_ref(), block)
        }
        Part::Reasoning(thought) => return reasoning(thought).into_iter().collect(),
        Part::Other { wire: Wire::Anthropic, value } => (None, Block::Other(value)),
        _ => return Vec::new(),
    };
    signature.map(carrier).into_iter().chain([block]).collect()
}

/// Citations in this dialect's words; others are left out.
fn own_citations(citations: &[Value]) -> &[Value] {
    if citations.iter().all(is_own_citation) { citations } else { &[] }
}

/// Every kind of citation quotes its source in this field, and no other dialect's does.
pub(super) fn is_own_citation(citation: &Value) -> bool {
    citation.get("cited_text").is_some()
}

/// The signature of a piece that has none in this dialect (see [`block_reader`]).
fn carrier(signature: &Signature) -> Block<'_> {
    Block::Thinking { thinking: "", signature: signature.to_text(Wire::Anthropic).into() }
}

/// A thought. One that another vendor encrypted keeps its summary, hence it is a thinking block too.
fn reasoning(thought: &Reasoning) -> Option<Block<'_>> {
    let signature = thought.signature.as_ref().map(|signature| signature.to_text(Wire::Anthropic));
    match signature {
        Some(data) if thought.redacted && thought.text.is_empty() => {
            Some(Block::RedactedThinking { data: data.into() })
        }
        Some(signature) => Some(Block::Thinking { thinking: &thought.text, signature: signature.into() }),
        None if thought.text.is_empty() => None,
        None => Some(Block::Thinking { thinking: &thought.text, signature: "".into() }),
    }
}
