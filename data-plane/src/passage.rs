//! What lies between the bytes of a service and those of its client.
//!
//! Where both speak the same dialect the bytes pass, and are only watched; where they differ, they are read into events
//! and written anew. Either way the relay learns the same: whether a token has come, whether the answer is complete,
//! what failed, and what was consumed.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use penstock_model::outcome::Outcome;
use penstock_model::{Usage, Vendor};
use penstock_providers::classify::classify;
use penstock_providers::dialect::{StreamReader, StreamWriter};
use penstock_providers::exchange::json_tool::JsonTool;
use penstock_providers::exchange::{Event, Facts};
use penstock_providers::inflate::Inflate;
use penstock_providers::openai::SseWatch;
use penstock_providers::vendor_error::VendorError;

use crate::error::Failure;
use crate::generic::grpc::Messages;

/// See the module's documentation.
pub(crate) struct Passage {
    /// Undoes the service's compression, which it was not asked for.
    inflate: Option<Inflate>,
    kind: Kind,
    /// Has the service's body ended?
    over: bool,
}

enum Kind {
    /// No stream of events: a file, a long answer in one piece, or whatever a generic service sends. And what its end
    /// means.
    Bytes(Outcome),
    /// The messages of a gRPC call.
    Grpc(Box<Messages>),
    /// A chat stream that passes.
    Chat(Box<SseWatch>),
    /// Another stream that passes.
    Watched(Box<dyn StreamReader>, Box<Facts>),
    /// A stream that is translated.
    Translated(Box<Translation>),
}

/// From one dialect to another.
pub(crate) struct Translation {
    reader: Box<dyn StreamReader>,
    /// Turns calls of the tool that stands in for structured output into text.
    json_tool: Option<JsonTool>,
    writer: Box<dyn StreamWriter>,
    facts: Facts,
    out: Vec<u8>,
    finished: bool,
}

impl Passage {
    pub(crate) fn bytes(inflate: Option<Inflate>, outcome: Outcome) -> Self {
        Self { inflate, kind: Kind::Bytes(outcome), over: false }
    }

    pub(crate) fn grpc(messages: Messages) -> Self {
        Self { inflate: None, kind: Kind::Grpc(Box::new(messages)), over: false }
    }

    pub(crate) fn chat(inflate: Option<Inflate>, watch: SseWatch) -> Self {
        Self { inflate, kind: Kind::Chat(Box::new(watch)), over: false }
    }

    pub(crate) fn watched(inflate: Option<Inflate>, reader: Box<dyn StreamReader>) -> Self {
        Self { inflate, kind: Kind::Watched(reader, Box::default()), over: false }
    }

    pub(crate) fn translated(
        inflate: Option<Inflate>,
        reader: Box<dyn StreamReader>,
        json_tool: Option<JsonTool>,
        writer: Box<dyn StreamWriter>,
    ) -> Self {
        let translation = Translation {
            reader,
            json_tool,
            writer,
            facts: Facts::default(),
            out: Vec::new(),
            finished: false,
        };
        Self { inflate, kind: Kind::Translated(Box::new(translation)), over: false }
    }

    /// Takes in a read; what goes to the client is added to `out`. False when it cannot be
    /// what it should be: compression is broken, or it is no gRPC.
    pub(crate) fn take(&mut self, read: Bytes, out: &mut VecDeque<Bytes>) -> bool {
        let read = match &mut self.inflate {
            None => read,
            Some(inflate) => {
                let mut plain = Vec::new();
                if inflate.feed(&read, &mut plain).is_err() {
                    return false;
                }
                Bytes::from(plain)
            }
        };
        match &mut self.kind {
            Kind::Bytes(_) => out.push_back(read),
            Kind::Grpc(messages) => {
                if !messages.take(&read) {
                    return false;
                }
                out.push_back(read);
            }
            Kind::Chat(watch) => out.extend(watch.filter(read)),
            Kind::Watched(reader, facts) => {
                reader.feed(&read, &mut |event| facts.see(&event));
                out.push_back(read);
            }
            Kind::Translated(translation) => translation.take(Some(&read), out),
        }
        true
    }

    /// The service's body has ended.
    pub(crate) fn end(&mut self, out: &mut VecDeque<Bytes>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        match &mut self.kind {
            Kind::Bytes(_) => {}
            Kind::Grpc(messages) => messages.end(),
            Kind::Chat(watch) => out.extend(watch.finish()),
            Kind::Watched(reader, facts) => reader.end(&mut |event| facts.see(&event)),
            Kind::Translated(translation) => translation.take(None, out),
        }
    }

    /// Has a token come? From then on the attempt cannot be retried.
    pub(crate) fn first_token(&self) -> bool {
        match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) => true,
            Kind::Chat(watch) => watch.first_token(),
            Kind::Watched(_, facts) => facts.first_token,
            Kind::Translated(translation) => translation.facts.first_token,
        }
    }

    /// Has the service said that its answer is complete? Of mere bytes the end of the body says so.
    pub(crate) fn is_complete(&self) -> bool {
        match &self.kind {
            Kind::Bytes(_) => self.over,
            Kind::Grpc(messages) => messages.is_complete(),
            Kind::Chat(watch) => watch.is_complete(),
            Kind::Watched(_, facts) => facts.complete,
            Kind::Translated(translation) => translation.facts.complete,
        }
    }

    /// Is it a stream of events, in which an error can be told?
    pub(crate) fn is_events(&self) -> bool {
        !matches!(self.kind, Kind::Bytes(_))
    }

    /// Do the service's own words reach the client?
    pub(crate) fn passes(&self) -> bool {
        !matches!(self.kind, Kind::Translated(_))
    }

    /// Did anything come that belongs to the protocol?
    fn has_events(&self) -> bool {
        match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) => true,
            Kind::Chat(watch) => watch.events() > watch.strays(),
            Kind::Watched(_, facts) => facts.events > 0,
            Kind::Translated(translation) => translation.facts.events > 0,
        }
    }

    /// The failure that the service reported in its stream.
    pub(crate) fn reported(&self, vendor: &Vendor) -> Option<Failure> {
        let (error, status): (&VendorError, Option<u16>) = match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) => return None,
            Kind::Chat(watch) => (watch.error()?, None),
            Kind::Watched(_, facts) => facts.error.as_ref().map(|(error, status)| (error, *status))?,
            Kind::Translated(it) => it.facts.error.as_ref().map(|(error, status)| (error, *status))?,
        };
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let classified = classify(vendor, status, &HeaderMap::new(), error.clone(), SystemTime::UNIX_EPOCH);
        Some(Failure::reported(classified, status))
    }

    /// How it failed, once the body has ended; `None` when it is complete.
    pub(crate) fn failure(&self, vendor: &Vendor) -> Option<Failure> {
        if let failed @ Some(_) = self.reported(vendor) {
            return failed;
        }
        if self.is_complete() || !self.is_events() {
            return None;
        }
        // A clean end of the body without an end mark is no answer (SSE-04).
        Some(Failure::silent(if self.has_events() { Outcome::Truncated } else { Outcome::InvalidResponse }))
    }

    /// What it comes to when nothing failed on the way.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.kind {
            Kind::Bytes(outcome) => *outcome,
            Kind::Grpc(messages) => messages.outcome(),
            _ => Outcome::Ok,
        }
    }

    /// Where it is gRPC: its messages.
    pub(crate) fn messages(&mut self) -> Option<&mut Messages> {
        match &mut self.kind {
            Kind::Grpc(messages) => Some(messages),
            _ => None,
        }
    }

    /// How it failed when the connection broke.
    pub(crate) fn broken(&self, vendor: &Vendor) -> Failure {
        if let Kind::Grpc(messages) = &self.kind {
            return messages.broken();
        }
        self.reported(vendor).unwrap_or_else(|| Failure::silent(Outcome::Truncated))
    }

    /// What was consumed, as last reported.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) => None,
            Kind::Chat(watch) => watch.usage(),
            Kind::Watched(_, facts) => facts.usage,
            Kind::Translated(translation) => translation.facts.usage,
        }
    }

    /// Has the client been given the beginning of an event and not its end?
    pub(crate) fn is_inside_event(&self) -> bool {
        match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) | Kind::Translated(_) => false,
            Kind::Chat(watch) => watch.is_inside_event(),
            Kind::Watched(reader, _) => reader.open_bytes() > 0,
        }
    }

    /// Bytes of the event that has not ended yet.
    pub(crate) fn open_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Bytes(_) | Kind::Grpc(_) => 0,
            Kind::Chat(watch) => watch.open_event_bytes(),
            Kind::Watched(reader, _) => reader.open_bytes(),
            Kind::Translated(translation) => translation.reader.open_bytes(),
        }
    }
}

impl Translation {
    /// Takes in a read, or the end of the body.
    fn take(&mut self, read: Option<&[u8]>, held: &mut VecDeque<Bytes>) {
        let Self { reader, json_tool, writer, facts, out, finished } = self;
        let mut write = |event: Event<'_>| {
            // Failures are told by the relay, in words of ours.
            if !*finished && !matches!(event, Event::Failed { .. } | Event::End) {
                writer.event(&event, out);
            }
        };
        let mut see = |event: Event<'_>| {
            facts.see(&event);
            match json_tool {
                Some(tool) => tool.event(event, &mut write),
                None => write(event),
            }
        };
        match read {
            Some(read) => reader.feed(read, &mut see),
            None => reader.end(&mut see),
        }
        let over = self.facts.ended || read.is_none();
        if over && self.facts.complete && self.facts.error.is_none() && !self.finished {
            if let Some(tool) = &mut self.json_tool {
                let (writer, out) = (&mut self.writer, &mut self.out);
                tool.finish(&mut |event| writer.event(&event, out));
            }
            self.finished = true;
            self.writer.finish(&mut self.out);
        }
        if !self.out.is_empty() {
            held.push_back(std::mem::take(&mut self.out).into());
        }
    }
}
