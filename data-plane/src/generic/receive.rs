//! The answer of a generic service: as it comes, or as the adapter says.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use penstock_model::adapter::Adapter;
use penstock_model::outcome::Outcome;
use penstock_model::vendor::Wire;
use penstock_providers::headers::generic_response_headers;
use penstock_providers::inflate::Inflate;
use penstock_providers::openai::usage;

use super::outgoing::{Generic, client};
use crate::attempt::{Call, Flow, Reply};
use crate::error::{Failure, outcome_code};
use crate::passage::Passage;
use crate::receive::{TRANSLATED, Ungathered, WHOLE, gather, limit_of_whole, refused};
use crate::send::{Limit, keep, within};
use crate::table::Target;
use crate::ticket::Ticket;
use crate::upstream::Exchange;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Generic {
    /// Takes the answer, of which the head is here, up to the point where the client may see it.
    pub(crate) async fn receive(
        &self,
        ticket: &mut Ticket,
        call: &Call<'_>,
        target: &Arc<Target>,
        head: Response<()>,
        exchange: Exchange,
        limit: Limit,
    ) -> Result<Reply, Failure> {
        let Some(outcome) = own_word(head.status(), target) else {
            return Err(refused(ticket, call, target, &head, exchange).await);
        };
        match &self.adapter {
            Some(adapter) if outcome == Outcome::Ok => {
                reshaped(ticket, call, target, adapter, head, exchange, limit).await
            }
            _ => self.passed(ticket, call, target, head, exchange, limit, outcome).await,
        }
    }

    /// An answer that passes. One that is short is read whole first, so that half of one can still be had elsewhere; any
    /// other goes on from its first piece.
    #[expect(clippy::too_many_arguments, reason = "what an attempt has, and what it has come to")]
    async fn passed(
        &self,
        ticket: &mut Ticket,
        call: &Call<'_>,
        target: &Arc<Target>,
        head: Response<()>,
        mut exchange: Exchange,
        limit: Limit,
        outcome: Outcome,
    ) -> Result<Reply, Failure> {
        // Nobody knows what it depends on, nor whether it is good at all.
        ticket.keep_nothing();
        let length = head.headers().get(CONTENT_LENGTH).cloned();
        let announced = length.as_ref().and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let mut head = to_client(&head);
        let mut pieces = Vec::new();
        if exchange.is_done() || announced.is_some_and(|length| length <= WHOLE) {
            let limit = limit_of_whole(ticket, call, limit);
            let gathered = within(ticket, limit, gather(&mut exchange, WHOLE)).await?;
            pieces = gathered.map_err(|_| Failure::silent(Outcome::Truncated))?;
        } else if let Some(first) = within(ticket, limit, exchange.data()).await? {
            let first = first.map_err(|_| Failure::silent(Outcome::Truncated))?;
            if let Some(length) = length {
                head.headers_mut().insert(CONTENT_LENGTH, length);
            }
            ticket.first_byte(ticket.worker.shared.clock.now());
            let (held, passage) = (VecDeque::from([first]), Passage::bytes(None, outcome));
            return Ok(Reply::Flow(Box::new(Flow { head, held, exchange, passage })));
        }
        if let Some(length) = length.filter(|_| self.method == Method::HEAD) {
            head.headers_mut().insert(CONTENT_LENGTH, length);
        }
        keep(ticket, target, exchange).await;
        Ok(whole(ticket, head, pieces, outcome))
    }
}

/// What the status says where it is the service's own word, to be passed on: it is content with the request, or the request
/// is wrong. That the service does not accept our key is none of the client's business.
fn own_word(status: StatusCode, target: &Target) -> Option<Outcome> {
    let has_key = target.secret.is_some();
    match status.as_u16() {
        200..300 | 304 => Some(Outcome::Ok),
        401..=403 if has_key => None,
        408 | 424 | 429 => None,
        400..500 => Some(Outcome::ClientError),
        _ => None,
    }
}

/// Status and headers as the client may see them.
fn to_client(head: &Response<()>) -> Response<()> {
    let mut passed = Response::new(());
    *passed.status_mut() = head.status();
    *passed.headers_mut() = generic_response_headers(head.headers());
    passed
}

fn whole(ticket: &mut Ticket, head: Response<()>, pieces: Vec<Bytes>, outcome: Outcome) -> Reply {
    let now = ticket.worker.shared.clock.now();
    ticket.first_byte(now);
    ticket.error_code = outcome_code(outcome);
    ticket.end(outcome, None, now);
    Reply::Whole { head, pieces }
}

/// An answer that is reshaped.
async fn reshaped(
    ticket: &mut Ticket,
    call: &Call<'_>,
    target: &Arc<Target>,
    adapter: &Adapter,
    head: Response<()>,
    mut exchange: Exchange,
    limit: Limit,
) -> Result<Reply, Failure> {
    let limit = limit_of_whole(ticket, call, limit);
    let pieces =
        within(ticket, limit, gather(&mut exchange, TRANSLATED)).await?.map_err(
            |ungathered| match ungathered {
                Ungathered::TooLong(_) => Failure::invalid(),
                Ungathered::Broken => Failure::silent(Outcome::Truncated),
            },
        )?;
    keep(ticket, target, exchange).await;
    let body = plain(head.headers(), &pieces)?;
    let answer = adapter.response(&client(call.ask, target), &body).map_err(|unfit| {
        tracing::debug!(%unfit, backend = target.state.backend, "the adapter makes nothing of this answer");
        Failure::invalid()
    })?;
    let mut head = to_client(&head);
    head.headers_mut().remove(CONTENT_ENCODING);
    head.headers_mut().insert(CONTENT_TYPE, JSON);
    let answer = answer.unwrap_or(body);
    if call.ask.wire == Some(Wire::Openai) {
        ticket.usage = usage::find(&answer);
    }
    Ok(whole(ticket, head, vec![answer.into()], Outcome::Ok))
}

/// The body in one piece, without the compression that nobody asked for.
fn plain(headers: &HeaderMap, pieces: &[Bytes]) -> Result<Vec<u8>, Failure> {
    let encoding =
        headers.get(CONTENT_ENCODING).map_or("identity", |encoding| encoding.to_str().unwrap_or_default());
    if encoding.trim().eq_ignore_ascii_case("identity") {
        return Ok(pieces.concat());
    }
    let mut inflate = Inflate::for_encoding(encoding).ok_or_else(Failure::invalid)?;
    let mut plain = Vec::new();
    for piece in pieces {
        inflate.feed(piece, &mut plain).map_err(|_| Failure::invalid())?;
    }
    Ok(plain)
}
