//! What the fleet knows about one target.
//!
//! Sums fade with τ = 5 s per tick. That alone would be slow at a busy target: after a second at 1,000 requests/s five
//! seconds' worth of old evidence still outweighs the new. So the evidence is capped: more than [`MOST_SAMPLES`] samples
//! say no more about the mean than those many, and when it is scaled down to them, one tick of new samples outweighs it.

use penstock_model::policy::BreakerSettings;
use penstock_stats::{Decayed, SecondRing, Sketch, decay};

use super::health::{Health, Signs};
use super::{Gauges, Phase, RowSums, TargetStatus};
use crate::score::Observed;

/// τ_g: how fast evidence fades, seconds.
const TAU: f64 = 5.0;
/// Cap on the evidence for latencies, samples.
const MOST_SAMPLES: f64 = 64.0;
/// Cap on the evidence for the success rate: rarer events need more.
const MOST_OUTCOMES: f64 = 256.0;
/// k0: how many samples the pool's median latency stands for.
const LATENCY_PRIOR: f64 = 3.0;
/// The success rate without evidence, and how many samples it stands for.
const SUCCESS_PRIOR: (f64, f64) = (0.95, 5.0);
/// The variation of latencies is taken over about a minute.
const VARIATION_TAU: f64 = 60.0;
/// Fewer samples say nothing about variation.
const LEAST_FOR_VARIATION: f64 = 10.0;
/// Seconds of counts that are kept.
const COUNTED_SECONDS: usize = 60;
/// Sketches of the last minute, of ten seconds each.
const SKETCHES: usize = 6;
const SKETCH_SECONDS: u64 = 10;

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    calls: u64,
    failures: u64,
}

#[derive(Debug, Default)]
struct Sketches {
    latency: Sketch,
    first_token: Sketch,
}

/// Sums since the last tick.
#[derive(Debug, Default)]
struct Fresh {
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
    in_flight: u64,
    health: Health,
    /// What requests that are being waited for say about the latency, seconds.
    stalled_latency: Option<f64>,
}

impl Evidence {
    pub(super) fn absorb(&mut self, sums: &RowSums<'_>) {
        let fresh = &mut self.fresh;
        fresh.ended += sums.ended as f64;
        fresh.ok += sums.ok as f64;
        fresh.failed += sums.failed as f64;
        fresh.rate_limited += sums.rate_limited as f64;
        fresh.latency.add(sums.latency_sum, sums.ok as f64);
        fresh.latency_square_sum += sums.latency_square_sum;
        fresh.first_token.add(sums.first_token_sum, sums.first_token_count as f64);
        if let Some(sketch) = sums.latency {
            fresh.sketches.latency.merge(sketch);
        }
        if let Some(sketch) = sums.first_token {
            fresh.sketches.first_token.merge(sketch);
        }
    }

    pub(super) fn tick(&mut self, now: f64, elapsed: f64, gauges: &Gauges, breaker: &BreakerSettings) {
        let fresh = std::mem::take(&mut self.fresh);
        let started = (fresh.ended + gauges.in_flight as f64 - self.in_flight as f64).max(0.0);
        self.in_flight = gauges.in_flight;
        let started_per_second = started / elapsed.max(1e-3);
        let kept = decay(elapsed, TAU);
        // The first tick has no past to be smoothed with.
        let smoothed =
            self.rate.map_or(started_per_second, |rate| rate * kept + started_per_second * (1.0 - kept));
        self.rate = Some(smoothed);

        for (sum, new, most) in [
            (&mut self.latency, fresh.latency, MOST_SAMPLES),
            (&mut self.first_token, fresh.first_token, MOST_SAMPLES),
            (
                &mut self.success,
                Decayed { num: fresh.ok, den: fresh.ok + fresh.failed + fresh.rate_limited },
                MOST_OUTCOMES,
            ),
        ] {
            sum.fade(kept);
            sum.add(new.num, new.den);
            sum.cap(most);
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

        let window = |seconds| {
            let counts = self.counted(second, seconds);
            (counts.calls, counts.failures)
        };
        let signs = Signs {
            now,
            ok: fresh.ok,
            failed: fresh.failed,
            latency: fresh.latency.mean(),
            first_token: fresh.first_token.mean(),
            smoothed_latency: self.latency.mean().filter(|_| self.latency.den >= LEAST_FOR_VARIATION),
            rate: started_per_second.max(smoothed),
            gauges: *gauges,
            windows: [window(2), window(10), window(60)],
        };
        let came_back = self.health.tick(&signs, breaker);
        self.stalled_latency = self.health.stalled_latency(&signs);
        if let Some(good) = came_back {
            // What it was like while it was out says nothing about it now.
            self.latency = good;
            self.success = Decayed { num: good.den, den: good.den };
            self.counts.clear();
        }
        if !self.health.is_out() {
            let kept = decay(elapsed, VARIATION_TAU);
            self.minute.fade(kept);
            self.minute.add(fresh.latency.num, fresh.latency.den);
            self.minute_squares = self.minute_squares * kept + fresh.latency_square_sum;
        }
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

    /// What the score is made from; the pool's median latency stands in where evidence is thin.
    pub(super) fn observed(&self, median_latency: f64) -> Observed {
        let latency = self.latency.mean_with(median_latency, LATENCY_PRIOR);
        Observed {
            latency: latency.max(self.stalled_latency.unwrap_or(0.0)).max(1e-4),
            success: self.success.mean_with(SUCCESS_PRIOR.0, SUCCESS_PRIOR.1),
            variation: self.variation(),
        }
    }

    /// The part of its share the target gets: 1, less while it comes back; `None` while it is out.
    pub(super) fn share(&self, now: f64, breaker: &BreakerSettings) -> Option<f64> {
        self.health.share(now, breaker)
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
        let Some(mean) = self.minute.mean().filter(|&mean| count >= LEAST_FOR_VARIATION && mean > 0.0) else {
            return 0.0;
        };
        let variance = (self.minute_squares / count - mean * mean).max(0.0);
        variance.sqrt() / mean
    }
}
