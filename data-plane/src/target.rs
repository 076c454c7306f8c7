//! What this process knows of one target: calls in flight, its last seconds, its breaker, its key's cooldown.
//!
//! Shared by all workers and kept across policy versions, by backend and model. On a request's way there are only relaxed
//! atomics: counts may be off by one for an instant, which no decision notices. The breaker's lock is taken only when an
//! attempt fails or while the breaker is not closed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use penstock_decision::breaker::{
    Admission, Availability, Breaker, Ending, ProbeToken, State, Transition, WindowCounts,
};
use penstock_decision::local::{Recent, Slot, WINDOW_SECONDS};
use penstock_model::outcome::Outcome;
use penstock_model::policy::BreakerSettings;

use crate::clock::Moment;

/// Slots of one second each. More than the window, so that a slot is never read while it is reused.
const SLOTS: usize = 16;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct TargetState {
    pub(crate) backend: String,
    pub(crate) model: String,
    pub(crate) in_flight: AtomicU32,
    /// Waiting for their first byte, by the second in which they began to.
    waiting: [AtomicU64; SLOTS],
    slots: [AtomicSlot; SLOTS],
    /// Whether the breaker is in its closed state, for a look without the lock.
    closed: AtomicBool,
    breaker: Mutex<Breaker>,
    /// Since when outcomes count: the last return of the target.
    since_ms: AtomicU64,
    /// The key is not to be used before then, microseconds.
    cooldown_until: AtomicU64,
}

#[derive(Debug, Default)]
struct AtomicSlot {
    second: AtomicU64,
    ok: AtomicU32,
    failed: AtomicU32,
    latency_sum_us: AtomicU64,
}

impl TargetState {
    pub(crate) fn new(backend: &str, model: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            model: model.to_owned(),
            in_flight: AtomicU32::new(0),
            waiting: std::array::from_fn(|_| AtomicU64::new(0)),
            slots: std::array::from_fn(|_| AtomicSlot::default()),
            closed: AtomicBool::new(true),
            breaker: Mutex::default(),
            since_ms: AtomicU64::new(0),
            cooldown_until: AtomicU64::new(0),
        }
    }

    /// How the breaker stands.
    pub(crate) fn availability(&self, now: Moment, settings: &BreakerSettings) -> Availability {
        if self.closed.load(Relaxed) {
            return Availability::Usable;
        }
        self.breaker.lock().availability(now.millis(), settings)
    }

    /// The factor of its weight while it comes back.
    pub(crate) fn ramp_factor(&self, now: Moment, settings: &BreakerSettings) -> f64 {
        if self.closed.load(Relaxed) {
            return 1.0;
        }
        self.breaker.lock().ramp_factor(now.millis(), settings)
    }

    /// The breaker's state, for reports.
    pub(crate) fn state(&self, now: Moment, settings: &BreakerSettings) -> State {
        if self.closed.load(Relaxed) {
            State::Closed
        } else {
            self.breaker.lock().state(now.millis(), settings)
        }
    }

    /// Asks the breaker for admission.
    pub(crate) fn admit(&self, now: Moment, probe_ms: u64, settings: &BreakerSettings) -> Admission {
        if self.closed.load(Relaxed) {
            return Admission::Yes;
        }
        self.breaker.lock().try_admit(now.millis(), probe_ms, settings)
    }

    /// Gives back the slot of a probe that will not tell how it ended.
    pub(crate) fn release(&self, token: ProbeToken) {
        self.breaker.lock().release_probe(token);
    }

    /// Is the key cooling down?
    pub(crate) fn is_cooling(&self, now: Moment) -> bool {
        self.cooldown_until.load(Relaxed) > now.0
    }

    /// The instant at which the key may be used again.
    pub(crate) fn cooldown_until(&self) -> Moment {
        Moment(self.cooldown_until.load(Relaxed))
    }

    /// Keeps the key from being used until `until`, or longer if it was to cool longer.
    pub(crate) fn cool_until(&self, until: Moment) {
        self.cooldown_until.fetch_max(until.0, Relaxed);
    }

    /// An attempt begins to wait for its first byte.
    pub(crate) fn begin_wait(&self, now: Moment) -> WaitSlot {
        let second = now.second();
        let packed = &self.waiting[(second % SLOTS as u64) as usize];
        // The second in the upper half, the count in the lower.
        let _ = packed.fetch_update(Relaxed, Relaxed, |old| {
            let count = if old >> 32 == second & 0xffff_ffff { old & 0xffff_ffff } else { 0 };
            Some((second & 0xffff_ffff) << 32 | (count + 1))
        });
        WaitSlot(second)
    }

    /// It waits no longer.
    pub(crate) fn end_wait(&self, slot: WaitSlot) {
        let packed = &self.waiting[(slot.0 % SLOTS as u64) as usize];
        let _ = packed.fetch_update(Relaxed, Relaxed, |old| {
            (old >> 32 == slot.0 & 0xffff_ffff && old & 0xffff_ffff > 0).then(|| old - 1)
        });
    }

    /// How many wait for their first byte, and for how long the oldest of them has, to the second: what began in the
    /// second under way has waited for 0.
    pub(crate) fn waiting(&self, now: Moment) -> (u32, u64) {
        let second = now.second();
        let (mut count, mut oldest) = (0_u32, 0_u64);
        for packed in &self.waiting {
            let packed = packed.load(Relaxed);
            let (since, here) = (packed >> 32, packed & 0xffff_ffff);
            if here > 0 {
                count += here as u32;
                oldest = oldest.max((second & 0xffff_ffff).saturating_sub(since));
            }
        }
        (count, oldest)
    }

    /// The last seconds, for the local view; nothing from before the target's last return.
    pub(crate) fn recent(&self, now: Moment) -> Recent {
        let second = now.second();
        let since = self.since_ms.load(Relaxed) / 1_000;
        Recent::new(self.slots.iter().filter_map(|slot| {
            let age = second.checked_sub(slot.second.load(Relaxed))?;
            (age < WINDOW_SECONDS && second - age >= since).then(|| (age, slot.load()))
        }))
    }

    /// Takes note of how an attempt ended, `latency_us` after it began.
    pub(crate) fn record(
        &self,
        now: Moment,
        ending: &Ending,
        latency_us: u64,
        settings: &BreakerSettings,
    ) -> Option<Transition> {
        let outcome = ending.outcome;
        let slot = &self.slots[(now.second() % SLOTS as u64) as usize];
        slot.reset_for(now.second());
        if outcome == Outcome::Ok {
            slot.ok.fetch_add(1, Relaxed);
            slot.latency_sum_us.fetch_add(latency_us, Relaxed);
        } else if outcome.is_failure() || outcome == Outcome::RateLimited {
            slot.failed.fetch_add(1, Relaxed);
        }
        if outcome == Outcome::Ok && self.closed.load(Relaxed) {
            return self.note_success(now, ending, settings);
        }
        let mut breaker = self.breaker.lock();
        let transition =
            breaker.on_outcome(now.millis(), ending, settings, |since_ms| self.window(now, since_ms));
        let closed = breaker.state(now.millis(), settings) == State::Closed;
        self.closed.store(closed, Relaxed);
        self.since_ms.store(breaker.since_ms(), Relaxed);
        transition
    }

    /// A success while closed ends a run of failures. The lock is taken only if there may be such a run, which a failure
    /// within the window tells.
    fn note_success(&self, now: Moment, ending: &Ending, settings: &BreakerSettings) -> Option<Transition> {
        let failed = self.slots.iter().any(|slot| {
            slot.failed.load(Relaxed) > 0
                && now.second().saturating_sub(slot.second.load(Relaxed)) < WINDOW_SECONDS
        });
        if !failed {
            return None;
        }
        self.breaker.lock().on_outcome(now.millis(), ending, settings, |_| WindowCounts::default())
    }

    fn window(&self, now: Moment, since_ms: u64) -> WindowCounts {
        let mut counts = WindowCounts::default();
        for slot in &self.slots {
            let second = slot.second.load(Relaxed);
            let within = now.second().checked_sub(second).is_some_and(|age| age < WINDOW_SECONDS);
            if within && second * 1_000 + 999 >= since_ms {
                let slot = slot.load();
                counts.calls += slot.ok + slot.failed;
                counts.failures += slot.failed;
            }
        }
        counts
    }
}

impl AtomicSlot {
    /// Makes the slot that of `second`. Two threads may both find it old; one of them wins and clears it.
    fn reset_for(&self, second: u64) {
        let of = self.second.load(Relaxed);
        if of != second && self.second.compare_exchange(of, second, Relaxed, Relaxed).is_ok() {
            self.ok.store(0, Relaxed);
            self.failed.store(0, Relaxed);
            self.latency_sum_us.store(0, Relaxed);
        }
    }

    fn load(&self) -> Slot {
        Slot {
            ok: self.ok.load(Relaxed),
            failed: self.failed.load(Relaxed),
            latency_sum_us: self.latency_sum_us.load(Relaxed),
        }
    }
}

/// In which second a wait began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitSlot(u64);
