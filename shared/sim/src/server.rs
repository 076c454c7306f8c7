//! Takes connections and serves them until told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{Instrument as _, debug, debug_span, warn};

use crate::config::ServiceConfig;
use crate::fault::Fault;
use crate::io::{Link, SimIo};
use crate::service::Service;
use crate::stats::Stats;

/// Connections beyond this wait in the system's queue.
const MAX_CONNECTIONS: usize = 16_384;

/// Pause after a failed accept, which means that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running service. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Watches and disturbs a running service.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Service>);

impl Handle {
    /// Replaces the fault in force; [`Fault::default`] makes the service well again. Calls that hang or wait go on as
    /// they began.
    pub fn set_fault(&self, fault: Fault) {
        self.0.set_fault(fault);
    }

    /// The fault in force.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.0.fault()
    }

    /// What the service has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.counters.read()
    }
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL for clients, ending in `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// A handle that may outlive this.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// See [`Handle::set_fault`].
    pub fn set_fault(&self, fault: Fault) {
        self.handle.set_fault(fault);
    }

    /// See [`Handle::fault`].
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.handle.fault()
    }

    /// See [`Handle::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Stops listening and closes all connections, whatever they are doing.
    pub async fn shutdown(mut self) {
        // Should the task be gone already, there is nothing left to stop.
        if self.stop.take().is_some_and(|stop| stop.send(()).is_ok()) {
            let _ = (&mut self.task).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a service on the current tokio runtime. It listens when this returns.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn start(config: ServiceConfig) -> io::Result<Running> {
    let listener = TcpListener::bind(config.listen).await?;
    let addr = listener.local_addr()?;
    let span = debug_span!("simulated service", name = %config.name, %addr);
    let service = Arc::new(Service::new(config));
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(run(listener, Arc::clone(&service), stopped).instrument(span));
    Ok(Running { addr, handle: Handle(service), stop: Some(stop), task })
}

async fn run(listener: TcpListener, service: Arc<Service>, mut stopped: oneshot::Receiver<()>) {
    let builder = Arc::new(auto::Builder::new(TokioExecutor::new()));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((tcp, _)) => {
                    service.counters.connections.fetch_add(1, Relaxed);
                    connections.spawn(serve(tcp, Arc::clone(&service), Arc::clone(&builder)).in_current_span());
                }
                Err(error) => {
                    warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

async fn serve(tcp: TcpStream, service: Arc<Service>, builder: Arc<auto::Builder<TokioExecutor>>) {
    if let Err(error) = tcp.set_nodelay(true) {
        return debug!(%error, "connection lost before it began");
    }
    let link = Link::default();
    let io = SimIo::new(tcp, link.clone());
    let service = service_fn(move |request| {
        let (service, link) = (Arc::clone(&service), link.clone());
        async move { service.call(request, link).await }
    });
    if let Err(error) = builder.serve_connection(io, service).await {
        debug!(error, "connection ended");
    }
}
