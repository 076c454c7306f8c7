//! Metrics as Prometheus text.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::metric::{Histogram, Metric, Point, Value};
use crate::names::Kind;

/// The `Content-Type` of what [`encode`] makes.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// The answer to `GET /metrics`: text exposition format 0.0.4, which every scraper and `promtool` read.
#[must_use]
pub fn encode(metrics: Vec<Metric>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics(metrics)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry).expect("writing to a string cannot fail");
    text
}

#[derive(Debug)]
struct Metrics(Vec<Metric>);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for metric in self.0.iter().filter(|metric| !metric.points.is_empty()) {
            let descriptor = metric.descriptor;
            let kind = match descriptor.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let name = descriptor.prometheus_name();
            let mut encoder = encoder.encode_descriptor(&name, descriptor.help, None, kind)?;
            for point in &metric.points {
                encode_point(&mut encoder, descriptor.kind, point)?;
            }
        }
        Ok(())
    }
}

fn encode_point(encoder: &mut MetricEncoder<'_>, kind: Kind, point: &Point) -> Result<(), std::fmt::Error> {
    let labels: Vec<(String, &str)> =
        point.attributes.iter().map(|(key, value)| (key.replace('.', "_"), value.as_str())).collect();
    let mut encoder = encoder.encode_family(&labels)?;
    match (&point.value, kind) {
        (Value::Number(value), Kind::Counter) => encoder.encode_counter::<NoLabels, _, f64>(value, None),
        (Value::Number(value), _) => encoder.encode_gauge(value),
        (Value::Histogram(histogram), _) => encoder.encode_histogram::<NoLabels>(
            histogram.sum(),
            histogram.count(),
            &buckets(histogram),
            None,
        ),
    }
}

/// Stands for "no labels of its own" where the encoder asks for a type.
type NoLabels = [(&'static str, &'static str); 0];

/// The encoder adds the counts up itself.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = histogram.bounds().iter().copied().chain([f64::INFINITY]);
    bounds.zip(histogram.counts().iter().copied()).collect()
}

#[cfg(test)]
mod tests;
