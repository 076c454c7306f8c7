//! Refusals, in OpenAI's error shape.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<Cow<'static, str>>,
    pub(crate) message: String,
    /// Seconds for `retry-after`.
    pub(crate) retry_after: Option<u32>,
    /// The code of vendors that are not OpenAI, where the status does not say which.
    pub(crate) vendor_code: Option<&'static str>,
}

impl Rejection {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            kind,
            code,
            param: None,
            message: message.into(),
            retry_after: None,
            vendor_code: None,
        }
    }

    /// In the words of a vendor that is not OpenAI; its error shape adds what follows from the status.
    pub(crate) fn plain(status: u16, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, "invalid_request_error", None, message)
    }

    /// The same with the vendor's code.
    pub(crate) fn coded(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { vendor_code: Some(code), ..Self::plain(status, message) }
    }

    /// 400 for the whole request.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", None, message)
    }

    /// 400 for one parameter.
    pub(crate) fn param(
        param: impl Into<Cow<'static, str>>,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self { param: Some(param.into()), code, ..Self::request(message) }
    }

    pub(crate) fn missing(param: &'static str) -> Self {
        let message = format!("Missing required parameter: '{param}'.");
        Self::param(param, Some("missing_required_parameter"), message)
    }

    pub(crate) fn unknown_model(model: &str) -> Self {
        let shown: String = model.chars().take(100).collect();
        let message = format!("The model `{shown}` does not exist or you do not have access to it.");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", Some("model_not_found"), message)
    }

    pub(crate) fn unauthorized(given: bool) -> Self {
        if given {
            let message =
                "Incorrect API key provided. You can find your API key in the settings of this service.";
            return Self::new(
                StatusCode::UNAUTHORIZED,
                "invalid_request_error",
                Some("invalid_api_key"),
                message,
            );
        }
        let message =
            "You didn't provide an API key. Provide it in an Authorization header using Bearer auth.";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", None, message)
    }

    pub(crate) fn unknown_path(method: &http::Method, path: &str) -> Self {
        let shown: String = path.chars().take(100).collect();
        let message = format!("Invalid URL ({method} {shown})");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", None, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request body is larger than {limit} bytes.");
        let code = Some("request_too_large");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", code, message)
    }

    pub(crate) fn content_type() -> Self {
        let message = "Unsupported media type: send application/json.";
        let code = Some("unsupported_content_type");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", code, message)
    }

    pub(crate) fn queue_full() -> Self {
        Self::failure(503, None)
    }

    /// A failure that is not the caller's, with the words that OpenAI uses for it.
    pub(crate) fn failure(status: u16, retry_after: Option<u32>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (kind, code, message) = match status.as_u16() {
            401 => return Self::unauthorized(true),
            402 | 403 => {
                ("insufficient_quota", Some("insufficient_quota"), "You exceeded your current quota.")
            }
            429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached for requests."),
            503 | 529 => ("server_error", Some("server_is_overloaded"), "The server is overloaded."),
            400..500 => ("invalid_request_error", None, "The request was refused."),
            _ => ("server_error", None, "The server had an error while processing your request."),
        };
        Self { retry_after, ..Self::new(status, kind, code, message) }
    }

    pub(crate) fn body(&self) -> Bytes {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Error<'a>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            message: &'a str,
            r#type: &'a str,
            param: Option<&'a str>,
            code: Option<&'a str>,
        }
        let error = Error {
            message: &self.message,
            r#type: self.kind,
            param: self.param.as_deref(),
            code: self.code,
        };
        serde_json::to_vec(&Body { error }).expect("strings always serialise").into()
    }
}
