//! The store in an etcd cluster.
//!
//! Every call has a deadline and every stream requires a leader, so that a member cut off from its peers is left
//! within seconds. One member is used at a time; the next one takes over when it does not answer ([`endpoints`]).
//! Watches are kept alive by [`watch`].

mod endpoints;
mod error;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, SortOrder, SortTarget, TxnOp};

use super::{Condition, Entry, Error, List, Operation, Page, Revision, Store, Txn, Watch};
use endpoints::Endpoints;
use error::Failure;

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For one call to one member.
    pub call: Duration,
    /// Between two requests of a watch to say how far it is.
    pub progress: Duration,
    /// A watch that heard nothing for this long is opened anew.
    pub silence: Duration,
}

impl Default for Timing {
    /// A dead watch is replaced within `silence + call`: 13 s.
    fn default() -> Self {
        Self {
            call: Duration::from_secs(3),
            progress: Duration::from_secs(4),
            silence: Duration::from_secs(10),
        }
    }
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Etcd {
    endpoints: Arc<Endpoints>,
}

impl Etcd {
    /// Prepares the connections; makes none yet.
    ///
    /// # Errors
    /// [`Error::Address`] for an address that is no URL.
    pub async fn connect(urls: &[String], timing: Timing) -> Result<Self, Error> {
        Ok(Self { endpoints: Arc::new(Endpoints::new(urls, timing).await?) })
    }

    /// One page at a fixed revision, or at the newest.
    async fn page(&self, list: &List, revision: Option<Revision>) -> Result<Page, Failure> {
        let (start, end) = range(list);
        let limit = i64::try_from(list.limit.max(1)).unwrap_or(i64::MAX);
        let order = if list.descending { SortOrder::Descend } else { SortOrder::Ascend };
        let options = GetOptions::new()
            .with_range(end)
            .with_sort(SortTarget::Key, order)
            .with_limit(limit)
            .with_revision(revision.map_or(0, to_wire));
        let mut found = self.endpoints.read(&start, &options).await?;
        let newest = found.header().map_or(0, |header| from_wire(header.revision()));
        Ok(Page {
            entries: found.take_kvs().iter().filter_map(entry).collect(),
            revision: revision.unwrap_or(newest),
            more: found.more(),
        })
    }
}

#[async_trait]
impl Store for Etcd {
    async fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let found =
            self.endpoints.read(key.as_bytes(), &GetOptions::new()).await.map_err(Failure::of_read)?;
        Ok(found.kvs().first().and_then(entry))
    }

    async fn list(&self, list: &List) -> Result<Page, Error> {
        self.page(list, None).await.map_err(Failure::of_read)
    }

    async fn commit(&self, txn: Txn) -> Result<Revision, Error> {
        let conditions: Vec<Compare> = txn.conditions.iter().map(compare).collect();
        let operations: Vec<TxnOp> = txn.operations.iter().map(operation).collect();
        let txn = etcd_client::Txn::new().when(conditions).and_then(operations);
        let done = self.endpoints.write(&txn).await.map_err(Failure::of_write)?;
        if !done.succeeded() {
            return Err(Error::Conflict);
        }
        Ok(done.header().map_or(0, |header| from_wire(header.revision())))
    }

    fn watch(&self, prefix: &str, from: Option<Revision>) -> Watch {
        watch::open(self.clone(), prefix, from)
    }
}

fn compare(condition: &Condition) -> Compare {
    // A key that does not exist has modification revision 0.
    Compare::mod_revision(condition.key.as_str(), CompareOp::Equal, condition.revision.map_or(0, to_wire))
}

fn operation(operation: &Operation) -> TxnOp {
    match operation {
        Operation::Put(key, value) => TxnOp::put(key.as_str(), value.as_ref(), None),
        Operation::Delete(key) => TxnOp::delete(key.as_str(), None),
    }
}

/// First key and end (not included) of what `list` asks for.
fn range(list: &List) -> (Vec<u8>, Vec<u8>) {
    let prefix = list.prefix.as_bytes().to_vec();
    match &list.after {
        Some(after) if list.descending => (prefix, after.as_bytes().to_vec()),
        // The smallest key that is larger than `after`.
        Some(after) => ([after.as_bytes(), &[0]].concat(), behind(&prefix)),
        None => (prefix.clone(), behind(&prefix)),
    }
}

/// The smallest key larger than every key with this prefix.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    // No UTF-8 text ends in 0xff.
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

/// `None` for a key that is not UTF-8: none of ours.
fn entry(found: &KeyValue) -> Option<Entry> {
    Some(Entry {
        key: found.key_str().ok()?.to_owned(),
        value: Bytes::copy_from_slice(found.value()),
        revision: from_wire(found.mod_revision()),
    })
}

/// etcd's revisions are positive and signed on the wire.
fn to_wire(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn from_wire(revision: i64) -> Revision {
    u64::try_from(revision).unwrap_or(0)
}
