//! Passing on what is still coming, piece by piece, at the client's pace.
//!
//! hyper asks for the next piece when the last one is on its way, and only then is more read from the service: the
//! client's pace is the service's. Bytes pass as they are, or are translated (`passage`). A service that falls silent or breaks off is told to the client
//! in its own protocol, as an event of the stream; where there is no such way, the connection is cut, so that a part is
//! never taken for the whole (SSE-04).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use penstock_model::outcome::Outcome;
use tokio::time::{Instant, Sleep};

use crate::answer::{self, BrokenOff, protocol};
use crate::clock::Moment;
use crate::error::{Failure, Refusal, outcome_code};
use crate::generic::grpc::Messages;
use crate::passage::Passage;
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::Exchange;

/// The longest unfinished event of a stream. No model sends one; a service that never ends its line does (SSE-11).
const LONGEST_EVENT: u64 = 16 << 20;

/// See the module's documentation.
pub(crate) struct Relay {
    /// Gone once the request is settled.
    ticket: Option<Ticket>,
    target: Arc<Target>,
    held: VecDeque<Bytes>,
    /// Gone once the service has ended.
    exchange: Option<Exchange>,
    passage: Passage,
    /// What ends the answer of a gRPC call.
    trailers: Option<HeaderMap>,
    idle: Duration,
    last: Moment,
    alarm: Pin<Box<Sleep>>,
}

impl Relay {
    pub(crate) fn new(
        mut ticket: Ticket,
        target: Arc<Target>,
        held: VecDeque<Bytes>,
        exchange: Exchange,
        passage: Passage,
        idle: Duration,
    ) -> Self {
        let last = ticket.worker.shared.clock.now();
        ticket.first_token = Some(last);
        let alarm = Box::pin(tokio::time::sleep(idle));
        Self {
            ticket: Some(ticket),
            target,
            held,
            exchange: Some(exchange),
            passage,
            trailers: None,
            idle,
            last,
            alarm,
        }
    }

    /// The next piece for the client.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        loop {
            if let Some(piece) = self.held.pop_front() {
                if let Some(ticket) = &mut self.ticket {
                    ticket.out(&piece);
                }
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(exchange) = &mut self.exchange else {
                self.settle(self.passage.outcome());
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            };
            // Of a stream that passes, the client has the service's own word; it may go on, or end.
            let told = if self.passage.passes() { None } else { self.passage.reported(self.target.vendor) };
            if let Some(failure) = told {
                let _ = self.break_off(failure);
                continue;
            }
            let failed = match exchange.poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.take(data).or_else(|| self.finish_if_done(context)),
                    Err(frame) => {
                        self.take_trailers(frame);
                        continue;
                    }
                },
                Poll::Ready(Some(Err(_))) => Some(self.passage.broken(self.target.vendor)),
                Poll::Ready(None) => self.finish(context),
                Poll::Pending => match self.check_alarm(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(failed) => failed,
                },
            };
            if let Some(failure) = failed
                && let Err(broken) = self.break_off(failure)
            {
                return Poll::Ready(Some(Err(broken)));
            }
        }
    }

    /// Has the service been silent for too long? The alarm is not set anew for every piece, only when it goes off.
    fn check_alarm(&mut self, context: &mut Context<'_>) -> Poll<Option<Failure>> {
        if self.alarm.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let Some(ticket) = &self.ticket else { return Poll::Ready(None) };
        let now = ticket.worker.shared.clock.now();
        if self.passage.messages().is_some_and(Messages::has_asked_on) {
            // Where the client talks on, the service may listen.
            self.last = now;
        }
        let quiet = now.since(self.last);
        if quiet >= self.idle {
            return Poll::Ready(Some(Failure::silent(Outcome::IdleTimeout)));
        }
        self.alarm.as_mut().reset(Instant::now() + (self.idle - quiet));
        Poll::Ready(None)
    }

    /// How a gRPC call ended. Any other trailers stay here.
    fn take_trailers(&mut self, frame: Frame<Bytes>) {
        if let Ok(trailers) = frame.into_trailers()
            && let Some(messages) = self.passage.messages()
        {
            self.trailers = Some(messages.take_trailers(&trailers));
        }
    }

    fn take(&mut self, data: Bytes) -> Option<Failure> {
        if let Some(ticket) = &self.ticket {
            self.last = ticket.worker.shared.clock.now();
        }
        let whole = self.passage.take(data, &mut self.held);
        (!whole || self.passage.open_bytes() > LONGEST_EVENT).then(Failure::invalid)
    }

    /// Of an answer whose length is known, nobody asks for more than that.
    fn finish_if_done(&mut self, context: &mut Context<'_>) -> Option<Failure> {
        let done = self.exchange.as_ref().is_some_and(Exchange::is_done);
        if done { self.finish(context) } else { None }
    }

    /// The service has ended its answer: was it all?
    fn finish(&mut self, context: &mut Context<'_>) -> Option<Failure> {
        self.passage.end(&mut self.held);
        let failed = self.passage.failure(self.target.vendor);
        if failed.is_none() {
            let connection = self.exchange.take().and_then(|exchange| exchange.finish_now(context));
            if let (Some(ticket), Some(connection)) = (&self.ticket, connection) {
                let now = ticket.worker.shared.clock.now();
                ticket.worker.pool.borrow_mut().put(self.target.upstream.id, connection, now);
            }
        }
        failed
    }

    /// Ends the answer: with an event that tells of the failure, where there is a way to say it.
    fn break_off(&mut self, failure: Failure) -> Result<(), BrokenOff> {
        self.exchange = None;
        let said = self.passage.reported(self.target.vendor).is_some();
        if self.passage.is_complete() && !said {
            // Behind the end mark there was nothing to wait for.
            self.passage.end(&mut self.held);
            return Ok(());
        }
        let outcome = failure.outcome;
        let mut failure = failure;
        if let Some(secret) = &self.target.secret {
            failure.error.redact(secret);
        }
        let refusal = Refusal::Upstream(failure);
        let Some(ticket) = &mut self.ticket else { return Ok(()) };
        ticket.error_code = refusal.code();
        if self.passage.messages().is_some() {
            self.trailers = Some(answer::grpc_status(&refusal));
            self.settle(outcome);
            return Ok(());
        }
        let message = refusal.message();
        let event = protocol(ticket.request.wire)
            .error_event(&refusal.for_client(&message, ticket.request.decision.to_str().unwrap_or_default()));
        self.settle(outcome);
        if !self.passage.is_events() {
            return Err(BrokenOff);
        }
        if self.passage.is_inside_event() {
            // Ends an event that was cut in the middle, which would otherwise swallow the one that tells of it.
            self.held.push_back(Bytes::from_static(b"\n\n"));
        }
        // What the service said itself has already gone to the client, unless it was to be translated.
        if !(said && self.passage.passes()) {
            self.held.push_back(event);
        }
        Ok(())
    }

    fn settle(&mut self, outcome: Outcome) {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.usage = self.passage.usage();
            if ticket.error_code.is_empty() {
                ticket.error_code = outcome_code(outcome);
            }
            let now = ticket.worker.shared.clock.now();
            if outcome == Outcome::Ok {
                ticket.answer_ends(now);
            }
            ticket.end(outcome, None, now);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A client that leaves after the end mark has had everything.
        if self.held.is_empty() && self.passage.is_complete() {
            self.settle(self.passage.outcome());
        }
    }
}
