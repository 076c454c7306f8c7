//! Any store, with its calls timed and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use penstock_telemetry::names::{self, attribute};
use penstock_telemetry::{Histogram, Metric};

use super::{Entry, Error, List, Page, Revision, Store, Txn, Watch};

/// See the module's documentation.
pub(crate) struct Measured {
    store: Arc<dyn Store>,
    calls: [Calls; OPERATIONS.len()],
}

const OPERATIONS: [&str; 3] = ["get", "list", "commit"];

struct Calls {
    durations: Mutex<Histogram>,
    errors: AtomicU64,
}

impl Measured {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let calls = OPERATIONS.map(|_| Calls {
            durations: Mutex::new(Histogram::new(&names::STORE_DURATION)),
            errors: AtomicU64::new(0),
        });
        Self { store, calls }
    }

    /// Durations and errors by operation.
    pub(crate) fn metrics(&self) -> (Metric, Metric) {
        let (mut durations, mut errors) =
            (Metric::new(&names::STORE_DURATION), Metric::new(&names::STORE_ERRORS));
        for (operation, calls) in OPERATIONS.into_iter().zip(&self.calls) {
            let attributes = [(attribute::STORE_OPERATION, operation)];
            durations.histogram(&attributes, calls.durations.lock().clone());
            errors.number(&attributes, calls.errors.load(Ordering::Relaxed) as f64);
        }
        (durations, errors)
    }

    async fn measure<T>(
        &self,
        operation: usize,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let result = call.await;
        let calls = &self.calls[operation];
        calls.durations.lock().record(started.elapsed().as_secs_f64());
        // A conflict is an answer.
        if result.as_ref().is_err_and(|error| !matches!(error, Error::Conflict)) {
            calls.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

#[async_trait]
impl Store for Measured {
    async fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        self.measure(0, self.store.get(key)).await
    }

    async fn list(&self, list: &List) -> Result<Page, Error> {
        self.measure(1, self.store.list(list)).await
    }

    async fn commit(&self, txn: Txn) -> Result<Revision, Error> {
        self.measure(2, self.store.commit(txn)).await
    }

    fn watch(&self, prefix: &str, from: Option<Revision>) -> Watch {
        self.store.watch(prefix, from)
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
