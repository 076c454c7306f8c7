//! Our errors in Google's shape: `google.rpc.Status`.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::ClientError;

/// The body of an error answer.
pub(super) fn body(error: &ClientError<'_>) -> Vec<u8> {
    let mut details = vec![json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": error.code,
        "domain": "penstock",
    })];
    if let Some(field) = error.field {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "field": field, "description": error.message }],
        }));
    }
    details.push(json!({
        "@type": "type.googleapis.com/google.rpc.RequestInfo",
        "requestId": error.request_id,
    }));
    let body: Value = json!({
        "error": {
            "code": error.status,
            "message": error.message,
            "status": status(error.status),
            "details": details,
        }
    });
    body.to_string().into_bytes()
}

/// The error inside a stream.
pub(super) fn event(error: &ClientError<'_>) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend_from_slice(&body(error));
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// The name of an HTTP status (`google/rpc/code.proto`).
fn status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 | 403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        502 | 503 | 529 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_googles_shape_in_a_body_and_in_a_stream() {
        let error = ClientError {
            status: 429,
            code: "rate_limited",
            message: "slow \"down\"\n",
            field: Some("contents[0]"),
            request_id: "r1",
        };
        let expected = json!({"error": {"code": 429, "message": "slow \"down\"\n", "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "rate_limited", "domain": "penstock"},
            {"@type": "type.googleapis.com/google.rpc.BadRequest",
             "fieldViolations": [{"field": "contents[0]", "description": "slow \"down\"\n"}]},
            {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "r1"},
        ]}});
        assert_eq!(serde_json::from_slice::<Value>(&body(&error)).unwrap(), expected);
        let event = event(&error);
        let data = event.strip_prefix(b"data: ").unwrap().strip_suffix(b"\n\n").unwrap();
        assert!(!data.contains(&b'\n'));
        assert_eq!(serde_json::from_slice::<Value>(data).unwrap(), expected);
    }
}
