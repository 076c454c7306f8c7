//! How each vendor words a refusal.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::reject::Rejection;

/// The shape of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{"error":{"message","type","param","code"}}`
    Openai,
    /// Refused before the model: `{"error":{"code","message"}}`; by the model: as OpenAI.
    Azure,
    /// `{"type":"error","error":{"type","message"},"request_id"}`
    Anthropic,
    /// `{"error":{"code","message","status","details"}}`
    Google,
    /// `{"message"}` and the type in a header.
    Aws,
    /// `{"id","message"}`
    Cohere,
    /// `{"code","message","request_id"}`
    Dashscope,
    /// `{"error":"message"}`
    Ollama,
}

impl Shape {
    /// The body of a refusal.
    pub(crate) fn body(self, rejection: &Rejection) -> Bytes {
        let value = match self {
            Self::Openai => return rejection.body(),
            Self::Azure if !matches!(rejection.status.as_u16(), 401 | 404 | 429) => return rejection.body(),
            Self::Azure => {
                let code =
                    rejection.vendor_code.map_or_else(|| rejection.status.as_str().to_owned(), str::to_owned);
                json!({"error": {"code": code, "message": rejection.message}})
            }
            Self::Anthropic => anthropic(rejection),
            Self::Google => google(rejection),
            Self::Aws => json!({"message": rejection.message}),
            Self::Cohere => {
                json!({"id": "4c1d6a38-0000-4000-8000-000000000000", "message": rejection.message})
            }
            Self::Dashscope => json!({
                "code": rejection.vendor_code.unwrap_or_else(|| dashscope_code(rejection)),
                "message": rejection.message,
                "request_id": "5b0a1c52-0000-9000-8000-000000000000",
            }),
            Self::Ollama => json!({"error": rejection.message}),
        };
        value.to_string().into()
    }

    /// What tells the kind of error apart from the body.
    pub(crate) fn header(self, rejection: &Rejection) -> Option<(HeaderName, HeaderValue)> {
        let value = HeaderValue::from_static(aws_type(rejection));
        (self == Self::Aws).then_some((HeaderName::from_static("x-amzn-errortype"), value))
    }
}

/// Anthropic's error object, as a body and as the data of an `error` event.
pub(crate) fn anthropic(rejection: &Rejection) -> Value {
    let kind = match rejection.status.as_u16() {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    json!({
        "type": "error",
        "error": {"type": kind, "message": rejection.message},
        "request_id": "req_011CSim00000000000000000",
    })
}

/// Google's error object.
pub(crate) fn google(rejection: &Rejection) -> Value {
    let status = match rejection.status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    let mut details = Vec::new();
    if let Some(reason) = rejection.vendor_code {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}));
    }
    if let Some(seconds) = rejection.retry_after {
        let delay = format!("{seconds}s");
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}));
    }
    let code = rejection.status.as_u16();
    let mut error = json!({"code": code, "message": rejection.message, "status": status});
    if !details.is_empty() {
        error["details"] = details.into();
    }
    json!({"error": error})
}

/// The exception of AWS that stands for a refusal.
pub(crate) fn aws_type(rejection: &Rejection) -> &'static str {
    rejection.vendor_code.unwrap_or(match rejection.status.as_u16() {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        400..500 => "ValidationException",
        _ => "InternalServerException",
    })
}

fn dashscope_code(rejection: &Rejection) -> &'static str {
    match rejection.status.as_u16() {
        401 => "InvalidApiKey",
        403 => "AccessDenied",
        404 => "ModelNotFound",
        429 => "Throttling.RateQuota",
        503 => "ServiceUnavailable",
        400..500 => "InvalidParameter",
        _ => "InternalError",
    }
}
