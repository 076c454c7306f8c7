//! Errors as clients of this dialect are told of them.

use bytes::Bytes;
use serde::Serialize;

use crate::dialect::ClientError;

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: &'a str,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: &'a str,
}

/// The body of an error answer.
pub(super) fn body(error: &ClientError<'_>) -> Bytes {
    json(error).into()
}

/// The error as one event of a stream.
pub(super) fn event(error: &ClientError<'_>) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend_from_slice(&json(error));
    event.extend_from_slice(b"\n\n");
    event.into()
}

fn json(error: &ClientError<'_>) -> Vec<u8> {
    let kind = match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    let inner = Inner { message: error.message, r#type: kind, param: error.field, code: error.code };
    let body = Body { error: inner, request_id: error.request_id };
    serde_json::to_vec(&body).expect("strings always serialise")
}
