//! The store in one file, for `penstock up` and single control planes.
//!
//! redb is a crash-safe B-tree: a commit returns after its fsync, and a torn one is invisible. All calls run on the
//! blocking pool. No history is kept, so a watch can only continue from the newest revision; every older one is
//! answered like a compacted one.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tracing::Instrument;

use super::error::Source;
use super::watch::BUFFER;
use super::{Change, Entry, Error, Event, List, Operation, Page, Reason, Revision, Store, Txn, Watch};

const ENTRIES: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("entries");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";

/// Transactions that a slow watch may fall behind before it starts over.
const BACKLOG: usize = 256;

/// How often a quiet watch says that it is up to date.
const PROGRESS: Duration = Duration::from_secs(5);

/// Documents are small; redb's default cache of a gigabyte is not.
const CACHE_BYTES: usize = 16 << 20;

const CLOSED: &str = "the store is closed";

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Embedded {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` once closed. Calls hold the read lock, so that closing waits for them.
    database: RwLock<Option<Database>>,
    /// Held from the start of a commit to its announcement, so that announcements come in the order of revisions.
    order: Mutex<()>,
    announce: broadcast::Sender<Arc<Committed>>,
}

#[derive(Debug)]
struct Committed {
    revision: Revision,
    changes: Vec<Change>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("open", &self.database.read().is_some()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Opens the file, or creates it with its folder.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process has it open, [`Error::Open`] when it cannot be read or is no store.
    pub async fn open(path: PathBuf) -> Result<Self, Error> {
        let opened = blocking(move || {
            let database = open_file(&path).map_err(|error| match error.downcast_ref() {
                Some(DatabaseError::DatabaseAlreadyOpen) => Error::InUse { path: path.clone() },
                _ => Error::Open { path: path.clone(), source: error },
            })?;
            Ok(Inner {
                database: RwLock::new(Some(database)),
                order: Mutex::new(()),
                announce: broadcast::channel(BACKLOG).0,
            })
        });
        Ok(Self { inner: Arc::new(opened.await?) })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        blocking(move || work(&inner)).await
    }
}

#[async_trait]
impl Store for Embedded {
    async fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let key = key.to_owned();
        self.run(move |inner| inner.get(key).map_err(Error::Failed)).await
    }

    async fn list(&self, list: &List) -> Result<Page, Error> {
        let list = list.clone();
        self.run(move |inner| inner.list(&list).map_err(Error::Failed)).await
    }

    async fn commit(&self, txn: Txn) -> Result<Revision, Error> {
        self.run(move |inner| inner.commit(txn)).await
    }

    async fn close(&self) {
        let inner = Arc::clone(&self.inner);
        // Fails only when closing panics: the file is released then as well.
        let _ = tokio::task::spawn_blocking(move || inner.database.write().take()).await;
    }

    fn watch(&self, prefix: &str, from: Option<Revision>) -> Watch {
        let (events, receiver) = mpsc::channel(BUFFER);
        let follower = Follower {
            store: Arc::downgrade(&self.inner),
            committed: self.inner.announce.subscribe(),
            prefix: prefix.to_owned(),
            events,
        };
        let span = tracing::debug_span!("store_watch", prefix);
        Watch::new(receiver, tokio::spawn(follower.run(from).instrument(span)).abort_handle())
    }
}

impl Inner {
    fn get(&self, key: String) -> Result<Option<Entry>, Source> {
        let database = self.database.read();
        let table = database.as_ref().ok_or(CLOSED)?.begin_read()?.open_table(ENTRIES)?;
        Ok(table.get(key.as_str())?.map(|found| {
            let (revision, value) = found.value();
            Entry { key, value: Bytes::copy_from_slice(value), revision }
        }))
    }

    fn list(&self, list: &List) -> Result<Page, Source> {
        let database = self.database.read();
        let read = database.as_ref().ok_or(CLOSED)?.begin_read()?;
        let table = read.open_table(ENTRIES)?;
        let revision = read.open_table(META)?.get(REVISION)?.map_or(0, |found| found.value());
        let (start, end) = bounds(list);
        let mut range = table.range::<&str>((bound(&start), bound(&end)))?;
        let mut entries = Vec::new();
        while let Some(found) = if list.descending { range.next_back() } else { range.next() } {
            if entries.len() == list.limit {
                return Ok(Page { entries, revision, more: true });
            }
            let (key, value) = found?;
            let (revision, value) = value.value();
            entries.push(Entry {
                key: key.value().to_owned(),
                value: Bytes::copy_from_slice(value),
                revision,
            });
        }
        Ok(Page { entries, revision, more: false })
    }

    fn commit(&self, txn: Txn) -> Result<Revision, Error> {
        let _order = self.order.lock();
        let database = self.database.read();
        let mut write = database.as_ref().ok_or_else(|| failed(CLOSED))?.begin_write().map_err(failed)?;
        // Saves what a reopen after a crash would otherwise have to rebuild by reading the whole file.
        write.set_quick_repair(true);
        let Some(committed) = apply(&write, txn).map_err(Error::Failed)? else {
            write.abort().map_err(failed)?;
            return Err(Error::Conflict);
        };
        write.commit().map_err(|error| Error::Unconfirmed(error.into()))?;
        let revision = committed.revision;
        // No receiver: nobody watches.
        let _ = self.announce.send(Arc::new(committed));
        Ok(revision)
    }
}

/// Checks the conditions and makes the changes; `None` when a condition does not hold.
fn apply(write: &WriteTransaction, txn: Txn) -> Result<Option<Committed>, Source> {
    let mut meta = write.open_table(META)?;
    let revision = meta.get(REVISION)?.map_or(0, |found| found.value()) + 1;
    meta.insert(REVISION, revision)?;
    let mut entries = write.open_table(ENTRIES)?;
    for condition in &txn.conditions {
        let actual = entries.get(condition.key.as_str())?.map(|found| found.value().0);
        if actual != condition.revision {
            return Ok(None);
        }
    }
    let mut changes = Vec::with_capacity(txn.operations.len());
    for operation in txn.operations {
        if let Some(change) = change(&mut entries, operation, revision)? {
            changes.push(change);
        }
    }
    Ok(Some(Committed { revision, changes }))
}

fn change(
    entries: &mut Table<'_, &str, (u64, &[u8])>,
    operation: Operation,
    revision: Revision,
) -> Result<Option<Change>, Source> {
    Ok(match operation {
        Operation::Put(key, value) => {
            entries.insert(key.as_str(), (revision, value.as_ref()))?;
            Some(Change { key, value: Some(value) })
        }
        Operation::Delete(key) => {
            entries.remove(key.as_str())?.is_some().then_some(Change { key, value: None })
        }
    })
}

fn bounds(list: &List) -> (Bound<String>, Bound<String>) {
    // Behind every key with the prefix: no character is larger, and no key of ours ends in it.
    let end = format!("{}{}", list.prefix, char::MAX);
    match list.after.clone() {
        Some(after) if list.descending => (Bound::Included(list.prefix.clone()), Bound::Excluded(after)),
        Some(after) => (Bound::Excluded(after), Bound::Excluded(end)),
        None => (Bound::Included(list.prefix.clone()), Bound::Excluded(end)),
    }
}

fn bound(bound: &Bound<String>) -> Bound<&str> {
    bound.as_ref().map(String::as_str)
}

/// The task behind one watch.
struct Follower {
    /// A watch does not keep the file open.
    store: Weak<Inner>,
    /// Subscribed before the first read, so that nothing falls between the two.
    committed: broadcast::Receiver<Arc<Committed>>,
    prefix: String,
    events: mpsc::Sender<Event>,
}

/// The reader of the watch is gone, or the store is.
struct Ended;

impl Follower {
    async fn run(mut self, from: Option<Revision>) {
        let Err(Ended) = self.follow(from).await;
    }

    async fn follow(&mut self, from: Option<Revision>) -> Result<Infallible, Ended> {
        let mut seen = self.start(from).await?;
        let mut progress = tokio::time::interval(PROGRESS);
        loop {
            let received = tokio::select! {
                biased;
                received = self.committed.recv() => received,
                _ = progress.tick() => {
                    self.send(Event::Progress).await?;
                    continue;
                }
            };
            match received {
                Ok(committed) if committed.revision <= seen => {}
                Ok(committed) => {
                    seen = committed.revision;
                    self.deliver(&committed).await?;
                }
                Err(RecvError::Lagged(_)) => seen = self.resync(Reason::Lagged).await?,
                Err(RecvError::Closed) => return Err(Ended),
            }
        }
    }

    async fn start(&mut self, from: Option<Revision>) -> Result<Revision, Ended> {
        let Some(from) = from else { return self.resync(Reason::Opened).await };
        let page = self.read(List { prefix: self.prefix.clone(), limit: 1, ..List::default() }).await?;
        match page.revision.cmp(&from) {
            Ordering::Equal => Ok(from),
            Ordering::Greater => self.resync(Reason::Compacted).await,
            Ordering::Less => self.resync(Reason::Replaced).await,
        }
    }

    async fn resync(&mut self, reason: Reason) -> Result<Revision, Ended> {
        let all = List { prefix: self.prefix.clone(), limit: usize::MAX, ..List::default() };
        let Page { entries, revision, .. } = self.read(all).await?;
        self.send(Event::Resync { entries, revision, reason }).await?;
        Ok(revision)
    }

    /// Reads until it works: a disk that fails now and then must not end the watch for good.
    async fn read(&self, list: List) -> Result<Page, Ended> {
        loop {
            let (store, list) = (self.store.upgrade().ok_or(Ended)?, list.clone());
            match blocking(move || store.list(&list).map_err(Error::Failed)).await {
                Ok(page) => return Ok(page),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "reading the store failed");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn deliver(&self, committed: &Committed) -> Result<(), Ended> {
        let ours = committed.changes.iter().filter(|change| change.key.starts_with(&self.prefix));
        let changes: Vec<Change> = ours.cloned().collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.send(Event::Changes { changes, revision: committed.revision }).await
    }

    async fn send(&self, event: Event) -> Result<(), Ended> {
        self.events.send(event).await.map_err(|_| Ended)
    }
}

fn open_file(path: &Path) -> Result<Database, Source> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let database = Builder::new().set_cache_size(CACHE_BYTES).create(path)?;
    let write = database.begin_write()?;
    write.open_table(ENTRIES)?;
    write.open_table(META)?;
    write.commit()?;
    Ok(database)
}

fn failed(error: impl Into<Source>) -> Error {
    Error::Failed(error.into())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Failed(error.into())),
    }
}
