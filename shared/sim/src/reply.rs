//! Responses, ready to be sent.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::body::SimBody;
use crate::reject::Rejection;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

fn response(content_type: HeaderValue, body: SimBody) -> Response<SimBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(crate) fn json(body: Bytes) -> Response<SimBody> {
    response(JSON, SimBody::Whole(body))
}

pub(crate) fn serialized(value: &impl Serialize) -> Response<SimBody> {
    json(serde_json::to_vec(value).expect("plain data always serialises").into())
}

pub(crate) fn events(body: SimBody) -> Response<SimBody> {
    response(EVENTS, body)
}

pub(crate) fn rejection(rejection: &Rejection) -> Response<SimBody> {
    let mut response = json(rejection.body());
    *response.status_mut() = rejection.status;
    if let Some(seconds) = rejection.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Half of the body under the length of all of it.
pub(crate) fn short(body: &Bytes) -> Response<SimBody> {
    let first = body.slice(..body.len() / 2);
    response(JSON, SimBody::Short { first, length: body.len() as u64, paused: false })
}

/// Good HTTP around nonsense.
pub(crate) fn garbage(stream: bool) -> Response<SimBody> {
    let body =
        SimBody::Whole(Bytes::from_static(b"{\"choices\":[{\"index\":0,\n\n]]> \xff\xfe not an answer\n\n"));
    response(if stream { EVENTS } else { JSON }, body)
}

/// A stream that holds an error and nothing else.
pub(crate) fn error_event() -> Response<SimBody> {
    let rejection = Rejection { status: StatusCode::OK, ..Rejection::failure(503, None) };
    let error = rejection.body();
    events(SimBody::Whole([b"data: ", error.as_ref(), b"\n\ndata: [DONE]\n\n"].concat().into()))
}

/// The body of `GET /v1/models`.
pub(crate) fn model_list(owner: &str, models: &[String]) -> Bytes {
    #[derive(Serialize)]
    struct List<'a> {
        object: &'static str,
        data: Vec<Model<'a>>,
    }
    #[derive(Serialize)]
    struct Model<'a> {
        id: &'a str,
        object: &'static str,
        created: u64,
        owned_by: &'a str,
    }
    let model = |id| Model { id, object: "model", created: crate::answer::CREATED, owned_by: owner };
    let data = models.iter().map(|id| model(id.as_str())).collect();
    serde_json::to_vec(&List { object: "list", data }).expect("strings always serialise").into()
}

/// `text` as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}
