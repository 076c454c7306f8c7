//! Where policies are kept: a small ordered key-value store with compare-and-swap transactions and watches.
//!
//! Two implementations, [`Embedded`] (one file) and [`Etcd`] (a cluster), pass one conformance suite
//! (`tests/store_conformance.rs`). What they promise alike:
//!
//! - Every transaction gets a revision of its own, larger than all before it. Versions of anything are ordered by
//!   revisions, never by clocks.
//! - A transaction whose conditions do not hold changes nothing and ends in [`Error::Conflict`].
//! - What [`Store::commit`] has confirmed survives a `kill -9`.
//! - A watch that cannot be continued where it was says so with [`Event::Resync`], which replaces everything its reader
//!   knew; a reader that handles both events never misses a change and never keeps a deleted key.

mod embedded;
mod error;
mod etcd;
pub mod keys;
mod measured;
mod watch;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

pub use embedded::Embedded;
pub use error::Error;
pub use etcd::{Etcd, Timing};
pub(crate) use measured::Measured;
pub use watch::{Change, Event, Reason, Watch};

/// The number of a transaction; 0 before the first.
pub type Revision = u64;

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Bytes,
    /// The transaction that wrote it last.
    pub revision: Revision,
}

/// Which part of the keys under a prefix to read.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// Keys start with this.
    pub prefix: String,
    /// Continue behind this key, in the order asked for; from the first when `None`.
    pub after: Option<String>,
    /// At most this many entries; at least 1.
    pub limit: usize,
    /// From the last key to the first.
    pub descending: bool,
}

/// What [`Store::list`] found, all of it true at one revision.
#[derive(Debug, Clone)]
pub struct Page {
    /// In key order, or the reverse.
    pub entries: Vec<Entry>,
    /// The store's revision at the time of reading.
    pub revision: Revision,
    /// Are there more keys behind the last one?
    pub more: bool,
}

/// Changes that happen together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Txn {
    /// What must be true.
    pub conditions: Vec<Condition>,
    /// What changes then; each key at most once.
    pub operations: Vec<Operation>,
}

/// What must be true of a key for a transaction to go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The key.
    pub key: String,
    /// The transaction that wrote it last; `None`: it does not exist.
    pub revision: Option<Revision>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Writes a value, whether the key exists or not.
    Put(String, Bytes),
    /// Removes a key; no error when it does not exist.
    Delete(String),
}

impl Txn {
    /// Adds the condition that `key` was last written by `revision`, or does not exist.
    #[must_use]
    pub fn when(mut self, key: impl Into<String>, revision: Option<Revision>) -> Self {
        self.conditions.push(Condition { key: key.into(), revision });
        self
    }

    /// Adds a write.
    #[must_use]
    pub fn put(mut self, key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.operations.push(Operation::Put(key.into(), value.into()));
        self
    }

    /// Adds a removal.
    #[must_use]
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.operations.push(Operation::Delete(key.into()));
        self
    }
}

/// See the module's documentation for what every implementation promises.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The newest value of `key`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store does not answer within its deadline.
    async fn get(&self, key: &str) -> Result<Option<Entry>, Error>;

    /// One page of the keys under a prefix.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store does not answer within its deadline.
    async fn list(&self, list: &List) -> Result<Page, Error>;

    /// Makes all changes of `txn` if all its conditions hold.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a condition does not hold, [`Error::Unavailable`] when nothing was changed because the
    /// store could not be reached, [`Error::Unconfirmed`] when it is not known whether the change was made.
    async fn commit(&self, txn: Txn) -> Result<Revision, Error>;

    /// Follows the keys under `prefix`: changes after revision `from`, or first everything there is when `from` is
    /// `None` or too old to continue from. Keeps trying while the store is away; ends when dropped.
    fn watch(&self, prefix: &str, from: Option<Revision>) -> Watch;

    /// Waits for calls that are being made, then lets go of files and locks. Later calls fail.
    async fn close(&self) {}
}

/// Opens the store that the settings name.
///
/// # Errors
/// When the file cannot be opened or is in use, or an etcd address is no URL. An etcd that does not answer is no error:
/// its calls fail with [`Error::Unavailable`] until it does.
pub async fn open(config: &crate::StoreConfig) -> Result<Arc<dyn Store>, Error> {
    Ok(match config {
        crate::StoreConfig::Embedded(path) => Arc::new(Embedded::open(path.clone()).await?),
        crate::StoreConfig::Etcd(urls) => Arc::new(Etcd::connect(urls, Timing::default()).await?),
    })
}
