//! Decision records: why a request went where it went. Kept for failed and slow requests, and for a sample of the rest.

use penstock_decision::pick::Pick;
use penstock_model::outcome::Outcome;
use penstock_proto::fleet::v1::{Attempt, Candidate, Decision, Term};

use crate::clock::unix_ms;
use crate::settle;
use crate::ticket::Ticket;

/// Slower than the expected answer by this factor is slow: about the 95th percentile of exponential latencies.
const SLOW: f64 = 3.0;

/// Why the record is kept; `None` when it is not.
pub(crate) fn why_keep(ticket: &Ticket, duration_us: u64) -> Option<&'static str> {
    let failed = !ticket.error_code.is_empty() || ticket.attempts.len() > 1;
    if failed {
        return Some("failed");
    }
    let sampled = ticket.worker.take_sample();
    if is_slow(ticket, duration_us) {
        return Some("slow");
    }
    sampled.then_some("sampled")
}

fn is_slow(ticket: &Ticket, duration_us: u64) -> bool {
    let expected = ticket.decided.zip(ticket.attempts.last()).map(|(chosen, last)| {
        let planned = &ticket.table.plans.pool(chosen.pool)[last.pick.index];
        planned.latency
    });
    expected.is_some_and(|expected| duration_us as f64 / 1e6 > SLOW * expected.max(0.05))
}

/// Builds the record.
pub(crate) fn build(ticket: &Ticket, kept: &str, duration_us: u64) -> Decision {
    let table = &ticket.table;
    let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let clock = ticket.worker.shared.clock;
    let mut record = Decision {
        id: text(&ticket.request.decision),
        request_id: text(&ticket.request.id),
        node_id: ticket.worker.shared.node.id.clone(),
        unix_ms: unix_ms(clock.wall(ticket.started)),
        policy: table.snapshot.name.clone(),
        policy_version: table.snapshot.version,
        requested_model: ticket.request.model.clone(),
        protocol: ticket.request.protocol.to_owned(),
        stream: ticket.request.stream,
        status: u32::from(ticket.status),
        duration_us,
        error_code: ticket.error_code.to_owned(),
        kept: kept.to_owned(),
        preset: format!("{:?}", table.policy().scoring.preset).to_lowercase(),
        attempts: attempts(ticket),
        ..Decision::default()
    };
    if let Some(chosen) = ticket.decided {
        let (route, capability) = table.pool_names(chosen.pool);
        record.route = route.to_owned();
        record.capability = capability.to_owned();
        record.capability_confidence = chosen.classification.confidence;
        record.capability_source = chosen.classification.source.as_str().to_owned();
        record.candidates = candidates(ticket);
    }
    record
}

fn attempts(ticket: &Ticket) -> Vec<Attempt> {
    let entry = |(index, attempt): (usize, &crate::ticket::Attempt)| Attempt {
        number: index as u32 + 1,
        backend: attempt.target.state.backend.clone(),
        model: attempt.target.state.model.clone(),
        outcome: attempt.outcome.as_str().to_owned(),
        status: u32::from(attempt.status),
        started_after_us: attempt.started.micros_since(ticket.started),
        duration_us: attempt.ended.micros_since(attempt.started),
        first_token_us: attempt.first_byte.map_or(0, |at| at.micros_since(attempt.started)),
        reused_connection: attempt.reused,
    };
    ticket.attempts.iter().enumerate().map(entry).collect()
}

fn candidates(ticket: &Ticket) -> Vec<Candidate> {
    let Some(chosen) = ticket.decided else { return Vec::new() };
    let table = &ticket.table;
    // The draws of the first pick are what the request was decided by; later ones are of what was left.
    let first = ticket.attempts.first().map(|attempt| attempt.pick);
    let answered = ticket.attempts.last().map(|attempt| attempt.pick.index);
    let entry = |(index, planned): (usize, &penstock_decision::plan::Planned)| {
        let (backend, model) = table.policy().target_key(planned.target);
        let (draws, load) = first.map_or((0, 0.0), |pick| drawn(&pick, index));
        let terms = planned.terms.iter().map(|term| Term {
            name: term.name.to_owned(),
            value: term.value,
            weight: term.weight,
        });
        Candidate {
            backend: backend.to_owned(),
            model: model.to_owned(),
            weight: planned.weight,
            score: planned.log_score,
            terms: terms.collect(),
            excluded: ticket.exclusions.name(index).to_owned(),
            chosen: answered == Some(index),
            draws,
            load,
        }
    };
    table.plans.pool(chosen.pool).iter().enumerate().map(entry).collect()
}

fn drawn(pick: &Pick, index: usize) -> (u32, f64) {
    let draws = pick.draws.iter().flatten().filter(|draw| draw.index == index);
    draws.fold((0, 0.0), |(count, _), draw| (count + 1, draw.load))
}

/// Did the last attempt succeed?
#[must_use]
pub(crate) fn succeeded(ticket: &Ticket) -> bool {
    settle::outcome(ticket) == Some(Outcome::Ok)
}
