//! What a service says, bit by bit.

use std::borrow::Cow;

use penstock_model::Usage;
use serde_json::Value;

use super::answer::Stop;
use super::content::{Part, Signature};
use crate::openai::error_body::VendorError;

/// One thing that happens in a streamed answer. Borrows from the read it came in where it can.
///
/// Readers keep these rules, and writers count on them: `Start` comes once and before any token, though a broken stream
/// may lack it; a tool call's `ToolArguments` follow its `ToolStart` and end before the next call's `ToolStart` of the same choice, unless the service itself
/// interleaves; `Finish` comes once per choice and after everything else of it (SSE-07); `Usage` holds running totals;
/// nothing follows `End` or `Failed`. Empty texts and fragments are not reported.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// The answer begins. It is not a token: a service may still fail in any way.
    Start {
        /// The service's id of the answer.
        id: Option<Cow<'a, str>>,
        /// The model as the service calls it.
        model: Option<Cow<'a, str>>,
        /// When, seconds since 1970.
        created: Option<u64>,
    },
    /// Text.
    Text {
        /// Of which choice.
        choice: u32,
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// What the model thinks.
    Reasoning {
        /// Of which choice.
        choice: u32,
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// The signature of the reasoning so far, which it ends; more reasoning is a new block. Comes without any text
    /// before it when the block has none (TR-08).
    ReasoningSignature {
        /// Of which choice.
        choice: u32,
        /// The signature, or the encrypted thought.
        signature: Signature,
        /// Is it the encrypted thought?
        redacted: bool,
    },
    /// The model declines, in a field of its own.
    Refusal {
        /// Of which choice.
        choice: u32,
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// A tool call begins.
    ToolStart {
        /// Of which choice.
        choice: u32,
        /// Which call of this choice, from 0.
        call: u32,
        /// Its id: made up, and unique, where the service gives none.
        id: Cow<'a, str>,
        /// Which tool.
        name: Cow<'a, str>,
        /// Its signature (Gemini).
        signature: Option<Signature>,
    },
    /// Part of a call's arguments. All parts of a call make a JSON object; a call without arguments gets `{}` (TR-14).
    ToolArguments {
        /// Of which choice.
        choice: u32,
        /// Which call.
        call: u32,
        /// Not empty.
        fragment: Cow<'a, str>,
    },
    /// Citations or annotations of the text so far, in the service's words.
    Citation {
        /// Of which choice.
        choice: u32,
        /// One of them.
        value: Value,
    },
    /// A whole piece that has no event of its own: a picture, a sound, a piece that only one dialect knows.
    Part {
        /// Of which choice.
        choice: u32,
        /// The piece.
        part: Box<Part>,
    },
    /// Log-probabilities of the text before, in OpenAI's shape.
    Logprobs {
        /// Of which choice.
        choice: u32,
        /// `{content: […]}`
        value: Value,
    },
    /// A choice ends.
    Finish {
        /// Which.
        choice: u32,
        /// Why.
        stop: Stop,
        /// The vendor's own word for it.
        native: Cow<'a, str>,
        /// The stop sequence that ended it.
        sequence: Option<Cow<'a, str>>,
    },
    /// What was consumed so far.
    Usage(Usage),
    /// The service's end mark.
    End,
    /// The service says that it failed, in spite of its 200.
    Failed {
        /// What it says.
        error: VendorError,
        /// The HTTP status that this error stands for, where the dialect defines one.
        status: Option<u16>,
    },
}

impl Event<'_> {
    /// Is it something that a client would show or act on? From then on an attempt cannot be retried.
    #[must_use]
    pub fn is_token(&self) -> bool {
        matches!(
            self,
            Event::Text { .. }
                | Event::Reasoning { .. }
                | Event::Refusal { .. }
                | Event::ToolStart { .. }
                | Event::ToolArguments { .. }
                | Event::Part { .. }
        )
    }
}

/// What the events of a stream amount to: what the relay needs to know, whatever the dialect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Has a token come?
    pub first_token: bool,
    /// Has the service said that its answer is complete?
    pub complete: bool,
    /// Has its end mark come?
    pub ended: bool,
    /// The first failure that it reported, and the status it stands for.
    pub error: Option<(VendorError, Option<u16>)>,
    /// What was consumed, as last reported.
    pub usage: Option<Usage>,
    /// How many events there were.
    pub events: u64,
}

impl Facts {
    /// Takes note of an event.
    pub fn see(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.first_token |= event.is_token();
        match event {
            Event::Finish { .. } => self.complete = true,
            Event::End => (self.complete, self.ended) = (true, true),
            Event::Usage(usage) => self.usage.get_or_insert_default().update(*usage),
            Event::Failed { error, status } => {
                self.error.get_or_insert_with(|| (error.clone(), *status));
            }
            _ => {}
        }
    }
}
