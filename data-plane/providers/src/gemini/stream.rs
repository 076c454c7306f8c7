//! Streamed answers, read.
//!
//! Every event is a whole response with what is new. A reason to finish may come in a later event than a call (SSE-07),
//! and text may follow it, so that a choice is reported as ended when the stream closes: closing is this dialect's only
//! end mark. A stream that closes while a choice has no reason to finish is cut (SSE-04).

use std::borrow::Cow;

use penstock_model::Usage;
use serde_json::value::RawValue;

use super::candidate::{Candidate, Response, block_reason};
use super::part::{RawPart, string};
use super::{answer, finish, ids, logprobs};
use crate::dialect::StreamReader;
use crate::exchange::{Event, Stop};
use crate::openai::error_body::VendorError;
use crate::sse::{self, Framer, MAX_TRANSLATED};

/// More candidates than this are nothing that a service of this dialect gives.
const MAX_CHOICES: usize = 64;

type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

/// Reads one stream.
pub(super) struct Reader {
    framer: Framer,
    state: State,
}

struct State {
    /// Ours, for the ids of calls.
    id: String,
    started: bool,
    failed: bool,
    choices: Vec<Choice>,
}

struct Choice {
    index: u32,
    calls: u32,
    /// Why it ended, in our words and in the service's.
    end: Option<(Stop, String)>,
}

/// Why a stream is given up.
struct Failure {
    error: VendorError,
    status: Option<u16>,
}

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let state = State { id: id.to_owned(), started: false, failed: false, choices: Vec::new() };
        Self { framer: Framer::with_limit(MAX_TRANSLATED), state }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: Sink<'_>) {
        let state = &mut self.state;
        self.framer.feed(read, |event| state.event(event, sink));
    }

    fn end(&mut self, sink: Sink<'_>) {
        let state = &mut self.state;
        self.framer.end(|event| state.event(event, sink));
        state.end(sink);
    }

    fn open_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }
}

impl State {
    fn event(&mut self, event: sse::Event<'_>, sink: Sink<'_>) {
        if self.failed {
            return;
        }
        if let Err(Failure { error, status }) = self.read(event, sink) {
            self.failed = true;
            sink(Event::Failed { error, status });
        }
    }

    fn read(&mut self, event: sse::Event<'_>, sink: Sink<'_>) -> Result<(), Failure> {
        if event.oversized {
            return Err(failure(format!("an event is longer than {} MiB", MAX_TRANSLATED >> 20)));
        }
        let data = event.data.trim_ascii();
        if event.is_error {
            return Err(Failure { error: VendorError::read(data), status: None });
        }
        if data.first() != Some(&b'{') {
            // A keep-alive in the wrong place (SSE-03).
            return Ok(());
        }
        let response: Response<'_> = serde_json::from_slice(data)
            .map_err(|_| failure("an event is not a response of this dialect".to_owned()))?;
        if let Some(error) = response.error {
            return Err(in_band(error));
        }
        self.start(&response, sink);
        if let Some(usage) =
            response.usage_metadata.as_ref().map(Usage::from).filter(|usage| !usage.is_empty())
        {
            sink(Event::Usage(usage));
        }
        for (position, candidate) in response.candidates.iter().flatten().enumerate() {
            self.candidate(position, candidate, sink)?;
        }
        if response.candidates.is_none_or(|all| all.is_empty())
            && let Some(reason) = block_reason(response.prompt_feedback)
        {
            let at = self.choice(0)?;
            self.choices[at].end = Some((Stop::ContentFilter, reason));
        }
        Ok(())
    }

    fn start(&mut self, response: &Response<'_>, sink: Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            let text = |raw| string(raw).filter(|text| !text.is_empty());
            let (id, model) = (text(response.response_id), text(response.model_version));
            sink(Event::Start { id, model, created: None });
        }
    }

    fn candidate(
        &mut self,
        position: usize,
        candidate: &Candidate<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Failure> {
        let index = candidate.index.unwrap_or(u32::try_from(position).unwrap_or(u32::MAX));
        let at = self.choice(index)?;
        let Self { id, choices, .. } = self;
        let choice = &mut choices[at];
        for raw in candidate.parts() {
            choice.part(raw, id, sink)?;
        }
        for value in candidate.citations() {
            sink(Event::Citation { choice: index, value });
        }
        if let Some(value) = logprobs::read(candidate.logprobs_result) {
            sink(Event::Logprobs { choice: index, value });
        }
        let reason = string(candidate.finish_reason).unwrap_or_default();
        match finish::read(&reason, choice.calls > 0) {
            Ok(Some(stop)) => choice.end = Some((stop, reason.into_owned())),
            Ok(None) => {}
            Err(()) => {
                let error = finish::failure(&reason, string(candidate.finish_message).as_deref());
                return Err(Failure { error, status: None });
            }
        }
        Ok(())
    }

    /// Where the choice of this index is in `choices`.
    fn choice(&mut self, index: u32) -> Result<usize, Failure> {
        if let Some(at) = self.choices.iter().position(|choice| choice.index == index) {
            return Ok(at);
        }
        if self.choices.len() == MAX_CHOICES {
            return Err(failure(format!("there are more than {MAX_CHOICES} candidates")));
        }
        self.choices.push(Choice { index, calls: 0, end: None });
        Ok(self.choices.len() - 1)
    }

    fn end(&mut self, sink: Sink<'_>) {
        let complete = !self.choices.is_empty() && self.choices.iter().all(|choice| choice.end.is_some());
        if self.failed || !complete {
            return;
        }
        self.choices.sort_by_key(|choice| choice.index);
        for choice in &self.choices {
            let Some((stop, native)) = &choice.end else { continue };
            // A call that came after the reason counts, too.
            let stop = if *stop == Stop::End && choice.calls > 0 { Stop::ToolCalls } else { *stop };
            sink(Event::Finish {
                choice: choice.index,
                stop,
                native: native.as_str().into(),
                sequence: None,
            });
        }
        sink(Event::End);
    }
}

impl Choice {
    fn part(&mut self, raw: &RawValue, id: &str, sink: Sink<'_>) -> Result<(), Failure> {
        let choice = self.index;
        let Ok(part) = serde_json::from_str::<RawPart<'_>>(raw.get()) else {
            if let Some(part) = answer::other(raw) {
                sink(Event::Part { choice, part: Box::new(part) });
            }
            return Ok(());
        };
        if part.function_call.is_some() {
            return self.call(&part, id, sink);
        }
        if part.is_media() {
            if let Some(part) = part.plain() {
                sink(Event::Part { choice, part: Box::new(part) });
            }
            return Ok(());
        }
        let signature = part.signature();
        match string(part.text) {
            Some(text) if text.is_empty() => {}
            Some(text) if part.thought == Some(true) => sink(Event::Reasoning { choice, text }),
            Some(text) => sink(Event::Text { choice, text }),
            None if signature.is_none() => {
                if let Some(part) = answer::other(raw) {
                    sink(Event::Part { choice, part: Box::new(part) });
                }
            }
            None => {}
        }
        if let Some((signature, redacted)) = signature {
            sink(Event::ReasoningSignature { choice, signature, redacted });
        }
        Ok(())
    }

    fn call(&mut self, part: &RawPart<'_>, id: &str, sink: Sink<'_>) -> Result<(), Failure> {
        let call = part.function_call.as_ref();
        let read = call.and_then(|call| Some((call, string(call.name)?, call.arguments()?)));
        let Some((raw, name, arguments)) = read else {
            return Err(Failure { error: finish::failure(finish::MALFORMED_CALL, None), status: None });
        };
        let (choice, call) = (self.index, self.calls);
        self.calls += 1;
        let given = string(raw.id).filter(|id| !id.is_empty());
        let id = given.unwrap_or_else(|| Cow::Owned(ids::in_answer(id, choice, call)));
        let signature = part.signature().map(|(signature, _)| signature);
        sink(Event::ToolStart { choice, call, id, name, signature });
        sink(Event::ToolArguments { choice, call, fragment: arguments });
        Ok(())
    }
}

fn failure(message: String) -> Failure {
    Failure { error: VendorError { message: Some(message), ..VendorError::default() }, status: None }
}

/// `{"code":…,"message":…,"status":…}` in an event.
fn in_band(error: &RawValue) -> Failure {
    let error = VendorError::read(format!("{{\"error\":{}}}", error.get()).as_bytes());
    let status = error.code.as_deref().and_then(|code| code.parse().ok());
    Failure { error, status: status.filter(|status| (400..600).contains(status)) }
}
