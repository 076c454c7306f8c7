//! The monotonic clock, as numbers that fit into atomics.

use std::time::{Duration, Instant, SystemTime};

/// An instant: microseconds since the process's clock was started. Never 0 for anything that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    pub(crate) fn millis(self) -> u64 {
        self.0 / 1_000
    }

    pub(crate) fn second(self) -> u64 {
        self.0 / 1_000_000
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One per process. Wall-clock time is only for people: windows, deadlines and cooldowns never see it (CP-09).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
    /// What the wall clock is taken to have shown at an instant, where it is not the system's.
    pretended: Option<(Moment, SystemTime)>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        // An hour in hand, so that "so long ago" can be expressed right after the start.
        let now = Instant::now();
        Self { origin: now.checked_sub(Duration::from_secs(3_600)).unwrap_or(now), pretended: None }
    }

    /// The wall clock is taken to show `wall` now.
    pub(crate) fn pretending(self, wall: SystemTime) -> Self {
        Self { pretended: Some((self.now(), wall)), ..self }
    }

    pub(crate) fn now(self) -> Moment {
        Moment((self.origin.elapsed().as_micros() as u64).max(1))
    }

    pub(crate) fn instant(self, moment: Moment) -> Instant {
        self.origin + Duration::from_micros(moment.0)
    }

    /// The wall clock's time at `moment`.
    pub(crate) fn wall(self, moment: Moment) -> SystemTime {
        match self.pretended {
            None => SystemTime::now() - self.now().since(moment),
            Some((then, wall)) => wall + moment.since(then),
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
