//! What an etcd error means.

use etcd_client::Error as EtcdError;
use tonic::{Code, ConnectError, Status};

use crate::store::Error;
use crate::store::error::Source;

/// Why one call to one member failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The member never got the request, or has no leader to pass it to.
    NotTaken(Source),
    /// It may have been carried out.
    NoAnswer(Source),
    /// The history asked for is gone, or too much to be sent at once.
    Compacted,
    /// It was answered with no, and would be by every member.
    Refused(Error),
}

impl Failure {
    pub(super) fn may_read_elsewhere(&self) -> bool {
        matches!(self, Self::NotTaken(_) | Self::NoAnswer(_))
    }

    pub(super) fn may_write_elsewhere(&self) -> bool {
        matches!(self, Self::NotTaken(_))
    }

    pub(super) fn of_read(self) -> Error {
        match self {
            Self::NotTaken(source) | Self::NoAnswer(source) => Error::Unavailable(source),
            Self::Compacted => Error::Failed("the revision to read at was compacted".into()),
            Self::Refused(error) => error,
        }
    }

    pub(super) fn of_write(self) -> Error {
        match self {
            Self::NoAnswer(source) => Error::Unconfirmed(source),
            other => other.of_read(),
        }
    }
}

pub(super) fn classify(error: EtcdError) -> Failure {
    match error {
        EtcdError::GRpcStatus(status) => classify_status(status),
        EtcdError::TransportError(error) => Failure::NotTaken(error.into()),
        other => Failure::Refused(Error::Failed(other.into())),
    }
}

fn classify_status(status: Status) -> Failure {
    let message = status.message();
    match status.code() {
        // These are etcd's own words (api/v3/rpctypes/error.go).
        Code::Unavailable if message.ends_with("no leader") => Failure::NotTaken(status.into()),
        Code::Unavailable if never_connected(&status) => Failure::NotTaken(status.into()),
        // etcd: the revision was compacted. tonic: the message is over the limit.
        Code::OutOfRange => Failure::Compacted,
        Code::InvalidArgument if message.contains("too large") => {
            Failure::Refused(Error::TooLarge(status.into()))
        }
        Code::ResourceExhausted if message.contains("space exceeded") => {
            Failure::Refused(Error::Full(status.into()))
        }
        Code::PermissionDenied | Code::Unauthenticated => Failure::Refused(Error::Denied(status.into())),
        Code::InvalidArgument if message.contains("user name is empty") => {
            Failure::Refused(Error::Denied(status.into()))
        }
        // A broken connection has the code Unknown.
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Failure::NoAnswer(status.into())
        }
        _ => Failure::Refused(Error::Failed(status.into())),
    }
}

fn never_connected(status: &Status) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
