//! One try at one target: connection, request, and the answer up to the point where the client may see it.
//!
//! Everything before that point can still be tried elsewhere. An answer that is not streamed is read whole first, up to a
//! limit, so that one that breaks off or is an error in disguise is noticed in time; a stream is held back until its
//! first real token.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderName, HeaderValue, Response};
use penstock_model::policy::Timeouts;
use penstock_providers::headers::forward_response_headers;
use penstock_providers::inflate::Inflate;

use crate::ask::Ask;
use crate::clock::Moment;
use crate::error::Failure;
use crate::generic::grpc;
use crate::outgoing::Outgoing;
use crate::passage::Passage;
use crate::receive::{Received, refused, until_first_token, whole};
use crate::send::{Limit, send};
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::Exchange;

pub(crate) const DROPPED: HeaderName = HeaderName::from_static("x-penstock-dropped");

/// What is asked, the same for every attempt.
pub(crate) struct Call<'a> {
    pub(crate) ask: &'a Ask<'a>,
    pub(crate) timeouts: Timeouts,
    /// May nothing be lost in translation?
    pub(crate) strict: bool,
    /// When the request's time is up.
    pub(crate) deadline: Moment,
}

/// An answer that the client may see.
pub(crate) enum Reply {
    /// All of it is here.
    Whole { head: Response<()>, pieces: Vec<Bytes> },
    /// The rest is coming.
    Flow(Box<Flow>),
}

/// An answer whose rest is coming.
pub(crate) struct Flow {
    pub(crate) head: Response<()>,
    /// What the client gets of what came so far.
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) exchange: Exchange,
    pub(crate) passage: Passage,
}

/// Makes an attempt. The ticket has begun it; the caller ends it, but for a whole answer, which is ended here.
pub(crate) async fn attempt(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
    outgoing: &Outgoing,
) -> Result<Reply, Failure> {
    let started = ticket.worker.shared.clock.now();
    if let Some(upload) = outgoing.generic.as_ref().and_then(|generic| generic.upload.as_ref()) {
        return Box::pin(grpc::attempt(ticket, call, target, outgoing, upload, started)).await;
    }
    let limit = Limit::new(started, call.timeouts.first_token, call.deadline);
    let (head, exchange) = send(ticket, call, target, outgoing, limit).await?;
    ticket.answered(head.status().as_u16());
    if let Some(generic) = &outgoing.generic {
        return generic.receive(ticket, call, target, head, exchange, limit).await;
    }
    if !head.status().is_success() {
        return Err(refused(ticket, call, target, &head, exchange).await);
    }
    let (head, inflate) = passed_on(head, outgoing)?;
    let received = Received { call, target, outgoing, head, exchange, inflate };
    if received.is_streamed() {
        until_first_token(ticket, received, limit).await
    } else {
        whole(ticket, received, limit).await
    }
}

/// Status and headers as the client may see them, and what undoes the body's compression. Services are not asked to
/// compress; one that does all the same is read, and the client gets what it can read in any case (SSE-12).
fn passed_on(head: Response<()>, outgoing: &Outgoing) -> Result<(Response<()>, Option<Inflate>), Failure> {
    let mut headers = forward_response_headers(head.headers());
    let mut inflate = None;
    if let Some(encoding) = headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok()) {
        inflate = Inflate::for_encoding(encoding);
        let is_plain = encoding.trim().eq_ignore_ascii_case("identity");
        if inflate.is_some() || is_plain {
            headers.remove(CONTENT_ENCODING);
        } else if outgoing.translation.is_some() {
            return Err(Failure::invalid());
        }
    }
    if outgoing.translation.is_some() {
        headers.remove(CONTENT_ENCODING);
    }
    if !outgoing.dropped.is_empty()
        && let Ok(names) = HeaderValue::try_from(outgoing.dropped.to_string())
    {
        headers.insert(DROPPED, names);
    }
    let mut passed = Response::new(());
    *passed.status_mut() = head.status();
    *passed.headers_mut() = headers;
    Ok((passed, inflate))
}
