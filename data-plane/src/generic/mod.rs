//! Calls of no protocol that Penstock knows: any path and method, for any HTTP or gRPC service that a route leads to.
//!
//! ```text
//! head → decide → body → dispatch ─┬─▶ outgoing   method, path and bytes as they came, or as the backend's adapter says
//!                                  └─▶ receive    bytes as they come, or reshaped by the adapter; errors of the caller's
//!                                                 own as the service words them
//! ```
//!
//! Of gRPC (`grpc`) the body goes on while it comes, over HTTP/2, and the status in the trailers says how it went.
//!
//! Everything else is the same as for conversations: rules, scores, attempts, breakers, timers, records.

pub(crate) mod grpc;
mod outgoing;
mod receive;

use http::Method;
use http::request::Parts;
use hyper::body::Incoming;
use penstock_decision::filter::Needs;
use penstock_model::vendor::Call;
use penstock_request::{Api, is_plain};

pub(crate) use outgoing::{Generic, outgoing};

use crate::ask::Ask;
use crate::body;
use crate::dispatch::dispatch;
use crate::error::Refusal;
use crate::service::{Answered, Asked, context, decide_for, upstream_call};
use crate::ticket::Ticket;

/// Answers a call.
pub(crate) async fn serve(
    ticket: &mut Ticket,
    api: &Api<'_>,
    head: &Parts,
    incoming: Incoming,
) -> Result<Answered, Refusal> {
    decide(ticket, api, head)?;
    if *api == Api::Grpc {
        return grpc::serve(ticket, head, incoming).await;
    }
    let body = body::read(incoming, &head.headers, ticket.table.policy().body_limit).await?;
    ticket.request.bytes_in = body.len() as u64;
    let ask = Ask::generic(Call::Http, head, &body);
    let call = upstream_call(ticket, &ask)?;
    let (reply, target) = dispatch(ticket, &call, &Needs::default()).await?;
    Ok(Answered::with(ticket, reply, target, &call))
}

/// Route and pool. To a client, a path that leads to no such service is as good as none.
fn decide(ticket: &mut Ticket, api: &Api<'_>, head: &Parts) -> Result<(), Refusal> {
    if !is_plain(head.uri.path()) {
        return Err(Refusal::UnknownPath);
    }
    let context = context(ticket, api, head);
    let asked = Asked { context, capability: None, texts: &Vec::new };
    decide_for(ticket, &asked).map_err(|refusal| match refusal {
        Refusal::NoRoute => Refusal::UnknownPath,
        other => other,
    })?;
    let chosen = ticket.decided.ok_or(Refusal::Internal)?;
    let mut candidates = ticket.table.pool(chosen.pool).candidates.iter();
    if candidates.any(|candidate| ticket.table.target(candidate.target).vendor.wire.is_generic()) {
        return Ok(());
    }
    ticket.decided = None;
    Err(Refusal::UnknownPath)
}

/// May a request with this method be sent again when nobody knows what became of it? Those that RFC 9110 section 9.2.2 calls
/// idempotent, and POST: asking a model twice does no harm, and where it does, the route allows one attempt only.
pub(crate) fn is_repeatable(method: &Method) -> bool {
    method.is_idempotent() || *method == Method::POST
}

/// For logs and labels: one of a few.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        "TRACE" => "TRACE",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_do_harm_when_done_twice_is_not_repeated() {
        for repeatable in
            [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::POST]
        {
            assert!(is_repeatable(&repeatable), "{repeatable}");
        }
        for once in [Method::PATCH, Method::from_bytes(b"CHARGE").unwrap()] {
            assert!(!is_repeatable(&once), "{once}");
        }
    }
}
