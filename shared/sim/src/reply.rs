//! Responses, ready to be sent.

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;

use crate::body::SimBody;
use crate::reject::Rejection;
use crate::shape::Shape;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

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

/// A body of another type than JSON.
pub(crate) fn typed(content_type: HeaderValue, body: SimBody) -> Response<SimBody> {
    response(content_type, body)
}

pub(crate) fn events(body: SimBody) -> Response<SimBody> {
    response(EVENTS, body)
}

pub(crate) fn rejection(rejection: &Rejection, shape: Shape) -> Response<SimBody> {
    let mut response = json(shape.body(rejection));
    *response.status_mut() = rejection.status;
    if let Some((name, value)) = shape.header(rejection) {
        response.headers_mut().insert(name, value);
    }
    if let Some(seconds) = rejection.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Half of the body under the length of all of it.
pub(crate) fn short(content_type: HeaderValue, body: &Bytes) -> Response<SimBody> {
    let first = body.slice(..body.len() / 2);
    response(content_type, SimBody::Short { first, length: body.len() as u64, paused: false })
}

/// Good HTTP around nonsense.
pub(crate) fn garbage(content_type: HeaderValue) -> Response<SimBody> {
    let body =
        SimBody::Whole(Bytes::from_static(b"{\"choices\":[{\"index\":0,\n\n]]> \xff\xfe not an answer\n\n"));
    response(content_type, body)
}

/// A stream that holds an error and nothing else.
pub(crate) fn error_event() -> Response<SimBody> {
    events(SimBody::Whole(error_frames(&Rejection::failure(503, None))))
}

/// An error in an OpenAI stream, and the stream's end.
pub(crate) fn error_frames(rejection: &Rejection) -> Bytes {
    let error = rejection.body();
    [b"data: ", error.as_ref(), b"\n\ndata: [DONE]\n\n"].concat().into()
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
