//! A service's stream (docs: "Streaming messages"): `message_start`, blocks, `message_delta`, `message_stop`; `ping` at any
//! time, `error` instead of the rest.

use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{error, stop, usage};
use crate::dialect::StreamReader;
use crate::exchange::{Event, Part, Signature};
use crate::json;
use crate::openai::error_body::VendorError;
use crate::sse::{self, Framer, MAX_TRANSLATED};

/// Most bytes of a server tool's input that are kept.
const MAX_INPUT: usize = 4 << 20;

/// Reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    framer: Framer,
    state: State,
}

impl Default for Reader {
    fn default() -> Self {
        Self { framer: Framer::with_limit(MAX_TRANSLATED), state: State::default() }
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

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, deserialize_with = "json::text")]
    r#type: Option<Cow<'a, str>>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "json::text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Any of the deltas: each has a field of its own.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, deserialize_with = "json::text")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    partial_json: Option<Cow<'a, str>>,
    citation: Option<Value>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::text")]
    stop_sequence: Option<Cow<'a, str>>,
}

/// The start of a block of a known kind.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, deserialize_with = "json::text")]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A block that has begun and needs to be known at its end.
#[derive(Debug)]
enum Open {
    /// `input`: what its start held, in case nothing follows.
    Tool { call: u32, input: Option<String> },
    /// A block of a kind that only this dialect knows, with the input that has come for it.
    Other { value: Value, input: String },
}

#[derive(Debug, Default)]
struct State {
    open: Vec<(u64, Open)>,
    calls: u32,
    started: bool,
    finished: bool,
    /// Were writes to the cache split by lifetime?
    split: bool,
    /// It has ended or failed: nothing follows.
    over: bool,
}

impl State {
    fn event(&mut self, event: sse::Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        if event.oversized {
            let message = Some("an event of the service's stream is too long".to_owned());
            return self.fail(VendorError { message, ..VendorError::default() }, None, sink);
        }
        match str::from_utf8(event.data) {
            Ok(text) => self.data(text, event.is_error, sink),
            // Replaced once, here, rather than losing the whole event.
            Err(_) => self.data(&String::from_utf8_lossy(event.data), event.is_error, sink),
        }
    }

    fn data(&mut self, text: &str, is_error: bool, sink: &mut dyn FnMut(Event<'_>)) {
        let Ok(data) = serde_json::from_str::<Data<'_>>(text) else {
            // Not JSON: a keep-alive in the wrong place (SSE-03), unless it says that it is an error.
            if is_error {
                self.fail(VendorError::read(text.as_bytes()), None, sink);
            }
            return;
        };
        let kind = data.r#type.as_deref().unwrap_or_default();
        let failed = data.error.is_some_and(|error| error.get() != "null");
        if is_error || kind == "error" || (failed && kind.is_empty()) {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let error = error::read(&value);
            let status = error.kind.as_deref().and_then(error::status);
            return self.fail(error, status, sink);
        }
        match kind {
            "message_start" => self.start(data.message, sink),
            "content_block_start" => {
                // A start that comes later is of a broken stream, and none.
                self.started = true;
                if let Some(block) = data.content_block {
                    self.block_start(data.index, block, sink);
                }
            }
            "content_block_delta" => {
                self.started = true;
                if let Some(delta) = data.delta {
                    self.block_delta(data.index, delta, sink);
                }
            }
            "content_block_stop" => self.block_stop(data.index, sink),
            "message_delta" => self.message_delta(data.usage, data.delta, sink),
            "message_stop" => {
                self.over = true;
                sink(Event::End);
            }
            // `ping`, and what may come.
            _ => {}
        }
    }

    fn fail(&mut self, error: VendorError, status: Option<u16>, sink: &mut dyn FnMut(Event<'_>)) {
        self.over = true;
        sink(Event::Failed { error, status });
    }

    fn start(&mut self, message: Option<Message<'_>>, sink: &mut dyn FnMut(Event<'_>)) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let Some(message) = message else {
            return sink(Event::Start { id: None, model: None, created: None });
        };
        sink(Event::Start { id: message.id, model: message.model, created: None });
        self.report(message.usage, sink);
    }

    fn block_start(&mut self, index: u64, raw: &RawValue, sink: &mut dyn FnMut(Event<'_>)) {
        let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else { return };
        let string = |raw: Option<&'_ RawValue>| {
            raw.and_then(json::JsonStr::new)
                .map(|text| text.decode().into_owned())
                .filter(|text| !text.is_empty())
        };
        match block.r#type.as_deref() {
            Some("text") => {
                if let Some(text) = string(block.text) {
                    sink(Event::Text { choice: 0, text: text.into() });
                }
            }
            Some("thinking") => {
                if let Some(text) = string(block.thinking) {
                    sink(Event::Reasoning { choice: 0, text: text.into() });
                }
            }
            Some("redacted_thinking") => {
                let signature =
                    Signature::from_text(&string(block.data).unwrap_or_default(), Wire::Anthropic);
                sink(Event::ReasoningSignature { choice: 0, signature, redacted: true });
            }
            Some("tool_use") => {
                let call = self.calls;
                self.calls += 1;
                let id = string(block.id).unwrap_or_default().into();
                let name = string(block.name).unwrap_or_default().into();
                sink(Event::ToolStart { choice: 0, call, id, name, signature: None });
                let input = block.input.map(RawValue::get).filter(|input| is_filled(input));
                self.open.push((index, Open::Tool { call, input: input.map(str::to_owned) }));
            }
            _ => {
                let value = serde_json::from_str(raw.get()).unwrap_or_default();
                self.open.push((index, Open::Other { value, input: String::new() }));
            }
        }
    }

    fn block_delta(&mut self, index: u64, delta: Delta<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            sink(Event::Text { choice: 0, text });
        }
        if let Some(text) = delta.thinking.filter(|text| !text.is_empty()) {
            sink(Event::Reasoning { choice: 0, text });
        }
        if let Some(signature) = delta.signature.filter(|signature| !signature.is_empty()) {
            let signature = Signature::from_text(&signature, Wire::Anthropic);
            sink(Event::ReasoningSignature { choice: 0, signature, redacted: false });
        }
        if let Some(value) = delta.citation {
            sink(Event::Citation { choice: 0, value });
        }
        let Some(fragment) = delta.partial_json.filter(|fragment| !fragment.is_empty()) else { return };
        match self.open.iter_mut().find(|(known, _)| *known == index) {
            Some((_, Open::Tool { call, input })) => {
                // From here on it is known that the arguments come in fragments.
                *input = Some(String::new());
                sink(Event::ToolArguments { choice: 0, call: *call, fragment });
            }
            Some((_, Open::Other { input, .. })) if input.len() + fragment.len() <= MAX_INPUT => {
                input.push_str(&fragment);
            }
            _ => {}
        }
    }

    fn block_stop(&mut self, index: u64, sink: &mut dyn FnMut(Event<'_>)) {
        let Some(position) = self.open.iter().position(|(known, _)| *known == index) else { return };
        match self.open.remove(position).1 {
            Open::Tool { call, input } => {
                let arguments = input.unwrap_or_else(|| "{}".to_owned());
                if !arguments.is_empty() {
                    sink(Event::ToolArguments { choice: 0, call, fragment: arguments.into() });
                }
            }
            Open::Other { mut value, input } => {
                if let (Some(block), Ok(input)) =
                    (value.as_object_mut(), serde_json::from_str::<Value>(&input))
                {
                    block.insert("input".to_owned(), input);
                }
                let part = Box::new(Part::Other { wire: Wire::Anthropic, value });
                sink(Event::Part { choice: 0, part });
            }
        }
    }

    fn message_delta(
        &mut self,
        usage: Option<&RawValue>,
        delta: Option<Delta<'_>>,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        self.report(usage, sink);
        let Some(delta) = delta else { return };
        let Some(native) = delta.stop_reason.filter(|reason| !reason.is_empty()) else { return };
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let stop = stop::read(&native);
        sink(Event::Finish { choice: 0, stop, native, sequence: delta.stop_sequence });
    }

    fn report(&mut self, usage: Option<&RawValue>, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(usage) = usage.and_then(|raw| usage::read_later(raw.get(), &mut self.split)) {
            sink(Event::Usage(usage));
        }
    }
}

/// Is it an object with members?
fn is_filled(input: &str) -> bool {
    input.strip_prefix('{').is_some_and(|rest| !rest.trim_ascii_start().starts_with('}'))
}
