//! A service that batches: limited processor sharing.
//!
//! Up to `batch` requests each progress at full speed; beyond that they share it, as in continuous batching. Since all
//! of them progress alike, one number, how far a request would be that had been there from the start, tells when each
//! is done.

use std::collections::BTreeSet;

/// What a service can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Seconds of work per second and request.
    pub speed: f64,
    /// So many requests at once without getting slower.
    pub batch: f64,
}

/// A service and what it is working on.
#[derive(Debug)]
pub struct Server {
    capacity: Capacity,
    /// 1, or less while it is sick; 0 when it hangs.
    health: f64,
    /// Share of the calls that fail at once.
    failing: f64,
    /// Seconds of work that each request has got so far, and when that was so.
    progress: f64,
    at: f64,
    /// By the progress at which a stage of theirs is done; positive floats sort like their bits.
    jobs: BTreeSet<(u64, usize)>,
}

impl Server {
    /// Idle and well.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self { capacity, health: 1.0, failing: 0.0, progress: 0.0, at: 0.0, jobs: BTreeSet::new() }
    }

    /// Requests at work.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.jobs.len()
    }

    /// Share of the calls that fail at once.
    #[must_use]
    pub fn failing(&self) -> f64 {
        self.failing
    }

    /// Seconds that a second of work takes with so many requests at work.
    #[must_use]
    pub fn stretch(&self, in_flight: usize) -> f64 {
        1.0 / self.rate(in_flight)
    }

    fn rate(&self, in_flight: usize) -> f64 {
        self.capacity.speed * self.health * f64::min(1.0, self.capacity.batch / in_flight.max(1) as f64)
    }

    /// From now on it works at `health` of its speed, and `failing` of its calls fail.
    pub(crate) fn set_health(&mut self, now: f64, health: f64, failing: f64) {
        self.advance(now);
        (self.health, self.failing) = (health, failing);
    }

    /// A job starts with a stage of `work` seconds.
    pub(crate) fn start(&mut self, now: f64, job: usize, work: f64) -> Stage {
        self.advance(now);
        self.add(job, self.progress + work)
    }

    /// The job goes on with another stage after one that is done.
    pub(crate) fn go_on(&mut self, job: usize, done: Stage, work: f64) -> Stage {
        self.add(job, f64::from_bits(done.0) + work)
    }

    fn add(&mut self, job: usize, until: f64) -> Stage {
        let stage = until.to_bits();
        self.jobs.insert((stage, job));
        Stage(stage)
    }

    /// A job whose stage is done by now.
    pub(crate) fn take_done(&mut self, now: f64) -> Option<usize> {
        self.advance(now);
        let &(until, _) = self.jobs.first()?;
        // Less than a nanosecond is rounding.
        let done = f64::from_bits(until) <= self.progress + 1e-9;
        done.then(|| self.jobs.pop_first().map(|(_, job)| job)).flatten()
    }

    /// When the next stage is done if nothing changes; `None` for never.
    pub(crate) fn next_done(&self) -> Option<f64> {
        let &(until, _) = self.jobs.first()?;
        let rate = self.rate(self.jobs.len());
        let left = (f64::from_bits(until) - self.progress).max(0.0);
        (rate > 0.0).then(|| self.at + left / rate)
    }

    fn advance(&mut self, now: f64) {
        self.progress += (now - self.at) * self.rate(self.jobs.len());
        self.at = now;
    }
}

/// A stage of a job: the progress at which it is done, as bits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stage(u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_its_batch_requests_share_the_speed_and_progress_alike() {
        let mut server = Server::new(Capacity { speed: 2.0, batch: 2.0 });
        for job in 0..4 {
            server.start(0.0, job, 1.0 + job as f64);
        }
        assert_eq!(server.next_done(), Some(1.0), "four at a quarter of 2 · 2");
        assert_eq!(server.take_done(1.0), Some(0));
        assert_eq!(server.take_done(1.0), None);
        server.set_health(1.0, 0.0, 0.0);
        assert_eq!(server.next_done(), None, "it hangs");
        server.set_health(5.0, 1.0, 0.0);
        assert_eq!(server.next_done(), Some(5.75), "three at 4/3 each");
    }
}
