//! Reports that the control plane has not acknowledged yet.

use std::collections::VecDeque;

use penstock_proto::fleet::v1::NodeReport;
use tokio::sync::mpsc;

/// Ten seconds' worth. What is older is of no use to scores that look back ten seconds.
const MOST: usize = 10;

/// Unacknowledged reports, oldest first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<NodeReport>,
}

impl Outbox {
    pub(super) fn add(&mut self, report: NodeReport) {
        if self.waiting.len() == MOST {
            self.waiting.pop_front();
        }
        self.waiting.push_back(report);
    }

    pub(super) fn acknowledge(&mut self, sequence: u64) {
        self.waiting.retain(|report| report.sequence > sequence);
    }

    pub(super) fn all(&self) -> Vec<NodeReport> {
        self.waiting.iter().cloned().collect()
    }

    /// Takes in reports while there is nobody to send them to; returns when there will be no more.
    pub(super) async fn collect(&mut self, reports: &mut mpsc::Receiver<NodeReport>) {
        while let Some(report) = reports.recv().await {
            self.add(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ten_wait_until_they_are_acknowledged() {
        let mut outbox = Outbox::default();
        for sequence in 1..=12 {
            outbox.add(NodeReport { sequence, ..NodeReport::default() });
        }
        outbox.acknowledge(5);
        let left: Vec<_> = outbox.all().iter().map(|report| report.sequence).collect();
        assert_eq!(left, (6..=12).collect::<Vec<_>>());
    }
}
