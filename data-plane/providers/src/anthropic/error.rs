//! Errors in Anthropic's shape: `{"type":"error","error":{"type":…,"message":…},"request_id":…}` (docs: "Errors").

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::dialect::ClientError;
use crate::openai::error_body::VendorError;

/// Names of errors, and the status that each stands for. The first of a status is the one that we give.
const NAMES: [(&str, u16); 11] = [
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
    ("overloaded_error", 503),
];

/// The name of an error with this status.
fn name(status: u16) -> &'static str {
    let named = NAMES.iter().find(|(_, known)| *known == status).map(|(name, _)| *name);
    named.unwrap_or(if status < 500 { "invalid_request_error" } else { "api_error" })
}

/// The status that an error of this name stands for.
pub(super) fn status(name: &str) -> Option<u16> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, status)| *status)
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    error: Inner<'a>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct Inner<'a> {
    r#type: &'static str,
    message: &'a str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
}

/// The body of an error answer; our `code`, and the wrong field as `param`, are extra fields within `error`.
pub(super) fn body(error: &ClientError<'_>) -> Vec<u8> {
    let inner =
        Inner { r#type: name(error.status), message: error.message, code: error.code, param: error.field };
    let body = Body { r#type: "error", error: inner, request_id: error.request_id };
    serde_json::to_vec(&body).expect("strings always serialise")
}

/// The same as an event of a stream.
pub(super) fn event(error: &ClientError<'_>) -> Bytes {
    let body = body(error);
    let mut event = Vec::with_capacity(body.len() + 24);
    event.extend_from_slice(b"event: error\ndata: ");
    event.extend_from_slice(&body);
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// What a service says went wrong. Anthropic tells spending limits apart in `error.details.error_code`.
pub(super) fn read(value: &Value) -> VendorError {
    let mut error = VendorError::from_value(value, 2);
    if error.code.is_none() {
        error.code = value
            .pointer("/error/details/error_code")
            .and_then(Value::as_str)
            .map(|code| code.chars().take(128).collect());
    }
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn our_error_has_their_shape_and_our_code() {
        let error = ClientError {
            status: 400,
            code: "invalid_request",
            message: "say \"please\"",
            field: Some("messages[0]"),
            request_id: "req-1",
        };
        let expected = json!({
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "say \"please\"",
                "code": "invalid_request",
                "param": "messages[0]",
            },
            "request_id": "req-1",
        });
        assert_eq!(serde_json::from_slice::<Value>(&body(&error)).unwrap(), expected);
        let event = String::from_utf8(event(&error).to_vec()).unwrap();
        let data = event.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        assert_eq!(serde_json::from_str::<Value>(data).unwrap(), expected);
    }

    #[test]
    fn each_status_has_its_name() {
        let names = [400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504, 529].map(name);
        let expected = [
            "invalid_request_error",
            "authentication_error",
            "permission_error",
            "not_found_error",
            "invalid_request_error",
            "request_too_large",
            "invalid_request_error",
            "rate_limit_error",
            "api_error",
            "api_error",
            "overloaded_error",
            "timeout_error",
            "overloaded_error",
        ];
        assert_eq!(names, expected);
        assert_eq!(status("overloaded_error"), Some(529));
        assert_eq!(status("new_error"), None);
    }

    #[test]
    fn a_spending_limit_is_found_in_the_details() {
        let value = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m",
            "details": {"error_code": "enforced_spend_limit_reached"}}});
        let error = read(&value);
        assert_eq!(error.code.as_deref(), Some("enforced_spend_limit_reached"));
        assert_eq!(error.kind.as_deref(), Some("rate_limit_error"));
    }
}
