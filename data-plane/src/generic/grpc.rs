//! gRPC: messages both ways at once, and a status in the trailers that says how it went.
//!
//! What the client sends goes on as it comes; what went is kept up to the policy's limit of a body, so that the call can be
//! tried elsewhere until the first message of an answer is here. From then on messages flow, and the trailers end them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, TE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use penstock_decision::filter::Needs;
use penstock_model::outcome::Outcome;
use penstock_model::vendor::Call as VendorCall;
use penstock_providers::exchange::Field;
use penstock_providers::grpc::{self, Frames, Status};
use penstock_providers::headers::generic_response_headers;
use penstock_providers::vendor_error::VendorError;

use crate::ask::Ask;
use crate::attempt::{Call, Flow, Reply};
use crate::clock::Moment;
use crate::dispatch::dispatch;
use crate::error::{Failure, Refusal, outcome_code};
use crate::outgoing::Outgoing;
use crate::passage::Passage;
use crate::receive::refused;
use crate::send::{Limit, within};
use crate::service::{Answered, upstream_call};
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::{Exchange, Failed, Upload, UploadGuard, connect_http2, send_http2};

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Answers a call whose route is decided.
pub(super) async fn serve(
    ticket: &mut Ticket,
    head: &Parts,
    incoming: Incoming,
) -> Result<Answered, Refusal> {
    let limit = ticket.table.policy().body_limit;
    let upload = Upload::new(incoming, limit);
    let nothing = Bytes::new();
    let mut ask = Ask::generic(VendorCall::Grpc, head, &nothing);
    ask.upload = Some(upload.clone());
    let mut call = upstream_call(ticket, &ask)?;
    if let Some(wait) = timeout(&head.headers)? {
        call.deadline = call.deadline.min(Moment(ticket.started.0.saturating_add(wait.as_micros() as u64)));
    }
    let dispatched = dispatch(ticket, &call, &Needs::default()).await;
    ticket.request.bytes_in = upload.length();
    let (reply, target) = dispatched.map_err(|refusal| match upload.failed() {
        Some(failed) => client_failed(failed),
        None => refusal,
    })?;
    Ok(Answered::with(ticket, reply, target, &call))
}

fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let wrong = || Field::new(TIMEOUT.as_str(), "is at most eight digits and a unit: 250m, 2S, 1M");
    grpc::read_timeout(value).map(Some).ok_or_else(|| Refusal::InvalidField(wrong()))
}

fn client_failed(failed: Failed) -> Refusal {
    match failed {
        Failed::Wrong(grpc::Error::TooLong { limit }) => Refusal::BodyTooLarge { limit },
        Failed::Wrong(error) => Refusal::InvalidField(Field::new("body", error.to_string())),
        Failed::Broken => Refusal::BodyIncomplete,
    }
}

/// Makes an attempt, as [`crate::attempt::attempt`] does for the others.
pub(crate) async fn attempt(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
    outgoing: &Outgoing,
    upload: &Upload,
    started: Moment,
) -> Result<Reply, Failure> {
    let heard = Cell::new((started, 0, false));
    let attempt = Attempt { call, target, outgoing, upload, heard };
    let made = match attempt.send(ticket).await {
        Ok((head, exchange, guard)) => attempt.receive(ticket, head, exchange, guard).await,
        Err(failure) => Err(failure),
    };
    // What the client breaks off is not the service's fault.
    made.map_err(|failure| match upload.failed() {
        Some(_) => Failure::silent(Outcome::ClientError),
        None => failure,
    })
}

struct Attempt<'a> {
    call: &'a Call<'a>,
    target: &'a Arc<Target>,
    outgoing: &'a Outgoing,
    upload: &'a Upload,
    /// When the client was last found to have said more, how much it had said then, and whether it was all.
    heard: Cell<(Moment, u64, bool)>,
}

impl Attempt<'_> {
    /// Sends the request over the open connection or a new one, and waits for the head of the answer.
    async fn send(&self, ticket: &mut Ticket) -> Result<(Response<()>, Exchange, UploadGuard), Failure> {
        let (id, clock) = (self.target.upstream.id, ticket.worker.shared.clock);
        let open = ticket.worker.http2.borrow_mut().get(id, clock.now());
        if let Some(sender) = open {
            ticket.over(true);
            let (body, guard) = self.upload.begin();
            let sending = send_http2(sender.clone(), self.request(clock.now(), body));
            match self.patiently(ticket, sending).await? {
                Ok((head, exchange)) => return Ok((head, exchange, guard)),
                Err(error) => {
                    // The service ended the connection just as we used it. That is no fault of anyone, and a fresh one
                    // settles it (RES-10).
                    let unsent =
                        error.message().is_some() || sender.is_closed() || is_going_away(error.error());
                    if !unsent || !self.upload.is_repeatable() {
                        return Err(Failure::silent(Outcome::Reset));
                    }
                }
            }
        }
        ticket.over(false);
        let shared = Arc::clone(&ticket.worker.shared);
        let mut limit = Limit::new(clock.now(), self.call.timeouts.connect, self.call.deadline);
        if limit.outcome == Outcome::FirstTokenTimeout {
            limit.outcome = Outcome::ConnectError;
        }
        let connecting = connect_http2(&shared.connector, &self.target.upstream.address);
        let sender = within(ticket, limit, connecting).await?.map_err(|error| {
            tracing::debug!(%error, backend = self.target.state.backend, "no connection");
            Failure::silent(Outcome::ConnectError)
        })?;
        ticket.worker.http2.borrow_mut().put(id, sender.clone(), clock.now());
        let (body, guard) = self.upload.begin();
        let sending = send_http2(sender, self.request(clock.now(), body));
        let (head, exchange) =
            self.patiently(ticket, sending).await?.map_err(|_| Failure::silent(Outcome::Reset))?;
        Ok((head, exchange, guard))
    }

    fn request<B>(&self, now: Moment, body: B) -> http::Request<B> {
        let mut request = self.outgoing.with(self.call.ask, self.target, body);
        let headers = request.headers_mut();
        // Stands in `:authority`.
        headers.remove(HOST);
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if headers.contains_key(TIMEOUT) {
            headers.insert(TIMEOUT, grpc::write_timeout(self.call.deadline.since(now)));
        }
        request
    }

    /// Does `work`, unless the service is silent for too long: while the client talks, it may listen.
    async fn patiently<T>(&self, ticket: &Ticket, work: impl Future<Output = T>) -> Result<T, Failure> {
        let Call { timeouts, deadline, .. } = *self.call;
        let mut work = pin!(work);
        loop {
            let (since, length, ended) = self.heard.get();
            let limit = Limit::new(since, timeouts.first_token, deadline);
            let done = within(ticket, limit, work.as_mut()).await;
            let is_silent = done.as_ref().is_err_and(|failure| failure.outcome == Outcome::FirstTokenTimeout);
            let said = (self.upload.length(), self.upload.has_ended());
            if !is_silent || (ended && said == (length, ended)) {
                return done;
            }
            self.heard.set((ticket.worker.shared.clock.now(), said.0, said.1));
        }
    }

    /// Takes the answer up to its first message, or to its end where there is none.
    async fn receive(
        &self,
        ticket: &mut Ticket,
        head: Response<()>,
        mut exchange: Exchange,
        guard: UploadGuard,
    ) -> Result<Reply, Failure> {
        ticket.answered(head.status().as_u16());
        if head.status() != StatusCode::OK {
            return Err(refused(ticket, self.call, self.target, &head, exchange).await);
        }
        let media_type = head.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if !grpc::is_call(media_type) {
            return Err(Failure::invalid());
        }
        let mut passed = Response::new(());
        *passed.headers_mut() = generic_response_headers(head.headers());
        if let Some(status) = Status::read(head.headers()) {
            return self.ended(ticket, passed, &status);
        }
        let mut messages = Messages::new(self.target, self.upload.clone(), guard);
        loop {
            let frame = self.patiently(ticket, exchange.frame()).await?;
            let frame = frame.and_then(Result::ok).ok_or_else(|| Failure::silent(Outcome::Truncated))?;
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) if !messages.take(&data) => return Err(Failure::invalid()),
                Ok(data) => {
                    self.upload.forget();
                    ticket.first_byte(ticket.worker.shared.clock.now());
                    let (held, passage) = (VecDeque::from([data]), Passage::grpc(messages));
                    return Ok(Reply::Flow(Box::new(Flow { head: passed, held, exchange, passage })));
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let status =
                        Status::read(&trailers).ok_or_else(|| Failure::silent(Outcome::Truncated))?;
                    // There was no message: head and trailers become one.
                    passed.headers_mut().extend(generic_response_headers(&trailers));
                    return self.ended(ticket, passed, &status);
                }
            }
        }
    }

    /// The service has answered with nothing but a status.
    fn ended(&self, ticket: &mut Ticket, head: Response<()>, status: &Status) -> Result<Reply, Failure> {
        let outcome = outcome(status, self.target.secret.is_some());
        if !matches!(outcome, Outcome::Ok | Outcome::ClientError) {
            return Err(failure(status, outcome));
        }
        let now = ticket.worker.shared.clock.now();
        ticket.first_byte(now);
        ticket.error_code = outcome_code(outcome);
        ticket.end(outcome, None, now);
        Ok(Reply::Whole { head, pieces: Vec::new() })
    }
}

/// Is the connection about to end, and has the service not looked at the request?
fn is_going_away(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_go_away() || error.is_io() || error.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        source = error.source();
    }
    false
}

/// What a status means for the target. That it does not accept a key of the client's own is between those two.
fn outcome(status: &Status, has_key: bool) -> Outcome {
    match status.outcome() {
        Outcome::CredentialRejected if !has_key => Outcome::ClientError,
        outcome => outcome,
    }
}

fn failure(status: &Status, outcome: Outcome) -> Failure {
    let mut failure = Failure::silent(outcome);
    if outcome != Outcome::CredentialRejected {
        let said = VendorError::read(status.message.as_bytes());
        *failure.error = VendorError { code: Some(status.name().to_owned()), ..said };
    }
    failure
}

/// The messages of an answer on their way to the client.
pub(crate) struct Messages {
    frames: Frames,
    status: Option<Status>,
    upload: Upload,
    /// How much the client had said when it was last looked at.
    said: u64,
    /// Does the target have a key of ours?
    has_key: bool,
    /// What the client is still sending ends with the answer.
    guard: Option<UploadGuard>,
}

impl Messages {
    fn new(target: &Target, upload: Upload, guard: UploadGuard) -> Self {
        let frames = Frames::with_limit(u32::MAX as usize);
        let said = upload.length();
        Self { frames, status: None, upload, said, has_key: target.secret.is_some(), guard: Some(guard) }
    }

    /// Looks at what passes. False when these are no messages.
    pub(crate) fn take(&mut self, data: &[u8]) -> bool {
        self.frames.feed(data).is_ok()
    }

    /// Looks at the trailers; returns them as the client may see them.
    pub(crate) fn take_trailers(&mut self, trailers: &HeaderMap) -> HeaderMap {
        self.status = Status::read(trailers);
        generic_response_headers(trailers)
    }

    /// The answer has ended.
    pub(crate) fn end(&mut self) {
        self.guard = None;
    }

    /// Did the service say how it went?
    pub(crate) fn is_complete(&self) -> bool {
        self.status.is_some()
    }

    /// How it went.
    pub(crate) fn outcome(&self) -> Outcome {
        self.status.as_ref().map_or(Outcome::Truncated, |status| outcome(status, self.has_key))
    }

    /// How it failed when it broke off.
    pub(crate) fn broken(&self) -> Failure {
        let client = self.upload.failed().is_some();
        Failure::silent(if client { Outcome::ClientError } else { Outcome::Truncated })
    }

    /// Has the client said more since this was asked last?
    pub(crate) fn has_asked_on(&mut self) -> bool {
        let said = self.upload.length();
        std::mem::replace(&mut self.said, said) != said
    }
}
