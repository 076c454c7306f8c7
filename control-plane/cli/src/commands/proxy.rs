//! `penstock proxy`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use penstock_data_plane::{AccessLog, Config};
use penstock_telemetry::names::span::SERVICE_PROXY;

use crate::data_dir;
use crate::failure::{Failure, chain};
use crate::output;
use crate::run::Context;
use crate::serve::{self, SettingsArgs, TelemetryArgs};

/// Start a proxy
///
/// It takes applications' calls and sends each to the best service. It serves on without a control plane, and starts without
/// one when it has served before.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock proxy --control http://127.0.0.1:7070 --zone a\n  \
                        penstock proxy --control http://control:7070 --listen 0.0.0.0:8080 --access-log")]
pub(crate) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    traffic: TrafficArgs,
    /// The control plane to follow
    #[arg(long, env = "PENSTOCK_CONTROL", value_name = "URL", default_value = "http://127.0.0.1:7070")]
    control: String,
    /// Name of this proxy, stable across restarts [default: drawn once per data folder]
    #[arg(long, env = "PENSTOCK_NODE_ID", value_name = "ID")]
    node_id: Option<String>,
    /// Where this proxy runs; compared with the backends' zones
    #[arg(long, env = "PENSTOCK_ZONE", value_name = "NAME", default_value = "", hide_default_value = true)]
    zone: String,
    /// Where this proxy runs, more coarsely; for conditions of routes
    #[arg(long, env = "PENSTOCK_REGION", value_name = "NAME", default_value = "", hide_default_value = true)]
    region: String,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// What `proxy` and `up` share.
#[derive(Debug, clap::Args)]
pub(crate) struct TrafficArgs {
    /// Where applications send their calls
    #[arg(long, env = "PENSTOCK_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(super) listen: SocketAddr,
    /// Where /health, /ready and /metrics of the proxy are
    #[arg(long, env = "PENSTOCK_ADMIN_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:9901")]
    pub(super) admin_listen: SocketAddr,
    /// Threads that serve traffic; 0 means one per processor
    #[arg(long, env = "PENSTOCK_WORKERS", value_name = "N", default_value_t = 0)]
    pub(super) workers: usize,
    /// Write a JSON line per request: off, stdout (also without a value) or a file to append to
    #[arg(long, env = "PENSTOCK_ACCESS_LOG", value_name = "WHERE", num_args = 0..=1, default_value = "off",
        default_missing_value = "stdout")]
    pub(super) access_log: String,
    /// How long requests in flight may take to finish when the process is asked to end
    #[arg(long, env = "PENSTOCK_DRAIN", value_name = "DURATION", default_value = "30s",
        value_parser = humantime::parse_duration)]
    pub(super) drain: Duration,
}

impl TrafficArgs {
    fn access_log(&self) -> AccessLog {
        match self.access_log.as_str() {
            "off" => AccessLog::Off,
            "stdout" => AccessLog::Stdout,
            file => AccessLog::File(PathBuf::from(file)),
        }
    }

    /// The settings of a proxy that follows `control`; the rest is for the caller to fill in.
    pub(super) fn config(&self, control: String, policy: &str, data_dir: &Path, context: &Context) -> Config {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Config {
            listen: self.listen,
            admin_listen: self.admin_listen,
            control: Some(control),
            policy_name: policy.to_owned(),
            data_dir: data_dir.to_owned(),
            workers: if self.workers == 0 { processors() } else { self.workers },
            access_log: self.access_log(),
            environment: context.environment.clone(),
            ..Config::default()
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.telemetry.check()?;
    check_control(&args.control)?;
    if args.settings.check {
        return output::print("the settings are valid\n");
    }
    let data_dir = context.data_dir(args.settings.data_dir.as_ref());
    data_dir::create(&data_dir)?;
    let config = Config {
        node_id: args.node_id.clone(),
        zone: args.zone.clone(),
        region: args.region.clone(),
        ..args.traffic.config(args.control.clone(), &args.settings.policy_name, &data_dir, context)
    };
    serve::block_on(serve(args, config))
}

fn check_control(url: &str) -> Result<(), Failure> {
    let host = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    match host.and_then(|host| host.parse::<http::uri::Authority>().ok()) {
        Some(authority) if authority.port().is_some() && !authority.host().is_empty() => Ok(()),
        _ => Err(Failure::Setting {
            what: format!("--control {url:?} is not the address of a control plane"),
            advice: "write http://HOST:PORT, usually with port 7070".to_owned(),
        }),
    }
}

async fn serve(args: &Args, mut config: Config) -> Result<(), Failure> {
    let instance = config.node_id.clone().unwrap_or_else(|| config.listen.to_string());
    let mut exporter = args.telemetry.exporter(SERVICE_PROXY, &instance)?;
    args.telemetry.start_logging(None)?;
    config.tracer = exporter.tracer();
    let running = penstock_data_plane::start(config).await.map_err(failure)?;
    exporter.export_metrics(running.metrics())?;
    serve::stopped().await?;
    running.shutdown(args.traffic.drain).await;
    exporter.shutdown().await;
    Ok(())
}

/// Why a proxy did not start, for whoever started it.
pub(super) fn failure(error: penstock_data_plane::Error) -> Failure {
    match error {
        penstock_data_plane::Error::Listen { address, flag, source } => {
            Failure::Listen { address, flag, source }
        }
        other => Failure::Start { part: "the proxy", detail: chain(&other) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_plane_is_named_by_scheme_host_and_port() {
        for good in ["http://127.0.0.1:7070", "http://control:7070/", "http://[::1]:7070"] {
            assert!(check_control(good).is_ok(), "{good}");
        }
        for bad in
            ["127.0.0.1:7070", "http://control", "https://control:7070", "http://a:7070/x", "http://:7070"]
        {
            assert!(check_control(bad).is_err(), "{bad}");
        }
    }
}
