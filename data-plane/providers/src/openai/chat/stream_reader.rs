//! Reads a service's stream.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_reader::Calls;
use super::members::{elements, typed};
use super::{answer_reader, finish, reasoning};
use crate::dialect::StreamReader;
use crate::exchange::{Event, Part, Stop};
use crate::json::JsonStr;
use crate::openai::error_body::VendorError;
use crate::openai::usage;
use crate::sse::{self, Framer, MAX_TRANSLATED};

/// Most choices of one answer.
const MAX_CHOICES: u32 = 1024;

/// See [`StreamReader`].
pub(super) struct Reader {
    framer: Framer,
    answer: Progress,
}

/// How far the answer is.
struct Progress {
    /// Ours, of which ids are made.
    id: String,
    begun: bool,
    /// Nothing may follow.
    over: bool,
    choices: Vec<Choice>,
}

#[derive(Default)]
struct Choice {
    calls: Calls,
    finished: bool,
}

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let answer = Progress { id: id.to_owned(), begun: false, over: false, choices: Vec::new() };
        Self { framer: Framer::with_limit(MAX_TRANSLATED), answer }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let answer = &mut self.answer;
        self.framer.feed(read, |event| answer.take(event, sink));
    }

    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        let answer = &mut self.answer;
        self.framer.end(|event| answer.take(event, sink));
    }

    fn open_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<RawChoice<'a>>>,
}

#[derive(Deserialize)]
struct RawChoice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// In place of `delta`, from services that answer whole.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    native_finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    images: Option<&'a RawValue>,
    #[serde(borrow)]
    audio: Option<&'a RawValue>,
}

impl Progress {
    fn take(&mut self, event: sse::Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        if event.oversized {
            let message = Some("an event of the stream is too long".to_owned());
            return self.fail(VendorError { message, ..VendorError::default() }, None, sink);
        }
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            return self.done(sink);
        }
        if event.is_error {
            return self.fail_with(VendorError::read(data), sink);
        }
        if data.first() != Some(&b'{') {
            // A keep-alive in the wrong place (SSE-03).
            return;
        }
        if let Some(error) = VendorError::in_band(data) {
            return self.fail_with(error, sink);
        }
        match serde_json::from_slice(data) {
            Ok(chunk) => self.chunk(&chunk, data, sink),
            // Bytes that are no UTF-8 cost a replacement, not the stream (SSE-01).
            Err(_) => {
                let text = String::from_utf8_lossy(data);
                if let Ok(chunk) = serde_json::from_str(&text) {
                    self.chunk(&chunk, text.as_bytes(), sink);
                }
            }
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, data: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let choices = chunk.choices.as_deref().unwrap_or_default();
        let id = chunk.id.and_then(filled);
        // Azure's first chunk holds the verdict on the prompt, and neither an id nor a choice.
        if !self.begun && (id.is_some() || !choices.is_empty()) {
            self.begun = true;
            let created = chunk.created.and_then(|raw| raw.get().parse().ok());
            sink(Event::Start { id, model: chunk.model.and_then(filled), created });
        }
        for choice in choices {
            self.choice(choice, sink);
            if self.over {
                return;
            }
        }
        if memchr::memmem::find(data, b"\"usage\"").is_some()
            && let Some(usage) = usage::find(data)
        {
            self.begin(sink);
            sink(Event::Usage(usage));
        }
    }

    fn choice(&mut self, raw: &RawChoice<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        let index = raw.index.and_then(|raw| raw.get().parse().ok()).unwrap_or(0_u32);
        if index >= MAX_CHOICES {
            return;
        }
        while self.choices.len() <= index as usize {
            self.choices.push(Choice::default());
        }
        let choice = &mut self.choices[index as usize];
        if choice.finished {
            return;
        }
        if let Some(delta) = raw.delta.as_ref().or(raw.message.as_ref()) {
            delta.tell(index, sink);
            choice.calls.read(delta.tool_calls, delta.function_call, index, &self.id, sink);
        }
        if let Some(value) = raw.logprobs.and_then(|raw| typed(raw, "").ok()) {
            sink(Event::Logprobs { choice: index, value });
        }
        let Some(word) = raw.finish_reason.and_then(filled) else { return };
        match finish::read(&word) {
            finish::Meaning::Failed(status) => self.fail(finish::failure(&word), Some(status), sink),
            finish::Meaning::Stop(stop) => choice.finish(raw, index, stop, word, sink),
        }
    }

    fn begin(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.begun, true) {
            sink(Event::Start { id: None, model: None, created: None });
        }
    }

    fn done(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        self.begin(sink);
        for (index, choice) in self.choices.iter_mut().enumerate() {
            choice.calls.close(index as u32, sink);
        }
        self.over = true;
        sink(Event::End);
    }

    /// A code that is an HTTP status is one.
    fn fail_with(&mut self, error: VendorError, sink: &mut dyn FnMut(Event<'_>)) {
        let code = error.code.as_deref().and_then(|code| code.parse().ok());
        self.fail(error, code.filter(|code| (400..600).contains(code)), sink);
    }

    fn fail(&mut self, error: VendorError, status: Option<u16>, sink: &mut dyn FnMut(Event<'_>)) {
        self.over = true;
        sink(Event::Failed { error, status });
    }
}

impl Choice {
    fn finish(
        &mut self,
        raw: &RawChoice<'_>,
        index: u32,
        stop: Stop,
        word: Cow<'_, str>,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        self.calls.close(index, sink);
        self.finished = true;
        let sequence = raw.stop_reason.and_then(filled);
        let stop = finish::refine(stop, !self.calls.is_empty(), sequence.is_some());
        let native = raw.native_finish_reason.and_then(filled).unwrap_or(word);
        sink(Event::Finish { choice: index, stop, native, sequence });
    }
}

impl Delta<'_> {
    /// Everything but calls.
    fn tell(&self, choice: u32, sink: &mut dyn FnMut(Event<'_>)) {
        self.tell_reasoning(choice, sink);
        match self.content {
            Some(raw) if raw.get().starts_with('[') => {
                for part in answer_reader::content(raw) {
                    match part {
                        Part::Text(text) => sink(Event::Text { choice, text: text.text.into() }),
                        Part::Reasoning(block) => sink(Event::Reasoning { choice, text: block.text.into() }),
                        _ => {}
                    }
                }
            }
            Some(raw) => {
                if let Some(text) = filled(raw) {
                    sink(Event::Text { choice, text });
                }
            }
            None => {}
        }
        if let Some(text) = self.refusal.and_then(filled) {
            sink(Event::Refusal { choice, text });
        }
        for raw in self.annotations.and_then(|raw| elements(raw, "").ok()).unwrap_or_default() {
            if let Ok(value) = typed(raw, "") {
                sink(Event::Citation { choice, value });
            }
        }
        for part in self.images.map(answer_reader::images).unwrap_or_default() {
            sink(Event::Part { choice, part: Box::new(part) });
        }
        if let Some(media) = self.audio.and_then(answer_reader::audio) {
            sink(Event::Part { choice, part: Box::new(Part::Audio(media)) });
        }
    }

    fn tell_reasoning(&self, choice: u32, sink: &mut dyn FnMut(Event<'_>)) {
        let text = self.reasoning_content.and_then(filled).or_else(|| self.reasoning.and_then(filled));
        let details: Vec<Value> =
            self.reasoning_details.and_then(|raw| typed(raw, "").ok()).unwrap_or_default();
        let told = text.is_some();
        if let Some(text) = text {
            sink(Event::Reasoning { choice, text });
        }
        for detail in &details {
            if let Some(text) = reasoning::text(detail).filter(|text| !told && !text.is_empty()) {
                sink(Event::Reasoning { choice, text: text.into() });
            }
            if let Some((signature, redacted)) = reasoning::signature(detail) {
                sink(Event::ReasoningSignature { choice, signature, redacted });
            }
        }
    }
}

/// A string that says something.
pub(super) fn filled(raw: &RawValue) -> Option<Cow<'_, str>> {
    JsonStr::new(raw).map(JsonStr::decode).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
