//! Every way in which a request ends without an answer from a service, and what the client is told.
//!
//! The only place that maps failures to HTTP. Messages say what to do next and name nothing internal: no addresses, no
//! keys. Each code has a page in `docs/errors/`.

use std::time::Duration;

use http::StatusCode;
use penstock_decision::filter::Exclusion;
use penstock_model::outcome::Outcome;
use penstock_model::vendor::Meaning;
use penstock_providers::classify::Classified;
use penstock_providers::dialect::ClientError;
use penstock_providers::exchange::Field;
use penstock_providers::grpc;
use penstock_providers::json::InvalidBody;
use penstock_providers::vendor_error::VendorError;

/// Why a request is answered with an error of ours.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such path.
    UnknownPath,
    /// The path exists, the method is another.
    WrongMethod { allow: &'static str },
    /// No policy has come yet.
    NoPolicy,
    /// Larger than the policy allows.
    BodyTooLarge { limit: usize },
    /// The client stopped sending.
    BodyTimeout,
    /// The client broke off.
    BodyIncomplete,
    /// Not a request of this protocol.
    InvalidBody(InvalidBody),
    /// A request of this protocol, but one field cannot be what it is.
    InvalidField(Field),
    /// No candidate can carry what the request asks for.
    Unsupported(Field),
    /// No candidate's model has what the request needs.
    Lacking(Exclusion),
    /// The route's data may go to no candidate.
    NoResident,
    /// No such model.
    UnknownModel,
    /// `/api/invoke` does not stream.
    StreamUnsupported,
    /// The client names a capability that the policy has not.
    UnknownCapability,
    /// No route matches.
    NoRoute,
    /// The route has no service for what the request needs.
    NoBackend,
    /// No candidate's context window is large enough.
    TooLong,
    /// Every candidate is excluded for this request.
    NoTarget { retry_after: Option<Duration> },
    /// The last attempt's failure.
    Upstream(Failure),
    /// A mistake of ours.
    Internal,
}

/// How the last attempt failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    /// The service's status, where it sent one.
    pub(crate) status: Option<StatusCode>,
    pub(crate) retry_after: Option<Duration>,
    /// What the service said, fit to be shown.
    pub(crate) error: Box<VendorError>,
    /// Would a model with a larger context window help?
    pub(crate) too_long: bool,
}

impl Failure {
    /// A failure without an answer.
    pub(crate) fn silent(outcome: Outcome) -> Self {
        Self { outcome, status: None, retry_after: None, error: Box::default(), too_long: false }
    }

    /// An answer that is not what its protocol allows.
    pub(crate) fn invalid() -> Self {
        Self::silent(Outcome::InvalidResponse)
    }

    /// A failure that the service told of, with this status or within an answer that had none of its own.
    pub(crate) fn reported(classified: Classified, status: Option<StatusCode>) -> Self {
        let mut error = Box::new(classified.error);
        if classified.outcome == Outcome::CredentialRejected {
            // About our account, not for the client.
            *error = VendorError::default();
        }
        let too_long = classified.meaning == Meaning::TooLong;
        Self { outcome: classified.outcome, status, retry_after: classified.limit.wait, error, too_long }
    }
}

/// Every code a client can see.
pub const CODES: &[&str] = &[
    "unknown_path",
    "method_not_allowed",
    "no_policy",
    "body_too_large",
    "body_timeout",
    "body_incomplete",
    "invalid_body",
    "unsupported",
    "unknown_model",
    "stream_unsupported",
    "unknown_capability",
    "no_route",
    "no_backend",
    "context_too_long",
    "no_target",
    "internal",
    "upstream_rejected",
    "content_filtered",
    "upstream_rate_limited",
    "upstream_credential",
    "upstream_overloaded",
    "upstream_error",
    "upstream_unreachable",
    "upstream_timeout",
    "upstream_truncated",
    "upstream_invalid",
    "deadline_exceeded",
];

impl Refusal {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::WrongMethod { .. } => "method_not_allowed",
            Self::NoPolicy => "no_policy",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyIncomplete => "body_incomplete",
            Self::InvalidBody(_) | Self::InvalidField(_) => "invalid_body",
            Self::Unsupported(_) | Self::Lacking(_) => "unsupported",
            Self::UnknownModel => "unknown_model",
            Self::StreamUnsupported => "stream_unsupported",
            Self::UnknownCapability => "unknown_capability",
            Self::NoRoute => "no_route",
            Self::NoBackend => "no_backend",
            Self::TooLong => "context_too_long",
            Self::NoTarget { .. } | Self::NoResident => "no_target",
            Self::Internal => "internal",
            Self::Upstream(failure) => outcome_code(failure.outcome),
        }
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath | Self::NoRoute | Self::UnknownModel => StatusCode::NOT_FOUND,
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoPolicy | Self::NoBackend | Self::NoTarget { .. } | Self::NoResident => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyIncomplete
            | Self::InvalidBody(_)
            | Self::InvalidField(_)
            | Self::Unsupported(_)
            | Self::Lacking(_)
            | Self::StreamUnsupported
            | Self::UnknownCapability
            | Self::TooLong => StatusCode::BAD_REQUEST,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Upstream(failure) => failure.client_status(),
        }
    }

    /// The status of a gRPC call: the service's own, where it gave one; else that which gRPC's own libraries and proxies give.
    pub(crate) fn grpc_code(&self) -> u32 {
        let name = match self {
            Self::UnknownPath | Self::NoRoute | Self::WrongMethod { .. } | Self::Unsupported(_) => {
                "UNIMPLEMENTED"
            }
            Self::UnknownModel => "NOT_FOUND",
            Self::NoPolicy | Self::NoBackend | Self::NoTarget { .. } => "UNAVAILABLE",
            Self::BodyTooLarge { .. } => "RESOURCE_EXHAUSTED",
            Self::BodyTimeout | Self::BodyIncomplete => "CANCELLED",
            Self::Internal => "INTERNAL",
            Self::Upstream(failure) => failure.grpc_name(),
            _ => "INVALID_ARGUMENT",
        };
        grpc::Status::code_of(name).unwrap_or(2)
    }

    /// Which field is at fault.
    fn field(&self) -> Option<&str> {
        match self {
            Self::InvalidField(field) | Self::Unsupported(field) => Some(&field.field),
            _ => None,
        }
    }

    /// As the client's protocol tells it.
    pub(crate) fn for_client<'a>(&'a self, message: &'a str, request_id: &'a str) -> ClientError<'a> {
        ClientError {
            status: self.status().as_u16(),
            code: self.code(),
            message,
            field: self.field(),
            request_id,
        }
    }

    /// When to try again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoPolicy => Some(Duration::from_secs(1)),
            Self::NoTarget { retry_after } => *retry_after,
            Self::Upstream(failure) if failure.client_status() == StatusCode::TOO_MANY_REQUESTS => {
                Some(failure.retry_after.unwrap_or(Duration::from_secs(1)))
            }
            Self::Upstream(failure) => failure.retry_after,
            _ => None,
        }
    }

    /// For people.
    pub(crate) fn message(&self) -> String {
        let fixed = match self {
            Self::UnknownPath => {
                "No such path. Penstock serves OpenAI's calls under /v1, Anthropic's /v1/messages, Gemini's \
                 /v1beta/models/MODEL:generateContent, and POST /api/invoke."
            }
            Self::WrongMethod { allow } => return format!("This path takes {allow} only."),
            Self::NoPolicy => "This proxy has no policy yet. Try again in a moment.",
            Self::BodyTooLarge { limit } => {
                return format!("The body is larger than the {limit} bytes that the policy allows.");
            }
            Self::BodyTimeout => "The body stopped coming. Send the whole request at once.",
            Self::BodyIncomplete => "The connection ended before the body did.",
            Self::InvalidBody(error) => return format!("The body cannot be used: {error}."),
            Self::InvalidField(field) => return format!("The request cannot be used: {field}."),
            Self::Unsupported(field) => {
                return format!("No service here can take this request: {field}.");
            }
            Self::Lacking(lacking) => {
                return format!("No service here can take this request: {}.", what_is_lacking(*lacking));
            }
            Self::NoResident => "The route of this request keeps its data where none of its services does.",
            Self::UnknownModel => "No such model. GET /v1/models lists those there are.",
            Self::StreamUnsupported => {
                "/api/invoke answers as a whole. For a stream use /v1/chat/completions."
            }
            Self::UnknownCapability => "The policy has no capability of the name that the request gives.",
            Self::NoRoute => "No route of the policy matches this request.",
            Self::NoBackend => "No service in the policy can do what this request needs.",
            Self::TooLong => {
                "The prompt and the limit of the answer are more than any service here can hold. Send less, or lower \
                 max_tokens."
            }
            Self::NoTarget { .. } => {
                "No service can take this request now: all are over their limit, being drained, lack their key, or are too \
                 small for it."
            }
            Self::Internal => "Something went wrong in the proxy.",
            Self::Upstream(failure) => return failure.message(),
        };
        fixed.to_owned()
    }
}

/// For people: what no model of the route can do.
fn what_is_lacking(lacking: Exclusion) -> &'static str {
    match lacking {
        Exclusion::NoTools => "no model of its route calls tools",
        Exclusion::NoVision => "no model of its route sees images",
        Exclusion::NoAudio => "no model of its route hears or speaks",
        Exclusion::NoJsonSchema => "no model of its route answers by a JSON Schema",
        Exclusion::NoStreaming => "no model of its route streams its answer",
        _ => "no model of its route can do what it needs",
    }
}

impl Failure {
    /// A refusal of the request is the service's word and keeps its status; what is the services' fault is a 502, 503 or
    /// 504, never a 500 (RES-04).
    fn client_status(&self) -> StatusCode {
        match self.outcome {
            Outcome::ClientError => self.status.unwrap_or(StatusCode::BAD_REQUEST),
            Outcome::ContentFiltered => StatusCode::BAD_REQUEST,
            Outcome::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Outcome::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Outcome::FirstTokenTimeout | Outcome::IdleTimeout | Outcome::DeadlineExceeded => {
                StatusCode::GATEWAY_TIMEOUT
            }
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    fn grpc_name(&self) -> &str {
        if let Some(own) = self.error.code.as_deref().filter(|code| grpc::Status::code_of(code).is_some()) {
            return own;
        }
        match self.outcome {
            Outcome::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Outcome::RateLimited => "RESOURCE_EXHAUSTED",
            Outcome::InvalidResponse | Outcome::ServerError => "INTERNAL",
            Outcome::ClientError if self.status == Some(StatusCode::NOT_FOUND) => "UNIMPLEMENTED",
            Outcome::ClientError | Outcome::ContentFiltered => "INVALID_ARGUMENT",
            _ => "UNAVAILABLE",
        }
    }

    fn message(&self) -> String {
        let ours = match self.outcome {
            Outcome::ClientError => "The service refused the request",
            Outcome::ContentFiltered => "The service's content filter refused the request",
            Outcome::RateLimited => "The services are over their rate limit",
            Outcome::CredentialRejected => return "The service did not accept the gateway's key.".to_owned(),
            Outcome::Overloaded => "The services are overloaded",
            Outcome::ConnectError => "The service cannot be reached",
            Outcome::FirstTokenTimeout | Outcome::IdleTimeout => "The service did not answer in time",
            Outcome::DeadlineExceeded => "There was no answer within the request's time",
            Outcome::Truncated | Outcome::Reset => "The service broke off",
            Outcome::InvalidResponse => "The service's answer cannot be understood",
            _ => "The service failed",
        };
        match &self.error.message {
            Some(theirs) => format!("{ours}: {theirs}"),
            None => format!("{ours}."),
        }
    }
}

/// The code for how an attempt ended.
pub(crate) fn outcome_code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok | Outcome::ClientCancelled => "",
        Outcome::ClientError => "upstream_rejected",
        Outcome::ContentFiltered => "content_filtered",
        Outcome::RateLimited => "upstream_rate_limited",
        Outcome::CredentialRejected => "upstream_credential",
        Outcome::Overloaded => "upstream_overloaded",
        Outcome::ServerError => "upstream_error",
        Outcome::ConnectError => "upstream_unreachable",
        Outcome::FirstTokenTimeout | Outcome::IdleTimeout => "upstream_timeout",
        Outcome::Truncated | Outcome::Reset => "upstream_truncated",
        Outcome::InvalidResponse => "upstream_invalid",
        Outcome::DeadlineExceeded => "deadline_exceeded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_that_a_client_can_see_has_a_listed_code() {
        for outcome in Outcome::ALL {
            let code = outcome_code(outcome);
            assert!(code.is_empty() || CODES.contains(&code), "{code}");
        }
    }

    #[test]
    fn what_services_cause_is_never_a_500() {
        for outcome in Outcome::ALL.into_iter().filter(|outcome| outcome.is_failure()) {
            let refusal = Refusal::Upstream(Failure::silent(outcome));
            assert!([502, 503, 504].contains(&refusal.status().as_u16()), "{outcome:?}");
        }
    }

    #[test]
    fn every_code_has_a_page() {
        for code in CODES {
            let page = format!("{}/../docs/errors/{code}.md", env!("CARGO_MANIFEST_DIR"));
            assert!(std::path::Path::new(&page).exists(), "{page} is missing");
        }
    }
}
