//! One node as this control plane knows it.

use std::time::{Duration, Instant};

use penstock_proto::admin::v1 as admin;
use penstock_proto::fleet::v1::{Nack, NodeHealth, NodeIdentity, Problem};

use super::sequence::Sequences;

/// Problems of a refused version that are kept.
const MAX_PROBLEMS: usize = 100;

/// A node that is connected, or was not long ago.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) identity: NodeIdentity,
    /// The stream it is connected by.
    pub(super) session: Option<u64>,
    /// When it last was heard of.
    pub(super) seen: Instant,
    pub(super) sequences: Sequences,
    pushed: Option<Pushed>,
    acked: Option<Acked>,
    nacked: Option<Nacked>,
    last_report_unix_ms: i64,
    health: NodeHealth,
    rate: Rate,
}

#[derive(Debug)]
struct Pushed {
    nonce: u64,
    at: Instant,
}

#[derive(Debug)]
struct Acked {
    version: u64,
    content_hash: String,
    unix_ms: i64,
    latency: Duration,
}

#[derive(Debug)]
struct Nacked {
    version: u64,
    problems: Vec<Problem>,
}

/// What the node serves, or refused last, compared with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Serves,
    Refused,
    Neither,
}

impl Node {
    pub(super) fn new(identity: NodeIdentity, now: Instant) -> Self {
        Self {
            identity,
            session: None,
            seen: now,
            sequences: Sequences::default(),
            pushed: None,
            acked: None,
            nacked: None,
            last_report_unix_ms: 0,
            health: NodeHealth::default(),
            rate: Rate::new(now),
        }
    }

    pub(super) fn pushed(&mut self, nonce: u64, now: Instant) {
        self.pushed = Some(Pushed { nonce, at: now });
    }

    /// The node serves `version`. Gives the time since the push, when it was one.
    pub(super) fn acked(
        &mut self,
        nonce: Option<u64>,
        version: u64,
        content_hash: String,
        now: Instant,
        unix_ms: i64,
    ) -> Option<Duration> {
        let pushed = self.pushed.take_if(|pushed| nonce == Some(pushed.nonce));
        let latency = pushed.map(|pushed| now.saturating_duration_since(pushed.at));
        self.acked = Some(Acked { version, content_hash, unix_ms, latency: latency.unwrap_or_default() });
        latency
    }

    pub(super) fn nacked(&mut self, mut nack: Nack) {
        self.pushed.take_if(|pushed| pushed.nonce == nack.nonce);
        nack.problems.truncate(MAX_PROBLEMS);
        self.nacked = Some(Nacked { version: nack.version, problems: nack.problems });
    }

    pub(super) fn reported(&mut self, health: Option<NodeHealth>, attempts: u64, now: Instant, unix_ms: i64) {
        self.seen = now;
        self.last_report_unix_ms = unix_ms;
        self.health = health.unwrap_or_default();
        self.rate.add(attempts, now);
    }

    pub(super) fn standing(&self, version: u64) -> Standing {
        if self.acked.as_ref().is_some_and(|acked| acked.version == version) {
            Standing::Serves
        } else if self.nacked.as_ref().is_some_and(|nacked| nacked.version == version) {
            Standing::Refused
        } else {
            Standing::Neither
        }
    }

    pub(super) fn describe(&self, now: Instant) -> admin::Node {
        let mut node = admin::Node {
            identity: Some(self.identity.clone()),
            connected: self.session.is_some(),
            last_report_unix_ms: self.last_report_unix_ms,
            health: Some(self.health),
            attempts_per_second: self.rate.per_second(now),
            ..admin::Node::default()
        };
        if let Some(acked) = &self.acked {
            node.acked_version = acked.version;
            node.acked_hash.clone_from(&acked.content_hash);
            node.acked_unix_ms = acked.unix_ms;
            node.ack_latency_us = u64::try_from(acked.latency.as_micros()).unwrap_or(u64::MAX);
        }
        if let Some(nacked) = &self.nacked {
            node.nacked_version = nacked.version;
            node.nack_problems.clone_from(&nacked.problems);
        }
        node
    }
}

/// Attempts in each of the last ten seconds.
#[derive(Debug)]
struct Rate {
    start: Instant,
    counts: [u64; Rate::SECONDS as usize],
    newest: u64,
}

impl Rate {
    const SECONDS: u64 = 10;

    fn new(start: Instant) -> Self {
        Self { start, counts: [0; Self::SECONDS as usize], newest: 0 }
    }

    fn add(&mut self, count: u64, now: Instant) {
        let second = self.second(now);
        let expired = (second - self.newest).min(Self::SECONDS);
        for step in 0..expired {
            self.counts[((second - step) % Self::SECONDS) as usize] = 0;
        }
        self.newest = second;
        self.counts[(second % Self::SECONDS) as usize] += count;
    }

    fn per_second(&self, now: Instant) -> f64 {
        let second = self.second(now);
        let living = Self::SECONDS.saturating_sub(second - self.newest);
        let sum: u64 = (0..living.min(self.newest + 1))
            .map(|step| self.counts[((self.newest - step) % Self::SECONDS) as usize])
            .sum();
        sum as f64 / Self::SECONDS as f64
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs().max(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_forgets_after_ten_seconds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut rate = Rate::new(start);
        for second in 0..30 {
            rate.add(20, at(second));
        }
        assert!((rate.per_second(at(29)) - 20.0).abs() < 1e-9);
        assert!((rate.per_second(at(34)) - 10.0).abs() < 1e-9);
        assert_eq!(rate.per_second(at(60)), 0.0);
        rate.add(10, at(100));
        assert!((rate.per_second(at(100)) - 1.0).abs() < 1e-9);
    }
}
