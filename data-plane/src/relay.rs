//! Passing on what is still coming, piece by piece, at the client's pace.
//!
//! hyper asks for the next piece when the last one is on its way, and only then is more read from the service: the
//! client's pace is the service's. Bytes pass as they are. A service that falls silent or breaks off is told to the client
//! in its own protocol, as an event of the stream; where there is no such way, the connection is cut, so that a part is
//! never taken for the whole (SSE-04).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use penstock_model::outcome::Outcome;
use penstock_providers::openai::SseWatch;
use tokio::time::{Instant, Sleep};

use crate::answer::{BrokenOff, error_event};
use crate::clock::Moment;
use crate::error::{Failure, Refusal};
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
    watch: Option<SseWatch>,
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
        watch: Option<SseWatch>,
        idle: Duration,
    ) -> Self {
        let last = ticket.worker.shared.clock.now();
        ticket.first_token = Some(last);
        let alarm = Box::pin(tokio::time::sleep(idle));
        Self { ticket: Some(ticket), target, held, exchange: Some(exchange), watch, idle, last, alarm }
    }

    /// The next piece for the client.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        if let Some(piece) = self.held.pop_front() {
            self.count(&piece);
            return Poll::Ready(Some(Ok(piece)));
        }
        loop {
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
            match exchange.poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    return Poll::Ready(self.pass(data));
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(self.break_off(Outcome::Truncated)),
                Poll::Ready(None) => return Poll::Ready(self.finish(context)),
                Poll::Pending => {}
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // The alarm is not set anew for every piece, only when it goes off.
            let Some(ticket) = &self.ticket else { return Poll::Ready(None) };
            let quiet = ticket.worker.shared.clock.now().since(self.last);
            if quiet >= self.idle {
                return Poll::Ready(self.break_off(Outcome::IdleTimeout));
            }
            self.alarm.as_mut().reset(Instant::now() + (self.idle - quiet));
        }
    }

    fn count(&mut self, piece: &Bytes) {
        if let Some(ticket) = &mut self.ticket {
            ticket.bytes_out += piece.len() as u64;
        }
    }

    fn pass(&mut self, data: Bytes) -> Option<Result<Bytes, BrokenOff>> {
        if let Some(ticket) = &self.ticket {
            self.last = ticket.worker.shared.clock.now();
        }
        if let Some(watch) = &mut self.watch {
            watch.feed(&data);
            if watch.open_event_bytes() > LONGEST_EVENT {
                return self.break_off(Outcome::InvalidResponse);
            }
        }
        self.count(&data);
        Some(Ok(data))
    }

    /// The service has ended its answer: was it all?
    fn finish(&mut self, context: &mut Context<'_>) -> Option<Result<Bytes, BrokenOff>> {
        let outcome = self.watch.as_mut().map_or(Outcome::Ok, |watch| {
            watch.end();
            watch.outcome()
        });
        if outcome != Outcome::Ok {
            return self.break_off(outcome);
        }
        let connection = self.exchange.take().and_then(|exchange| exchange.finish_now(context));
        if let (Some(ticket), Some(connection)) = (&self.ticket, connection) {
            let now = ticket.worker.shared.clock.now();
            ticket.worker.pool.borrow_mut().put(self.target.upstream.id, connection, now);
        }
        self.settle(Outcome::Ok);
        None
    }

    fn break_off(&mut self, outcome: Outcome) -> Option<Result<Bytes, BrokenOff>> {
        self.exchange = None;
        if self.is_all_there() {
            // Behind the end mark there was nothing to wait for.
            self.settle(Outcome::Ok);
            return None;
        }
        let refusal = Refusal::Upstream(Failure::silent(outcome));
        // What the service said itself has already gone to the client.
        let said = self.watch.as_ref().is_some_and(|watch| watch.error().is_some());
        if let Some(ticket) = &mut self.ticket {
            ticket.error_code = refusal.code();
        }
        self.settle(outcome);
        let Some(watch) = &self.watch else { return Some(Err(BrokenOff)) };
        // Ends an event that was cut in the middle, which would otherwise swallow the one that tells of it.
        let gap: &[u8] = if watch.open_event_bytes() > 0 { b"\n\n" } else { b"" };
        let event =
            if said { Bytes::new() } else { error_event(refusal.kind(), refusal.code(), &refusal.message()) };
        let last = [gap, &event].concat();
        (!last.is_empty()).then(|| Ok(last.into()))
    }

    /// Has the service said that its answer is complete?
    fn is_all_there(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.is_complete() && watch.error().is_none())
    }

    fn settle(&mut self, outcome: Outcome) {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.usage = self.watch.as_ref().and_then(SseWatch::usage);
            let now = ticket.worker.shared.clock.now();
            ticket.end(outcome, None, now);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A client that leaves after the end mark has had everything.
        if self.held.is_empty() && self.watch.as_ref().is_some_and(SseWatch::is_complete) {
            self.settle(Outcome::Ok);
        }
    }
}
