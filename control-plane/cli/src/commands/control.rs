//! `penstock control`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use penstock_control_plane::{Config, StoreConfig};
use penstock_telemetry::names::span::SERVICE_CONTROL;

use super::policy::validate;
use crate::data_dir;
use crate::failure::{Failure, chain};
use crate::output;
use crate::run::Context;
use crate::serve::{self, SettingsArgs, TelemetryArgs};

/// Start a control plane
///
/// It keeps policies, scores every service for the whole fleet, and tells the proxies. Traffic never waits for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock control --initial-policy policy.yaml\n  \
                        penstock control --store etcd://etcd-0:2379,etcd-1:2379,etcd-2:2379 --listen 0.0.0.0:7070")]
pub(crate) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Where proxies and commands connect (gRPC)
    #[arg(
        long,
        visible_alias = "listen",
        env = "PENSTOCK_GRPC_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7070"
    )]
    grpc_listen: SocketAddr,
    /// Where the JSON API, /health, /ready and /metrics are
    #[arg(long, env = "PENSTOCK_HTTP_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7080")]
    http_listen: SocketAddr,
    /// Where policies are kept: embedded (one file in the data folder) or etcd://HOST:PORT,HOST:PORT…
    #[arg(long, env = "PENSTOCK_STORE", value_name = "STORE", default_value = "embedded", value_parser = Store::from_str)]
    store: Store,
    /// A policy document that becomes version 1 when the store has none; otherwise unused
    #[arg(long, env = "PENSTOCK_INITIAL_POLICY", value_name = "FILE")]
    initial_policy: Option<PathBuf>,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// `--store`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Store {
    Embedded,
    Etcd(Vec<String>),
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        let hosts =
            text.strip_prefix("etcd://").ok_or("write `embedded` or `etcd://HOST:PORT,HOST:PORT…`")?;
        let endpoint = |host: &str| match host.rsplit_once(':') {
            Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(format!("http://{host}"))
            }
            _ => Err(format!("{host:?} is not HOST:PORT; etcd's usual port is 2379")),
        };
        hosts.trim_end_matches('/').split(',').map(endpoint).collect::<Result<_, _>>().map(Self::Etcd)
    }
}

/// The file of the embedded store.
pub(super) fn store_file(data_dir: &Path) -> PathBuf {
    data_dir.join("penstock.redb")
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.telemetry.check()?;
    let initial_policy = args.initial_policy.as_deref().map(validate::read).transpose()?;
    if let (Some(file), Some(document)) = (&args.initial_policy, &initial_policy) {
        validate::check(file, document, context)?;
    }
    let data_dir = context.data_dir(args.settings.data_dir.as_ref());
    if args.settings.check {
        return output::print("the settings are valid\n");
    }
    let store = match &args.store {
        Store::Embedded => {
            data_dir::create(&data_dir)?;
            StoreConfig::Embedded(store_file(&data_dir))
        }
        Store::Etcd(endpoints) => StoreConfig::Etcd(endpoints.clone()),
    };
    let config = Config {
        grpc_listen: args.grpc_listen,
        http_listen: args.http_listen,
        store,
        policy_name: args.settings.policy_name.clone(),
        initial_policy,
    };
    serve::block_on(serve(args, config))
}

async fn serve(args: &Args, config: Config) -> Result<(), Failure> {
    let mut exporter = args.telemetry.exporter(SERVICE_CONTROL, &config.grpc_listen.to_string())?;
    args.telemetry.start_logging(Some(&exporter))?;
    let running = penstock_control_plane::start(config).await.map_err(failure)?;
    exporter.export_metrics(running.metrics())?;
    serve::stopped().await?;
    running.shutdown().await;
    exporter.shutdown().await;
    Ok(())
}

/// Why a control plane did not start, for whoever started it.
pub(super) fn failure(error: penstock_control_plane::Error) -> Failure {
    match error {
        penstock_control_plane::Error::Listen { address, flag, source } => {
            Failure::Listen { address, flag, source }
        }
        other => Failure::Start { part: "the control plane", detail: chain(&other) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_embedded_or_a_list_of_etcd_endpoints() {
        assert_eq!("embedded".parse(), Ok(Store::Embedded));
        assert_eq!(
            "etcd://a:2379,[::1]:2380/".parse(),
            Ok(Store::Etcd(vec!["http://a:2379".to_owned(), "http://[::1]:2380".to_owned()]))
        );
        for wrong in ["etcd", "etcd://", "etcd://a", "etcd://a:b", "redis://a:1", "etcd://a:1,"] {
            assert!(wrong.parse::<Store>().is_err(), "{wrong}");
        }
    }
}
