//! The periodic export of metrics.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tonic::Status;
use tonic::transport::Channel;

use super::Config;
use super::convert::{Interval, request};
use crate::metric::{Metric, MetricsSource};
use crate::names::{EXPORT_FAILURES, attribute};

/// Time between exports.
const PERIOD: Duration = Duration::from_secs(10);

/// A running export. Dropping it ends it without a last export.
#[derive(Debug)]
pub struct MetricsExporter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl MetricsExporter {
    /// Exports once more and ends; gives up after `timeout`.
    pub async fn shutdown(self, timeout: Duration) {
        // The task is gone only when it panicked, and then there is nothing left to stop.
        let _ = self.stop.send(());
        let abort = self.task.abort_handle();
        if tokio::time::timeout(timeout, self.task).await.is_err() {
            abort.abort();
        }
    }
}

/// Sends what `source` gathers to the collector, every ten seconds and at shutdown.
///
/// # Errors
/// When the endpoint is not valid. A collector that cannot be reached is no error: it is logged once and tried again.
pub fn spawn_metrics(config: &Config, source: MetricsSource) -> Result<MetricsExporter, super::Error> {
    let mut exporter = Exporter {
        client: MetricsServiceClient::new(config.endpoint()?.connect_lazy()),
        config: config.clone(),
        source,
        start: unix_nanos(),
        failures: 0,
        failing: false,
    };
    let (stop, mut stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => exporter.export().await,
                asked = &mut stopped => {
                    if asked.is_ok() {
                        exporter.export().await;
                    }
                    return;
                }
            }
        }
    });
    Ok(MetricsExporter { stop, task })
}

struct Exporter {
    client: MetricsServiceClient<Channel>,
    config: Config,
    source: MetricsSource,
    start: u64,
    failures: u64,
    /// Did the last export fail? A row of failures is logged once.
    failing: bool,
}

impl Exporter {
    async fn export(&mut self) {
        let mut metrics = (self.source)();
        let mut failures = Metric::new(&EXPORT_FAILURES);
        failures.number(&[(attribute::SIGNAL, "metrics")], self.failures as f64);
        metrics.push(failures);
        let interval = Interval { start: self.start, now: unix_nanos() };
        let message = request(&self.config.attributes(), &metrics, interval);
        match self.client.export(message).await {
            Ok(_) if self.failing => {
                self.failing = false;
                tracing::info!(endpoint = %self.config.endpoint, "metrics reach the collector again");
            }
            Ok(_) => {}
            Err(status) => {
                self.failures += 1;
                if !self.failing {
                    self.failing = true;
                    tracing::warn!(endpoint = %self.config.endpoint, error = %cause(&status), "metrics do not reach the collector");
                }
            }
        }
    }
}

/// What the system said, below "transport error" and its like; what the collector said when it answered.
fn cause(status: &Status) -> String {
    let deepest = std::iter::successors(status.source(), |&error| error.source()).last();
    deepest.map_or_else(|| status.message().to_owned(), ToString::to_string)
}

fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
