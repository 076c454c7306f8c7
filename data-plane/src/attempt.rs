//! One try at one target: connection, request, and the answer up to the point where the client may see it.
//!
//! Everything before that point can still be tried elsewhere. An answer that is not streamed is read whole first, up to a
//! limit, so that one that breaks off or is an error in disguise is noticed in time; a stream is held back until its
//! first real token.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use penstock_model::outcome::Outcome;
use penstock_model::policy::Timeouts;
use penstock_providers::classify::{classify, classify_success};
use penstock_providers::headers::{forward_request_headers, forward_response_headers};
use penstock_providers::openai::upstream::Endpoint;
use penstock_providers::openai::{SseWatch, usage};
use penstock_providers::splice::replace_model;
use penstock_providers::vendor_error::VendorError;
use tokio::time::timeout_at;

use crate::clock::Moment;
use crate::error::Failure;
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::{Connection, Exchange, RequestBody, connect};

/// An answer up to this size is read whole before the client sees any of it.
const WHOLE: usize = 1 << 20;
/// Of an error body, no more than this is read.
const ERROR_BODY: usize = 64 << 10;
/// A stream that has sent this much without a token is passed on all the same.
const HELD: usize = 256 << 10;
/// The media type of a stream. Its case says nothing (RFC 9110 section 8.3.1).
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// What is asked, the same for every attempt.
pub(crate) struct Call<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) body: &'a Bytes,
    pub(crate) model_span: Option<std::ops::Range<usize>>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) timeouts: Timeouts,
    /// When the request's time is up.
    pub(crate) deadline: Moment,
}

/// An answer that the client may see.
pub(crate) enum Reply {
    /// All of it is here.
    Whole { head: Response<()>, pieces: Vec<Bytes> },
    /// The rest is coming.
    Flow(Box<Flow>),
}

/// An answer whose rest is coming.
pub(crate) struct Flow {
    pub(crate) head: Response<()>,
    /// What came so far.
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) exchange: Exchange,
    /// `None` for what is no stream of events.
    pub(crate) watch: Option<SseWatch>,
}

/// Makes an attempt. The ticket has begun it; the caller ends it, but for a whole answer, which is ended here.
pub(crate) async fn attempt(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
) -> Result<Reply, Failure> {
    let clock = ticket.worker.shared.clock;
    let started = clock.now();
    let limit = Limit::new(started, call.timeouts.first_token, call.deadline);
    let (head, exchange) = send(ticket, call, target, started, limit).await?;
    ticket.answered(head.status().as_u16());
    if !head.status().is_success() {
        return Err(refused(ticket, call, target, &head, exchange).await);
    }
    let head = passed_on(head);
    let streamed = head
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.as_bytes().get(..EVENT_STREAM.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM));
    if streamed {
        until_first_token(ticket, head, exchange, limit).await
    } else {
        whole(ticket, call, target, head, exchange, limit).await
    }
}

/// An instant by which something must have happened, and what it means if it has not.
#[derive(Clone, Copy)]
struct Limit {
    at: Moment,
    outcome: Outcome,
}

impl Limit {
    fn new(from: Moment, wait: Duration, deadline: Moment) -> Self {
        let at = Moment(from.0 + wait.as_micros() as u64);
        if deadline < at {
            Self { at: deadline, outcome: Outcome::DeadlineExceeded }
        } else {
            Self { at, outcome: Outcome::FirstTokenTimeout }
        }
    }

    fn passed(self) -> Failure {
        Failure::silent(self.outcome)
    }
}

async fn within<T>(ticket: &Ticket, limit: Limit, work: impl Future<Output = T>) -> Result<T, Failure> {
    let instant = ticket.worker.shared.clock.instant(limit.at);
    timeout_at(instant.into(), work).await.map_err(|_| limit.passed())
}

/// Sends the request over a kept connection or a new one, and waits for the head of the answer.
async fn send(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
    started: Moment,
    limit: Limit,
) -> Result<(Response<()>, Exchange), Failure> {
    let kept = kept_connection(ticket, target, started).await;
    if let Some(connection) = kept {
        ticket.over(true);
        match within(ticket, limit, connection.send(request(call, target))).await? {
            Err(error) if !error.is_parse() => {
                // The service closed a kept connection just as we used it. That is no fault of anyone, and one fresh
                // connection settles it (RES-10).
            }
            answer => return answer.map_err(|error| unanswered(&error)),
        }
    }
    ticket.over(false);
    let connection = fresh_connection(ticket, call, target).await?;
    let answer = within(ticket, limit, connection.send(request(call, target))).await?;
    answer.map_err(|error| unanswered(&error))
}

/// There was no head of an answer, or nothing like one.
fn unanswered(error: &hyper::Error) -> Failure {
    Failure::silent(if error.is_parse() { Outcome::InvalidResponse } else { Outcome::Reset })
}

async fn kept_connection(ticket: &Ticket, target: &Target, now: Moment) -> Option<Box<Connection>> {
    loop {
        let mut connection = ticket.worker.pool.borrow_mut().take(target.upstream.id, now)?;
        if !connection.is_closed().await {
            return Some(connection);
        }
    }
}

async fn fresh_connection(
    ticket: &Ticket,
    call: &Call<'_>,
    target: &Target,
) -> Result<Box<Connection>, Failure> {
    let shared = &ticket.worker.shared;
    let mut limit = Limit::new(shared.clock.now(), call.timeouts.connect, call.deadline);
    if limit.outcome == Outcome::FirstTokenTimeout {
        limit.outcome = Outcome::ConnectError;
    }
    let connected = within(ticket, limit, connect(&shared.connector, &target.upstream.address)).await?;
    connected.map_err(|error| {
        tracing::debug!(%error, backend = target.state.backend, "no connection");
        Failure::silent(Outcome::ConnectError)
    })
}

/// Built from the client's request each time: nothing of an earlier attempt can leak into it (RES-13).
fn request(call: &Call<'_>, target: &Target) -> Request<RequestBody> {
    let body = replace_model(call.body, call.model_span.clone(), &target.model);
    let mut request = Request::new(RequestBody::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.upstream.uri(call.endpoint).clone();
    let mut headers = forward_request_headers(call.headers);
    headers.insert(HOST, target.upstream.host.clone());
    // The body has been read as JSON, whatever the client called it; services refuse it under another name.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(authorization) = &target.authorization {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    *request.headers_mut() = headers;
    request
}

/// Status and headers as the client may see them.
fn passed_on(head: Response<()>) -> Response<()> {
    let mut passed = Response::new(());
    *passed.status_mut() = head.status();
    *passed.headers_mut() = forward_response_headers(head.headers());
    passed
}

/// The service refused: reads why, and keeps the connection if the reason was short.
async fn refused(
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
    let error = VendorError::read(&body);
    let classified = classify(target.vendor, Some(head.status()), head.headers(), error, SystemTime::now());
    let mut error = classified.error;
    if classified.outcome == Outcome::CredentialRejected {
        // About our account, not for the client.
        error = VendorError::default();
    }
    Failure {
        outcome: classified.outcome,
        status: Some(head.status()),
        retry_after: classified.limit.wait,
        error,
    }
}

/// Why [`gather`] did not come to the end.
enum Ungathered {
    /// There is more: this is what came so far.
    TooLong(Vec<Bytes>),
    /// It broke off.
    Broken,
}

async fn gather(exchange: &mut Exchange, most: usize) -> Result<Vec<Bytes>, Ungathered> {
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

async fn keep(ticket: &Ticket, target: &Target, exchange: Exchange) {
    if let Some(connection) = exchange.finish().await {
        let now = ticket.worker.shared.clock.now();
        ticket.worker.pool.borrow_mut().put(target.upstream.id, connection, now);
    }
}

/// Reads an answer that is not streamed.
async fn whole(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Target,
    head: Response<()>,
    mut exchange: Exchange,
    limit: Limit,
) -> Result<Reply, Failure> {
    let idle = Limit::new(ticket.worker.shared.clock.now(), call.timeouts.idle, call.deadline);
    let limit = if limit.at > idle.at { limit } else { Limit { outcome: Outcome::IdleTimeout, ..idle } };
    let pieces = match within(ticket, limit, gather(&mut exchange, WHOLE)).await? {
        Ok(pieces) => pieces,
        Err(Ungathered::TooLong(pieces)) => {
            ticket.first_byte(ticket.worker.shared.clock.now());
            return Ok(Reply::Flow(Box::new(Flow { head, held: pieces.into(), exchange, watch: None })));
        }
        Err(Ungathered::Broken) => return Err(Failure::silent(Outcome::Truncated)),
    };
    keep(ticket, target, exchange).await;
    let joined;
    let body: &[u8] = match pieces.as_slice() {
        [one] => one,
        many => {
            joined = many.concat();
            &joined
        }
    };
    // A 200 can still be an error, or no JSON at all.
    if let Some(classified) = classify_success(target.vendor, body) {
        let Failure { status, .. } = Failure::silent(classified.outcome);
        return Err(Failure {
            outcome: classified.outcome,
            status,
            retry_after: None,
            error: classified.error,
        });
    }
    ticket.usage = usage::find(body);
    let now = ticket.worker.shared.clock.now();
    ticket.first_byte(now);
    ticket.end(Outcome::Ok, None, now);
    Ok(Reply::Whole { head, pieces })
}

/// Holds a stream back until its first real token, its end, or its failure.
async fn until_first_token(
    ticket: &mut Ticket,
    head: Response<()>,
    mut exchange: Exchange,
    limit: Limit,
) -> Result<Reply, Failure> {
    let mut watch = SseWatch::new();
    let mut held = VecDeque::new();
    let mut length = 0;
    while !watch.first_token() && length < HELD {
        let Some(data) = within(ticket, limit, exchange.data()).await? else {
            watch.end();
            if watch.outcome() == Outcome::Ok {
                break;
            }
            return Err(in_band(&watch, watch.outcome()));
        };
        let data = data.map_err(|_| in_band(&watch, Outcome::Truncated))?;
        watch.feed(&data);
        length += data.len();
        held.push_back(data);
        if watch.error().is_some() {
            return Err(in_band(&watch, watch.outcome()));
        }
        if watch.is_complete() {
            break;
        }
    }
    ticket.first_byte(ticket.worker.shared.clock.now());
    Ok(Reply::Flow(Box::new(Flow { head, held, exchange, watch: Some(watch) })))
}

fn in_band(watch: &SseWatch, outcome: Outcome) -> Failure {
    let error = watch.error().cloned().unwrap_or_default();
    Failure { outcome, status: None, retry_after: None, error }
}
