//! A copy of a part of the store, kept up to date by a watch alone.

use std::collections::BTreeMap;

use penstock_control_plane::store::{Event, List, Reason, Store, Watch};

pub(crate) type State = BTreeMap<String, Vec<u8>>;

/// What a reader of a watch knows.
pub(crate) struct Replica {
    watch: Watch,
    pub(crate) state: State,
    /// Why the watch started over, each time, the first included.
    pub(crate) resyncs: Vec<Reason>,
    /// Changes that were delivered one by one.
    pub(crate) changes: usize,
}

impl Replica {
    pub(crate) fn new(watch: Watch) -> Self {
        Self { watch, state: State::new(), resyncs: Vec::new(), changes: 0 }
    }

    /// Takes in one event.
    pub(crate) async fn step(&mut self) -> Event {
        let event = super::within("an event", self.watch.next()).await.expect("the watch goes on");
        match &event {
            Event::Resync { entries, reason, .. } => {
                self.resyncs.push(*reason);
                let entries = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_vec()));
                self.state = entries.collect();
            }
            Event::Changes { changes, .. } => {
                self.changes += changes.len();
                for change in changes {
                    match &change.value {
                        Some(value) => self.state.insert(change.key.clone(), value.to_vec()),
                        None => self.state.remove(&change.key),
                    };
                }
            }
            Event::Progress => {}
        }
        event
    }

    /// Follows until the copy is what the store holds.
    pub(crate) async fn catch_up(&mut self, store: &dyn Store, prefix: &str) {
        let all = List { prefix: prefix.to_owned(), limit: 1000, ..List::default() };
        let page = store.list(&all).await.unwrap();
        assert!(!page.more);
        let wanted: State = page.entries.into_iter().map(|entry| (entry.key, entry.value.to_vec())).collect();
        while self.state != wanted {
            self.step().await;
        }
    }

    /// Follows until `key` has `value`.
    pub(crate) async fn until(&mut self, key: &str, value: &str) {
        while self.state.get(key).map(Vec::as_slice) != Some(value.as_bytes()) {
            self.step().await;
        }
    }
}
