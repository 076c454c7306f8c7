//! How many attempts of a route were first ones and how many were retries, in the last seconds, over all workers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use penstock_decision::retry::{WINDOW_SECONDS, is_within_budget};

use crate::clock::Moment;

/// One more than the window: a slot is never read while it is taken for a new second.
const SLOTS: usize = WINDOW_SECONDS as usize + 1;

/// A route's budget for retries. Kept across policy versions, by the route's name. Only relaxed atomics: workers that
/// retry in the same instant may exceed it by one each.
#[derive(Debug, Default)]
pub(crate) struct RetryBudget {
    slots: [Slot; SLOTS],
    denied: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    second: AtomicU64,
    first: AtomicU32,
    retries: AtomicU32,
}

impl RetryBudget {
    /// A first attempt is made.
    pub(crate) fn first(&self, now: Moment) {
        self.slot(now).first.fetch_add(1, Relaxed);
    }

    /// Takes a retry out of the budget: `share` of the first attempts and a part of the fleet's floor.
    pub(crate) fn take(&self, now: Moment, share: f64, nodes: u32) -> bool {
        let (mut first, mut retries) = (0, 0);
        for slot in &self.slots {
            if now.second().saturating_sub(slot.second.load(Relaxed)) < WINDOW_SECONDS {
                first += u64::from(slot.first.load(Relaxed));
                retries += u64::from(slot.retries.load(Relaxed));
            }
        }
        let granted = is_within_budget(first, retries, share, nodes);
        if granted {
            self.slot(now).retries.fetch_add(1, Relaxed);
        } else {
            self.denied.fetch_add(1, Relaxed);
        }
        granted
    }

    /// Retries that were not made for want of budget.
    pub(crate) fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
    }

    fn slot(&self, now: Moment) -> &Slot {
        let second = now.second();
        let slot = &self.slots[(second % SLOTS as u64) as usize];
        let of = slot.second.load(Relaxed);
        // Two workers may both find it old; one of them wins and clears it.
        if of != second && slot.second.compare_exchange(of, second, Relaxed, Relaxed).is_ok() {
            slot.first.store(0, Relaxed);
            slot.retries.store(0, Relaxed);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment(second * 1_000_000)
    }

    #[test]
    fn what_is_older_than_the_window_counts_no_more() {
        let budget = RetryBudget::default();
        for _ in 0..100 {
            budget.first(at(3_600));
        }
        let grants = |now| (0..1_000).take_while(|_| budget.take(now, 0.1, 1_000)).count();
        assert_eq!(grants(at(3_605)), 11);
        assert_eq!(grants(at(3_609)), 0);
        // The first attempts are forgotten, the retries not yet.
        assert_eq!(grants(at(3_610)), 0);
        assert_eq!(grants(at(3_615)), 1);
        assert_eq!(budget.denied(), 4);
    }
}
