//! A stream for a client of this protocol (SSE-14).
//!
//! Strict clients want, and this guarantees whatever the order of events: blocks one after the other, numbered without
//! gaps, each begun, filled with deltas of its own kind, and ended; none empty; then one `message_delta` and one
//! `message_stop`.
//!
//! A service may interleave the arguments of several calls. While those of the open call are no complete object yet,
//! whatever else comes waits for it, up to [`MAX_WAITING`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Write as _;

use penstock_model::vendor::Wire;
use serde_json::Value;

use super::{answer, stop, usage};
use crate::dialect::{Asked, StreamWriter};
use crate::exchange::{Event, Part, Signature, Stop, Usage};

/// Most bytes that wait for the open call's arguments to end. Beyond it the call is taken to be complete.
const MAX_WAITING: usize = 4 << 20;

/// Writes a stream.
#[derive(Debug)]
pub(super) struct Writer {
    asked: Asked,
    started: bool,
    over: bool,
    open: Open,
    /// The number of the next block.
    next: u32,
    /// The open call's arguments so far.
    arguments: Arguments,
    waiting: VecDeque<Event<'static>>,
    waiting_bytes: usize,
    usage: Usage,
    stop: Stop,
    native: String,
    sequence: Option<String>,
    refused: bool,
}

/// The open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    None,
    Text,
    Thinking,
    Tool { call: u32 },
}

/// Where in a JSON object a call's arguments are.
#[derive(Debug, Default)]
struct Arguments {
    any: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Arguments {
    fn feed(&mut self, fragment: &str) {
        self.any |= !fragment.is_empty();
        for byte in fragment.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.any && self.depth == 0 && !self.in_string
    }
}

impl StreamWriter for Writer {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        match event {
            // Written with the first block, because by then the service has mostly said how long the prompt was.
            Event::Start { id, model, .. } => {
                if let Some(id) = id {
                    id.as_ref().clone_into(&mut self.asked.id);
                }
                if let Some(model) = model {
                    model.as_ref().clone_into(&mut self.asked.model);
                }
            }
            Event::Usage(usage) => self.usage.update(*usage),
            Event::Finish { choice: 0, stop, native, sequence } => {
                self.settle(true, out);
                self.stop = *stop;
                native.as_ref().clone_into(&mut self.native);
                self.sequence = sequence.as_deref().map(str::to_owned);
            }
            content if is_of_another_choice(content) => {}
            content => {
                if self.must_wait(content) {
                    self.wait(content, out);
                } else {
                    self.write(content, out);
                    if !self.waiting.is_empty() && !self.is_filling() {
                        self.settle(false, out);
                    }
                }
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.begin(out);
        self.settle(true, out);
        self.close(out);
        let stop = match self.stop {
            Stop::End if self.refused => Stop::ContentFilter,
            stop => stop,
        };
        out.extend_from_slice(
            b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"",
        );
        out.extend_from_slice(stop::write(stop, Some(&self.native)).as_bytes());
        out.extend_from_slice(b"\",\"stop_sequence\":");
        json(out, &self.sequence);
        out.extend_from_slice(b"},\"usage\":");
        json(out, &usage::write(&self.usage));
        out.extend_from_slice(b"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }
}

impl Writer {
    /// Answers what was asked.
    pub(super) fn new(asked: Asked) -> Self {
        Self {
            asked,
            started: false,
            over: false,
            open: Open::None,
            next: 0,
            arguments: Arguments::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            usage: Usage::default(),
            stop: Stop::End,
            native: String::new(),
            sequence: None,
            refused: false,
        }
    }

    /// Is a call open whose arguments are not complete?
    fn is_filling(&self) -> bool {
        matches!(self.open, Open::Tool { .. }) && !self.arguments.is_complete()
    }

    fn is_of_open_call(&self, event: &Event<'_>) -> bool {
        matches!(event, Event::ToolArguments { choice: 0, call, .. } if self.open == Open::Tool { call: *call })
    }

    fn must_wait(&self, event: &Event<'_>) -> bool {
        self.is_filling() && !self.is_of_open_call(event)
    }

    /// Keeps an event for later; a fragment joins what already waits of its kind.
    fn wait(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let mut joined = false;
        self.waiting_bytes += match event {
            Event::ToolArguments { call, fragment, .. } => {
                let same = self.waiting.iter_mut().find_map(|other| match other {
                    Event::ToolArguments { call: known, fragment, .. } if known == call => Some(fragment),
                    _ => None,
                });
                joined = join(same, fragment);
                fragment.len()
            }
            Event::Text { text, .. } => {
                joined = join(
                    match self.waiting.back_mut() {
                        Some(Event::Text { text, .. }) => Some(text),
                        _ => None,
                    },
                    text,
                );
                text.len()
            }
            Event::Reasoning { text, .. } | Event::Refusal { text, .. } => text.len(),
            _ => 64,
        };
        if !joined && let Some(event) = owned(event) {
            self.waiting.push_back(event);
        }
        if self.waiting_bytes > MAX_WAITING {
            self.settle(true, out);
        }
    }

    /// Writes what waits, as far as it may be; all of it if `all`.
    fn settle(&mut self, all: bool, out: &mut Vec<u8>) {
        loop {
            let next = if self.is_filling() {
                let own = self.waiting.iter().position(|event| self.is_of_open_call(event));
                match own {
                    Some(own) => self.waiting.remove(own),
                    None if all => self.waiting.pop_front(),
                    None => return,
                }
            } else {
                self.waiting.pop_front()
            };
            let Some(event) = next else { break };
            self.write(&event, out);
        }
        self.waiting_bytes = 0;
    }

    fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Text { choice: 0, text } => self.text(text, out),
            Event::Refusal { choice: 0, text } => {
                self.refused = true;
                self.text(text, out);
            }
            Event::Reasoning { choice: 0, text } if !text.is_empty() => {
                if self.open != Open::Thinking {
                    self.open_thinking(out);
                }
                self.delta("thinking_delta", "thinking", text, out);
            }
            Event::ReasoningSignature { choice: 0, signature, redacted } => {
                self.reasoning_signature(signature, *redacted, out);
            }
            Event::ToolStart { choice: 0, call, id, name, signature } => {
                if let Some(signature) = signature {
                    // Belongs to the block that follows: see `block_reader`.
                    self.close(out);
                    self.reasoning_signature(signature, false, out);
                }
                self.open_tool(*call, id, name, out);
            }
            Event::ToolArguments { fragment, .. } if self.is_of_open_call(event) => {
                self.arguments.feed(fragment);
                self.delta("input_json_delta", "partial_json", fragment, out);
            }
            Event::Citation { choice: 0, value }
                if self.open == Open::Text && answer::is_own_citation(value) =>
            {
                self.start_delta("citations_delta", "citation", out);
                json(out, value);
                out.extend_from_slice(b"}}\n\n");
            }
            Event::Part { choice: 0, part } => {
                if let Part::Other { wire: Wire::Anthropic, value } = part.as_ref() {
                    self.whole_block(value, out);
                }
            }
            // Other choices, log-probabilities, the end; a failure is told by the caller.
            _ => {}
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if self.open != Open::Text {
            self.start_block(Open::Text, out);
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":\"\"}}\n\n");
        }
        self.delta("text_delta", "text", text, out);
    }

    fn open_thinking(&mut self, out: &mut Vec<u8>) {
        self.start_block(Open::Thinking, out);
        out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n");
    }

    fn reasoning_signature(&mut self, signature: &Signature, redacted: bool, out: &mut Vec<u8>) {
        let text = signature.to_text(Wire::Anthropic);
        if redacted && self.open != Open::Thinking {
            self.start_block(Open::Thinking, out);
            out.extend_from_slice(b"{\"type\":\"redacted_thinking\",\"data\":");
            json(out, &text);
            out.extend_from_slice(b"}}\n\n");
        } else {
            if self.open != Open::Thinking {
                self.open_thinking(out);
            }
            self.delta("signature_delta", "signature", &text, out);
        }
        self.close(out);
    }

    fn open_tool(&mut self, call: u32, id: &str, name: &str, out: &mut Vec<u8>) {
        self.start_block(Open::Tool { call }, out);
        self.arguments = Arguments::default();
        out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
        json(out, &id);
        out.extend_from_slice(b",\"name\":");
        json(out, &name);
        out.extend_from_slice(b",\"input\":{}}}\n\n");
    }

    fn whole_block(&mut self, value: &Value, out: &mut Vec<u8>) {
        self.start_block(Open::Text, out);
        json(out, value);
        out.extend_from_slice(b"}\n\n");
        self.close(out);
    }

    /// Begins the message, if it has not begun.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        out.extend_from_slice(
            b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":",
        );
        json(out, &self.asked.id);
        out.extend_from_slice(b",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
        json(out, &self.asked.model);
        out.extend_from_slice(b",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
        json(out, &usage::write(&self.usage));
        out.extend_from_slice(b"}}\n\n");
    }

    /// Ends the open block and begins another, up to its `content_block`.
    fn start_block(&mut self, kind: Open, out: &mut Vec<u8>) {
        self.begin(out);
        self.close(out);
        self.open = kind;
        self.next += 1;
        let index = self.next - 1;
        let head = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":";
        write!(out, "{head}{index},\"content_block\":").expect("a vector takes all");
    }

    /// Ends the open block, if one is open. A call without arguments gets `{}` (TR-14).
    fn close(&mut self, out: &mut Vec<u8>) {
        if matches!(self.open, Open::Tool { .. }) && !self.arguments.any {
            self.delta("input_json_delta", "partial_json", "{}", out);
        }
        if self.open != Open::None {
            self.open = Open::None;
            let head = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":";
            writeln!(out, "{head}{}}}\n", self.next - 1).expect("a vector takes all");
        }
    }

    fn delta(&self, kind: &str, field: &str, text: &str, out: &mut Vec<u8>) {
        self.start_delta(kind, field, out);
        json(out, &text);
        out.extend_from_slice(b"}}\n\n");
    }

    fn start_delta(&self, kind: &str, field: &str, out: &mut Vec<u8>) {
        let index = self.next - 1;
        let head = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":";
        write!(out, "{head}{index},\"delta\":{{\"type\":\"{kind}\",\"{field}\":")
            .expect("a vector takes all");
    }
}

fn json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(out, value).expect("values made here always serialise");
}

/// Messages are one answer: of the others there is nothing to tell.
fn is_of_another_choice(event: &Event<'_>) -> bool {
    match event {
        Event::Text { choice, .. }
        | Event::Reasoning { choice, .. }
        | Event::ReasoningSignature { choice, .. }
        | Event::Refusal { choice, .. }
        | Event::ToolStart { choice, .. }
        | Event::ToolArguments { choice, .. }
        | Event::Citation { choice, .. }
        | Event::Part { choice, .. } => *choice != 0,
        _ => false,
    }
}

/// Appends to a text that waits, if there is one.
fn join(known: Option<&mut Cow<'static, str>>, more: &str) -> bool {
    known.map(|text| text.to_mut().push_str(more)).is_some()
}

/// An event that can be kept; `None` for one that is never written here.
pub(super) fn owned(event: &Event<'_>) -> Option<Event<'static>> {
    let own = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
    Some(match event {
        Event::Text { choice, text } => Event::Text { choice: *choice, text: own(text) },
        Event::Refusal { choice, text } => Event::Refusal { choice: *choice, text: own(text) },
        Event::Reasoning { choice, text } => Event::Reasoning { choice: *choice, text: own(text) },
        Event::ReasoningSignature { choice, signature, redacted } => {
            Event::ReasoningSignature { choice: *choice, signature: signature.clone(), redacted: *redacted }
        }
        Event::ToolStart { choice, call, id, name, signature } => Event::ToolStart {
            choice: *choice,
            call: *call,
            id: own(id),
            name: own(name),
            signature: signature.clone(),
        },
        Event::ToolArguments { choice, call, fragment } => {
            Event::ToolArguments { choice: *choice, call: *call, fragment: own(fragment) }
        }
        Event::Citation { choice, value } => Event::Citation { choice: *choice, value: value.clone() },
        Event::Part { choice, part } => Event::Part { choice: *choice, part: part.clone() },
        _ => return None,
    })
}
