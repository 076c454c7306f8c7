//! Reads a streamed answer: server-sent events, told apart by their `type`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Block, Call, Counts, stop};
use crate::chat_shaped::broken;
use crate::dialect::StreamReader;
use crate::exchange::Event;
use crate::json::text;
use crate::openai::error_body::VendorError;
use crate::sse::{self, Framer, MAX_TRANSLATED};

pub(super) struct Reader {
    framer: Framer,
    state: State,
}

struct State {
    id: String,
    started: bool,
    /// The tool calls so far; only the last is open.
    calls: Vec<StartedCall>,
    /// Nothing is reported any more: the end mark or a failure has come.
    over: bool,
}

struct StartedCall {
    /// The service's number of it.
    index: Option<u64>,
    has_arguments: bool,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    id: Option<Cow<'a, str>>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
}

/// What a `delta` has in the events of one type.
#[derive(Deserialize)]
struct Delta<T> {
    message: T,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: Block<'a>,
}

#[derive(Deserialize)]
struct Plan<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    tool_plan: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Calls<'a> {
    #[serde(borrow)]
    tool_calls: Call<'a>,
}

#[derive(Deserialize)]
struct Citations {
    citations: Value,
}

#[derive(Deserialize)]
struct End<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    finish_reason: Option<Cow<'a, str>>,
    usage: Option<Counts>,
    #[serde(borrow, default, deserialize_with = "text")]
    error: Option<Cow<'a, str>>,
}

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let state = State { id: id.to_owned(), started: false, calls: Vec::new(), over: false };
        Self { framer: Framer::with_limit(MAX_TRANSLATED), state }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.framer.feed(read, |event| state.event(event, sink));
    }

    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.framer.end(|event| state.event(event, sink));
    }

    fn open_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }
}

impl State {
    fn event(&mut self, event: sse::Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        // Bytes that are not UTF-8 cost the characters they stand in, not the answer.
        let text = String::from_utf8_lossy(event.data.trim_ascii());
        let read = if event.oversized {
            self.fail(broken("an event of the stream is too long"), sink);
            return;
        } else if event.is_error {
            None
        } else if text.starts_with('{') {
            serde_json::from_str::<Head<'_>>(&text).ok().and_then(|head| self.read(&head, sink))
        } else {
            // `[DONE]`, or a sign of life in a place where it does not belong.
            return;
        };
        if read.is_none() {
            let error = VendorError::read(text.as_bytes());
            let silent = error == VendorError::default();
            let failed = Event::Failed { error, status: None };
            self.fail(if silent { broken("an event of the stream is broken") } else { failed }, sink);
        }
    }

    /// `None` when it is no event of this dialect: an error, or garbage.
    fn read(&mut self, head: &Head<'_>, sink: &mut dyn FnMut(Event<'_>)) -> Option<()> {
        let kind = head.r#type.as_deref()?;
        if !self.started && kind != "debug" {
            self.started = true;
            let id = head.id.as_deref().filter(|_| kind == "message-start").map(Cow::Borrowed);
            sink(Event::Start { id, model: None, created: None });
        }
        match kind {
            "content-start" | "content-delta" => content(&message::<Content<'_>>(head)?.content, sink),
            "tool-plan-delta" => {
                if let Some(text) = message::<Plan<'_>>(head)?.tool_plan.filter(|text| !text.is_empty()) {
                    sink(Event::Text { choice: 0, text });
                }
            }
            "tool-call-start" => self.start_call(head.index, &message::<Calls<'_>>(head)?.tool_calls, sink),
            "tool-call-delta" => {
                let call = message::<Calls<'_>>(head)?.tool_calls;
                self.arguments(self.number(head.index)?, call.arguments(), sink);
            }
            "tool-call-end" => self.close_call(sink),
            "citation-start" => {
                sink(Event::Citation { choice: 0, value: message::<Citations>(head)?.citations });
            }
            "message-end" => {
                self.close_call(sink);
                self.finish(serde_json::from_str(head.delta?.get()).ok()?, sink);
            }
            // `content-end`, `citation-end`, and what is yet to be invented.
            _ => {}
        }
        Some(())
    }

    fn start_call(&mut self, index: Option<u64>, call: &Call<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        self.close_call(sink);
        let number = self.calls.len();
        self.calls.push(StartedCall { index, has_arguments: false });
        let (id, name) = (call.id(&self.id, number), call.name().into());
        sink(Event::ToolStart { choice: 0, call: number as u32, id, name, signature: None });
        self.arguments(number, call.arguments(), sink);
    }

    /// The latest call of this index: two calls may bear the same (SSE-06).
    fn number(&self, index: Option<u64>) -> Option<usize> {
        self.calls.iter().rposition(|call| call.index == index)
    }

    fn arguments(&mut self, number: usize, fragment: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if !fragment.is_empty() {
            self.calls[number].has_arguments = true;
            sink(Event::ToolArguments { choice: 0, call: number as u32, fragment: fragment.into() });
        }
    }

    /// A call without arguments has an empty object (TR-14).
    fn close_call(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(last) = self.calls.len().checked_sub(1)
            && !self.calls[last].has_arguments
        {
            self.arguments(last, "{}", sink);
        }
    }

    fn finish(&mut self, end: End<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        let unnamed = if end.error.is_some() { "ERROR" } else { "" };
        let reason = end.finish_reason.as_deref().unwrap_or(unnamed);
        match stop(reason, !self.calls.is_empty()) {
            Ok(stop) => {
                sink(Event::Finish { choice: 0, stop, native: reason.into(), sequence: None });
                if let Some(usage) = end.usage.as_ref().and_then(Counts::usage) {
                    sink(Event::Usage(usage));
                }
                self.over = true;
                sink(Event::End);
            }
            Err((mut error, status)) => {
                let said = end.error.and_then(|text| VendorError::read(text.as_bytes()).message);
                error.message = said.or(error.message);
                self.fail(Event::Failed { error, status: Some(status) }, sink);
            }
        }
    }

    fn fail(&mut self, failed: Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        self.over = true;
        sink(failed);
    }
}

/// What an event says of the message.
fn message<'a, T: Deserialize<'a>>(head: &Head<'a>) -> Option<T> {
    Some(serde_json::from_str::<Delta<T>>(head.delta?.get()).ok()?.message)
}

fn content(block: &Block<'_>, sink: &mut dyn FnMut(Event<'_>)) {
    if let Some(text) = block.thinking.as_deref().filter(|text| !text.is_empty()) {
        sink(Event::Reasoning { choice: 0, text: text.into() });
    }
    if let Some(text) = block.text.as_deref().filter(|text| !text.is_empty()) {
        sink(Event::Text { choice: 0, text: text.into() });
    }
}
