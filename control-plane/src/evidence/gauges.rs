//! What is going on at every node right now.

use std::collections::{HashMap, HashSet};

use penstock_decision::fleet::Gauges as TargetGauges;
use penstock_proto::fleet::v1::Row;

use super::TargetKey;

/// A node that has not reported for this long says nothing about now, seconds.
const FRESH: u64 = 5;

/// A node uses a target that it has sent something to in the last so many seconds.
const USING: u64 = 10;

/// The last word of every node on each of its rows: a node leaves out what has not changed.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    nodes: HashMap<String, NodeGauges>,
}

#[derive(Debug, Default)]
pub(super) struct NodeGauges {
    /// Second of the last report.
    seen: u64,
    /// Rows with something in flight.
    busy: HashMap<u64, Busy>,
    /// Second of the last attempt.
    used: HashMap<TargetKey, u64>,
    /// Targets whose breaker the node has open or half-open.
    open: HashSet<TargetKey>,
}

#[derive(Debug)]
struct Busy {
    target: TargetKey,
    in_flight: u64,
    waiting: u64,
    oldest_wait_ms: u32,
}

impl NodeGauges {
    pub(super) fn set(&mut self, row_key: u64, target: TargetKey, row: &Row, second: u64) {
        if row.attempts > 0 || row.in_flight > 0 {
            self.used.insert(target, second);
        }
        if row.in_flight == 0 {
            self.busy.remove(&row_key);
            return;
        }
        let busy = Busy {
            target,
            in_flight: row.in_flight.into(),
            waiting: row.waiting.into(),
            oldest_wait_ms: row.oldest_wait_ms,
        };
        self.busy.insert(row_key, busy);
    }

    pub(super) fn open(&mut self, targets: impl Iterator<Item = TargetKey>) {
        self.open.clear();
        self.open.extend(targets);
    }

    fn add_to(&self, sums: &mut HashMap<TargetKey, TargetGauges>) {
        for busy in self.busy.values() {
            let sum = sums.entry(busy.target).or_default();
            sum.in_flight += busy.in_flight;
            sum.waiting += busy.waiting;
            sum.oldest_wait = sum.oldest_wait.max(f64::from(busy.oldest_wait_ms) / 1e3);
        }
        for target in self.used.keys().filter(|target| !self.open.contains(*target)) {
            sums.entry(*target).or_default().nodes_using += 1;
        }
        for target in &self.open {
            let sum = sums.entry(*target).or_default();
            sum.nodes_using += 1;
            sum.nodes_open += 1;
        }
    }
}

impl Gauges {
    /// The gauges of a node that reports in this second.
    pub(super) fn of(&mut self, node: &str, second: u64) -> &mut NodeGauges {
        if !self.nodes.contains_key(node) {
            self.nodes.insert(node.to_owned(), NodeGauges::default());
        }
        let gauges = self.nodes.get_mut(node).expect("it was inserted");
        gauges.seen = second;
        gauges
    }

    /// Sums (and the longest wait) over all nodes.
    pub(super) fn by_target(&self, second: u64) -> HashMap<TargetKey, TargetGauges> {
        let mut sums = HashMap::new();
        for node in self.nodes.values().filter(|node| second.saturating_sub(node.seen) <= FRESH) {
            node.add_to(&mut sums);
        }
        sums
    }

    /// Forgets nodes that are silent, and what others no longer use.
    pub(super) fn forget(&mut self, second: u64) {
        self.nodes.retain(|_, node| second.saturating_sub(node.seen) <= FRESH);
        for node in self.nodes.values_mut() {
            node.used.retain(|_, used| second.saturating_sub(*used) < USING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: TargetKey = 7;

    fn busy(in_flight: u32, oldest_wait_ms: u32) -> Row {
        Row { in_flight, waiting: 1, oldest_wait_ms, ..Row::default() }
    }

    fn gauges(all: &mut Gauges, second: u64) -> TargetGauges {
        all.forget(second);
        all.by_target(second).get(&TARGET).copied().unwrap_or_default()
    }

    #[test]
    fn what_is_in_flight_is_the_last_word_of_every_node_that_reports() {
        let mut all = Gauges::default();
        all.of("n1", 0).set(1, TARGET, &busy(5, 700), 0);
        all.of("n2", 1).set(1, TARGET, &busy(3, 900), 1);
        all.of("n2", 1).set(2, TARGET, &busy(1, 0), 1);
        let now = gauges(&mut all, 1);
        assert_eq!((now.in_flight, now.waiting, now.oldest_wait), (9, 3, 0.9));
        all.of("n1", 4);
        all.of("n2", 4).set(1, TARGET, &busy(0, 0), 4);
        assert_eq!(gauges(&mut all, 4).in_flight, 6, "unchanged rows are left out of reports");
        assert_eq!(gauges(&mut all, 10), TargetGauges::default(), "silent nodes count no more");
        assert!(all.nodes.is_empty());
    }

    #[test]
    fn nodes_that_use_a_target_are_told_from_those_that_have_its_breaker_open() {
        let mut all = Gauges::default();
        let used = Row { attempts: 1, ..Row::default() };
        for node in ["n1", "n2", "n3"] {
            all.of(node, 0).set(1, TARGET, &used, 0);
        }
        all.of("n1", 0).open([TARGET].into_iter());
        all.of("n4", 0).open([TARGET].into_iter());
        let now = gauges(&mut all, 0);
        assert_eq!((now.nodes_using, now.nodes_open), (4, 2));
        for node in ["n1", "n2", "n3", "n4"] {
            all.of(node, 9);
        }
        all.of("n1", 9).open(std::iter::empty());
        let now = gauges(&mut all, 9);
        assert_eq!((now.nodes_using, now.nodes_open), (4, 1));
        for node in ["n1", "n2", "n3", "n4"] {
            all.of(node, 10);
        }
        assert_eq!(gauges(&mut all, 10).nodes_using, 1, "nobody sent anything for ten seconds");
    }
}
