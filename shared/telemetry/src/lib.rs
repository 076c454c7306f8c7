//! Logging, traces and metrics, and every name they use.
//!
//! ```text
//! plane ──Vec<Metric>──┬─▶ prometheus::encode ─▶ GET /metrics
//!                      └─▶ otlp::metrics      ─▶ collector, every ten seconds
//! proxy ──SdkTracer────┬─▶ otlp::traces       ─▶ collector, in batches
//! tracing spans ───────┘
//! ```
//!
//! Metrics have one source of truth: a plane gathers its numbers as plain [`Metric`] values, and both ways out read
//! those. Nothing here is on a request's way: planes count in structures of their own.

pub mod logging;
pub mod metric;
pub mod names;
pub mod otlp;
pub mod prometheus;

pub use metric::{Histogram, Metric, MetricsSource, Point, Value};
