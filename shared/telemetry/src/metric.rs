//! What a plane hands over when it is asked for its numbers.

use std::sync::Arc;

use crate::names::{Descriptor, Kind};

/// Gathers all metrics of a plane. Called at each scrape and each export, so it may take a millisecond but must not
/// block on the network.
pub type MetricsSource = Arc<dyn Fn() -> Vec<Metric> + Send + Sync>;

/// One metric with all its series. Everything is cumulative since the process started.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name, unit, kind and help.
    pub descriptor: &'static Descriptor,
    /// One per set of attributes.
    pub points: Vec<Point>,
}

/// One series of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Keys are of [`crate::names::attribute`]; values come from the policy, never from a request.
    pub attributes: Vec<(&'static str, String)>,
    /// Its value now.
    pub value: Value,
}

/// The value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Histogram(Histogram),
}

impl Metric {
    /// Without any series yet.
    #[must_use]
    pub fn new(descriptor: &'static Descriptor) -> Self {
        Self { descriptor, points: Vec::new() }
    }

    /// A counter or gauge that has one series without attributes.
    #[must_use]
    pub fn single(descriptor: &'static Descriptor, value: f64) -> Self {
        let mut metric = Self::new(descriptor);
        metric.number(&[], value);
        metric
    }

    /// Adds a series of a counter or gauge.
    pub fn number(&mut self, attributes: &[(&'static str, &str)], value: f64) {
        debug_assert!(self.descriptor.kind != Kind::Histogram, "{} is a histogram", self.descriptor.name);
        self.points.push(Point { attributes: owned(attributes), value: Value::Number(value) });
    }

    /// Adds a series of a histogram.
    pub fn histogram(&mut self, attributes: &[(&'static str, &str)], value: Histogram) {
        debug_assert!(self.descriptor.kind == Kind::Histogram, "{} is no histogram", self.descriptor.name);
        self.points.push(Point { attributes: owned(attributes), value: Value::Histogram(value) });
    }
}

fn owned(attributes: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    attributes.iter().map(|&(key, value)| (key, value.to_owned())).collect()
}

/// Counts of values in fixed buckets, and their sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last holds what is above all of them. Not cumulative.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// Empty, with the buckets of `descriptor`.
    #[must_use]
    pub fn new(descriptor: &'static Descriptor) -> Self {
        let bounds = descriptor.buckets;
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Adds a value; a bucket holds what is less than or equal to its bound.
    pub fn record(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|&bound| bound < value)] += 1;
        self.sum += value;
    }

    /// Adds all values of `other`, which must have the same buckets.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.bounds, other.bounds);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum += other.sum;
    }

    /// Upper bounds, ascending, without infinity.
    #[must_use]
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// How many values each bucket holds; one entry more than [`Self::bounds`].
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SERVER_REQUEST_DURATION;

    #[test]
    fn a_value_on_a_bound_counts_below_it_and_one_above_all_counts_last() {
        let mut histogram = Histogram::new(&SERVER_REQUEST_DURATION);
        for value in [0.01, 0.010_001, 1000.0] {
            histogram.record(value);
        }
        assert_eq!((histogram.counts()[0], histogram.counts()[1]), (1, 1));
        assert_eq!(histogram.counts().last(), Some(&1));
        assert_eq!(histogram.count(), 3);
    }

    #[test]
    fn merging_adds_counts_and_sums() {
        let mut one = Histogram::new(&SERVER_REQUEST_DURATION);
        one.record(0.5);
        let mut other = one.clone();
        other.record(2.0);
        one.merge(&other);
        assert_eq!(one.count(), 3);
        assert!((one.sum() - 3.0).abs() < 1e-12);
    }
}
