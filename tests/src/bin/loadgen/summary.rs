//! What was measured.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Load;

/// The result of one connection, or of all.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// From due or sent to the end of the answer; for streams, to the first event.
    pub(crate) latency: Samples,
    /// How long after it was due a call was sent.
    pub(crate) late: Samples,
    /// Calls that failed, those of the warm-up included.
    pub(crate) errors: u64,
    /// Events of streams.
    pub(crate) chunks: u64,
    /// Reads that brought them: equal to the events where none were put together on the way.
    pub(crate) frames: u64,
    first_error: Option<String>,
}

impl Summary {
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.latency.0.extend(other.latency.0);
        self.late.0.extend(other.late.0);
        self.errors += other.errors;
        self.chunks += other.chunks;
        self.frames += other.frames;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    pub(crate) fn into_json(self, mode: &str, load: Load) -> Value {
        let calls = self.latency.0.len();
        json!({
            "mode": mode,
            "seconds": load.seconds,
            "warm_up": load.warm_up,
            "connections": load.connections,
            "calls": calls,
            "errors": self.errors,
            "first_error": self.first_error,
            "chunks": self.chunks,
            "frames": self.frames,
            "latency_us": self.latency.into_json(),
            "late_us": self.late.into_json(),
        })
    }
}

/// Durations in microseconds, all of them: a run is short, and no bucket blurs its tail.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f32>);

impl Samples {
    pub(crate) fn record(&mut self, took: Duration) {
        self.0.push(took.as_secs_f32() * 1e6);
    }

    fn into_json(mut self) -> Value {
        self.0.sort_by(f32::total_cmp);
        let rounded = |value: f32| (f64::from(value) * 10.0).round() / 10.0;
        let at = |share: f64| self.percentile(share).map(rounded);
        let mean = self.0.iter().sum::<f32>() / self.0.len().max(1) as f32;
        json!({
            "mean": rounded(mean),
            "p50": at(0.5),
            "p90": at(0.9),
            "p99": at(0.99),
            "p999": at(0.999),
            "max": at(1.0),
        })
    }

    /// The smallest sample that at least this share of the samples does not exceed. Samples are sorted.
    fn percentile(&self, share: f64) -> Option<f32> {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut samples = Samples::default();
        for microseconds in (1..=1000).rev() {
            samples.record(Duration::from_micros(microseconds));
        }
        let json = samples.into_json();
        let value = |name: &str| json[name].as_f64().expect("a number").round();
        assert_eq!([value("p50"), value("p99"), value("p999"), value("max")], [500.0, 990.0, 999.0, 1000.0]);
    }

    #[test]
    fn no_samples_have_no_percentiles() {
        assert_eq!(Samples::default().into_json()["p99"], Value::Null);
    }
}
