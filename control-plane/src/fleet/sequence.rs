//! Which reports of a node are here already.

/// The newest report of each process of a node. A node that restarts counts from 1 again under a new incarnation; the
/// old one's last reports may still be on their way.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// Newest incarnation last.
    last: Vec<(String, u64)>,
}

/// Incarnations remembered per node.
const INCARNATIONS: usize = 4;

/// Is a report new, and up to where is everything here?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) new: bool,
    pub(crate) sequence: u64,
}

impl Sequences {
    /// Marks the report as taken. Reports of one incarnation come in order; a gap means that the node gave some up.
    pub(super) fn accept(&mut self, incarnation: &str, sequence: u64) -> Accepted {
        if let Some((_, last)) = self.last.iter_mut().find(|(known, _)| known == incarnation) {
            let new = sequence > *last;
            *last = sequence.max(*last);
            return Accepted { new, sequence: *last };
        }
        if self.last.len() == INCARNATIONS {
            self.last.remove(0);
        }
        self.last.push((incarnation.to_owned(), sequence));
        Accepted { new: true, sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_once() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.accept("a", 1), Accepted { new: true, sequence: 1 });
        assert_eq!(sequences.accept("a", 1), Accepted { new: false, sequence: 1 });
        assert_eq!(sequences.accept("a", 3), Accepted { new: true, sequence: 3 });
        assert_eq!(sequences.accept("a", 2), Accepted { new: false, sequence: 3 });
    }

    #[test]
    fn a_restarted_node_counts_from_one_again_while_its_old_reports_still_arrive() {
        let mut sequences = Sequences::default();
        sequences.accept("old", 7);
        assert!(sequences.accept("new", 1).new);
        assert!(!sequences.accept("old", 7).new);
        assert!(sequences.accept("old", 8).new);
    }

    #[test]
    fn a_node_that_restarts_for_ever_takes_no_more_memory() {
        let mut sequences = Sequences::default();
        for start in 0..100 {
            sequences.accept(&start.to_string(), 1);
        }
        assert_eq!(sequences.last.len(), INCARNATIONS);
    }
}
