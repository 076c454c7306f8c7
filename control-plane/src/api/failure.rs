//! How an error reaches an operator: a stable code, a message that says what to do, and nothing from within.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use penstock_proto::fleet::v1::Problem;
use serde::Serialize;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::{policy, store};

/// The metadata key of the stable code in gRPC errors.
const CODE_KEY: &str = "penstock-code";

/// An error as operators see it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(super) code: &'static str,
    pub(super) kind: Kind,
    pub(super) message: String,
    pub(super) problems: Vec<Problem>,
}

/// What it means in either protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Invalid,
    Refused,
    TooLarge,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    Unavailable,
    Full,
    Damaged,
    Internal,
}

impl Kind {
    fn grpc(self) -> Code {
        match self {
            Self::Invalid | Self::Refused | Self::TooLarge => Code::InvalidArgument,
            Self::Forbidden => Code::PermissionDenied,
            Self::NotFound => Code::NotFound,
            Self::MethodNotAllowed => Code::Unimplemented,
            Self::Conflict => Code::Aborted,
            Self::Unavailable => Code::Unavailable,
            Self::Full => Code::ResourceExhausted,
            Self::Damaged => Code::DataLoss,
            Self::Internal => Code::Internal,
        }
    }

    fn http(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
            Self::Damaged | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Failure {
    pub(super) fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, kind, message: message.into(), problems: Vec::new() }
    }
}

impl From<policy::Error> for Failure {
    fn from(error: policy::Error) -> Self {
        let kind = match &error {
            policy::Error::Invalid { .. } | policy::Error::DrainedWhole { .. } => Kind::Invalid,
            policy::Error::UnknownPolicy { .. }
            | policy::Error::Empty
            | policy::Error::NoSuchVersion { .. }
            | policy::Error::NothingBefore { .. }
            | policy::Error::NoSuchTarget { .. } => Kind::NotFound,
            policy::Error::Conflict { .. } | policy::Error::Store(store::Error::Conflict) => Kind::Conflict,
            policy::Error::TooLarge { .. } | policy::Error::Store(store::Error::TooLarge(_)) => {
                Kind::TooLarge
            }
            policy::Error::Damaged { .. } | policy::Error::Missing { .. } => Kind::Damaged,
            policy::Error::Store(store::Error::Unavailable(_) | store::Error::Unconfirmed(_)) => {
                Kind::Unavailable
            }
            policy::Error::Store(store::Error::Full(_)) => Kind::Full,
            policy::Error::Store(_) => Kind::Internal,
        };
        if matches!(error, policy::Error::Store(_) | policy::Error::Damaged { .. }) {
            tracing::warn!(error = &error as &dyn std::error::Error, "call failed because of the store");
        }
        Self::new(kind, error.code(), error.to_string())
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE_KEY, MetadataValue::from_static(failure.code));
        Self::with_metadata(failure.kind.grpc(), failure.message, metadata)
    }
}

#[derive(Serialize)]
struct Body {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = Body { code: self.code, message: self.message, problems: self.problems };
        (self.kind.http(), Json(body)).into_response()
    }
}
