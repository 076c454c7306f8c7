//! Reading an answer: a refusal, a whole one, or the beginning of a stream.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use penstock_model::outcome::Outcome;
use penstock_model::vendor::{Call as VendorCall, Wire};
use penstock_providers::classify::{classify, classify_success};
use penstock_providers::dialect::{Asked, StreamReader, dialect};
use penstock_providers::exchange::json_tool::{JsonTool, fold_answer};
use penstock_providers::exchange::{Answer, replay};
use penstock_providers::inflate::Inflate;
use penstock_providers::openai::{SseWatch, usage};
use penstock_providers::vendor_error::VendorError;

use crate::answer::protocol;
use crate::attempt::{Call, Flow, Reply};
use crate::clock::unix_ms;
use crate::error::Failure;
use crate::outgoing::{Outgoing, Translated};
use crate::passage::Passage;
use crate::send::{Limit, keep, within};
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::Exchange;

/// An answer up to this size is read whole before the client sees any of it.
pub(crate) const WHOLE: usize = 1 << 20;
/// The largest answer that is translated as a whole.
pub(crate) const TRANSLATED: usize = 32 << 20;
/// Of an error body, no more than this is read.
const ERROR_BODY: usize = 64 << 10;
/// A stream that has sent this much without a token is passed on all the same.
const HELD: usize = 256 << 10;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// An answer with a status of success, of which the head is here.
pub(crate) struct Received<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) target: &'a Arc<Target>,
    pub(crate) outgoing: &'a Outgoing,
    /// As the client will see it.
    pub(crate) head: Response<()>,
    pub(crate) exchange: Exchange,
    pub(crate) inflate: Option<Inflate>,
}

impl Received<'_> {
    /// Is it a stream of events? Of a service that was asked for a stream, anything but JSON is.
    pub(crate) fn is_streamed(&self) -> bool {
        if self.outgoing.translation.is_some() {
            self.call.ask.view.stream && !self.is("application/json")
        } else {
            self.is("text/event-stream") && !self.is_compressed()
        }
    }

    /// Is it of this media type? Its case says nothing (RFC 9110 section 8.3.1).
    fn is(&self, media_type: &str) -> bool {
        let kind = self.head.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        kind.get(..media_type.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(media_type.as_bytes()))
    }

    /// Sound, or a transcript in plain text: nothing that could be looked into.
    fn is_file(&self) -> bool {
        use VendorCall::{AudioSpeech, AudioTranscriptions, AudioTranslations};
        matches!(self.call.ask.call, AudioSpeech | AudioTranscriptions | AudioTranslations)
            && !self.is("application/json")
    }

    /// In a way that we cannot undo?
    fn is_compressed(&self) -> bool {
        self.head.headers().contains_key(http::header::CONTENT_ENCODING)
    }
}

/// The service refused: reads why, and keeps the connection if the reason was short.
pub(crate) async fn refused(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Target,
    head: &Response<()>,
    mut exchange: Exchange,
) -> Failure {
    let limit = Limit::new(ticket.worker.shared.clock.now(), call.timeouts.idle, call.deadline);
    let body = within(ticket, limit, gather(&mut exchange, ERROR_BODY)).await;
    let body = match body {
        Ok(Ok(pieces)) => {
            keep(ticket, target, exchange).await;
            pieces.concat()
        }
        _ => Vec::new(),
    };
    // Nobody knows what the words of a generic service mean, or give away.
    let generic = target.vendor.wire.is_generic();
    let error = if generic { VendorError::default() } else { VendorError::read(&body) };
    let status = Some(head.status());
    Failure::reported(classify(target.vendor, status, head.headers(), error, SystemTime::now()), status)
}

/// Why [`gather`] did not come to the end.
pub(crate) enum Ungathered {
    /// There is more: this is what came so far.
    TooLong(Vec<Bytes>),
    /// It broke off.
    Broken,
}

/// Reads a body to its end, if it is no longer than `most`.
pub(crate) async fn gather(exchange: &mut Exchange, most: usize) -> Result<Vec<Bytes>, Ungathered> {
    let mut pieces = Vec::with_capacity(1);
    let mut length = 0;
    while !exchange.is_done() {
        match exchange.data().await {
            Some(Ok(piece)) => {
                length += piece.len();
                pieces.push(piece);
                if length > most {
                    return Err(Ungathered::TooLong(pieces));
                }
            }
            Some(Err(_)) => return Err(Ungathered::Broken),
            None => break,
        }
    }
    Ok(pieces)
}

/// By when a whole answer must be here, of which the head had to be here by `limit`.
pub(crate) fn limit_of_whole(ticket: &Ticket, call: &Call<'_>, limit: Limit) -> Limit {
    let idle = Limit::new(ticket.worker.shared.clock.now(), call.timeouts.idle, call.deadline);
    if limit.at > idle.at { limit } else { Limit { outcome: Outcome::IdleTimeout, ..idle } }
}

/// Reads an answer that is not streamed.
pub(crate) async fn whole(
    ticket: &mut Ticket,
    mut received: Received<'_>,
    limit: Limit,
) -> Result<Reply, Failure> {
    let call = received.call;
    let limit = limit_of_whole(ticket, call, limit);
    let translated = received.outgoing.translation.as_ref();
    let most = if translated.is_some() { TRANSLATED } else { WHOLE };
    let mut pieces = match within(ticket, limit, gather(&mut received.exchange, most)).await? {
        Ok(pieces) => pieces,
        Err(Ungathered::TooLong(_)) if translated.is_some() => return Err(Failure::invalid()),
        Err(Ungathered::TooLong(pieces)) => return long(ticket, received, pieces),
        Err(Ungathered::Broken) => return Err(Failure::silent(Outcome::Truncated)),
    };
    if let Some(inflate) = &mut received.inflate {
        let mut plain = Vec::new();
        for piece in &pieces {
            inflate.feed(piece, &mut plain).map_err(|_| Failure::invalid())?;
        }
        received.head.headers_mut().remove(CONTENT_LENGTH);
        pieces = vec![plain.into()];
    }
    let is_opaque = received.is_compressed() || received.is_file();
    let Received { target, mut head, exchange, .. } = received;
    keep(ticket, target, exchange).await;
    let body: Cow<'_, [u8]> = match pieces.as_slice() {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.concat()),
    };
    let pieces = match translated {
        Some(translated) => {
            let answer = translate(ticket, call, target, translated, &body)?;
            let media_type = if call.ask.view.stream { EVENT_STREAM } else { JSON };
            head.headers_mut().insert(CONTENT_TYPE, media_type);
            vec![answer]
        }
        None => {
            if !is_opaque {
                examine(ticket, call, target, &body)?;
            }
            pieces
        }
    };
    let now = ticket.worker.shared.clock.now();
    ticket.first_byte(now);
    ticket.end(Outcome::Ok, None, now);
    Ok(Reply::Whole { head, pieces })
}

/// Looks at an answer that passes: a 200 can still be an error, or no JSON at all.
fn examine(ticket: &mut Ticket, call: &Call<'_>, target: &Target, body: &[u8]) -> Result<(), Failure> {
    if let Some(classified) = classify_success(target.vendor, body) {
        return Err(Failure::reported(classified, None));
    }
    let dialect = call.ask.wire.filter(|wire| *wire != Wire::Openai).and_then(dialect);
    ticket.usage = dialect.map_or_else(|| usage::find(body), |dialect| dialect.find_usage(body));
    Ok(())
}

/// An answer too long to be held back: it goes on as it comes.
fn long(ticket: &mut Ticket, received: Received<'_>, pieces: Vec<Bytes>) -> Result<Reply, Failure> {
    let mut passage = Passage::bytes(received.inflate, Outcome::Ok);
    let mut held = VecDeque::new();
    for piece in pieces {
        if !passage.take(piece, &mut held) {
            return Err(Failure::invalid());
        }
    }
    ticket.first_byte(ticket.worker.shared.clock.now());
    let Received { head, exchange, .. } = received;
    Ok(Reply::Flow(Box::new(Flow { head, held, exchange, passage })))
}

/// The answer in the client's protocol.
fn translate(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Target,
    translated: &Translated,
    body: &[u8],
) -> Result<Bytes, Failure> {
    let asked = asked(ticket, call, target);
    let read = translated.dialect.read_answer(body, &asked.id);
    let mut answer: Answer = read.map_err(|error| {
        let classified =
            classify(target.vendor, None, &http::HeaderMap::new(), error, SystemTime::UNIX_EPOCH);
        Failure::reported(classified, None)
    })?;
    if let Some(tool) = &translated.json_tool {
        fold_answer(&mut answer, tool);
    }
    ticket.usage = answer.usage;
    let protocol = protocol(ticket.request.wire);
    if !call.ask.view.stream {
        return Ok(protocol.write_answer(&answer, &asked));
    }
    let mut writer = protocol.stream_writer(asked);
    let mut out = Vec::new();
    replay(&answer, &mut |event| writer.event(&event, &mut out));
    writer.finish(&mut out);
    Ok(out.into())
}

/// What the client's protocol needs to know of the request.
fn asked(ticket: &Ticket, call: &Call<'_>, target: &Target) -> Asked {
    let view = &call.ask.view;
    let named = Some(ticket.request.model.as_str()).filter(|model| !model.is_empty());
    Asked {
        id: ticket.request.decision.to_str().unwrap_or_default().to_owned(),
        model: named.unwrap_or(&target.state.model).to_owned(),
        created: (unix_ms(ticket.worker.shared.clock.wall(ticket.started)) / 1_000) as u64,
        include_usage: view.include_usage,
    }
}

/// Holds a stream back until its first real token, its end, or its failure.
pub(crate) async fn until_first_token(
    ticket: &mut Ticket,
    mut received: Received<'_>,
    limit: Limit,
) -> Result<Reply, Failure> {
    let vendor = received.target.vendor;
    let mut passage = passage(ticket, &mut received);
    let mut held = VecDeque::new();
    let mut length = 0;
    while !passage.first_token() && length < HELD {
        let Some(data) = within(ticket, limit, received.exchange.data()).await? else {
            passage.end(&mut held);
            match passage.failure(vendor) {
                None => break,
                Some(failure) => return Err(failure),
            }
        };
        let Ok(data) = data else { return Err(passage.broken(vendor)) };
        length += data.len();
        if !passage.take(data, &mut held) {
            return Err(Failure::invalid());
        }
        if let Some(failure) = passage.reported(vendor).filter(|_| !passage.first_token()) {
            return Err(failure);
        }
        if passage.is_complete() {
            break;
        }
    }
    ticket.first_byte(ticket.worker.shared.clock.now());
    let Received { mut head, exchange, outgoing, .. } = received;
    if outgoing.translation.is_some() {
        head.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    }
    Ok(Reply::Flow(Box::new(Flow { head, held, exchange, passage })))
}

fn passage(ticket: &Ticket, received: &mut Received<'_>) -> Passage {
    let Received { call, target, outgoing, inflate, .. } = received;
    let inflate = inflate.take();
    match &outgoing.translation {
        Some(Translated { dialect, json_tool }) => {
            let asked = asked(ticket, call, target);
            let reader: Box<dyn StreamReader> = dialect.stream_reader(&asked.id);
            let writer = protocol(ticket.request.wire).stream_writer(asked);
            let json_tool = json_tool.as_deref().map(|name| match call.ask.view.tools {
                0 => JsonTool::new(name).without_other_tools(),
                _ => JsonTool::new(name),
            });
            Passage::translated(inflate, reader, json_tool, writer)
        }
        None => match call.ask.wire.filter(|wire| *wire != Wire::Openai).and_then(dialect) {
            Some(dialect) => Passage::watched(inflate, dialect.stream_reader("")),
            None if outgoing.hides_usage => Passage::chat(inflate, SseWatch::hiding_usage()),
            None => Passage::chat(inflate, SseWatch::new()),
        },
    }
}
