//! What a request leaves behind when it has ended, however it has: counts, a log line, a decision record, spans.

use penstock_model::Usage;
use penstock_model::outcome::Outcome;
use penstock_model::policy::PoolId;

use crate::access_log::Line;
use crate::clock::Moment;
use crate::meter::RequestNumbers;
use crate::record;
use crate::spans;
use crate::table::RouteTable;
use crate::ticket::Ticket;

/// What the attempt's tokens cost; unknown stays unknown.
pub(crate) fn cost(table: &RouteTable, pool: PoolId, index: usize, usage: Option<Usage>) -> Option<u64> {
    let target = table.candidate(pool, index).target;
    let price = table.policy().targets[target.index()].price.as_ref()?;
    price.cost(&usage?)
}

/// Settles the request. Nothing is built that nobody asked for.
pub(crate) fn settle(ticket: &Ticket, now: Moment) {
    let duration_us = now.micros_since(ticket.started);
    let waited: u64 = ticket.attempts.iter().map(|attempt| attempt.ended.micros_since(attempt.started)).sum();
    let worker = &ticket.worker;
    match ticket.decided {
        Some(chosen) => {
            let numbers = RequestNumbers {
                status: ticket.status,
                duration_us,
                first_token_us: first_token_us(ticket).filter(|_| ticket.request.stream),
                output_token_seconds: output_token_seconds(ticket, duration_us),
                overhead_us: duration_us.saturating_sub(waited),
            };
            let last = ticket.attempts.last().map(|attempt| attempt.pick.index);
            worker.meter.borrow_mut().request(&ticket.table, chosen.pool, last, &numbers);
        }
        None => *worker.meter.borrow_mut().refused.entry(ticket.status).or_default() += 1,
    }
    if worker.shared.log.is_on() && log(ticket, duration_us) {
        worker.shared.log.write(&mut worker.log.borrow_mut());
    }
    if let Some(why) = record::why_keep(ticket, duration_us) {
        worker.keep(record::build(ticket, why, duration_us));
    }
    if let Some(tracer) = &worker.shared.tracer {
        spans::emit(tracer, ticket, now);
    }
}

/// From the request's arrival to its first token.
pub(crate) fn first_token_us(ticket: &Ticket) -> Option<u64> {
    ticket.first_token.map(|at| at.micros_since(ticket.started))
}

/// Of a stream: the time after its first token, shared out among the other tokens.
fn output_token_seconds(ticket: &Ticket, duration_us: u64) -> Option<f64> {
    let first = first_token_us(ticket).filter(|_| ticket.request.stream)?;
    let others = ticket.usage?.output_tokens?.checked_sub(1).filter(|&others| others > 0)?;
    Some(duration_us.saturating_sub(first) as f64 / 1e6 / others as f64)
}

/// The outcome of the last attempt; without one, the empty string.
pub(crate) fn outcome(ticket: &Ticket) -> Option<Outcome> {
    ticket.attempts.last().map(|attempt| attempt.outcome)
}

fn log(ticket: &Ticket, duration_us: u64) -> bool {
    let (table, request) = (&ticket.table, &ticket.request);
    let (route, capability) = ticket.decided.map_or(("", ""), |chosen| table.pool_names(chosen.pool));
    let last = ticket.attempts.last();
    let cost = ticket.decided.zip(last).and_then(|(chosen, last)| {
        let target = table.candidate(chosen.pool, last.pick.index).target;
        let currency = table.policy().targets[target.index()].price.as_ref()?.currency.as_str();
        Some((cost(table, chosen.pool, last.pick.index, ticket.usage)?, currency))
    });
    let line = Line {
        time: time(ticket),
        request_id: request.id.to_str().unwrap_or_default(),
        decision: request.decision.to_str().unwrap_or_default(),
        client: request.client.to_string(),
        method: request.method,
        path: request.path,
        protocol: request.protocol,
        route,
        capability,
        model: &request.model,
        backend: last.map_or("", |last| &last.target.state.backend),
        target_model: last.map_or("", |last| &last.target.state.model),
        policy: table.snapshot.version,
        status: ticket.status,
        error_code: ticket.error_code,
        stream: request.stream,
        attempts: ticket.attempts.len(),
        cache: ticket.cache,
        outcome: outcome(ticket).map_or("", Outcome::as_str),
        duration_us,
        first_token_us: first_token_us(ticket),
        bytes_in: request.bytes_in,
        bytes_out: ticket.bytes_out,
        input_tokens: ticket.usage.and_then(|usage| usage.input_tokens),
        output_tokens: ticket.usage.and_then(|usage| usage.output_tokens),
        cost_nanos: cost.map(|(cost, _)| cost),
        currency: cost.map_or("", |(_, currency)| currency),
    };
    ticket.worker.log.borrow_mut().add(&line)
}

/// RFC 3339, in UTC, to the millisecond.
fn time(ticket: &Ticket) -> String {
    humantime::format_rfc3339_millis(ticket.worker.shared.clock.wall(ticket.started)).to_string()
}
