//! The nodes: what they are sent, and what they say.
//!
//! Snapshots and live states are encoded once and shared by all streams ([`frame`]). Every node has one task
//! ([`session`]) with room for one message on its way: a slow node delays nobody, gets every newest snapshot, and never
//! an outdated live state. Reports are counted once ([`sequence`]) and merged into the [`crate::evidence`].

mod decisions;
mod frame;
mod node;
mod registry;
mod sequence;
mod server;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use penstock_proto::fleet::v1::{NodeReport, ReportAck};
use penstock_telemetry::{Histogram, names};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::evidence::Evidence;
use crate::policy::Published;
use crate::scoring::Scored;

pub(crate) use decisions::Decisions;
pub(crate) use frame::Frame;
pub(crate) use registry::Registry;
pub(crate) use server::FleetServer;

/// What all nodes share.
pub(crate) struct Fleet {
    /// The policy served here.
    pub(crate) policy: String,
    pub(crate) nodes: Registry,
    pub(crate) evidence: Mutex<Evidence>,
    pub(crate) decisions: Mutex<Decisions>,
    pub(crate) published: watch::Receiver<Option<Arc<Published>>>,
    pub(crate) scores: watch::Receiver<Option<Arc<Scored>>>,
    pub(crate) counters: Counters,
    pub(crate) stop: CancellationToken,
}

/// Since the start of the process.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) reports: AtomicU64,
    pub(crate) duplicate_reports: AtomicU64,
    pub(crate) acks: AtomicU64,
    pub(crate) nacks: AtomicU64,
    /// Seconds from a push to its acknowledgement.
    pub(crate) push_durations: Mutex<Histogram>,
    /// Seconds of each tick of the scoring.
    pub(crate) scoring_durations: Mutex<Histogram>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            reports: AtomicU64::new(0),
            duplicate_reports: AtomicU64::new(0),
            acks: AtomicU64::new(0),
            nacks: AtomicU64::new(0),
            push_durations: Mutex::new(Histogram::new(&names::POLICY_PUSH_DURATION)),
            scoring_durations: Mutex::new(Histogram::new(&names::SCORING_DURATION)),
        }
    }
}

impl Fleet {
    pub(crate) fn new(
        policy: String,
        published: watch::Receiver<Option<Arc<Published>>>,
        scores: watch::Receiver<Option<Arc<Scored>>>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            policy,
            nodes: Registry::default(),
            evidence: Mutex::new(Evidence::new(Instant::now())),
            decisions: Mutex::default(),
            published,
            scores,
            counters: Counters::default(),
            stop,
        }
    }

    /// Takes in a report, unless it is here already.
    #[tracing::instrument(name = "report", level = "debug", skip_all, fields(
        node = report.node_id, sequence = report.sequence, rows = report.rows.len(),
    ))]
    pub(crate) fn take_report(&self, report: NodeReport) -> Result<ReportAck, Status> {
        check_id(&report.node_id)?;
        check_id(&report.incarnation)?;
        let now = Instant::now();
        let accepted = self.nodes.accept(&report, now);
        if !accepted.new {
            self.counters.duplicate_reports.fetch_add(1, Ordering::Relaxed);
            return Ok(ReportAck { sequence: accepted.sequence });
        }
        self.counters.reports.fetch_add(1, Ordering::Relaxed);
        self.evidence.lock().merge(&report, now);
        if !report.decisions.is_empty() {
            let mut decisions = self.decisions.lock();
            report.decisions.into_iter().for_each(|decision| decisions.push(decision));
        }
        Ok(ReportAck { sequence: accepted.sequence })
    }
}

/// Longest id of a node or of one of its processes.
const ID_LIMIT: usize = 128;

fn check_id(id: &str) -> Result<(), Status> {
    if id.is_empty() || id.len() > ID_LIMIT {
        return Err(Status::invalid_argument(format!(
            "ids of nodes and incarnations have 1 to {ID_LIMIT} bytes"
        )));
    }
    Ok(())
}
