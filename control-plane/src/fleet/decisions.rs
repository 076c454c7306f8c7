//! The newest decision records, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_proto::fleet::v1::Decision;
use prost::Message;

const RECENT: usize = 2000;
/// Kept beside the recent ones, so that a flood of good ones does not wash them away.
const FAILED: usize = 500;

/// A record is a few hundred bytes per candidate; what is larger than this is given up, so that memory is bounded too.
const RECORD_LIMIT: usize = 64 << 10;

/// A bounded buffer; the oldest records go first.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    recent: VecDeque<Arc<Decision>>,
    failed: VecDeque<Arc<Decision>>,
}

impl Decisions {
    pub(crate) fn push(&mut self, decision: Decision) {
        if decision.encoded_len() > RECORD_LIMIT {
            tracing::debug!(id = decision.id, "a decision record is too large to be kept");
            return;
        }
        let decision = Arc::new(decision);
        if !decision.error_code.is_empty() {
            keep(&mut self.failed, FAILED, Arc::clone(&decision));
        }
        keep(&mut self.recent, RECENT, decision);
    }

    /// By decision id or request id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Decision>> {
        let all = self.recent.iter().rev().chain(self.failed.iter().rev());
        all.into_iter().find(|decision| decision.id == id || decision.request_id == id).cloned()
    }

    /// Newest first.
    pub(crate) fn list(&self, limit: usize, failed_only: bool) -> Vec<Arc<Decision>> {
        let from = if failed_only { &self.failed } else { &self.recent };
        from.iter().rev().take(limit).cloned().collect()
    }
}

fn keep(buffer: &mut VecDeque<Arc<Decision>>, capacity: usize, decision: Arc<Decision>) {
    if buffer.len() == capacity {
        buffer.pop_front();
    }
    buffer.push_back(decision);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(id: usize, error_code: &str) -> Decision {
        Decision {
            id: format!("d{id}"),
            request_id: format!("r{id}"),
            error_code: error_code.to_owned(),
            ..Decision::default()
        }
    }

    #[test]
    fn a_failed_decision_outlives_thousands_of_good_ones() {
        let mut decisions = Decisions::default();
        decisions.push(decision(0, "no_target"));
        for id in 1..=5000 {
            decisions.push(decision(id, ""));
        }
        assert_eq!(decisions.find("d0").unwrap().error_code, "no_target");
        assert!(decisions.find("d1").is_none(), "aged out");
        assert_eq!(decisions.find("r5000").unwrap().id, "d5000");
        assert_eq!((decisions.recent.len(), decisions.failed.len()), (RECENT, 1));
    }

    #[test]
    fn a_record_of_absurd_size_is_not_kept() {
        let mut decisions = Decisions::default();
        decisions.push(Decision { route: "r".repeat(RECORD_LIMIT), ..decision(1, "") });
        assert!(decisions.find("d1").is_none());
    }

    #[test]
    fn listing_is_newest_first() {
        let mut decisions = Decisions::default();
        for id in 0..4 {
            decisions.push(decision(id, if id % 2 == 0 { "" } else { "upstream_failed" }));
        }
        let ids = |list: Vec<Arc<Decision>>| list.iter().map(|found| found.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(decisions.list(3, false)), ["d3", "d2", "d1"]);
        assert_eq!(ids(decisions.list(3, true)), ["d3", "d1"]);
    }
}
