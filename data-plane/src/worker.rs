//! One thread that serves traffic, and what it has to itself.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use opentelemetry_sdk::trace::SdkTracer;
use penstock_proto::fleet::v1::Decision;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::sync::{mpsc, oneshot};

use crate::access_log;
use crate::clock::Clock;
use crate::holder::Holder;
use crate::meter::{Meter, Names, Row};
use crate::upstream::{Connector, Http2Pool, Pool};

/// Decision records kept between two reports, by one worker.
const MAX_RECORDS: usize = 256;
/// Of those, how many may be of requests with nothing special about them, by all workers together.
const SAMPLES_PER_SECOND: usize = 20;

/// What all workers of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) holder: Holder,
    pub(crate) node: Node,
    pub(crate) connector: Connector,
    pub(crate) tracer: Option<SdkTracer>,
    pub(crate) log: access_log::Log,
    pub(crate) workers: usize,
    /// Attempts in flight, all targets together.
    pub(crate) attempts_in_flight: AtomicU32,
    pub(crate) requests_in_flight: AtomicU32,
    pub(crate) connections: AtomicU32,
    pub(crate) draining: AtomicBool,
}

/// Who this process is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) zone: String,
    pub(crate) region: String,
    pub(crate) address: Option<SocketAddr>,
}

/// See the module's documentation.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: RefCell<Pool>,
    pub(crate) http2: RefCell<Http2Pool>,
    pub(crate) meter: RefCell<Meter>,
    pub(crate) log: RefCell<access_log::Buffer>,
    records: RefCell<Vec<Decision>>,
    samples_left: Cell<usize>,
    dropped: Cell<u64>,
    random: RefCell<Pcg64Mcg>,
}

/// What a worker hands over once a second.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) rows: Vec<(Names, Row)>,
    pub(crate) refused: std::collections::BTreeMap<u16, u64>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) dropped: u64,
}

/// Where a worker is asked for its numbers.
pub(crate) type Requests = mpsc::Receiver<oneshot::Sender<Delta>>;

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let samples = SAMPLES_PER_SECOND.div_ceil(shared.workers);
        Self {
            shared,
            pool: RefCell::default(),
            http2: RefCell::default(),
            meter: RefCell::default(),
            log: RefCell::default(),
            records: RefCell::default(),
            samples_left: Cell::new(samples),
            dropped: Cell::new(0),
            random: RefCell::new(Pcg64Mcg::from_rng(&mut rand::rng())),
        }
    }

    /// Uniform in 0..1.
    pub(crate) fn chance(&self) -> f64 {
        self.random.borrow_mut().random()
    }

    /// 64 random bits.
    pub(crate) fn bits(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// May a request with nothing special about it leave a record?
    pub(crate) fn take_sample(&self) -> bool {
        let left = self.samples_left.get();
        self.samples_left.set(left.saturating_sub(1));
        left > 0
    }

    /// Keeps a record until the next report, or gives it up when there are too many.
    pub(crate) fn keep(&self, record: Decision) {
        let mut records = self.records.borrow_mut();
        if records.len() < MAX_RECORDS {
            records.push(record);
        } else {
            self.dropped.set(self.dropped.get() + 1);
        }
    }

    /// Answers the reporter, and does what is due once a second.
    pub(crate) async fn hand_over(self: Rc<Self>, mut requests: Requests) {
        while let Some(answer) = requests.recv().await {
            let (rows, refused) = self.meter.borrow_mut().take();
            let decisions = std::mem::take(&mut *self.records.borrow_mut());
            let dropped = self.dropped.take() + self.shared.log.write(&mut self.log.borrow_mut());
            self.samples_left.set(SAMPLES_PER_SECOND.div_ceil(self.shared.workers));
            let now = self.shared.clock.now();
            self.pool.borrow_mut().prune(now);
            self.http2.borrow_mut().prune(now);
            let _ = answer.send(Delta { rows, refused, decisions, dropped });
        }
    }

    /// Hands full log blocks to the writer more often than the reporter asks.
    pub(crate) async fn flush_log(self: Rc<Self>) {
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        loop {
            tick.tick().await;
            let lost = self.shared.log.write(&mut self.log.borrow_mut());
            self.dropped.set(self.dropped.get() + lost);
        }
    }
}

/// Runs what HTTP/2 connections need on the worker's own thread.
#[derive(Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
