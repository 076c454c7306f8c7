//! What goes back to the client.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use penstock_model::vendor::Wire;
use penstock_providers::dialect::{self, Protocol};
use penstock_providers::grpc;

use crate::error::Refusal;
use crate::relay::Relay;
use crate::ticket::Ticket;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-penstock-request-id");
const DECISION: HeaderName = HeaderName::from_static("x-penstock-decision");
const BACKEND: HeaderName = HeaderName::from_static("x-penstock-backend");
const POLICY: HeaderName = HeaderName::from_static("x-penstock-policy");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// How long to wait before the next try, in milliseconds (gRFC A6).
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
const CODE: HeaderName = HeaderName::from_static("penstock-code");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-penstock-attempts");
/// What became of the request in the cache: `hit` or `miss`; absent where its route has none.
const CACHE: HeaderName = HeaderName::from_static("x-penstock-cache");

/// An answer's body.
pub(crate) enum AnswerBody {
    /// All here, in pieces.
    Here { pieces: VecDeque<Bytes>, left: u64 },
    /// Still coming.
    Relay(Box<Relay>),
}

impl From<Bytes> for AnswerBody {
    fn from(bytes: Bytes) -> Self {
        Self::from(vec![bytes])
    }
}

impl From<Vec<Bytes>> for AnswerBody {
    fn from(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self::Here { pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(), left }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Here { pieces, left } => {
                let piece = pieces.pop_front();
                *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
            }
            Self::Relay(relay) => relay.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Here { pieces, .. } if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here { left, .. } => SizeHint::with_exact(*left),
            Self::Relay(_) => SizeHint::default(),
        }
    }
}

/// The service broke off in the middle of an answer that cannot say so in-band: the client's connection is cut, so that
/// it does not take a part for the whole.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the service broke off")]
pub(crate) struct BrokenOff;

/// The protocol in which a client is told of errors. Clients of no protocol of ours are told in OpenAI's shape.
pub(crate) fn protocol(wire: Wire) -> &'static dyn Protocol {
    dialect::protocol(wire).unwrap_or(dialect::OPENAI)
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::from(body.clone()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    response
}

/// An error of ours, in the client's protocol.
pub(crate) fn refusal(refusal: &Refusal, wire: Wire, request_id: &str) -> Response<AnswerBody> {
    if wire == Wire::Grpc {
        return grpc_refusal(refusal);
    }
    let message = refusal.message();
    let body = protocol(wire).error(&refusal.for_client(&message, request_id));
    let mut response = json(refusal.status(), body);
    if let Refusal::WrongMethod { allow } = refusal {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    if let Some(wait) = refusal.retry_after() {
        // Whole seconds, and never less than was asked for.
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs_f64().ceil() as u64));
    }
    response
}

/// The same to a client of gRPC: an answer that is nothing but its status.
fn grpc_refusal(refusal: &Refusal) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::from(Bytes::new()));
    *response.headers_mut() = grpc_status(refusal);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(grpc::CONTENT_TYPE));
    response
}

/// An error of ours, as the trailers of a gRPC call say it.
pub(crate) fn grpc_status(refusal: &Refusal) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(4);
    trailers.insert(GRPC_STATUS, HeaderValue::from(refusal.grpc_code()));
    if let Ok(message) = HeaderValue::try_from(grpc::encode_message(&refusal.message())) {
        trailers.insert(GRPC_MESSAGE, message);
    }
    trailers.insert(CODE, HeaderValue::from_static(refusal.code()));
    if let Some(wait) = refusal.retry_after() {
        trailers.insert(PUSHBACK, HeaderValue::from(wait.as_millis() as u64));
    }
    trailers
}

/// Names the decision on an answer.
pub(crate) fn sign<B>(response: &mut Response<B>, ticket: &Ticket, made: usize) {
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, ticket.request.id.clone());
    headers.insert(DECISION, ticket.request.decision.clone());
    headers.insert(POLICY, ticket.table.version.clone());
    headers.insert(ATTEMPTS, HeaderValue::from(made));
    if !ticket.cache.is_empty() {
        headers.insert(CACHE, HeaderValue::from_static(ticket.cache));
    }
}

/// Names the backend that answered.
pub(crate) fn sign_backend<B>(response: &mut Response<B>, backend: HeaderValue) {
    response.headers_mut().insert(BACKEND, backend);
}
