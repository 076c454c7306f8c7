//! What can go wrong with the store, and what to do about it.

use std::path::PathBuf;

/// Messages are fit for operators: they say what to do and name no address. Details are in the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was changed.
    #[error(
        "the policy store cannot be reached; check that it runs and that the control plane can connect to it, then \
         try again"
    )]
    Unavailable(#[source] Source),
    /// The change may have been made.
    #[error(
        "the policy store did not confirm the change: it may or may not have been made; look at the newest version \
         before trying again, or repeat the call with the same idempotency key"
    )]
    Unconfirmed(#[source] Source),
    /// A condition of the transaction did not hold.
    #[error("somebody else changed it in the meantime; read it again and retry")]
    Conflict,
    /// A value or a transaction is over the store's limit.
    #[error("the policy store refuses a value this large; make the document smaller")]
    TooLarge(#[source] Source),
    /// The store's disk quota is used up.
    #[error("the policy store is full; compact and defragment it, or give it more room, then try again")]
    Full(#[source] Source),
    /// The store does not accept who we are.
    #[error("the policy store refuses the control plane; check the user and the role it was given")]
    Denied(#[source] Source),
    /// Any other failure of the store itself.
    #[error("the policy store failed; its log and the control plane's say why")]
    Failed(#[source] Source),
    /// Another process has the file open.
    #[error("{} is in use by another penstock process; stop it, or choose another --data-dir", path.display())]
    InUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("cannot open the store {}; check its permissions, the disk, and that it is a penstock store", path.display())]
    Open {
        /// The store's file.
        path: PathBuf,
        /// What the system says.
        source: Source,
    },
    /// An etcd URL with TLS.
    #[error(
        "`{url}` asks for TLS, which connections to etcd do not have; use http:// within a trusted network"
    )]
    Tls {
        /// As configured.
        url: String,
    },
    /// An etcd URL that is none.
    #[error("`{url}` is not an etcd address; write it like http://127.0.0.1:2379")]
    Address {
        /// As configured.
        url: String,
        /// What the parser says.
        source: Source,
    },
}

/// The implementation's own error.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;
