//! The last N seconds, one slot each.

/// A ring of one-second slots. Time is a count of whole seconds from any origin; the same origin for every call.
#[derive(Debug, Clone)]
pub struct SecondRing<T, const N: usize> {
    slots: [Slot<T>; N],
}

#[derive(Debug, Clone)]
struct Slot<T> {
    /// `None` before the first use.
    second: Option<u64>,
    value: T,
}

impl<T: Default, const N: usize> Default for SecondRing<T, N> {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| Slot { second: None, value: T::default() }) }
    }
}

impl<T: Default, const N: usize> SecondRing<T, N> {
    /// The slot of `second`, emptied when it held an older one. `None` when the ring has moved on past `second`.
    pub fn slot(&mut self, second: u64) -> Option<&mut T> {
        let slot = &mut self.slots[(second % N as u64) as usize];
        match slot.second {
            Some(held) if held > second => return None,
            Some(held) if held == second => {}
            _ => *slot = Slot { second: Some(second), value: T::default() },
        }
        Some(&mut slot.value)
    }

    /// The slots of the `seconds` seconds up to and including `now` that were written to, with their age in seconds; in
    /// no particular order.
    pub fn last(&self, now: u64, seconds: u64) -> impl Iterator<Item = (u64, &T)> {
        self.slots.iter().filter_map(move |slot| {
            let age = now.checked_sub(slot.second?)?;
            (age < seconds.min(N as u64)).then_some((age, &slot.value))
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn sum(ring: &SecondRing<u64, 10>, now: u64, seconds: u64) -> u64 {
        ring.last(now, seconds).map(|(_, value)| value).sum()
    }

    #[test]
    fn old_seconds_fall_out_even_when_nothing_new_comes() {
        let mut ring = SecondRing::<u64, 10>::default();
        *ring.slot(100).unwrap() += 5;
        assert_eq!(sum(&ring, 100, 10), 5);
        assert_eq!(sum(&ring, 109, 10), 5);
        assert_eq!(sum(&ring, 110, 10), 0);
        assert_eq!(sum(&ring, 102, 2), 0);
    }

    #[test]
    fn a_second_that_the_ring_has_passed_is_refused_and_a_clock_that_steps_back_sees_nothing_of_the_future() {
        let mut ring = SecondRing::<u64, 10>::default();
        *ring.slot(110).unwrap() += 1;
        assert!(ring.slot(100).is_none());
        assert_eq!(sum(&ring, 105, 10), 0);
        ring.clear();
        assert!(ring.slot(100).is_some());
    }

    proptest! {
        #[test]
        fn the_ring_agrees_with_a_list_of_everything(
            steps in proptest::collection::vec((0_u64..4, 1_u64..9), 0..60),
            seconds in 1_u64..11,
        ) {
            let mut ring = SecondRing::<u64, 10>::default();
            let mut all = BTreeMap::<u64, u64>::new();
            let mut now = 1_000;
            for (step, value) in steps {
                now += step;
                *ring.slot(now).unwrap() += value;
                *all.entry(now).or_default() += value;
            }
            let exact: u64 = all.range(now + 1 - seconds..=now).map(|(_, value)| value).sum();
            prop_assert_eq!(sum(&ring, now, seconds), exact);
        }
    }
}
