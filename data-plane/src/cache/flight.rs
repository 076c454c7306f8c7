//! Identical requests that are under way at the same time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Key;

/// Who is under way. The lock is held for a look at a map, and only on routes with a cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<Key, watch::Receiver<()>>>>);

/// The one of identical requests that goes to a service. The others wait until it is dropped, however it ends.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Flights,
    key: Key,
    _landing: watch::Sender<()>,
}

/// An identical request that is under way.
pub(super) struct Other(watch::Receiver<()>);

impl Flights {
    /// The identical request that is under way, if there is one.
    pub(super) fn under_way(&self, key: Key) -> Option<Other> {
        self.0.lock().get(&key).cloned().map(Other)
    }

    /// Makes the request the one that others wait for; `None` when there is one already.
    pub(super) fn take_off(&self, key: Key) -> Option<Flight> {
        let mut flights = self.0.lock();
        let Entry::Vacant(entry) = flights.entry(key) else { return None };
        let (landing, landed) = watch::channel(());
        entry.insert(landed);
        Some(Flight { flights: self.clone(), key, _landing: landing })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.0.lock().remove(&self.key);
    }
}

impl Other {
    /// Waits until it has ended, or `patience` has.
    pub(super) async fn landed(mut self, patience: Duration) {
        // Nothing is ever sent; the channel closes when the flight is dropped.
        let _ = tokio::time::timeout(patience, self.0.changed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [7; 32];

    #[tokio::test]
    async fn there_is_one_at_a_time_and_the_others_wait_for_it() {
        let flights = Flights::default();
        assert!(flights.under_way(KEY).is_none());
        let first = flights.take_off(KEY).unwrap();
        assert!(flights.take_off(KEY).is_none());
        assert!(flights.take_off([8; 32]).is_some());
        let other = flights.under_way(KEY).unwrap();
        let waiting = tokio::spawn(other.landed(Duration::from_secs(3_600)));
        drop(first);
        waiting.await.unwrap();
        assert!(flights.under_way(KEY).is_none());
        assert!(flights.take_off(KEY).is_some());
    }

    #[tokio::test]
    async fn patience_ends_too() {
        let flights = Flights::default();
        let _first = flights.take_off(KEY);
        flights.under_way(KEY).unwrap().landed(Duration::from_millis(1)).await;
    }
}
