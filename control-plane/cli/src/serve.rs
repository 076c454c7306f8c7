//! What the three commands that start planes share: settings, telemetry, signals.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use penstock_telemetry::otlp::{self, MetricsExporter};
use penstock_telemetry::{MetricsSource, logging};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// How long the last telemetry may take to leave.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Where settings come from and what to do with them.
#[derive(Debug, clap::Args)]
pub(crate) struct SettingsArgs {
    /// Read settings from a YAML file: flag names with underscores, one per line. Variables and flags win over it
    #[arg(long, env = "PENSTOCK_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check all settings and files, start nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the settings in force and where each comes from, start nothing. Passwords are left out
    #[arg(long)]
    pub(crate) dump_config: bool,
    /// Folder for everything that must survive a restart [default: the platform's state folder]
    #[arg(long, env = "PENSTOCK_DATA_DIR", value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Name of the policy to serve
    #[arg(long, env = "PENSTOCK_POLICY_NAME", value_name = "NAME", default_value = "default")]
    pub(crate) policy_name: String,
}

/// Logs, traces and metrics.
#[derive(Debug, clap::Args)]
pub(crate) struct TelemetryArgs {
    /// Send traces and metrics to this OTLP collector (gRPC), for example http://127.0.0.1:4317
    #[arg(long, env = "PENSTOCK_OTLP", value_name = "URL", help_heading = "Telemetry")]
    otlp: Option<String>,
    /// Share of requests to trace, 0 to 1, where the caller has not decided
    #[arg(long, env = "PENSTOCK_TRACE_RATIO", value_name = "SHARE", default_value_t = 1.0, value_parser = share,
        help_heading = "Telemetry")]
    trace_ratio: f64,
    /// What to log: a level, or levels by target such as info,penstock_data_plane=debug
    #[arg(long, env = "PENSTOCK_LOG", value_name = "FILTER", default_value = logging::DEFAULT_FILTER,
        help_heading = "Telemetry")]
    log: String,
    /// How to log, to standard error
    #[arg(long, env = "PENSTOCK_LOG_FORMAT", value_enum, default_value_t, help_heading = "Telemetry")]
    log_format: LogFormat,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    #[default]
    Pretty,
    /// One JSON object per line
    Json,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}

impl TelemetryArgs {
    /// Finds what is wrong without starting anything.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if let Some(config) = self.config("", "") {
            config.check().map_err(|error| Failure::setting(&error))?;
        }
        logging::check(&self.log).map_err(|error| Failure::setting(&error))
    }

    fn config(&self, service: &'static str, instance: &str) -> Option<otlp::Config> {
        Some(otlp::Config {
            endpoint: self.otlp.clone()?,
            service,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: instance.to_owned(),
            sample_ratio: self.trace_ratio,
        })
    }

    /// Starts logging; spans of the control plane go to `control`'s collector.
    pub(crate) fn start_logging(&self, control: Option<&Exporter>) -> Result<(), Failure> {
        let format = match self.log_format {
            LogFormat::Pretty => {
                logging::Format::Pretty { color: std::io::IsTerminal::is_terminal(&std::io::stderr()) }
            }
            LogFormat::Json => logging::Format::Json,
        };
        logging::init(format, &self.log, control.and_then(Exporter::tracer))
            .map_err(|error| Failure::setting(&error))
    }

    /// The way out for the telemetry of one plane, which leads nowhere without a collector. Needs a runtime around it.
    pub(crate) fn exporter(&self, service: &'static str, instance: &str) -> Result<Exporter, Failure> {
        let config = self.config(service, instance);
        let traces =
            config.as_ref().map(otlp::traces).transpose().map_err(|error| Failure::setting(&error))?;
        Ok(Exporter { config, traces, metrics: None })
    }
}

/// The telemetry of one plane on its way to a collector.
#[derive(Debug)]
pub(crate) struct Exporter {
    config: Option<otlp::Config>,
    traces: Option<SdkTracerProvider>,
    metrics: Option<MetricsExporter>,
}

impl Exporter {
    /// What makes spans.
    pub(crate) fn tracer(&self) -> Option<SdkTracer> {
        self.traces.as_ref().map(|provider| provider.tracer("penstock"))
    }

    /// Begins to export what `source` gathers.
    pub(crate) fn export_metrics(&mut self, source: MetricsSource) -> Result<(), Failure> {
        if let Some(config) = &self.config {
            let exporter = otlp::spawn_metrics(config, source).map_err(|error| Failure::setting(&error))?;
            self.metrics = Some(exporter);
        }
        Ok(())
    }

    /// Sends what is left.
    pub(crate) async fn shutdown(self) {
        if let Some(metrics) = self.metrics {
            metrics.shutdown(FLUSH_TIMEOUT).await;
        }
        if let Some(traces) = self.traces {
            otlp::shutdown_traces(traces, FLUSH_TIMEOUT).await;
        }
    }
}

/// Runs a plane's command to its end.
pub(crate) fn block_on(future: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Start { part: "the runtime", detail: error.to_string() })?;
    let result = runtime.block_on(future);
    // Whatever was cut off must not hold up the end.
    runtime.shutdown_background();
    result
}

/// Waits for Ctrl-C or SIGTERM. After that, a second one ends the process at once.
pub(crate) async fn stopped() -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Start { part: "signal handling", detail: error.to_string() };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let name = tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    };
    tracing::info!(signal = name, "finishing what is in flight; a second signal ends at once");
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(())
}
