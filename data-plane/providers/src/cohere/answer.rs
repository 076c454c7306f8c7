//! Reads a whole answer, and what it shares with a streamed one.

use std::borrow::Cow;

use penstock_model::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exchange::{Answer, Choice, Part, Reasoning, Stop, ToolCall};
use crate::json::{count, text};
use crate::openai::error_body::VendorError;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    id: Option<Cow<'a, str>>,
    /// An object in an answer, a string in an error.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    finish_reason: Option<Cow<'a, str>>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow, default, deserialize_with = "text")]
    tool_plan: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    citations: Option<Vec<Value>>,
}

/// Text or a thought.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) thinking: Option<Cow<'a, str>>,
}

/// A call, or in a stream part of one.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) arguments: Option<Cow<'a, str>>,
}

/// What was consumed.
#[derive(Deserialize)]
pub(super) struct Counts {
    tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
}

impl Counts {
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            input_tokens: self.tokens.as_ref().and_then(|tokens| tokens.input_tokens),
            cached_input_tokens: self.cached_tokens,
            output_tokens: self.tokens.as_ref().and_then(|tokens| tokens.output_tokens),
            ..Usage::default()
        };
        (!usage.is_empty()).then_some(usage)
    }
}

impl<'a> Call<'a> {
    /// Its own id, or one made of `answer_id` for the `number`th call of the answer.
    pub(super) fn id(&self, answer_id: &str, number: usize) -> Cow<'a, str> {
        let own = self.id.as_ref().filter(|id| !id.is_empty()).cloned();
        own.unwrap_or_else(|| Cow::Owned(format!("call_{answer_id}_{number}")))
    }

    pub(super) fn name(&self) -> &str {
        self.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default()
    }

    pub(super) fn arguments(&self) -> &str {
        self.function.as_ref().and_then(|function| function.arguments.as_deref()).unwrap_or_default()
    }
}

/// Why an answer ended.
///
/// # Errors
/// When it ended by a failure: what it is called, and the status that it stands for.
pub(super) fn stop(reason: &str, has_calls: bool) -> Result<Stop, (VendorError, u16)> {
    let failed = |status| {
        let error = VendorError {
            code: Some(reason.to_owned()),
            message: Some(format!("the service stopped with finish_reason \"{reason}\"")),
            ..VendorError::default()
        };
        Err((error, status))
    };
    match reason {
        "STOP_SEQUENCE" => Ok(Stop::Sequence),
        "MAX_TOKENS" => Ok(Stop::Length),
        "TOOL_CALL" => Ok(Stop::ToolCalls),
        "TIMEOUT" => failed(504),
        "ERROR" => failed(500),
        _ if has_calls => Ok(Stop::ToolCalls),
        _ => Ok(Stop::End),
    }
}

pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let none = |_| VendorError::default();
    let answer: Body<'_> = serde_json::from_slice(body).map_err(none)?;
    let Some(message) = answer.message.filter(|message| message.get().starts_with('{')) else {
        return Err(VendorError::read(body));
    };
    let message: Message<'_> = serde_json::from_str(message.get()).map_err(none)?;
    let reason = answer.finish_reason.as_deref().ok_or_else(VendorError::default)?;
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let choice = Choice {
        stop: Some(stop(reason, !calls.is_empty()).map_err(|(error, _)| error)?),
        native_stop: Some(reason.to_owned()),
        parts: parts(&message, calls, id),
        ..Choice::default()
    };
    Ok(Answer {
        id: answer.id.as_deref().map(str::to_owned),
        choices: vec![choice],
        usage: answer.usage.as_ref().and_then(Counts::usage),
        ..Answer::default()
    })
}

fn parts(message: &Message<'_>, calls: &[Call<'_>], id: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let said =
        |text: &Option<Cow<'_, str>>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
    for block in message.content.iter().flatten() {
        let thought = said(&block.thinking);
        parts.extend(thought.map(|text| Part::Reasoning(Reasoning { text, ..Reasoning::default() })));
        parts.extend(said(&block.text).map(Part::text));
    }
    parts.extend(said(&message.tool_plan).map(Part::text));
    let cited = parts.iter_mut().find_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    if let (Some(text), Some(citations)) = (cited, &message.citations) {
        text.citations.clone_from(citations);
    }
    parts.extend(calls.iter().enumerate().map(|(number, call)| {
        let arguments = if call.arguments().trim().is_empty() { "{}" } else { call.arguments() };
        Part::ToolCall(ToolCall {
            id: call.id(id, number).into_owned(),
            name: call.name().to_owned(),
            arguments: arguments.to_owned(),
            signature: None,
            cache: None,
        })
    }));
    parts
}

pub(super) fn find_usage(body: &[u8]) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Used {
        usage: Counts,
    }
    serde_json::from_slice::<Used>(body).ok()?.usage.usage()
}
