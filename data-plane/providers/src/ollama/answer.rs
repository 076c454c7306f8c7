//! Reads a whole answer, and what it shares with a streamed one.

use std::borrow::Cow;

use penstock_model::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exchange::{Answer, Choice, Part, Reasoning, Stop, ToolCall};
use crate::json::{JsonStr, count, text};
use crate::openai::error_body::VendorError;

/// A whole answer, or one line of a streamed one.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
    #[serde(default)]
    pub(super) done: bool,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) done_reason: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "count")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    eval_count: Option<u64>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Function<'a>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Chunk<'_> {
    /// The count of the prompt is 0 or absent when it came out of Ollama's cache: then it is unknown.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            input_tokens: self.prompt_eval_count.filter(|count| *count > 0),
            output_tokens: self.eval_count,
            ..Usage::default()
        };
        (!usage.is_empty()).then_some(usage)
    }

    /// The error that it reports in place of an answer.
    pub(super) fn error(&self) -> Option<VendorError> {
        let error = self.error.filter(|error| error.get() != "null")?;
        Some(VendorError::read(error.get().as_bytes()))
    }

    /// Why it ended; an error when it did not end like an answer.
    pub(super) fn stop(&self, has_calls: bool) -> Result<Stop, VendorError> {
        match self.done_reason.as_deref() {
            Some("length") => Ok(Stop::Length),
            Some(reason @ ("load" | "unload")) => Err(VendorError {
                code: Some(reason.to_owned()),
                message: Some(format!("the service only did a `{reason}` of its model")),
                ..VendorError::default()
            }),
            _ if has_calls => Ok(Stop::ToolCalls),
            _ => Ok(Stop::End),
        }
    }
}

impl<'a> Call<'a> {
    /// Its own id, or one made of `answer_id` for the `number`th call of the answer.
    pub(super) fn id(&self, answer_id: &str, number: u32) -> Cow<'a, str> {
        let own = self.id.as_ref().filter(|id| !id.is_empty()).cloned();
        own.unwrap_or_else(|| Cow::Owned(format!("call_{answer_id}_{number}")))
    }

    /// As text. Some models give the object as a string already.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        let Some(raw) = self.function.arguments else { return Cow::Borrowed("{}") };
        match JsonStr::new(raw).map(JsonStr::decode) {
            Some(text) if text.trim().is_empty() => Cow::Borrowed("{}"),
            Some(text) => text,
            None if raw.get() == "null" => Cow::Borrowed("{}"),
            None => Cow::Borrowed(raw.get()),
        }
    }
}

pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let chunk: Chunk<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    if let Some(error) = chunk.error() {
        return Err(error);
    }
    let Some(message) = chunk.message.as_ref().filter(|_| chunk.done) else {
        return Err(VendorError::default());
    };
    let mut parts = Vec::new();
    if let Some(text) = message.thinking.as_ref().filter(|text| !text.is_empty()) {
        parts.push(Part::Reasoning(Reasoning { text: text.clone().into_owned(), ..Reasoning::default() }));
    }
    if let Some(text) = message.content.as_ref().filter(|text| !text.is_empty()) {
        parts.push(Part::text(text.clone().into_owned()));
    }
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    parts.extend(calls.iter().zip(0..).map(|(call, number)| {
        Part::ToolCall(ToolCall {
            id: call.id(id, number).into_owned(),
            name: call.function.name.as_deref().unwrap_or_default().to_owned(),
            arguments: call.arguments().into_owned(),
            signature: None,
            cache: None,
        })
    }));
    let choice = Choice {
        parts,
        stop: Some(chunk.stop(!calls.is_empty())?),
        native_stop: chunk.done_reason.as_deref().map(str::to_owned),
        ..Choice::default()
    };
    Ok(Answer {
        model: chunk.model.as_deref().map(str::to_owned),
        choices: vec![choice],
        usage: chunk.usage(),
        ..Answer::default()
    })
}

pub(super) fn find_usage(body: &[u8]) -> Option<Usage> {
    serde_json::from_slice::<Chunk<'_>>(body).ok()?.usage()
}
