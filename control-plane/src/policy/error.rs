//! Why a policy could not be read or changed.

use crate::store;

/// Messages are fit for operators; details are in the source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A field of the request is not acceptable.
    #[error("{field} {problem}")]
    Invalid { field: &'static str, problem: String },
    /// Another policy than the one served here.
    #[error(
        "this control plane serves the policy `{served}`, not `{asked}`; ask for that, or another control plane"
    )]
    UnknownPolicy { asked: String, served: String },
    /// No version at all yet.
    #[error("the policy has no version yet; make one with `penstock policy apply FILE`")]
    Empty,
    /// Not this version.
    #[error("there is no version {version}: versions are 1 to {newest}; see `penstock policy list`")]
    NoSuchVersion { version: u64, newest: u64 },
    /// Rollback without a target right after the first version.
    #[error("version {stable} is the first: there is none before it to go back to")]
    NothingBefore { stable: u64 },
    /// Somebody else was faster. Nothing was stored.
    #[error(
        "version {stable} by {author} is stable now, not version {expected} that the change was made from; look at \
         what changed, then apply again"
    )]
    Conflict { expected: u64, stable: u64, author: String },
    /// The policy lacks the backend, or the backend the model.
    #[error("the policy has no {what} `{name}`; see `penstock backend list`")]
    NoSuchTarget { what: &'static str, name: String },
    /// One model of a backend that is drained as a whole is to be undrained.
    #[error(
        "the backend `{backend}` is drained as a whole: undrain it without a model, then drain the other models"
    )]
    DrainedWhole { backend: String },
    /// Larger than the stores take.
    #[error("the document has {bytes} bytes; at most {limit} can be stored: shorten it, or split the policy")]
    TooLarge { bytes: usize, limit: usize },
    /// What is stored is not what this build writes.
    #[error("the entry {key} in the store is damaged: restore it from a backup, or apply a policy anew")]
    Damaged { key: String, source: serde_json::Error },
    /// The head names a version that is not there.
    #[error("the store names version {version} as stable but does not hold it; apply a policy anew")]
    Missing { version: u64 },
    /// The store itself.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// Stable; each has a page in the error reference.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } | Self::DrainedWhole { .. } => "invalid_argument",
            Self::NoSuchTarget { .. } => "backend_not_found",
            Self::UnknownPolicy { .. } => "policy_unknown",
            Self::Empty | Self::NoSuchVersion { .. } | Self::NothingBefore { .. } => {
                "policy_version_not_found"
            }
            Self::Conflict { .. } => "policy_conflict",
            Self::TooLarge { .. } => "policy_too_large",
            Self::Damaged { .. } | Self::Missing { .. } => "store_damaged",
            Self::Store(error) => match error {
                store::Error::Unavailable(_) => "store_unavailable",
                store::Error::Unconfirmed(_) => "store_unconfirmed",
                store::Error::Conflict => "policy_conflict",
                store::Error::TooLarge(_) => "policy_too_large",
                store::Error::Full(_) => "store_full",
                store::Error::Denied(_) => "store_denied",
                _ => "store_failed",
            },
        }
    }
}
