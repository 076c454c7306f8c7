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
use penstock_model::vendor::Call;

pub(crate) use outgoing::{Generic, outgoing};

use crate::api::Api;
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
    decide(ticket, head)?;
    if *api == Api::Grpc {
        return grpc::serve(ticket, head, incoming).await;
    }
    let body = body::read(incoming, &head.headers, ticket.table.policy().body_limit).await?;
    ticket.request.bytes_in = body.len() as u64;
    let ask = Ask::generic(Call::Http, head, &body);
    let call = upstream_call(ticket, &ask)?;
    let (reply, target) = dispatch(ticket, &call, 0).await?;
    Ok(Answered::with(ticket, reply, target, &call))
}

/// Route and pool. To a client, a path that leads to no such service is as good as none.
fn decide(ticket: &mut Ticket, head: &Parts) -> Result<(), Refusal> {
    if !is_plain(head.uri.path()) {
        return Err(Refusal::UnknownPath);
    }
    let mut context = context(ticket, head);
    context.method = head.method.as_str();
    context.path = head.uri.path();
    let asked = Asked { context, capability: None, texts: &mut std::iter::empty() };
    decide_for(ticket, asked).map_err(|refusal| match refusal {
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

/// Does the path lead where it seems to? Rules see it as it is, while a service would resolve `..`, and be called where
/// no rule allows it. Clients resolve such segments before they ask (RFC 3986 section 5.2.4).
fn is_plain(path: &str) -> bool {
    let is_dots = |segment: &str| {
        let segment = segment.replace("%2e", ".").replace("%2E", ".");
        segment == "." || segment == ".."
    };
    // Some services take an encoded or a backward slash for one as well.
    let path = path
        .replace("%2f", "/")
        .replace("%2F", "/")
        .replace("%5c", "/")
        .replace("%5C", "/")
        .replace('\\', "/");
    path.starts_with('/') && !path.split('/').any(is_dots)
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
    fn a_path_that_a_service_would_resolve_elsewhere_is_none() {
        for good in ["/", "/risk/score", "/v2/models/m/infer", "/a..b/.c", "/a//b/", "/%20/..."] {
            assert!(is_plain(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "/..",
            "/risk/../admin",
            "/risk/./x",
            "/%2e%2E/x",
            "/a/.%2e",
            "/a%2f..%2fb",
            "/a\\..\\b",
            "/a%5C..%5cb",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

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
