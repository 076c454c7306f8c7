//! [`Metric`] values as OTLP messages.

use opentelemetry::KeyValue as Attribute;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as Message, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::metric::{Metric, Point, Value};
use crate::names::Kind;

/// The interval that cumulative values cover, in Unix nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) now: u64,
}

pub(super) fn request(
    resource: &[Attribute],
    metrics: &[Metric],
    interval: Interval,
) -> ExportMetricsServiceRequest {
    let metrics = metrics.iter().filter(|metric| !metric.points.is_empty());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: resource
                    .iter()
                    .map(|pair| attribute(pair.key.as_str(), pair.value.as_str().into_owned()))
                    .collect(),
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "penstock".to_owned(),
                    ..InstrumentationScope::default()
                }),
                metrics: metrics.map(|metric| message(metric, interval)).collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn message(metric: &Metric, interval: Interval) -> Message {
    let descriptor = metric.descriptor;
    let numbers = || metric.points.iter().filter_map(|point| number(point, interval)).collect();
    let aggregation_temporality = AggregationTemporality::Cumulative as i32;
    let data = match descriptor.kind {
        Kind::Counter => {
            Data::Sum(Sum { data_points: numbers(), aggregation_temporality, is_monotonic: true })
        }
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: metric.points.iter().filter_map(|point| histogram(point, interval)).collect(),
            aggregation_temporality,
        }),
    };
    Message {
        name: descriptor.name.to_owned(),
        description: descriptor.help.to_owned(),
        unit: descriptor.unit.to_owned(),
        data: Some(data),
        ..Message::default()
    }
}

fn number(point: &Point, interval: Interval) -> Option<NumberDataPoint> {
    let Value::Number(value) = point.value else {
        return None;
    };
    Some(NumberDataPoint {
        attributes: attributes(point),
        start_time_unix_nano: interval.start,
        time_unix_nano: interval.now,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    })
}

fn histogram(point: &Point, interval: Interval) -> Option<HistogramDataPoint> {
    let Value::Histogram(histogram) = &point.value else {
        return None;
    };
    Some(HistogramDataPoint {
        attributes: attributes(point),
        start_time_unix_nano: interval.start,
        time_unix_nano: interval.now,
        count: histogram.count(),
        sum: Some(histogram.sum()),
        bucket_counts: histogram.counts().to_vec(),
        explicit_bounds: histogram.bounds().to_vec(),
        ..HistogramDataPoint::default()
    })
}

fn attributes(point: &Point) -> Vec<KeyValue> {
    point.attributes.iter().map(|(key, value)| attribute(key, value.clone())).collect()
}

fn attribute(key: &str, value: String) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(any_value::Value::StringValue(value)) }),
        ..KeyValue::default()
    }
}
