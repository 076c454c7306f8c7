//! `penstock up`.

mod banner;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use penstock_control_plane::{Config, StoreConfig};
use penstock_proto::admin::v1::{ApplyPolicyRequest, GetPolicyVersionRequest};
use penstock_telemetry::names::span::{SERVICE_CONTROL, SERVICE_PROXY};
use tonic::Code;

use self::banner::Banner;
use super::policy::validate;
use super::proxy::TrafficArgs;
use super::{control, proxy};
use crate::client::Client;
use crate::data_dir;
use crate::demo::{self, Services};
use crate::failure::Failure;
use crate::output;
use crate::run::Context;
use crate::serve::{self, Exporter, SettingsArgs, TelemetryArgs};

/// How long the first policy may take from the store to the proxy.
const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);

/// Start both planes in one process, without --policy with a demo
///
/// The demo needs nothing else: six simulated services, two each for chat, code and summarize. With --policy, the document is
/// applied at each start when it differs from what is stored.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock up\n  OPENAI_API_KEY=... penstock up --policy policy.yaml --access-log"
)]
pub(crate) struct Args {
    /// Your own policy document instead of the demo
    #[arg(long, env = "PENSTOCK_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    traffic: TrafficArgs,
    /// Where proxies and commands connect to the control plane (gRPC)
    #[arg(long, env = "PENSTOCK_GRPC_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    grpc_listen: SocketAddr,
    /// Where the JSON API, /health, /ready and /metrics of the control plane are
    #[arg(long, env = "PENSTOCK_HTTP_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7080")]
    http_listen: SocketAddr,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.telemetry.check()?;
    let policy = args.policy.as_deref().map(validate::read).transpose()?;
    if let (Some(file), Some(document)) = (&args.policy, &policy) {
        validate::check(file, document, context)?;
    }
    if args.settings.check {
        return output::print("the settings are valid\n");
    }
    let data_dir = context.data_dir(args.settings.data_dir.as_ref());
    let state = if policy.is_some() { data_dir.clone() } else { demo::folder(&data_dir) };
    data_dir::create(&state)?;
    serve::block_on(async {
        let mut control_out = args.telemetry.exporter(SERVICE_CONTROL, &args.grpc_listen.to_string())?;
        let mut proxy_out = args.telemetry.exporter(SERVICE_PROXY, &args.traffic.listen.to_string())?;
        args.telemetry.start_logging(Some(&control_out))?;
        let planes = Planes::start(args, policy, &data_dir, &state, &proxy_out, context).await?;
        control_out.export_metrics(planes.control.metrics())?;
        proxy_out.export_metrics(planes.proxy.metrics())?;
        output::print(&planes.banner(&data_dir, context))?;
        serve::stopped().await?;
        planes.shutdown(args.traffic.drain).await;
        proxy_out.shutdown().await;
        control_out.shutdown().await;
        Ok(())
    })
}

/// Everything that `up` starts.
struct Planes {
    services: Option<Services>,
    control: penstock_control_plane::Running,
    proxy: penstock_data_plane::Running,
    version: u64,
}

impl Planes {
    async fn start(
        args: &Args,
        policy: Option<String>,
        data_dir: &Path,
        state: &Path,
        proxy_out: &Exporter,
        context: &Context,
    ) -> Result<Self, Failure> {
        let services = match policy {
            Some(_) => None,
            None => Some(Services::start(data_dir).await?),
        };
        let initial_policy = policy.clone().or_else(|| services.as_ref().map(Services::policy));
        let config = Config {
            grpc_listen: args.grpc_listen,
            http_listen: args.http_listen,
            store: StoreConfig::Embedded(control::store_file(state)),
            policy_name: args.settings.policy_name.clone(),
            initial_policy,
        };
        let control = penstock_control_plane::start(config).await.map_err(control::failure)?;
        let url = format!("http://{}", control.grpc_addr());
        let mut config = args.traffic.config(url.clone(), &args.settings.policy_name, state, context);
        config.tracer = proxy_out.tracer();
        let proxy = penstock_data_plane::start(config).await.map_err(proxy::failure)?;

        let client = Client::connect(&url).await?;
        let stored = stored(&client, &args.settings.policy_name).await?;
        let wanted = policy.or_else(|| services.as_ref().and_then(|services| services.relocated(&stored.1)));
        let version = match wanted {
            Some(document) => apply(&client, args, document).await?,
            None => stored.0,
        };
        client.wait_served(version, 1, PATIENCE).await?;
        Ok(Self { services, control, proxy, version })
    }

    fn banner(&self, data_dir: &Path, context: &Context) -> String {
        let banner = Banner {
            program: &context.program,
            traffic: self.proxy.traffic_addr(),
            admin: self.proxy.admin_addr(),
            grpc: self.control.grpc_addr(),
            http: self.control.http_addr(),
            data_dir: (data_dir != data_dir::default(&context.environment)).then_some(data_dir),
            version: self.version,
            services: self.services.as_ref().map(|services| &services.addresses),
        };
        banner.render()
    }

    /// First the one who talks to clients, last those who answer it.
    async fn shutdown(self, drain: Duration) {
        self.proxy.shutdown(drain).await;
        self.control.shutdown().await;
        if let Some(services) = self.services {
            services.shutdown().await;
        }
    }
}

/// Number and text of the stable version. A control plane that has just started may need a moment to have one.
async fn stored(client: &Client, policy: &str) -> Result<(u64, String), Failure> {
    let start = Instant::now();
    loop {
        let request = GetPolicyVersionRequest { policy: policy.to_owned(), version: 0 };
        match client.policies().get_policy_version(request).await {
            Ok(response) => {
                let response = response.into_inner();
                let version = response.version.unwrap_or_default().version;
                return Ok((version, String::from_utf8_lossy(&response.document).into_owned()));
            }
            Err(status) if status.code() == Code::NotFound && start.elapsed() < PATIENCE => {
                tokio::time::sleep(POLL).await;
            }
            Err(status) => return Err(client.failure(&status)),
        }
    }
}

/// Applies `document` and returns the version that holds it, which is the stable one when nothing has changed.
async fn apply(client: &Client, args: &Args, document: String) -> Result<u64, Failure> {
    let message = match &args.policy {
        Some(file) => format!("penstock up --policy {}", file.display()),
        None => "the demo's services have moved to free ports".to_owned(),
    };
    let request = ApplyPolicyRequest {
        policy: args.settings.policy_name.clone(),
        document: document.into_bytes(),
        message,
        author: "penstock up".to_owned(),
        ..ApplyPolicyRequest::default()
    };
    let response = client.policies().apply_policy(request).await;
    let response = response.map_err(|status| client.failure(&status))?.into_inner();
    Ok(response.version.unwrap_or_default().version)
}
