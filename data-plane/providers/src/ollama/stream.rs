//! Reads a streamed answer: one JSON object a line, the last with `done: true`.

use std::borrow::Cow;

use super::answer::{Chunk, Message};
use crate::chat_shaped::broken;
use crate::dialect::StreamReader;
use crate::exchange::{Event, Stop};
use crate::ndjson::{Lines, TooLong};

pub(super) struct Reader {
    lines: Lines,
    state: State,
}

struct State {
    id: String,
    started: bool,
    calls: u32,
    /// Nothing is reported any more: the end mark or a failure has come.
    over: bool,
}

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let state = State { id: id.to_owned(), started: false, calls: 0, over: false };
        Self { lines: Lines::default(), state }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.lines.feed(read, |line| state.line(line, sink));
    }

    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.lines.end(|line| state.line(line, sink));
    }

    fn open_bytes(&self) -> u64 {
        self.lines.open_bytes()
    }
}

impl State {
    fn line(&mut self, line: Result<&[u8], TooLong>, sink: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        let Ok(line) = line else { return self.fail("a line of the stream is too long", sink) };
        // Bytes that are not UTF-8 cost the characters they stand in, not the answer.
        let text = String::from_utf8_lossy(line);
        match serde_json::from_str(&text) {
            Ok(chunk) => self.chunk(&chunk, sink),
            Err(_) if text.starts_with('{') => self.fail("a line of the stream is broken", sink),
            // A sign of life in a place where it does not belong.
            Err(_) => {}
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(error) = chunk.error() {
            self.over = true;
            return sink(Event::Failed { error, status: None });
        }
        if !self.started {
            self.started = true;
            let model = chunk.model.as_deref().map(Cow::Borrowed);
            sink(Event::Start { id: None, model, created: None });
        }
        if let Some(message) = &chunk.message {
            self.message(message, sink);
        }
        if chunk.done {
            self.over = true;
            match chunk.stop(self.calls > 0) {
                Ok(stop) => finish(chunk, stop, sink),
                Err(error) => sink(Event::Failed { error, status: Some(503) }),
            }
        }
    }

    fn message(&mut self, message: &Message<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(text) = message.thinking.as_deref().filter(|text| !text.is_empty()) {
            sink(Event::Reasoning { choice: 0, text: text.into() });
        }
        if let Some(text) = message.content.as_deref().filter(|text| !text.is_empty()) {
            sink(Event::Text { choice: 0, text: text.into() });
        }
        for call in message.tool_calls.iter().flatten() {
            let number = self.calls;
            self.calls += 1;
            let name = call.function.name.as_deref().unwrap_or_default().into();
            let id = call.id(&self.id, number);
            sink(Event::ToolStart { choice: 0, call: number, id, name, signature: None });
            sink(Event::ToolArguments { choice: 0, call: number, fragment: call.arguments() });
        }
    }

    fn fail(&mut self, message: &str, sink: &mut dyn FnMut(Event<'_>)) {
        self.over = true;
        sink(broken(message));
    }
}

fn finish(chunk: &Chunk<'_>, stop: Stop, sink: &mut dyn FnMut(Event<'_>)) {
    let native = chunk.done_reason.as_deref().unwrap_or_default().into();
    sink(Event::Finish { choice: 0, stop, native, sequence: None });
    if let Some(usage) = chunk.usage() {
        sink(Event::Usage(usage));
    }
    sink(Event::End);
}
