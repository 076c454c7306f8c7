//! Connections that carry many requests at once, for services that speak HTTP/2: gRPC.
//!
//! One to each address and worker. Here the connection does have a task of its own, on the worker's thread: requests
//! share it, and no one of them could drive it for all.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use http::{Request, Response};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use penstock_model::policy::Address;
use tokio::task::spawn_local;

use super::connect::{Connector, Protocol};
use super::connection::Exchange;
use super::upload::UploadBody;
use crate::clock::Moment;
use crate::worker::LocalExecutor;

/// A connection that nobody has used for so long is closed.
const IDLE: Duration = Duration::from_secs(90);
/// How often a connection with requests under way is tried for life, and how long it may take to show it.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(10);
/// What may lie here of one answer that its client does not take.
const STREAM_WINDOW: u32 = 128 << 10;
/// The same of all answers of a connection: so many that a few slow clients do not hold up the others.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// The open connections of one worker, by upstream id.
#[derive(Debug, Default)]
pub(crate) struct Http2Pool {
    open: HashMap<usize, (SendRequest<UploadBody>, Moment)>,
}

impl Http2Pool {
    /// The open connection to an address.
    pub(crate) fn get(&mut self, upstream: usize, now: Moment) -> Option<SendRequest<UploadBody>> {
        let (sender, used) = self.open.get_mut(&upstream)?;
        if sender.is_closed() {
            self.open.remove(&upstream);
            return None;
        }
        *used = now;
        Some(sender.clone())
    }

    /// Keeps a new connection. One that it replaces ends with the requests that it carries.
    pub(crate) fn put(&mut self, upstream: usize, sender: SendRequest<UploadBody>, now: Moment) {
        self.open.insert(upstream, (sender, now));
    }

    /// Closes what has been idle for too long, once it carries nothing.
    pub(crate) fn prune(&mut self, now: Moment) {
        self.open.retain(|_, (sender, used)| !sender.is_closed() && now.since(*used) <= IDLE);
    }
}

/// Opens a connection. The caller sets the limit in time.
pub(crate) async fn connect_http2(
    connector: &Connector,
    address: &Address,
) -> io::Result<SendRequest<UploadBody>> {
    let stream = connector.open(address, Protocol::Http2).await?;
    let (sender, connection) = http2::Builder::new(LocalExecutor)
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
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
    mut sender: SendRequest<UploadBody>,
    request: Request<UploadBody>,
) -> Result<(Response<()>, Exchange), TrySendError<Request<UploadBody>>> {
    let (head, body) = sender.try_send_request(request).await?.into_parts();
    Ok((Response::from_parts(head, ()), Exchange::shared(body)))
}
