//! Reading a streamed answer.
//!
//! Events are known by the `type` in their data; the `event:` line only repeats it. What an event at the end of an item
//! repeats is taken from it only when nothing of the item came before: some services send no deltas for what is short.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::{Item, Response, other};
use crate::dialect::StreamReader;
use crate::exchange::Event;
use crate::json::text;
use crate::openai::error_body::VendorError;
use crate::openai::usage;
use crate::sse::{Framer, MAX_TRANSLATED};

type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

/// The fields that any event may have.
#[derive(Debug, Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    r#type: Option<Cow<'a, str>>,
    output_index: Option<u32>,
    summary_index: Option<u32>,
    #[serde(borrow, default, deserialize_with = "text")]
    delta: Option<Cow<'a, str>>,
    logprobs: Option<Vec<Value>>,
    annotation: Option<Value>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::responses) struct Reader {
    framer: Framer,
    state: State,
}

impl Reader {
    pub(in crate::responses) fn new(id: &str) -> Self {
        let state = State { id: id.to_owned(), started: false, ended: false, calls: 0, items: Vec::new() };
        Self { framer: Framer::with_limit(MAX_TRANSLATED), state }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: Sink<'_>) {
        let state = &mut self.state;
        self.framer.feed(read, |event| state.see(event.data, event.oversized, sink));
    }

    fn end(&mut self, sink: Sink<'_>) {
        let state = &mut self.state;
        self.framer.end(|event| state.see(event.data, event.oversized, sink));
    }

    fn open_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }
}

#[derive(Debug)]
struct State {
    /// Ours, for calls without an id.
    id: String,
    started: bool,
    /// Has it ended, well or not?
    ended: bool,
    calls: u32,
    /// The items that are open: few at a time.
    items: Vec<Open>,
}

/// An item that has begun.
#[derive(Debug, Clone, Copy)]
struct Open {
    index: u32,
    /// Which call it is.
    call: Option<u32>,
    /// Which kind of thoughts it shows.
    thoughts: Option<Thoughts>,
    /// Has anything of it come?
    seen: bool,
}

/// Open models show their thoughts, others a summary. An item that has both is read by what comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Thoughts {
    Summary,
    Whole,
}

impl State {
    fn see(&mut self, data: &[u8], oversized: bool, sink: Sink<'_>) {
        if self.ended {
            return;
        }
        if oversized {
            let message = Some(format!("the service sent an event of more than {MAX_TRANSLATED} bytes"));
            return self.fail(VendorError { message, ..VendorError::default() }, sink);
        }
        let Ok(mut parsed) = serde_json::from_slice::<Data<'_>>(data) else {
            return self.see_stray(data, sink);
        };
        let kind = parsed.r#type.take().unwrap_or_default();
        if kind == "error" || parsed.error.is_some_and(|error| error.get() != "null") {
            return self.fail(read_error(data), sink);
        }
        let Some(kind) = kind.strip_prefix("response.") else { return };
        match kind {
            "completed" | "incomplete" | "failed" | "cancelled" => self.finish(kind, data, parsed, sink),
            "created" | "queued" | "in_progress" => self.start(parsed.response.as_ref(), sink),
            _ => {
                self.start(None, sink);
                self.see_part(kind, parsed, sink);
            }
        }
    }

    /// What is no event: a keep-alive in the wrong place, or an end mark as chat has it. Broken JSON is a failure.
    fn see_stray(&mut self, data: &[u8], sink: Sink<'_>) {
        if data.trim_ascii().first() == Some(&b'{') {
            let message = Some("the service sent an event that is not JSON".to_owned());
            self.fail(VendorError { message, ..VendorError::default() }, sink);
        }
    }

    fn start(&mut self, response: Option<&Response<'_>>, sink: Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            let id = response.and_then(|response| response.id.as_deref()).map(Cow::Borrowed);
            let model = response.and_then(|response| response.model.as_deref()).map(Cow::Borrowed);
            let created = response.and_then(|response| response.created_at);
            sink(Event::Start { id, model, created });
        }
    }

    fn see_part(&mut self, kind: &str, data: Data<'_>, sink: Sink<'_>) {
        let index = data.output_index.unwrap_or_default();
        let choice = 0;
        match kind {
            "output_item.added" => self.add(index, data.item, sink),
            "output_item.done" => self.done(index, data.item, sink),
            "output_text.delta" => {
                self.text(index, data.delta, |text| Event::Text { choice, text }, sink);
                if let Some(tokens) = data.logprobs.filter(|tokens| !tokens.is_empty()) {
                    sink(Event::Logprobs { choice, value: json!({ "content": tokens }) });
                }
            }
            "refusal.delta" => {
                self.text(index, data.delta, |text| Event::Refusal { choice, text }, sink);
            }
            "output_text.annotation.added" => {
                if let Some(value) = data.annotation {
                    sink(Event::Citation { choice, value });
                }
            }
            "reasoning_summary_text.delta" => self.thought(index, Thoughts::Summary, data.delta, sink),
            "reasoning_text.delta" => self.thought(index, Thoughts::Whole, data.delta, sink),
            // Paragraphs of one block.
            "reasoning_summary_part.added" if data.summary_index.unwrap_or_default() > 0 => {
                self.thought(index, Thoughts::Summary, Some("\n\n".into()), sink);
            }
            "function_call_arguments.delta" => {
                if let Some(call) = self.open(index).call {
                    let event = |fragment| Event::ToolArguments { choice, call, fragment };
                    self.text(index, data.delta, event, sink);
                }
            }
            // Ends of parts, which repeat them, and the progress of the service's own tools.
            _ => {}
        }
    }

    /// The item of this index, which services that name no items begin with its first delta.
    fn open(&mut self, index: u32) -> &mut Open {
        let at = self.items.iter().position(|item| item.index == index).unwrap_or_else(|| {
            self.items.push(Open { index, call: None, thoughts: None, seen: false });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn text<'t>(
        &mut self,
        index: u32,
        text: Option<Cow<'t, str>>,
        event: impl FnOnce(Cow<'t, str>) -> Event<'t>,
        sink: Sink<'_>,
    ) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.open(index).seen = true;
            sink(event(text));
        }
    }

    fn thought(&mut self, index: u32, kind: Thoughts, text: Option<Cow<'_, str>>, sink: Sink<'_>) {
        if *self.open(index).thoughts.get_or_insert(kind) == kind {
            self.text(index, text, |text| Event::Reasoning { choice: 0, text }, sink);
        }
    }

    fn add(&mut self, index: u32, raw: Option<&RawValue>, sink: Sink<'_>) {
        let item: Item<'_> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        self.open(index);
        if item.r#type.as_deref() == Some("function_call") {
            self.start_call(index, &item, sink);
        }
    }

    fn start_call(&mut self, index: u32, item: &Item<'_>, sink: Sink<'_>) -> u32 {
        let call = self.calls;
        self.calls += 1;
        self.open(index).call = Some(call);
        let id = item.call_id(&self.id, call);
        let name = item.name.clone().unwrap_or_default();
        sink(Event::ToolStart { choice: 0, call, id, name, signature: None });
        call
    }

    fn done(&mut self, index: u32, raw: Option<&RawValue>, sink: Sink<'_>) {
        let Some(raw) = raw else { return };
        let item: Item<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let open = *self.open(index);
        self.items.retain(|item| item.index != index);
        let choice = 0;
        match item.r#type.as_deref() {
            Some("message") if !open.seen => {
                for piece in item.content.into_iter().flatten() {
                    if let Some(text) = piece.text.filter(|text| !text.is_empty()) {
                        sink(Event::Text { choice, text });
                    }
                    if let Some(text) = piece.refusal.filter(|text| !text.is_empty()) {
                        sink(Event::Refusal { choice, text });
                    }
                }
            }
            Some("message") => {}
            Some("reasoning") => {
                let thought = item.thought();
                if !open.seen && !thought.is_empty() {
                    sink(Event::Reasoning { choice, text: thought.into() });
                }
                if let Some(signature) = item.signature() {
                    sink(Event::ReasoningSignature { choice, signature, redacted: true });
                }
            }
            Some("function_call") => {
                let call = match open.call {
                    Some(call) => call,
                    None => self.start_call(index, &item, sink),
                };
                self.items.retain(|item| item.index != index);
                if !open.seen {
                    let whole = item.arguments.filter(|text| !text.trim().is_empty());
                    let fragment = whole.unwrap_or(Cow::Borrowed("{}"));
                    sink(Event::ToolArguments { choice, call, fragment });
                }
            }
            _ => {
                if let Some(part) = other(raw) {
                    sink(Event::Part { choice, part: Box::new(part) });
                }
            }
        }
    }

    fn finish(&mut self, kind: &str, data: &[u8], parsed: Data<'_>, sink: Sink<'_>) {
        let response = parsed.response.unwrap_or_default();
        self.start(Some(&response), sink);
        if let Some(usage) = usage::find(data) {
            sink(Event::Usage(usage));
        }
        if let Some(error) = response.error() {
            return self.fail(error, sink);
        }
        if matches!(kind, "failed" | "cancelled") {
            let message = Some(format!("the service says that its response has {kind}"));
            return self.fail(VendorError { message, ..VendorError::default() }, sink);
        }
        let (stop, native) = response.stop(self.calls > 0);
        sink(Event::Finish { choice: 0, stop, native: native.into(), sequence: None });
        sink(Event::End);
        self.ended = true;
    }

    fn fail(&mut self, error: VendorError, sink: Sink<'_>) {
        self.ended = true;
        self.start(None, sink);
        let status = error.code.as_deref().and_then(status);
        sink(Event::Failed { error, status });
    }
}

/// An `error` event, flat as documented or with an `error` object as it really comes, or the error object that
/// OpenAI-shaped services send in place of an event (SSE-08).
fn read_error(data: &[u8]) -> VendorError {
    let mut error = VendorError::read(data);
    error.kind = error.kind.filter(|kind| kind != "error");
    error
}

/// The status that a code of a failed response stands for.
fn status(code: &str) -> Option<u16> {
    match code {
        "rate_limit_exceeded" => Some(429),
        "server_error" => Some(500),
        "server_is_overloaded" | "slow_down" => Some(503),
        "invalid_prompt" => Some(400),
        _ => None,
    }
}
