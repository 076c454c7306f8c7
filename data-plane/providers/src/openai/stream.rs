//! Watches a streamed chat completion on its way to the client.
//!
//! It answers the questions that the relay has: may this attempt still be retried, did it fail in spite of its 200, is it
//! complete, and what did it consume. And it says what the client gets: every read as it came, but for the few events
//! that would harm the client (`filter.rs`).

mod filter;
mod repair;

use std::sync::LazyLock;

use memchr::memmem::Finder;
use penstock_model::Usage;
use penstock_model::outcome::Outcome;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::usage;
use crate::classify;
use crate::json::member_value;
use crate::sse::{Event, Framer};
use crate::vendor_error::VendorError;

pub use filter::Pieces;

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));
static TOOL_CALLS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"tool_calls\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"finish_reason\""));

/// Reasons to finish that are failures of the service: DeepSeek, Zhipu, Mistral.
const FAILED_FINISH: [&str; 3] = ["insufficient_system_resource", "network_error", "error"];

/// What has been seen of one stream. A few hundred bytes, and at most three times [`crate::sse::MAX_HELD`] more while
/// reads cut events.
#[derive(Debug, Default)]
pub struct SseWatch {
    framer: Framer,
    seen: Seen,
    open: filter::Open,
}

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It passes as it came.
    Pass,
    /// The client is better off without it.
    Drop,
    /// It passes with this for its data.
    Replace(Vec<u8>),
}

#[derive(Debug, Default)]
struct Seen {
    first_token: bool,
    done: bool,
    finished: bool,
    error: Option<VendorError>,
    usage: Option<Usage>,
    events: u64,
    strays: u64,
    /// Did we ask for the usage, and the client not?
    hide_usage: bool,
    calls: repair::Repair,
}

impl SseWatch {
    /// For a stream that is about to begin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For a stream whose usage report was asked for by us and not by the client: [`Self::filter`] leaves it out (SSE-05).
    #[must_use]
    pub fn hiding_usage() -> Self {
        Self { seen: Seen { hide_usage: true, ..Seen::default() }, ..Self::default() }
    }

    /// Takes in one read of the body, without a word on what the client gets.
    pub fn feed(&mut self, read: &[u8]) {
        let seen = &mut self.seen;
        self.framer.feed(read, |event| {
            seen.inspect(event);
        });
        seen.first_token |= self.framer.is_oversized();
    }

    /// The body has ended. For streams that went through [`Self::feed`].
    pub fn end(&mut self) {
        let seen = &mut self.seen;
        self.framer.end(|event| {
            seen.inspect(event);
        });
    }

    /// The commit point: has a token (text, reasoning, refusal or part of a tool call) come? From here on the attempt
    /// cannot be retried, because the client has seen part of its answer. A chunk with only a role, or without choices,
    /// does not count.
    #[must_use]
    pub fn first_token(&self) -> bool {
        self.seen.first_token
    }

    /// Did the service say that the answer is complete, by `[DONE]` or by a finish reason?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.seen.done || self.seen.finished
    }

    /// The failure that the service reported inside the stream.
    #[must_use]
    pub fn error(&self) -> Option<&VendorError> {
        self.seen.error.as_ref()
    }

    /// The tokens consumed, as last reported.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.seen.usage
    }

    /// Events with data so far, `[DONE]` included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.seen.events
    }

    /// Events whose data is not a JSON object: keep-alives in the wrong place, or garbage.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.seen.strays
    }

    /// Comment lines so far: signs of life that are not tokens.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.framer.comments()
    }

    /// Bytes of the event that has not ended yet: the caller sets a limit to it.
    #[must_use]
    pub fn open_event_bytes(&self) -> u64 {
        self.framer.open_bytes()
    }

    /// How the attempt ended, once [`Self::end`] was called: a clean end of the body without an end mark is a failure.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match &self.seen.error {
            Some(error) => classify::in_general(error),
            None if self.is_complete() => Outcome::Ok,
            None if self.seen.events == self.seen.strays => Outcome::InvalidResponse,
            None => Outcome::Truncated,
        }
    }
}

impl Seen {
    fn inspect(&mut self, event: Event<'_>) -> Verdict {
        self.events += 1;
        if event.oversized {
            self.first_token = true;
            return Verdict::Pass;
        }
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return Verdict::Pass;
        }
        if event.is_error {
            self.fail(VendorError::read(data));
        }
        if data.first() != Some(&b'{') {
            self.strays += 1;
            // A keep-alive in the wrong place, on which clients that parse it would fail (SSE-03).
            return if event.is_error { Verdict::Pass } else { Verdict::Drop };
        }
        if !self.first_token {
            self.first_token = holds_token(data);
        }
        let usage = USAGE.find(data).and_then(|_| usage::find(data));
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
        if ERROR.find(data).is_some()
            && let Some(error) = VendorError::in_band(data)
        {
            self.fail(error);
        }
        for at in FINISH.find_iter(data) {
            self.read_finish_reason(&data[at + FINISH.needle().len()..]);
        }
        if self.hide_usage && usage.is_some() && has_no_choices(data) {
            return Verdict::Drop;
        }
        match TOOL_CALLS.find(data).and_then(|_| self.calls.repair(data)) {
            Some(repaired) => Verdict::Replace(repaired),
            None => Verdict::Pass,
        }
    }

    fn read_finish_reason(&mut self, after_key: &[u8]) {
        let Some(reason) = member_value(after_key).and_then(|value| value.strip_prefix(b"\"")) else {
            return;
        };
        let reason = &reason[..memchr::memchr(b'"', reason).unwrap_or(0)];
        match FAILED_FINISH.into_iter().find(|name| name.as_bytes() == reason) {
            Some(name) => {
                let message = format!("the service stopped with finish_reason \"{name}\"");
                let (code, message) = (Some(name.to_owned()), Some(message));
                self.fail(VendorError { code, message, ..VendorError::default() });
            }
            None => self.finished |= !reason.is_empty(),
        }
    }

    /// The first error is the cause; later ones follow from it.
    fn fail(&mut self, error: VendorError) {
        self.error.get_or_insert(error);
    }
}

/// Is there nothing but the usage that this chunk could be for?
fn has_no_choices(chunk: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Option<Vec<IgnoredAny>>,
    }
    serde_json::from_slice::<Chunk>(chunk).is_ok_and(|chunk| chunk.choices.is_none_or(|list| list.is_empty()))
}

/// Does this chunk carry anything that a client would show or act on?
fn holds_token(chunk: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(borrow)]
        choices: Option<Vec<Choice<'a>>>,
    }
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        delta: Option<Delta<'a>>,
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
        refusal: Option<&'a RawValue>,
        #[serde(borrow)]
        tool_calls: Option<&'a RawValue>,
        #[serde(borrow)]
        function_call: Option<&'a RawValue>,
        #[serde(borrow)]
        audio: Option<&'a RawValue>,
    }
    let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(chunk) else { return false };
    let deltas = chunk.choices.iter().flatten().filter_map(|choice| choice.delta.as_ref());
    deltas.into_iter().any(|delta| {
        [
            delta.content,
            delta.reasoning_content,
            delta.reasoning,
            delta.refusal,
            delta.tool_calls,
            delta.function_call,
            delta.audio,
        ]
        .into_iter()
        .flatten()
        .any(|value| !matches!(value.get(), "\"\"" | "[]" | "{}"))
    })
}

#[cfg(test)]
mod tests;
