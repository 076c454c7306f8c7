//! Errors, in OpenAI's shape.

use bytes::Bytes;
use serde::Serialize;

use crate::dialect::ClientError;
use crate::openai::error_body;

/// OpenAI's `type` of an error with this status.
fn kind(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

/// The body of an error answer.
pub(super) fn body(error: &ClientError<'_>) -> Bytes {
    error_body::build(kind(error.status), error.code, error.message, error.field)
}

/// The error as an event. Its fields stand twice: flat, as documented, and in an `error` object, as OpenAI's service
/// really sends them and as its clients raise them. How many events were before it is not known here: its number is 0.
pub(super) fn event(error: &ClientError<'_>) -> Bytes {
    #[derive(Serialize)]
    struct Event<'a> {
        r#type: &'static str,
        sequence_number: u64,
        code: &'a str,
        message: &'a str,
        param: Option<&'a str>,
        error: Inner<'a>,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        r#type: &'static str,
        code: &'a str,
        message: &'a str,
        param: Option<&'a str>,
    }
    let ClientError { code, message, field: param, .. } = *error;
    let inner = Inner { r#type: kind(error.status), code, message, param };
    let event = Event { r#type: "error", sequence_number: 0, code, message, param, error: inner };
    let mut out = b"event: error\ndata: ".to_vec();
    serde_json::to_writer(&mut out, &event).expect("strings always serialise");
    out.extend_from_slice(b"\n\n");
    out.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_error_within_a_stream_is_told_so_that_every_client_raises_it_sse_04_sse_08() {
        let error = ClientError {
            status: 503,
            code: "upstream_failed",
            message: "queue \"full\"",
            field: None,
            request_id: "r1",
        };
        let event = String::from_utf8(event(&error).to_vec()).unwrap();
        let data = event.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let inner = json!({"type": "server_error", "code": "upstream_failed", "message": "queue \"full\"", "param": null});
        let expected = json!({"type": "error", "sequence_number": 0, "code": "upstream_failed",
            "message": "queue \"full\"", "param": null, "error": inner});
        assert_eq!(serde_json::from_str::<Value>(data).unwrap(), expected);
        assert_eq!(serde_json::from_slice::<Value>(&body(&error)).unwrap(), json!({"error": inner}));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let error = ClientError {
            status: 400,
            code: "invalid_request",
            message: "no",
            field: Some("input[0]"),
            request_id: "r1",
        };
        let body: Value = serde_json::from_slice(&body(&error)).unwrap();
        assert_eq!(
            (&body["error"]["type"], &body["error"]["param"]),
            (&json!("invalid_request_error"), &json!("input[0]"))
        );
    }
}
