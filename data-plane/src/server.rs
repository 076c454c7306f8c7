//! Starting a proxy and ending it.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use penstock_proto::fleet::v1::NodeIdentity;
use penstock_telemetry::MetricsSource;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};
use tracing::info;

use crate::access_log::Log;
use crate::admin;
use crate::clock::{Clock, unix_ms};
use crate::config::Config;
use crate::fleet::{Link, Serving};
use crate::google;
use crate::holder::Holder;
use crate::listener;
use crate::metrics;
use crate::node;
use crate::reporter::Reporter;
use crate::secrets::Secrets;
use crate::upstream::Connector;
use crate::worker::{Node, Requests, Shared, Worker};

/// Why a proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The data folder cannot be used.
    #[error("the data folder cannot be used")]
    DataDir(#[source] io::Error),
    /// The access log cannot be opened.
    #[error("the access log cannot be opened")]
    AccessLog(#[source] io::Error),
    /// The control plane's address is none.
    #[error("the address of the control plane is not valid")]
    Control(#[source] tonic::transport::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// A thread cannot be started.
    #[error("a worker thread cannot be started")]
    Thread(#[source] io::Error),
}

/// A running proxy. Dropping it ends it at once; [`Self::shutdown`] lets it finish.
#[derive(Debug)]
pub struct Running {
    traffic: SocketAddr,
    admin: SocketAddr,
    shared: Arc<Shared>,
    metrics: MetricsSourceHolder,
    stop: watch::Sender<bool>,
    workers: Vec<thread::JoinHandle<()>>,
    // Aborted when dropped.
    _tasks: JoinSet<()>,
}

struct MetricsSourceHolder(MetricsSource);

impl std::fmt::Debug for MetricsSourceHolder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("metrics")
    }
}

impl Running {
    /// Where applications send their calls.
    #[must_use]
    pub fn traffic_addr(&self) -> SocketAddr {
        self.traffic
    }

    /// Where `/ready` and `/metrics` are.
    #[must_use]
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin
    }

    /// The proxy's metrics, for an exporter.
    #[must_use]
    pub fn metrics(&self) -> MetricsSource {
        Arc::clone(&self.metrics.0)
    }

    /// Says that it is not ready any more, takes no new connections, lets requests in flight finish for up to `drain`, and
    /// ends.
    pub async fn shutdown(mut self, drain: Duration) {
        self.shared.draining.store(true, Relaxed);
        let _ = self.stop.send(true);
        let workers = std::mem::take(&mut self.workers);
        let ended =
            tokio::task::spawn_blocking(move || workers.into_iter().for_each(|worker| drop(worker.join())));
        if tokio::time::timeout(drain, ended).await.is_err() {
            info!("requests in flight did not finish in time and are cut off");
        }
    }
}

/// Starts a proxy. It serves as soon as it has a policy: from disk, or from the control plane.
///
/// # Errors
/// When it cannot listen, or its folder or log cannot be used. A control plane that does not answer is no error.
pub async fn start(config: Config) -> Result<Running, Error> {
    let listen = |source, address, flag| Error::Listen { address, flag, source };
    let first =
        listener::bind_first(config.listen).map_err(|error| listen(error, config.listen, "--listen"))?;
    let traffic = first.local_addr().map_err(|error| listen(error, config.listen, "--listen"))?;
    let admin_socket = tokio::net::TcpListener::bind(config.admin_listen)
        .await
        .map_err(|error| listen(error, config.admin_listen, "--admin-listen"))?;
    let admin_addr =
        admin_socket.local_addr().map_err(|error| listen(error, config.admin_listen, "--admin-listen"))?;

    let shared = Arc::new(shared(&config, traffic)?);
    shared.holder.take_from_disk();
    let (stop, stopping) = watch::channel(false);
    let mut workers = Vec::new();
    let mut asked = Vec::new();
    let mut socket = Some(first);
    for index in 0..config.workers.max(1) {
        let socket = match socket.take() {
            Some(first) => first,
            None => listener::bind(traffic).map_err(|error| listen(error, traffic, "--listen"))?,
        };
        let (ask, requests) = mpsc::channel(1);
        asked.push(ask);
        let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
        let thread = thread::Builder::new().name(format!("worker-{index}"));
        let run = move || run_worker(shared, socket, requests, stopping);
        workers.push(thread.spawn(run).map_err(Error::Thread)?);
    }

    let totals = Arc::new(Mutex::default());
    let metrics = metrics::source(Arc::clone(&shared), Arc::clone(&totals));
    let mut tasks = JoinSet::new();
    let router = admin::router(Arc::clone(&shared), Arc::clone(&metrics));
    tasks.spawn(async move {
        let _ = axum::serve(admin_socket, router).await;
    });
    tasks.spawn(google::keep_fresh(Arc::clone(&shared)));
    let identity = identity(&shared);
    let incarnation = identity.incarnation.clone();
    let out = match &config.control {
        Some(control) => {
            let link = Link::new(control, identity, config.policy_name.clone()).map_err(Error::Control)?;
            let (out, reports) = mpsc::channel(16);
            let serving = Arc::clone(&shared);
            tasks.spawn(link.run(Arc::new(ServingHolder(serving)), reports));
            Some(out)
        }
        None => None,
    };
    let reporter = Reporter { shared: Arc::clone(&shared), workers: asked, totals, out, incarnation };
    tasks.spawn(reporter.run());
    info!(%traffic, admin = %admin_addr, workers = workers.len(), "proxy started");
    Ok(Running {
        traffic,
        admin: admin_addr,
        shared,
        metrics: MetricsSourceHolder(metrics),
        stop,
        workers,
        _tasks: tasks,
    })
}

fn shared(config: &Config, traffic: SocketAddr) -> Result<Shared, Error> {
    let clock = Clock::start();
    let clock = config.wall_clock.map_or(clock, |wall| clock.pretending(wall));
    let secrets = Secrets::new(config.environment.clone());
    Ok(Shared {
        clock,
        holder: Holder::new(clock, config.data_dir.clone(), secrets),
        node: Node {
            id: node::id(config.node_id.as_deref(), &config.data_dir).map_err(Error::DataDir)?,
            zone: config.zone.clone(),
            region: config.region.clone(),
            address: Some(traffic),
        },
        connector: Connector::new().map_err(Error::Tls)?,
        tracer: config.tracer.clone(),
        log: Log::open(&config.access_log).map_err(Error::AccessLog)?,
        workers: config.workers.max(1),
        attempts_in_flight: AtomicU32::new(0),
        requests_in_flight: AtomicU32::new(0),
        connections: AtomicU32::new(0),
        draining: AtomicBool::new(false),
    })
}

fn identity(shared: &Shared) -> NodeIdentity {
    NodeIdentity {
        id: shared.node.id.clone(),
        incarnation: format!("{:016x}", rand::random::<u64>()),
        zone: shared.node.zone.clone(),
        region: shared.node.region.clone(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: unix_ms(SystemTime::now()),
        address: shared.node.address.map(|address| address.to_string()).unwrap_or_default(),
    }
}

/// The holder within what the workers share.
struct ServingHolder(Arc<Shared>);

impl Serving for ServingHolder {
    fn held(&self) -> crate::fleet::Held {
        self.0.holder.held()
    }

    fn take(
        &self,
        snapshot: penstock_proto::fleet::v1::Snapshot,
    ) -> Result<(), Vec<penstock_model::Problem>> {
        self.0.holder.take(snapshot)
    }

    fn connected(&self, connected: bool) {
        self.0.holder.connected(connected);
    }

    fn live(&self, state: penstock_model::live::LiveState) {
        self.0.holder.live(state);
    }
}

fn run_worker(
    shared: Arc<Shared>,
    socket: std::net::TcpListener,
    requests: Requests,
    stop: watch::Receiver<bool>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "a worker has no runtime");
            return;
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let worker = Rc::new(Worker::new(shared));
        tokio::task::spawn_local(Rc::clone(&worker).hand_over(requests));
        if worker.shared.log.is_on() {
            tokio::task::spawn_local(Rc::clone(&worker).flush_log());
        }
        listener::serve(Rc::clone(&worker), socket, stop).await;
        worker.shared.log.write(&mut worker.log.borrow_mut());
    });
}
