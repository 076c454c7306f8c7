//! Connections that carry many requests at once, for services that speak HTTP/2: gRPC.
//!
//! One to each address and worker. Here the connection does have a task of its own, on the worker's thread: requests
//! share it, and no one of them could drive it for all.

use std::collections::HashMap;
use std::io;

use http::{Request, Response};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use penstock_model::policy::Address;
use tokio::task::spawn_local;

use super::body::RequestBody;
use super::connect::{Connector, Protocol};
use super::connection::Exchange;
use crate::worker::LocalExecutor;

/// The open connections of one worker, by upstream id.
#[derive(Debug, Default)]
pub(crate) struct Http2Pool {
    open: HashMap<usize, SendRequest<RequestBody>>,
}

impl Http2Pool {
    /// The open connection to an address.
    pub(crate) fn get(&mut self, upstream: usize) -> Option<SendRequest<RequestBody>> {
        let sender = self.open.get(&upstream)?;
        if sender.is_closed() {
            self.open.remove(&upstream);
            return None;
        }
        Some(sender.clone())
    }

    /// Keeps a new connection; one that two requests opened at once is simply replaced.
    pub(crate) fn put(&mut self, upstream: usize, sender: SendRequest<RequestBody>) {
        self.open.insert(upstream, sender);
    }
}

/// Opens a connection. The caller sets the limit in time.
pub(crate) async fn connect_http2(
    connector: &Connector,
    address: &Address,
) -> io::Result<SendRequest<RequestBody>> {
    let stream = connector.open(address, Protocol::Http2).await?;
    let (sender, connection) = http2::Builder::new(LocalExecutor)
        .timer(TokioTimer::new())
        .keep_alive_interval(std::time::Duration::from_secs(20))
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an HTTP/2 connection ended");
        }
    });
    Ok(sender)
}

/// Sends a request and waits for the head of the answer.
pub(crate) async fn send_http2(
    mut sender: SendRequest<RequestBody>,
    request: Request<RequestBody>,
) -> Result<(Response<()>, Exchange), hyper::Error> {
    sender.ready().await?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok((Response::from_parts(head, ()), Exchange::shared(body)))
}
