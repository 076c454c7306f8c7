//! What a watch delivers.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{Entry, Revision};

/// Something a watch has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everything under the prefix at `revision`. Replaces what was known: keys that are not here are gone.
    Resync {
        /// In key order.
        entries: Vec<Entry>,
        /// When this was true.
        revision: Revision,
        /// Why the watch starts over.
        reason: Reason,
    },
    /// What one transaction changed under the prefix.
    Changes {
        /// In the order of the transaction.
        changes: Vec<Change>,
        /// The transaction.
        revision: Revision,
    },
    /// The store is there, and all its changes up to some moment since the last event have been delivered.
    Progress,
}

/// Why a watch starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was opened without a revision to continue from.
    Opened,
    /// The store no longer has the changes since the last one that was delivered.
    Compacted,
    /// The reader was too slow and changes were dropped.
    Lagged,
    /// The store's revisions went back: it was restored from a backup, or is another one.
    Replaced,
}

/// A changed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub key: String,
    /// Its new value; `None` when it was removed.
    pub value: Option<Bytes>,
}

/// A running watch. Ends when dropped.
#[derive(Debug)]
pub struct Watch {
    events: mpsc::Receiver<Event>,
    task: AbortHandle,
}

/// Events that wait for a slow reader before the store stops reading ahead.
pub(super) const BUFFER: usize = 64;

impl Watch {
    pub(super) fn new(events: mpsc::Receiver<Event>, task: AbortHandle) -> Self {
        Self { events, task }
    }

    /// The next event; `None` only when the store is being closed. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
