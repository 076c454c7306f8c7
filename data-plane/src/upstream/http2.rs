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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use rustls::{RootCertStore, ServerConfig};
    use tokio::net::TcpListener;
    use tokio::task::LocalSet;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// What becomes of a connection to a service with TLS that offers these protocols; `true` when the service has it too.
    async fn connected(offered: &[&[u8]]) -> io::Result<bool> {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = key.cert.der().clone();
        let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], secret)
            .unwrap();
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let service = spawn_local(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(socket).await else { return false };
            h2::server::handshake(stream).await.is_ok()
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let connector = Connector::trusting(roots).unwrap();
        let _sender = connect_http2(&connector, &Address::of(&address).unwrap()).await?;
        Ok(service.await.unwrap())
    }

    #[tokio::test]
    async fn over_tls_http2_is_spoken_where_the_service_says_so_and_nowhere_else() {
        LocalSet::new()
            .run_until(async {
                assert!(connected(&[b"h2", b"http/1.1"]).await.unwrap());
                assert!(connected(&[b"http/1.1"]).await.is_err());
                let silent = connected(&[]).await.unwrap_err();
                assert_eq!(silent.to_string(), "the service does not speak HTTP/2");
            })
            .await;
    }
}
