//! OTLP over gRPC: traces in batches, metrics every ten seconds.
//!
//! A collector that is slow or gone costs nothing but its own data: queues are bounded, exports have a timeout, and
//! the first failure of a row is logged, not each one.

mod convert;
mod metrics;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

pub use metrics::{MetricsExporter, spawn_metrics};

/// How long one export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where telemetry goes, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The collector, `http://host:4317`.
    pub endpoint: String,
    /// `service.name`: [`crate::names::span::SERVICE_PROXY`] or [`crate::names::span::SERVICE_CONTROL`].
    pub service: &'static str,
    /// `service.version`.
    pub version: String,
    /// `service.instance.id`: the node id.
    pub instance: String,
    /// Share of requests to trace, 0 to 1, where the caller has not decided already.
    pub sample_ratio: f64,
}

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a usable address.
    #[error(
        "{endpoint:?} is not the address of an OTLP collector: write http://HOST:PORT, usually with port 4317"
    )]
    Endpoint {
        /// As given.
        endpoint: String,
    },
    /// The exporter refused its settings.
    #[error("cannot set up the OTLP exporter")]
    Exporter(#[from] ExporterBuildError),
}

impl Config {
    fn endpoint(&self) -> Result<tonic::transport::Endpoint, Error> {
        let invalid = || Error::Endpoint { endpoint: self.endpoint.clone() };
        // Other schemes would connect, and fail at every export; a user and password would not be sent, but logged.
        if !self.endpoint.starts_with("http://") || self.endpoint.contains('@') {
            return Err(invalid());
        }
        let endpoint =
            tonic::transport::Endpoint::from_shared(self.endpoint.clone()).map_err(|_| invalid())?;
        Ok(endpoint.timeout(EXPORT_TIMEOUT).connect_timeout(EXPORT_TIMEOUT))
    }

    /// Checks the address without connecting.
    ///
    /// # Errors
    /// When it is not `http://HOST:PORT`.
    pub fn check(&self) -> Result<(), Error> {
        self.endpoint().map(drop)
    }

    fn attributes(&self) -> [KeyValue; 3] {
        [
            KeyValue::new("service.name", self.service),
            KeyValue::new("service.version", self.version.clone()),
            KeyValue::new("service.instance.id", self.instance.clone()),
        ]
    }
}

/// The way out for traces. Needs a tokio runtime around it; connects when the first span is sent.
///
/// # Errors
/// When the endpoint is not valid.
pub fn traces(config: &Config) -> Result<SdkTracerProvider, Error> {
    config.check()?;
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(&config.endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    Ok(SdkTracerProvider::builder()
        .with_resource(Resource::builder_empty().with_attributes(config.attributes()).build())
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample_ratio))))
        .with_batch_exporter(exporter)
        .build())
}

/// Sends what is left and ends the exporter; gives up after `timeout`.
pub async fn shutdown_traces(provider: SdkTracerProvider, timeout: Duration) {
    // The exporter's thread needs the runtime to send, so the runtime must not wait for it.
    let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(timeout)).await;
    if let Ok(Err(error)) = ended {
        tracing::warn!(%error, "last spans were not sent");
    }
}

#[cfg(test)]
mod tests;
