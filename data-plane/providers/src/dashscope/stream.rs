//! Reads a streamed answer: server-sent events, each an answer that holds what is new.

use std::borrow::Cow;

use super::answer::{Body, Call, Choice, made_up_id, stop};
use crate::chat_shaped::broken;
use crate::dialect::StreamReader;
use crate::exchange::Event;
use crate::openai::error_body::VendorError;
use crate::sse::{self, Framer, MAX_TRANSLATED};

/// What the codes of errors within a stream stand for. A code also covers its sub-codes, as `Throttling` does
/// `Throttling.RateQuota`.
const STATUSES: &[(&str, u16)] = &[
    ("Throttling", 429),
    ("InvalidParameter", 400),
    ("DataInspectionFailed", 400),
    ("Arrearage", 400),
    ("InvalidApiKey", 401),
    ("AccessDenied", 403),
    ("AllocationQuota", 403),
    ("ModelNotFound", 404),
    ("InternalError", 500),
    ("RequestTimeOut", 500),
    ("ServiceUnavailable", 503),
    ("ModelUnavailable", 503),
];

pub(super) struct Reader {
    framer: Framer,
    state: State,
}

struct State {
    id: String,
    started: bool,
    choices: Vec<ChoiceState>,
    /// A failure has come: nothing is reported any more.
    failed: bool,
}

struct ChoiceState {
    index: u32,
    calls: Vec<StartedCall>,
    finished: bool,
}

struct StartedCall {
    /// The service's number of it.
    index: Option<u64>,
    /// The service's id of it.
    id: Option<String>,
    has_arguments: bool,
}

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let state = State { id: id.to_owned(), started: false, choices: Vec::new(), failed: false };
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
        let complete = !state.choices.is_empty() && state.choices.iter().all(|choice| choice.finished);
        if complete && !state.failed {
            sink(Event::End);
        }
    }

    fn open_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }
}

impl State {
    fn event(&mut self, event: sse::Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if self.failed {
            return;
        }
        if event.oversized {
            return self.fail(broken("an event of the stream is too long"), sink);
        }
        // Bytes that are not UTF-8 cost the characters they stand in, not the answer.
        let text = String::from_utf8_lossy(event.data.trim_ascii());
        if !event.is_error && !text.starts_with('{') {
            // A sign of life in a place where it does not belong.
            return;
        }
        match serde_json::from_str::<Body<'_>>(&text) {
            Ok(body) if !event.is_error && (body.output.is_some() || body.usage().is_some()) => {
                self.body(&body, sink);
            }
            _ => self.fail(failure(&text), sink),
        }
    }

    fn body(&mut self, body: &Body<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if !self.started {
            self.started = true;
            let id = body.request_id.as_deref().map(Cow::Borrowed);
            sink(Event::Start { id, model: None, created: None });
        }
        let choices = body.output.as_ref().and_then(|output| output.choices.as_deref()).unwrap_or_default();
        for (choice, position) in choices.iter().zip(0..) {
            let index = choice.index.unwrap_or(position);
            let at = self.choices.iter().position(|state| state.index == index).unwrap_or_else(|| {
                self.choices.push(ChoiceState { index, calls: Vec::new(), finished: false });
                self.choices.len() - 1
            });
            self.choices[at].read(choice, &self.id, sink);
        }
        if let Some(usage) = body.usage() {
            sink(Event::Usage(usage));
        }
    }

    fn fail(&mut self, failed: Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        self.failed = true;
        sink(failed);
    }
}

impl ChoiceState {
    fn read(&mut self, choice: &Choice<'_>, answer_id: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if self.finished {
            return;
        }
        if let Some(message) = &choice.message {
            if let Some(text) = message.reasoning_content.as_deref().filter(|text| !text.is_empty()) {
                sink(Event::Reasoning { choice: self.index, text: text.into() });
            }
            let text = message.text();
            if !text.is_empty() {
                sink(Event::Text { choice: self.index, text });
            }
            for call in message.tool_calls.iter().flatten() {
                self.read_call(call, answer_id, sink);
            }
        }
        if let Some(logprobs) = choice.logprobs.as_ref().filter(|logprobs| !logprobs.is_null()) {
            sink(Event::Logprobs { choice: self.index, value: logprobs.clone() });
        }
        if let Some(reason) = choice.finish_reason() {
            self.close_call(sink);
            self.finished = true;
            let stop = stop(reason, !self.calls.is_empty());
            sink(Event::Finish { choice: self.index, stop, native: reason.into(), sequence: None });
        }
    }

    fn read_call(&mut self, call: &Call<'_>, answer_id: &str, sink: &mut dyn FnMut(Event<'_>)) {
        let number = self.open_call(call).unwrap_or_else(|| self.start_call(call, answer_id, sink));
        self.arguments(number, call.arguments(), sink);
    }

    /// The call that this is a further part of: the last of its index, unless it has another id (SSE-06).
    fn open_call(&self, call: &Call<'_>) -> Option<usize> {
        let of_index = |started: &StartedCall| call.index.is_none() || started.index == call.index;
        let number = self.calls.iter().rposition(of_index)?;
        call.own_id().is_none_or(|id| self.calls[number].id.as_deref() == Some(id)).then_some(number)
    }

    fn start_call(&mut self, call: &Call<'_>, answer_id: &str, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        self.close_call(sink);
        let number = self.calls.len();
        let id = match call.own_id() {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(made_up_id(answer_id, self.index, number)),
        };
        let own_id = call.own_id().map(str::to_owned);
        self.calls.push(StartedCall { index: call.index, id: own_id, has_arguments: false });
        let name = call.name().into();
        sink(Event::ToolStart { choice: self.index, call: number as u32, id, name, signature: None });
        number
    }

    fn arguments(&mut self, number: usize, fragment: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if !fragment.is_empty() {
            self.calls[number].has_arguments = true;
            let fragment = fragment.into();
            sink(Event::ToolArguments { choice: self.index, call: number as u32, fragment });
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
}

/// What an event that is no answer says.
fn failure(text: &str) -> Event<'static> {
    let error = VendorError::read(text.as_bytes());
    if error == VendorError::default() {
        return broken("an event of the stream is broken");
    }
    let code = error.code.as_deref().unwrap_or_default();
    let covers =
        |name: &str| code.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let status = STATUSES.iter().find(|(name, _)| covers(name)).map(|(_, status)| *status);
    Event::Failed { error, status }
}
