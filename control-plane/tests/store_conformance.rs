//! What every store promises, tried on each of them: one file, and a real etcd that is killed in between.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use penstock_control_plane::store::{
    Change, Embedded, Error, Etcd, Event, List, Reason, Revision, Store, Timing, Txn,
};
use support::etcd::EtcdProcess;
use support::replica::Replica;

/// A store under test, and what can be done to it from outside.
enum Subject {
    Embedded { store: Arc<Embedded>, path: PathBuf, _folder: tempfile::TempDir },
    Etcd { store: Arc<Etcd>, process: EtcdProcess },
}

impl Subject {
    async fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("store.redb");
        let store = Arc::new(Embedded::open(path.clone()).await.unwrap());
        Self::Embedded { store, path, _folder: folder }
    }

    async fn etcd() -> Self {
        let process = EtcdProcess::start().await;
        let store = Arc::new(Etcd::connect(&[process.url()], Timing::default()).await.unwrap());
        Self::Etcd { store, process }
    }

    fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded { store, .. } => store.clone(),
            Self::Etcd { store, .. } => store.clone(),
        }
    }

    /// Ends the store without a word and starts it again on what is on disk.
    async fn crash(self) -> Self {
        match self {
            Self::Embedded { store, path, _folder } => {
                // The process itself cannot be killed from within: tests/embedded_crash.rs does that.
                drop(store);
                let store = Arc::new(Embedded::open(path.clone()).await.unwrap());
                Self::Embedded { store, path, _folder }
            }
            Self::Etcd { store, mut process } => {
                process.restart().await;
                Self::Etcd { store, process }
            }
        }
    }

    /// Makes the history before now unavailable.
    async fn forget_history(&self) {
        match self {
            // Keeps none.
            Self::Embedded { .. } => {}
            Self::Etcd { process, .. } => process.compact().await,
        }
    }
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    store.commit(Txn::default().put(key, value.to_owned())).await.unwrap()
}

async fn value(store: &dyn Store, key: &str) -> Option<String> {
    let entry = store.get(key).await.unwrap()?;
    Some(String::from_utf8(entry.value.to_vec()).unwrap())
}

async fn a_key_that_was_never_written_is_none(subject: Subject) {
    assert_eq!(subject.store().get("/a").await.unwrap(), None);
}

async fn revisions_grow_with_every_transaction_and_name_the_last_writer(subject: Subject) {
    let store = subject.store();
    let first = put(&*store, "/a", "1").await;
    let second = put(&*store, "/b", "1").await;
    let third = put(&*store, "/a", "2").await;
    assert!(first < second && second < third);
    let entry = store.get("/a").await.unwrap().unwrap();
    assert_eq!((entry.key.as_str(), entry.value.as_ref(), entry.revision), ("/a", &b"2"[..], third));
    assert_eq!(store.get("/b").await.unwrap().unwrap().revision, second);
}

async fn a_transaction_makes_all_its_changes_at_one_revision(subject: Subject) {
    let store = subject.store();
    put(&*store, "/old", "x").await;
    let txn = Txn::default().put("/a", "1").put("/b", "2").delete("/old").delete("/never-there");
    let revision = store.commit(txn).await.unwrap();
    assert_eq!(store.get("/a").await.unwrap().unwrap().revision, revision);
    assert_eq!(store.get("/b").await.unwrap().unwrap().revision, revision);
    assert_eq!(value(&*store, "/old").await, None);
}

async fn a_transaction_whose_condition_fails_changes_nothing(subject: Subject) {
    let store = subject.store();
    let stale = put(&*store, "/a", "1").await;
    let current = put(&*store, "/a", "2").await;
    let attempts = [
        Txn::default().when("/a", Some(stale)),
        Txn::default().when("/a", None),
        Txn::default().when("/missing", Some(current)),
        // One that holds does not make up for one that does not.
        Txn::default().when("/a", Some(current)).when("/missing", Some(1)),
    ];
    for txn in attempts {
        let refused = store.commit(txn.put("/a", "3").put("/b", "3")).await;
        assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
    }
    assert_eq!(value(&*store, "/a").await.as_deref(), Some("2"));
    assert_eq!(value(&*store, "/b").await, None);
    store.commit(Txn::default().when("/a", Some(current)).when("/b", None).put("/b", "3")).await.unwrap();
    assert_eq!(value(&*store, "/b").await.as_deref(), Some("3"));
}

async fn of_twenty_that_create_a_key_at_once_one_wins(subject: Subject) {
    let store = subject.store();
    let tries = (0..20).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let txn = Txn::default().when("/a", None).put("/a", writer.to_string());
            store.commit(txn).await.map(|_| writer)
        })
    });
    let mut winners = Vec::new();
    for outcome in futures_util::future::join_all(tries).await {
        match outcome.unwrap() {
            Ok(writer) => winners.push(writer.to_string()),
            Err(Error::Conflict) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(value(&*store, "/a").await.as_deref(), Some(winners[0].as_str()));
}

async fn listing_pages_through_a_prefix_in_both_directions(subject: Subject) {
    let store = subject.store();
    for key in ["/p/1", "/p/2", "/p/3", "/p/4", "/p/5", "/o", "/p", "/q/1"] {
        put(&*store, key, key).await;
    }
    for descending in [false, true] {
        let mut seen = Vec::new();
        let mut list = List { prefix: "/p/".to_owned(), limit: 2, descending, ..List::default() };
        loop {
            let page = store.list(&list).await.unwrap();
            assert!(page.entries.len() <= 2);
            seen.extend(page.entries.into_iter().map(|entry| entry.key));
            list.after = seen.last().cloned();
            if !page.more {
                break;
            }
        }
        let mut wanted = ["/p/1", "/p/2", "/p/3", "/p/4", "/p/5"];
        if descending {
            wanted.reverse();
        }
        assert_eq!(seen, wanted);
    }
}

async fn a_page_tells_the_revision_it_is_true_at(subject: Subject) {
    let store = subject.store();
    put(&*store, "/p/1", "x").await;
    let revision = put(&*store, "/elsewhere", "x").await;
    let page = store.list(&List { prefix: "/p/".to_owned(), limit: 10, ..List::default() }).await.unwrap();
    assert_eq!((page.entries.len(), page.revision), (1, revision));
}

async fn a_large_document_goes_in_and_out(subject: Subject) {
    let store = subject.store();
    let document = "长x".repeat(300_000);
    put(&*store, "/a", &document).await;
    assert_eq!(value(&*store, "/a").await.unwrap(), document);
}

async fn a_new_watch_begins_with_everything_under_its_prefix(subject: Subject) {
    let store = subject.store();
    put(&*store, "/p/1", "a").await;
    put(&*store, "/q/1", "b").await;
    let mut watch = Replica::new(store.watch("/p/", None));
    let Event::Resync { entries, reason: Reason::Opened, .. } = watch.step().await else { panic!() };
    assert_eq!(entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), ["/p/1"]);
}

async fn a_watch_delivers_changes_in_order_and_transactions_whole(subject: Subject) {
    let store = subject.store();
    put(&*store, "/p/1", "a").await;
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.step().await;
    let first = put(&*store, "/p/2", "b").await;
    put(&*store, "/q/2", "not ours").await;
    let second =
        store.commit(Txn::default().put("/p/3", "c").put("/q/3", "no").delete("/p/1")).await.unwrap();
    let change = |key: &str, value: Option<&str>| Change {
        key: key.to_owned(),
        value: value.map(|value| value.as_bytes().to_vec().into()),
    };
    let mut delivered = Vec::new();
    while delivered.len() < 2 {
        if let Event::Changes { mut changes, revision } = watch.step().await {
            changes.sort_by(|a, b| b.key.cmp(&a.key));
            delivered.push((revision, changes));
        }
    }
    let wanted = [
        (first, vec![change("/p/2", Some("b"))]),
        (second, vec![change("/p/3", Some("c")), change("/p/1", None)]),
    ];
    assert_eq!(delivered, wanted);
}

async fn a_watch_continues_from_the_newest_revision_without_reading_everything(subject: Subject) {
    let store = subject.store();
    let revision = put(&*store, "/p/1", "a").await;
    let mut watch = Replica::new(store.watch("/p/", Some(revision)));
    // Written before or after the watch is in place: it must not matter.
    put(&*store, "/p/2", "b").await;
    watch.until("/p/2", "b").await;
    if watch.resyncs.is_empty() {
        assert_eq!(watch.changes, 1);
    } else {
        // A store without history may find itself one behind already, and then says so.
        assert_eq!((watch.resyncs, watch.changes), (vec![Reason::Compacted], 0));
    }
}

/// CP-01: the changes in between are gone, deletions among them.
async fn a_watch_from_a_forgotten_revision_starts_over_with_the_whole_state(subject: Subject) {
    let store = subject.store();
    for key in 0..10 {
        put(&*store, &format!("/p/{key}"), "old").await;
    }
    let old = put(&*store, "/p/x", "old").await;
    for key in 0..10 {
        store.commit(Txn::default().delete(format!("/p/{key}"))).await.unwrap();
    }
    for key in 0..40 {
        put(&*store, &format!("/p/{}", key + 100), "new").await;
    }
    subject.forget_history().await;
    let mut watch = Replica::new(store.watch("/p/", Some(old)));
    watch.catch_up(&*store, "/p/").await;
    assert_eq!(watch.state.len(), 41);
    put(&*store, "/p/after", "1").await;
    watch.until("/p/after", "1").await;
    assert_eq!(watch.resyncs, [Reason::Compacted]);
}

async fn a_slow_reader_of_a_watch_ends_up_with_the_whole_state(subject: Subject) {
    let store = subject.store();
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.step().await;
    // Far more than any buffer on the way holds.
    for turn in 0..500 {
        put(&*store, &format!("/p/{}", turn % 50), &turn.to_string()).await;
    }
    store.commit(Txn::default().delete("/p/7")).await.unwrap();
    watch.catch_up(&*store, "/p/").await;
    assert_eq!(watch.state.len(), 49);
    assert_eq!(watch.state["/p/49"], b"499");
}

async fn a_quiet_watch_says_that_it_is_up_to_date(subject: Subject) {
    let store = subject.store();
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.step().await;
    assert_eq!(watch.step().await, Event::Progress);
    assert_eq!(watch.step().await, Event::Progress);
}

async fn what_was_confirmed_survives_a_crash(subject: Subject) {
    let store = subject.store();
    let mut last = 0;
    for turn in 0..20 {
        last = put(&*store, &format!("/p/{turn}"), "kept").await;
    }
    drop(store);
    let subject = subject.crash().await;
    let store = subject.store();
    let page = store.list(&List { prefix: "/p/".to_owned(), limit: 100, ..List::default() }).await.unwrap();
    assert_eq!(page.entries.len(), 20);
    assert_eq!(page.revision, last);
    assert!(put(&*store, "/p/0", "again").await > last);
}

macro_rules! for_every_store {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod embedded {
            $(#[tokio::test] async fn $name() { super::$name(super::Subject::embedded().await).await; })*
        }
        mod etcd {
            $(#[tokio::test] async fn $name() { super::$name(super::Subject::etcd().await).await; })*
        }
        /// Every promise above is tried.
        #[test]
        fn no_promise_is_left_out() {
            let source = include_str!("store_conformance.rs");
            let promises: BTreeSet<&str> = source.lines().filter_map(|line| {
                let (name, subject) = line.strip_prefix("async fn ")?.split_once('(')?;
                subject.starts_with("subject: Subject").then_some(name)
            }).collect();
            assert_eq!(promises, BTreeSet::from([$(stringify!($name)),*]));
        }
    };
}

for_every_store! {
    a_key_that_was_never_written_is_none
    revisions_grow_with_every_transaction_and_name_the_last_writer
    a_transaction_makes_all_its_changes_at_one_revision
    a_transaction_whose_condition_fails_changes_nothing
    of_twenty_that_create_a_key_at_once_one_wins
    listing_pages_through_a_prefix_in_both_directions
    a_page_tells_the_revision_it_is_true_at
    a_large_document_goes_in_and_out
    a_new_watch_begins_with_everything_under_its_prefix
    a_watch_delivers_changes_in_order_and_transactions_whole
    a_watch_continues_from_the_newest_revision_without_reading_everything
    a_watch_from_a_forgotten_revision_starts_over_with_the_whole_state
    a_slow_reader_of_a_watch_ends_up_with_the_whole_state
    a_quiet_watch_says_that_it_is_up_to_date
    what_was_confirmed_survives_a_crash
}
