//! Sending a request to a target, up to the head of the answer.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use penstock_model::outcome::Outcome;
use tokio::time::timeout_at;

use crate::attempt::Call;
use crate::clock::Moment;
use crate::error::Failure;
use crate::outgoing::Outgoing;
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::{Connection, Exchange, connect};

/// An instant by which something must have happened, and what it means if it has not.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) at: Moment,
    pub(crate) outcome: Outcome,
}

impl Limit {
    pub(crate) fn new(from: Moment, wait: Duration, deadline: Moment) -> Self {
        let at = Moment(from.0 + wait.as_micros() as u64);
        if deadline < at {
            Self { at: deadline, outcome: Outcome::DeadlineExceeded }
        } else {
            Self { at, outcome: Outcome::FirstTokenTimeout }
        }
    }
}

/// Does `work`, unless the limit passes first.
pub(crate) async fn within<T>(
    ticket: &Ticket,
    limit: Limit,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let instant = ticket.worker.shared.clock.instant(limit.at);
    timeout_at(instant.into(), work).await.map_err(|_| Failure::silent(limit.outcome))
}

/// Sends the request over a kept connection or a new one, and waits for the head of the answer.
pub(crate) async fn send(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
    outgoing: &Outgoing,
    limit: Limit,
) -> Result<(Response<()>, Exchange), Failure> {
    let now = ticket.worker.shared.clock.now();
    let request = || outgoing.request(call.ask, target);
    // A kept connection may turn out to be closed when the request is on its way: then it is sent twice.
    if outgoing.is_repeatable()
        && let Some(connection) = kept_connection(ticket, target, now).await
    {
        ticket.over(true);
        match within(ticket, limit, connection.send(request())).await? {
            Err(error) if !error.is_parse() => {
                // The service closed a kept connection just as we used it. That is no fault of anyone, and one fresh
                // connection settles it (RES-10).
            }
            answer => return answer.map_err(|error| unanswered(&error)),
        }
    }
    ticket.over(false);
    let connection = fresh_connection(ticket, call, target).await?;
    let answer = within(ticket, limit, connection.send(request())).await?;
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

/// Puts the connection back, if the answer is whole and the service keeps it open.
pub(crate) async fn keep(ticket: &Ticket, target: &Target, exchange: Exchange) {
    if let Some(connection) = exchange.finish().await {
        let now = ticket.worker.shared.clock.now();
        ticket.worker.pool.borrow_mut().put(target.upstream.id, connection, now);
    }
}
