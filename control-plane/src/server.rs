//! Starts a control plane and stops it.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Config;

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
}

/// A control plane at work. Dropping it stops it at once; [`Running::shutdown`] says goodbye to the nodes first.
#[derive(Debug)]
pub struct Running {
    grpc_addr: SocketAddr,
    http_addr: SocketAddr,
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

    /// Ends every stream and task, and returns when all are gone. Nothing is lost: the store commits every change as
    /// it is made.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Starts a control plane: returns once both listeners are bound.
///
/// # Errors
/// When an address cannot be bound.
pub async fn start(config: Config) -> Result<Running, Error> {
    let grpc = bind(config.grpc_listen, "--grpc-listen").await?;
    let http = bind(config.http_listen, "--http-listen").await?;
    let (grpc_addr, http_addr) = (local(&grpc), local(&http));
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let stopped = stop.clone().cancelled_owned();
    let router = Router::new().route("/health", get(async || "ok\n"));
    tasks.spawn(async move {
        let _ = axum::serve(http, router).with_graceful_shutdown(stopped).await;
    });
    Ok(Running { grpc_addr, http_addr, stop, tasks })
}

async fn bind(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, flag, source })
}

fn local(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}
