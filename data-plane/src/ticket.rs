//! What is known of a request while it is on its way. Whatever becomes of it, dropping the ticket settles it.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use penstock_decision::breaker::{Ending, ProbeToken};
use penstock_decision::capability::Classification;
use penstock_decision::pick::Pick;
use penstock_model::Usage;
use penstock_model::outcome::Outcome;
use penstock_model::policy::{PoolId, RouteId};
use penstock_model::vendor::Wire;
use penstock_providers::json::clip;

use crate::cache::Keeper;
use crate::choose::Exclusions;
use crate::clock::Moment;
use crate::error::Failure;
use crate::meter::AttemptNumbers;
use crate::settle;
use crate::table::{RouteTable, Target};
use crate::target::WaitSlot;
use crate::worker::Worker;

/// How long a key that a service did not accept is left alone.
const REJECTED_KEY: Duration = Duration::from_secs(60);
/// How long a rate limit without `Retry-After` lasts.
const SHORT_COOLDOWN: Duration = Duration::from_secs(1);
/// Of the model's name that a client asks for, so many bytes are kept: it may have written a whole body of it.
const MODEL: usize = 128;

/// See the module's documentation.
pub(crate) struct Ticket {
    pub(crate) worker: Rc<Worker>,
    pub(crate) table: Arc<RouteTable>,
    pub(crate) started: Moment,
    pub(crate) request: RequestFacts,
    pub(crate) decided: Option<Chosen>,
    /// Why some candidates could not be chosen when the first was.
    pub(crate) exclusions: Exclusions,
    pub(crate) attempts: Vec<Attempt>,
    active: Option<Active>,
    pub(crate) status: u16,
    pub(crate) error_code: &'static str,
    /// When the first token went to the client.
    pub(crate) first_token: Option<Moment>,
    pub(crate) bytes_out: u64,
    pub(crate) usage: Option<Usage>,
    /// What became of it in the cache: `hit`, `miss`, or nothing.
    pub(crate) cache: &'static str,
    /// Takes the answer in, where it is to be kept.
    keeper: Option<Box<Keeper>>,
}

/// What the request said of itself.
#[derive(Debug)]
pub(crate) struct RequestFacts {
    pub(crate) id: HeaderValue,
    pub(crate) decision: HeaderValue,
    pub(crate) client: IpAddr,
    pub(crate) method: &'static str,
    /// From a closed set.
    pub(crate) path: &'static str,
    pub(crate) protocol: &'static str,
    pub(crate) operation: &'static str,
    /// The protocol in which errors are told.
    pub(crate) wire: Wire,
    /// As the client wrote it, but no longer than [`MODEL`]; for logs and records only.
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) bytes_in: u64,
    /// The client's `traceparent`, when spans are wanted.
    pub(crate) parent: Option<String>,
}

impl RequestFacts {
    /// Which model the client asked for.
    pub(crate) fn asked_for(&mut self, model: &str) {
        clip(model, MODEL).clone_into(&mut self.model);
    }
}

/// Route, capability, pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) route: RouteId,
    pub(crate) classification: Classification,
    pub(crate) pool: PoolId,
}

/// An attempt that ended.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) pick: Pick,
    pub(crate) target: Arc<Target>,
    pub(crate) started: Moment,
    pub(crate) ended: Moment,
    pub(crate) first_byte: Option<Moment>,
    pub(crate) outcome: Outcome,
    pub(crate) status: u16,
    pub(crate) reused: bool,
}

/// The attempt under way.
#[derive(Debug)]
struct Active {
    pick: Pick,
    target: Arc<Target>,
    started: Moment,
    wait: Option<WaitSlot>,
    token: Option<ProbeToken>,
    first_byte: Option<Moment>,
    status: u16,
    reused: bool,
}

impl Ticket {
    pub(crate) fn new(
        worker: Rc<Worker>,
        table: Arc<RouteTable>,
        started: Moment,
        request: RequestFacts,
    ) -> Self {
        worker.shared.requests_in_flight.fetch_add(1, Relaxed);
        Self {
            worker,
            table,
            started,
            request,
            decided: None,
            exclusions: Exclusions::default(),
            attempts: Vec::new(),
            active: None,
            status: 0,
            error_code: "",
            first_token: None,
            bytes_out: 0,
            usage: None,
            cache: "",
            keeper: None,
        }
    }

    /// The answer is to be kept.
    pub(crate) fn keep_with(&mut self, keeper: Box<Keeper>) {
        self.keeper = Some(keeper);
    }

    /// The answer is not to be kept for others.
    pub(crate) fn keep_nothing(&mut self) {
        self.keeper = None;
    }

    /// The answer begins.
    pub(crate) fn answer_begins(&mut self, headers: &HeaderMap) {
        if let Some(keeper) = &mut self.keeper {
            keeper.begin(headers);
        }
    }

    /// A piece of the answer goes to the client.
    pub(crate) fn out(&mut self, piece: &Bytes) {
        self.bytes_out += piece.len() as u64;
        if let Some(keeper) = &mut self.keeper {
            keeper.take(piece);
        }
    }

    /// The answer was good to its end.
    pub(crate) fn answer_ends(&mut self, now: Moment) {
        if let Some(keeper) = self.keeper.take() {
            keeper.keep(now);
        }
    }

    /// An attempt begins.
    pub(crate) fn begin(&mut self, pick: Pick, target: Arc<Target>, token: Option<ProbeToken>, now: Moment) {
        debug_assert!(self.active.is_none(), "one attempt at a time");
        target.state.in_flight.fetch_add(1, Relaxed);
        self.worker.shared.attempts_in_flight.fetch_add(1, Relaxed);
        let wait = Some(target.state.begin_wait(now));
        self.active = Some(Active {
            pick,
            target,
            started: now,
            wait,
            token,
            first_byte: None,
            status: 0,
            reused: false,
        });
    }

    /// Which connection carries it.
    pub(crate) fn over(&mut self, reused: bool) {
        if let Some(active) = &mut self.active {
            active.reused = reused;
        }
    }

    /// The service answered with this status.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(active) = &mut self.active {
            active.status = status;
        }
    }

    /// The first token, or the whole of an answer that is not streamed, is here.
    pub(crate) fn first_byte(&mut self, now: Moment) {
        if let Some(active) = &mut self.active {
            active.first_byte.get_or_insert(now);
            if let Some(wait) = active.wait.take() {
                active.target.state.end_wait(wait);
            }
        }
    }

    /// The attempt under way ends.
    pub(crate) fn end(&mut self, outcome: Outcome, retry_after: Option<Duration>, now: Moment) {
        let Some(active) = self.active.take() else { return };
        let state = &active.target.state;
        state.in_flight.fetch_sub(1, Relaxed);
        self.worker.shared.attempts_in_flight.fetch_sub(1, Relaxed);
        if let Some(wait) = active.wait {
            state.end_wait(wait);
        }
        match outcome {
            Outcome::RateLimited => state.cool_until(later(now, retry_after.unwrap_or(SHORT_COOLDOWN))),
            Outcome::CredentialRejected => {
                tracing::warn!(
                    backend = state.backend,
                    model = state.model,
                    "the service does not accept our key"
                );
                state.cool_until(later(now, REJECTED_KEY));
            }
            _ => {}
        }
        let ending = Ending {
            outcome,
            token: active.token,
            retry_after_ms: retry_after.map(|wait| wait.as_millis() as u64),
            chance: self.worker.chance(),
        };
        let breaker = &self.table.policy().breaker;
        let duration_us = now.micros_since(active.started);
        if let Some(transition) = state.record(now, &ending, duration_us, breaker) {
            tracing::info!(backend = state.backend, model = state.model, from = ?transition.from, to = ?transition.to,
                "breaker");
        }
        if let Some(token) = active.token {
            // No effect if the outcome has used it up.
            state.release(token);
        }
        let attempt = Attempt {
            pick: active.pick,
            target: active.target,
            started: active.started,
            ended: now,
            first_byte: active.first_byte,
            outcome,
            status: active.status,
            reused: active.reused,
        };
        self.count(&attempt);
        self.attempts.push(attempt);
    }

    /// The attempt under way fails.
    pub(crate) fn fail(&mut self, failure: &Failure, now: Moment) {
        self.end(failure.outcome, failure.retry_after, now);
    }

    fn count(&self, attempt: &Attempt) {
        let Some(chosen) = self.decided else { return };
        let numbers = AttemptNumbers {
            outcome: attempt.outcome,
            duration_us: attempt.ended.micros_since(attempt.started),
            first_token_us: attempt
                .first_byte
                .filter(|_| self.request.stream)
                .map(|at| at.micros_since(attempt.started)),
            usage: self.usage,
            cost_nanos: settle::cost(&self.table, chosen.pool, attempt.pick.index, self.usage),
        };
        self.worker.meter.borrow_mut().attempt(&self.table, chosen.pool, attempt.pick.index, &numbers);
    }
}

fn later(now: Moment, wait: Duration) -> Moment {
    Moment(now.0 + wait.as_micros() as u64)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now = self.worker.shared.clock.now();
        if self.active.is_some() {
            // Nobody finished it: the client has left.
            self.end(Outcome::ClientCancelled, None, now);
        }
        self.worker.shared.requests_in_flight.fetch_sub(1, Relaxed);
        settle::settle(self, now);
    }
}
