//! Reads a whole answer, and what it shares with the events of a streamed one.

use std::borrow::Cow;

use penstock_model::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exchange::{self, Answer, Part, Reasoning, Stop};
use crate::json::{JsonStr, count, text};
use crate::openai::error_body::VendorError;

/// A whole answer, or one event of a streamed one.
#[derive(Deserialize)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) output: Option<Output<'a>>,
    usage: Option<Counts>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) request_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow, default, deserialize_with = "text")]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
    pub(super) logprobs: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    /// A text; of the multimodal call, a list.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    arguments: Option<Cow<'a, str>>,
}

/// What was consumed.
#[derive(Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
    plugins: Option<Plugins>,
}

#[derive(Deserialize, Default)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Plugins {
    search: Option<Search>,
}

#[derive(Deserialize)]
struct Search {
    #[serde(default, deserialize_with = "count")]
    count: Option<u64>,
}

impl Body<'_> {
    pub(super) fn usage(&self) -> Option<Usage> {
        let counts = self.usage.as_ref()?;
        let prompt = counts.prompt_tokens_details.as_ref();
        let search = counts.plugins.as_ref().and_then(|plugins| plugins.search.as_ref());
        let usage = Usage {
            input_tokens: counts.input_tokens,
            cached_input_tokens: prompt.and_then(|details| details.cached_tokens),
            cache_write_tokens: prompt.and_then(|details| details.cache_creation_input_tokens),
            output_tokens: counts.output_tokens,
            reasoning_tokens: counts
                .output_tokens_details
                .as_ref()
                .and_then(|details| details.reasoning_tokens),
            searches: search.and_then(|search| search.count),
            ..Usage::default()
        };
        (!usage.is_empty()).then_some(usage)
    }
}

impl Choice<'_> {
    /// Why it ended; `None` while it has not.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref().filter(|reason| !matches!(*reason, "null" | ""))
    }
}

impl<'a> Message<'a> {
    /// The text. Empty pieces are left out of lists, and what is not text of them.
    pub(super) fn text(&self) -> Cow<'a, str> {
        #[derive(Deserialize)]
        struct Item<'a> {
            #[serde(borrow, default, deserialize_with = "text")]
            text: Option<Cow<'a, str>>,
        }
        let Some(content) = self.content else { return Cow::Borrowed("") };
        if let Some(text) = JsonStr::new(content) {
            return text.decode();
        }
        let items: Vec<Item<'a>> = serde_json::from_str(content.get()).unwrap_or_default();
        let mut texts = items.into_iter().filter_map(|item| item.text);
        let first = texts.next().unwrap_or_default();
        texts.fold(first, |all, text| all + text)
    }
}

impl Call<'_> {
    pub(super) fn own_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }

    pub(super) fn name(&self) -> &str {
        self.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default()
    }

    pub(super) fn arguments(&self) -> &str {
        self.function.as_ref().and_then(|function| function.arguments.as_deref()).unwrap_or_default()
    }
}

/// The id of a call to which the service gave none: the `call`th of a choice.
pub(super) fn made_up_id(answer_id: &str, choice: u32, call: usize) -> String {
    format!("call_{answer_id}_{choice}_{call}")
}

pub(super) fn stop(reason: &str, has_calls: bool) -> Stop {
    match reason {
        "length" => Stop::Length,
        "tool_calls" => Stop::ToolCalls,
        "content_filter" => Stop::ContentFilter,
        _ if has_calls => Stop::ToolCalls,
        _ => Stop::End,
    }
}

pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let answer: Body<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    let choices = answer.output.as_ref().and_then(|output| output.choices.as_deref()).unwrap_or_default();
    if choices.is_empty() {
        return Err(VendorError::read(body));
    }
    let choices = choices.iter().zip(0..).map(|(choice, position)| read_choice(choice, position, id));
    Ok(Answer {
        id: answer.request_id.as_deref().map(str::to_owned),
        choices: choices.collect::<Option<_>>().ok_or_else(VendorError::default)?,
        usage: answer.usage(),
        ..Answer::default()
    })
}

/// `None` when it has not ended.
fn read_choice(choice: &Choice<'_>, position: u32, id: &str) -> Option<exchange::Choice> {
    let reason = choice.finish_reason()?;
    let message = choice.message.as_ref()?;
    let index = choice.index.unwrap_or(position);
    let mut parts = Vec::new();
    if let Some(text) = message.reasoning_content.as_deref().filter(|text| !text.is_empty()) {
        parts.push(Part::Reasoning(Reasoning { text: text.to_owned(), ..Reasoning::default() }));
    }
    let text = message.text();
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    parts.extend(calls.iter().enumerate().map(|(number, call)| {
        let arguments = if call.arguments().trim().is_empty() { "{}" } else { call.arguments() };
        Part::ToolCall(exchange::ToolCall {
            id: call.own_id().map_or_else(|| made_up_id(id, index, number), str::to_owned),
            name: call.name().to_owned(),
            arguments: arguments.to_owned(),
            signature: None,
            cache: None,
        })
    }));
    Some(exchange::Choice {
        index,
        parts,
        stop: Some(stop(reason, !calls.is_empty())),
        native_stop: Some(reason.to_owned()),
        stop_sequence: None,
        logprobs: choice.logprobs.clone().filter(|logprobs| !logprobs.is_null()),
    })
}

pub(super) fn find_usage(body: &[u8]) -> Option<Usage> {
    serde_json::from_slice::<Body<'_>>(body).ok()?.usage()
}
