//! Attempts under one deadline, each at another target, until one succeeds or nothing more would help.

use std::sync::Arc;
use std::time::Duration;

use penstock_decision::breaker::Admission;
use penstock_decision::filter::{Exclusion, Needs};
use penstock_decision::pick::Mask;
use penstock_decision::retry::backoff;
use penstock_model::outcome::Outcome;
use penstock_model::policy::RouteId;
use penstock_providers::exchange::{Field, Unwritable};

use crate::attempt::{Call, Reply, attempt};
use crate::choose::View;
use crate::clock::Moment;
use crate::error::{Failure, Refusal};
use crate::outgoing::Outgoing;
use crate::table::{RouteTable, Target};
use crate::ticket::Ticket;

/// Sends the call to one target after the other.
pub(crate) async fn dispatch(
    ticket: &mut Ticket,
    call: &Call<'_>,
    needs: &Needs,
) -> Result<(Reply, Arc<Target>), Refusal> {
    let chosen = ticket.decided.ok_or(Refusal::Internal)?;
    let table = Arc::clone(&ticket.table);
    let (clock, breaker) = (ticket.worker.shared.clock, &table.policy().breaker);
    let attempts = table.policy().routes[chosen.route.index()].attempts;
    let probe_ms = (call.timeouts.first_token + call.timeouts.connect).as_millis() as u64;
    let mut tried = Mask::default();
    // Those that cannot carry the request, and why the last of them cannot.
    let mut barred = Mask::default();
    let mut unsupported = None;
    let mut last: Option<Failure> = None;
    let mut left = attempts;
    // A target whose breaker says no at the last moment is passed over, at most once each.
    let mut looks = attempts as usize + table.pool(chosen.pool).candidates.len();
    while left > 0 && looks > 0 {
        looks -= 1;
        let mut now = clock.now();
        let view = View::new(&table, chosen.pool, needs, barred, now);
        if ticket.attempts.is_empty() {
            ticket.exclusions = view.exclusions();
        }
        let Some(pick) = view.pick(&ticket.worker, tried) else {
            return Err(last.map_or_else(|| nobody(&view, unsupported), Refusal::Upstream));
        };
        let target = table.target(table.candidate(chosen.pool, pick.index).target);
        let outgoing = match Outgoing::new(call.ask, target, call.strict) {
            Ok(outgoing) => outgoing,
            Err(Unwritable::Wrong(field)) => return Err(Refusal::InvalidField(field)),
            Err(Unwritable::Unsupported(field)) => {
                barred.insert(pick.index);
                unsupported = Some(field);
                continue;
            }
        };
        if left == attempts {
            table.retry_budgets[chosen.route.index()].first(now);
        } else {
            let asked = last.as_ref().and_then(|failure| failure.retry_after);
            // Another target can take it at once; the same one is given time.
            let wait =
                tried.contains(pick.index).then(|| backoff(attempts - left, asked, ticket.worker.chance()));
            if !again(&table, chosen.route, call.deadline, now, wait).await {
                break;
            }
            now = clock.now();
        }
        tried.insert(pick.index);
        let token = match target.state.admit(now, probe_ms, breaker) {
            Admission::Yes => None,
            Admission::Probe(token) => Some(token),
            Admission::No if pick.panic => None,
            Admission::No => continue,
        };
        ticket.begin(pick, Arc::clone(target), token, now);
        match attempt(ticket, call, target, &outgoing).await {
            Ok(reply) => return Ok((reply, Arc::clone(target))),
            Err(mut failure) => {
                if let Some(secret) = &target.secret {
                    // Whichever way the service said it: by status, in a body of 200, as an event (SEC-01).
                    failure.error.redact(secret);
                }
                ticket.fail(&failure, clock.now());
                left -= 1;
                if failure.too_long {
                    barred = barred.union(view.no_larger_than(pick.index));
                }
                // Without a connection nothing was sent.
                let repeatable = outgoing.is_repeatable() || failure.outcome == Outcome::ConnectError;
                let retryable = (failure.outcome.is_retryable() || failure.too_long) && repeatable;
                let hopeless = !retryable || clock.now() >= call.deadline;
                last = Some(failure);
                if hopeless {
                    break;
                }
            }
        }
    }
    Err(Refusal::Upstream(last.unwrap_or_else(|| Failure::silent(Outcome::Overloaded))))
}

/// Why nobody can be chosen. `unsupported` is what one of the candidates could not carry.
fn nobody(view: &View<'_>, unsupported: Option<Field>) -> Refusal {
    match (view.all_lack(), unsupported) {
        (_, Some(field)) => Refusal::Unsupported(field),
        (Some(Exclusion::ContextWindow), None) => Refusal::TooLong,
        (Some(Exclusion::Residency), None) => Refusal::NoResident,
        (Some(lacking), None) if lacking.lacking().is_some() => Refusal::Lacking(lacking),
        _ => Refusal::NoTarget { retry_after: view.first_free() },
    }
}

/// Waits until a request may be sent once more; `false` when its time or the route's budget does not allow it.
async fn again(
    table: &RouteTable,
    route: RouteId,
    deadline: Moment,
    now: Moment,
    wait: Option<Duration>,
) -> bool {
    let wait = wait.unwrap_or_default();
    if wait >= deadline.since(now) || !table.may_retry(route, now) {
        return false;
    }
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    true
}
