//! Starts a control plane and stops it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use penstock_model::Problem;
use penstock_proto::admin::v1::policy_service_server::PolicyServiceServer;
use penstock_proto::admin::v1::state_service_server::StateServiceServer;
use penstock_telemetry::MetricsSource;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tracing::Instrument;

use crate::api::{self, PolicyGrpc, Service, StateGrpc};
use crate::fleet::{Fleet, FleetServer};
use crate::metrics::{PolicyChanges, Sources};
use crate::policy::{self, Drains, Follower, Policies, StoreHealth};
use crate::ready::Readiness;
use crate::store::{self, Measured, Store};
use crate::{Config, scoring};

/// How long connections may take to end at shutdown.
const GOODBYE: Duration = Duration::from_secs(5);

/// Notices a proxy that is gone without a word.
const PING: Duration = Duration::from_secs(10);
const PING_ANSWER: Duration = Duration::from_secs(5);

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken, or the address is not ours.
    #[error("cannot listen on {address}: choose another address with {flag}, or stop what uses it")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The policy's name would not do as a part of keys and paths.
    #[error("`{name}` cannot name a policy; use 1 to 64 of the characters a-z, 0-9, `-`, `_` and `.`")]
    PolicyName {
        /// As configured.
        name: String,
    },
    /// The policy to start with has errors.
    #[error("the initial policy has errors: correct them and start again")]
    InitialPolicy {
        /// All of them, and the warnings.
        problems: Vec<Problem>,
    },
}

/// A control plane at work. Dropping it stops it at once; [`Running::shutdown`] says goodbye to the nodes first.
pub struct Running {
    grpc_addr: SocketAddr,
    http_addr: SocketAddr,
    metrics: MetricsSource,
    store: Arc<dyn Store>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    /// The address the gRPC services listen on.
    #[must_use]
    pub fn grpc_addr(&self) -> SocketAddr {
        self.grpc_addr
    }

    /// The address the HTTP API listens on.
    #[must_use]
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// What `/metrics` shows, for an exporter.
    #[must_use]
    pub fn metrics(&self) -> MetricsSource {
        Arc::clone(&self.metrics)
    }

    /// Ends every stream and task, and returns when all are gone, within a few seconds. Nothing is lost: the store
    /// commits every change as it is made.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GOODBYE, ended).await.is_err() {
            tracing::warn!("connections did not end in time and are cut");
        }
        self.tasks.shutdown().await;
        self.store.close().await;
    }
}

/// Starts a control plane: returns once its store is open and both listeners are bound. Only then, and without anybody
/// waiting, the store is read; `/ready` tells when it has been. An etcd that does not answer is tried until it does.
///
/// # Errors
/// When an address cannot be bound, the store's file cannot be opened, or the initial policy or its name is not valid.
pub async fn start(config: Config) -> Result<Running, Error> {
    check_policy_name(&config.policy_name)?;
    check_initial_policy(&config).await?;
    let grpc = bind(config.grpc_listen, "--grpc-listen").await?;
    let http = bind(config.http_listen, "--http-listen").await?;
    let store = Arc::new(Measured::new(store::open(&config.store).await?));
    Ok(assemble(config, store, grpc, http))
}

fn assemble(config: Config, store: Arc<Measured>, grpc: TcpListener, http: TcpListener) -> Running {
    let (grpc_addr, http_addr) = (local(&grpc), local(&http));
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let policies = Policies::new(store.clone(), &config.policy_name);
    let (publish, published) = watch::channel(None);
    let (publish_scores, scores) = watch::channel(None);
    let health = Arc::new(StoreHealth::default());
    let fleet = Arc::new(Fleet::new(config.policy_name, published.clone(), scores.clone(), stop.clone()));
    let changes = Arc::new(PolicyChanges::default());
    let metrics = Sources {
        fleet: Arc::clone(&fleet),
        changes: Arc::clone(&changes),
        store: Arc::clone(&store),
        health: Arc::clone(&health),
        published: published.clone(),
    }
    .into_source();

    let follower = Follower {
        policies: policies.clone(),
        initial_policy: config.initial_policy,
        published: publish,
        health: Arc::clone(&health),
    };
    spawn(&mut tasks, &stop, follower.run());
    let (publish_drained, drained) = watch::channel(None);
    let drains = Drains { policies: policies.clone(), published: publish_drained };
    spawn(&mut tasks, &stop, drains.run());
    spawn(&mut tasks, &stop, scoring::run(Arc::clone(&fleet), drained, publish_scores));

    let service = Service { policies, fleet: Arc::clone(&fleet), changes };
    let router = api::router(service.clone(), Readiness { health, published }, Arc::clone(&metrics));
    let stopped = stop.clone().cancelled_owned();
    tasks.spawn(async move {
        // Accept errors are retried within; there are no others.
        let _ = axum::serve(http, router).with_graceful_shutdown(stopped).await;
    });
    tasks.spawn(serve_grpc(grpc, service, fleet, stop.clone()));
    tracing::info!(%grpc_addr, %http_addr, "control plane started");
    Running { grpc_addr, http_addr, metrics, store, stop, tasks }
}

/// Runs `task` until the stop.
fn spawn(tasks: &mut JoinSet<()>, stop: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
    let stop = stop.clone();
    tasks.spawn(async move { stop.run_until_cancelled_owned(task).await.unwrap_or(()) }.in_current_span());
}

async fn serve_grpc(listener: TcpListener, service: Service, fleet: Arc<Fleet>, stop: CancellationToken) {
    let served = Server::builder()
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING_ANSWER))
        .add_service(FleetServer(fleet))
        .add_service(PolicyServiceServer::new(PolicyGrpc(service.clone())))
        .add_service(StateServiceServer::new(StateGrpc(service)))
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            stop.cancelled_owned(),
        );
    if let Err(error) = served.await {
        tracing::error!(error = &error as &dyn std::error::Error, "the gRPC server ended");
    }
}

fn check_policy_name(name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Err(Error::PolicyName { name: name.to_owned() });
    }
    Ok(())
}

async fn check_initial_policy(config: &Config) -> Result<(), Error> {
    let Some(document) = config.initial_policy.clone() else { return Ok(()) };
    let (_, problems) = policy::validate(document).await;
    if policy::has_errors(&problems) {
        return Err(Error::InitialPolicy { problems });
    }
    Ok(())
}

async fn bind(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, flag, source })
}

fn local(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}
