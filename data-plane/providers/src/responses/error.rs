//! Errors, in OpenAI's shape.

use bytes::Bytes;
use serde::Serialize;

use crate::dialect::{ClientError, Protocol};
use crate::openai::chat::Chat;

/// The body of an error answer.
pub(super) fn body(error: &ClientError<'_>) -> Bytes {
    Chat.error(error)
}

/// The error as an event. Its fields stand twice: flat, as documented, and in an `error` object, as OpenAI's service
/// really sends them and as its clients raise them. How many events were before it is not known here: its number is 0.
pub(super) fn event(error: &ClientError<'_>) -> Bytes {
    #[derive(Serialize)]
    struct Flat<'a> {
        r#type: &'static str,
        sequence_number: u64,
        code: &'a str,
        message: &'a str,
        param: Option<&'a str>,
    }
    let ClientError { code, message, field: param, .. } = *error;
    let flat = Flat { r#type: "error", sequence_number: 0, code, message, param };
    let mut out = b"event: error\ndata: ".to_vec();
    serde_json::to_writer(&mut out, &flat).expect("strings always serialise");
    // The body, an object with an `error`, continues this one.
    out.pop();
    out.push(b',');
    out.extend_from_slice(&body(error)[1..]);
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
            "message": "queue \"full\"", "param": null, "error": inner, "request_id": "r1"});
        assert_eq!(serde_json::from_str::<Value>(data).unwrap(), expected);
        assert_eq!(
            serde_json::from_slice::<Value>(&body(&error)).unwrap(),
            json!({"error": inner, "request_id": "r1"})
        );
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
