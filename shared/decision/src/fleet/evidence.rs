//! What the fleet knows about one target.
//!
//! Sums fade with τ = 5 s per tick. That alone would be slow at a busy target, where five seconds' worth of old evidence
//! outweigh the first second of a change. So the old evidence is scaled down to what the mean needs: [`MOST_SAMPLES`], or
//! twice what one tick brings. A change by a factor of ten then shows as one of four after a single tick.

use penstock_model::policy::BreakerSettings;
use penstock_stats::{Decayed, SecondRing, Sketch, decay};

use super::baseline::{Baseline, Seen};
use super::health::{Counts, Health, Share, Signs};
use super::{Gauges, Phase, RowSums, TargetStatus};
use crate::score::Observed;

/// τ_g: how fast evidence fades, seconds.
const TAU: f64 = 5.0;
/// Cap on the evidence for latencies, samples.
const MOST_SAMPLES: f64 = 32.0;
/// Cap on the evidence for the success rate: rarer events need more.
const MOST_OUTCOMES: f64 = 256.0;
/// Where a tick brings more than that, the cap is so many ticks.
const MOST_TICKS: f64 = 2.0;
/// k0: how many samples the pool's median latency stands for.
const LATENCY_PRIOR: f64 = 3.0;
/// How many samples the best success rate of the pool stands for.
const SUCCESS_PRIOR: f64 = 5.0;
/// The variation of latencies is taken over about a minute.
const VARIATION_TAU: f64 = 60.0;
/// Fewer samples say nothing about variation, nor about a change.
const LEAST_SAMPLES: f64 = 10.0;
/// Seconds of counts that are kept.
const COUNTED_SECONDS: usize = 60;
/// Sketches of the last minute, of ten seconds each.
const SKETCHES: usize = 6;
const SKETCH_SECONDS: u64 = 10;

#[derive(Debug, Default)]
struct Sketches {
    latency: Sketch,
    first_token: Sketch,
}

/// Sums since the last tick.
#[derive(Debug, Default)]
struct Fresh {
    rows: u32,
    ended: f64,
    ok: f64,
    failed: f64,
    rate_limited: f64,
    latency: Decayed,
    latency_square_sum: f64,
    first_token: Decayed,
    sketches: Sketches,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    fresh: Fresh,
    latency: Decayed,
    first_token: Decayed,
    success: Decayed,
    /// Of the latency over the last minute: mean and mean square.
    minute: Decayed,
    minute_squares: f64,
    counts: SecondRing<Counts, COUNTED_SECONDS>,
    /// Slots of ten seconds.
    sketches: SecondRing<Sketches, SKETCHES>,
    /// Attempts started per second.
    rate: Option<f64>,
    /// Seconds for which attempts have not been counted yet.
    uncounted: f64,
    in_flight: u64,
    baseline: Baseline,
    health: Health,
    observed: Option<Tick>,
    /// What requests that are being waited for say about the latency, seconds.
    stalled_latency: Option<f64>,
}

/// What a tick has brought, until all targets are known and conclusions can be drawn.
#[derive(Debug)]
struct Tick {
    now: f64,
    elapsed: f64,
    fresh: Fresh,
    seen: Seen,
}

impl Evidence {
    pub(super) fn absorb(&mut self, sums: &RowSums<'_>) {
        let fresh = &mut self.fresh;
        fresh.rows += 1;
        fresh.ended += sums.ended as f64;
        fresh.ok += sums.ok as f64;
        fresh.failed += sums.failed as f64;
        fresh.rate_limited += sums.rate_limited as f64;
        fresh.latency.add(sums.latency_sum, sums.ok as f64);
        fresh.latency_square_sum += sums.latency_square_sum;
        // Answers without a first token of their own, those that are not streamed, come in one piece.
        let whole = sums.ok.saturating_sub(sums.first_token_count) as f64;
        let whole_sum = whole * sums.latency_sum / sums.ok.max(1) as f64;
        fresh.first_token.add(sums.first_token_sum + whole_sum, sums.first_token_count as f64 + whole);
        if let Some(sketch) = sums.latency {
            fresh.sketches.latency.merge(sketch);
        }
        if let Some(sketch) = sums.first_token {
            fresh.sketches.first_token.merge(sketch);
        }
    }

    /// First half of a tick: takes in what came since the last one.
    pub(super) fn observe(&mut self, now: f64, elapsed: f64, gauges: &Gauges) {
        let fresh = std::mem::take(&mut self.fresh);
        let started = self.count_started(&fresh, elapsed, gauges.in_flight);
        let kept = decay(elapsed, TAU);
        let outcomes = Decayed { num: fresh.ok, den: fresh.ok + fresh.failed + fresh.rate_limited };
        for (sum, new, most) in [
            (&mut self.latency, fresh.latency, MOST_SAMPLES),
            (&mut self.first_token, fresh.first_token, MOST_SAMPLES),
            (&mut self.success, outcomes, MOST_OUTCOMES),
        ] {
            sum.fade(kept);
            sum.cap(most.max(MOST_TICKS * new.den));
            sum.add(new.num, new.den);
        }
        let second = now as u64;
        if let Some(slot) = self.counts.slot(second) {
            slot.calls += (fresh.ok + fresh.failed) as u64;
            slot.failures += fresh.failed as u64;
        }
        if let Some(slot) = self.sketches.slot(second / SKETCH_SECONDS) {
            slot.latency.merge(&fresh.sketches.latency);
            slot.first_token.merge(&fresh.sketches.first_token);
        }
        let seen = Seen {
            latency: fresh.latency.mean(),
            first_token: fresh.first_token.mean(),
            smoothed_latency: self.latency.mean().filter(|_| self.latency.den >= LEAST_SAMPLES),
            started,
            gauges: *gauges,
        };
        self.baseline.follow_waiting(&seen);
        self.observed = Some(Tick { now, elapsed, fresh, seen });
    }

    /// How many times slower than normal the target is; `None` when that cannot be said, or the target is out.
    pub(super) fn slowness(&self) -> Option<f64> {
        let tick = self.observed.as_ref().filter(|_| !self.health.is_out())?;
        self.baseline.slowness(&tick.seen)
    }

    /// Second half of a tick: draws the conclusions. `peers` is the least slowness of the other targets.
    pub(super) fn conclude(&mut self, peers: Option<f64>, breaker: &BreakerSettings) {
        let Some(Tick { now, elapsed, fresh, seen }) = self.observed.take() else { return };
        let window = |seconds| self.counted(now as u64, seconds);
        let signs = Signs {
            now,
            answers: fresh.latency,
            failed: fresh.failed,
            slow_answers: seen.latency.is_some_and(|latency| self.baseline.is_slow(latency)),
            slowness: self.baseline.slowness(&seen),
            peers,
            gauges: seen.gauges,
            windows: [window(1), window(2), window(10), window(60)],
        };
        self.stalled_latency = self.baseline.stalled_latency(&seen);
        if let Some(good) = self.health.tick(&signs, breaker) {
            // What it was like while it was out says nothing about it now.
            self.latency = good;
            self.success = Decayed { num: good.den, den: good.den };
            self.counts.clear();
        }
        let out = self.health.is_out();
        self.baseline.learn(&seen, elapsed, out);
        if !out {
            let kept = decay(elapsed, VARIATION_TAU);
            self.minute.fade(kept);
            self.minute.add(fresh.latency.num, fresh.latency.den);
            self.minute_squares = self.minute_squares * kept + fresh.latency_square_sum;
        }
    }

    /// Attempts started, and in how many seconds; `None` when no report has come since the last tick, as happens when the
    /// ticks of nodes and control plane drift past each other.
    fn count_started(&mut self, fresh: &Fresh, elapsed: f64, in_flight: u64) -> Option<(f64, f64)> {
        self.uncounted += elapsed;
        if fresh.rows == 0 && in_flight > 0 {
            return None;
        }
        let seconds = std::mem::take(&mut self.uncounted).max(1e-3);
        let started = (fresh.ended + in_flight as f64 - self.in_flight as f64).max(0.0);
        let (rate, kept) = (started / seconds, decay(seconds, TAU));
        // The first tick has no past to be smoothed with.
        self.rate = Some(self.rate.map_or(rate, |smoothed| smoothed * kept + rate * (1.0 - kept)));
        self.in_flight = in_flight;
        Some((started, seconds))
    }

    /// Mean latency, seconds; `None` without evidence.
    pub(super) fn latency_mean(&self) -> Option<f64> {
        self.latency.mean()
    }

    pub(super) fn first_token(&self) -> Option<f64> {
        self.first_token.mean()
    }

    /// Attempts started per second.
    pub(super) fn rate(&self) -> f64 {
        self.rate.unwrap_or(0.0)
    }

    /// Success rate; `None` without evidence.
    pub(super) fn success_mean(&self) -> Option<f64> {
        self.success.mean()
    }

    /// What the score is made from. Where evidence is thin, the typical latency and success rate of the pool stand in.
    pub(super) fn observed(&self, typical: (f64, f64)) -> Observed {
        let latency = self.latency.mean_with(typical.0, LATENCY_PRIOR);
        Observed {
            latency: latency.max(self.stalled_latency.unwrap_or(0.0)).max(1e-4),
            success: self.success.mean_with(typical.1, SUCCESS_PRIOR),
            variation: self.variation(),
        }
    }

    /// What the target gets of what its weight would bring it.
    pub(super) fn share(&self, now: f64, breaker: &BreakerSettings) -> Share {
        self.health.share(now, breaker)
    }

    /// Has an operator taken it out of service?
    pub(super) fn is_drained(&self) -> bool {
        self.health.is_drained()
    }

    pub(super) fn breaker_open(&self) -> bool {
        matches!(self.health.phase(), Phase::Open | Phase::HalfOpen)
    }

    pub(super) fn status(&self, now: f64) -> TargetStatus {
        let second = now as u64;
        let mut minute = Sketches::default();
        for (_, sketches) in self.sketches.last(second / SKETCH_SECONDS, SKETCHES as u64) {
            minute.latency.merge(&sketches.latency);
            minute.first_token.merge(&sketches.first_token);
        }
        let (recent, last_minute) = (self.counted(second, 10), self.counted(second, 60));
        TargetStatus {
            recent_calls: recent.calls,
            recent_failures: recent.failures,
            minute_calls: last_minute.calls,
            minute_failures: last_minute.failures,
            latency_p50: minute.latency.quantile(0.5),
            latency_p95: minute.latency.quantile(0.95),
            first_token_p95: minute.first_token.quantile(0.95),
            in_flight: self.in_flight,
            phase: self.health.phase(),
        }
    }

    fn counted(&self, second: u64, seconds: u64) -> Counts {
        self.counts.last(second, seconds).fold(Counts::default(), |sum, (_, counts)| Counts {
            calls: sum.calls + counts.calls,
            failures: sum.failures + counts.failures,
        })
    }

    fn variation(&self) -> f64 {
        let count = self.minute.den;
        let Some(mean) = self.minute.mean().filter(|&mean| count >= LEAST_SAMPLES && mean > 0.0) else {
            return 0.0;
        };
        let variance = (self.minute_squares / count - mean * mean).max(0.0);
        variance.sqrt() / mean
    }
}
