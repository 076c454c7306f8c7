//! New connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use penstock_model::policy::{Address, Host};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::stream::Stream;

/// Largest response head, and the unit of reading.
const BUFFER: usize = 64 * 1024;

/// What new connections need.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: TlsConnector,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Trusts Mozilla's root certificates, which are compiled in.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }
}

/// Opens a connection, TLS included. The caller sets the limit in time.
pub(crate) async fn connect(connector: &Connector, address: &Address) -> io::Result<Box<Connection>> {
    let socket = match &address.host {
        Host::Ip(ip) => TcpStream::connect(SocketAddr::new(*ip, address.port)).await?,
        Host::Name(name) => TcpStream::connect((name.as_str(), address.port)).await?,
    };
    socket.set_nodelay(true)?;
    let stream = if address.tls {
        let name = match &address.host {
            Host::Ip(ip) => ServerName::from(*ip),
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        };
        Stream::Tls(Box::new(connector.tls.connect(name, socket).await?))
    } else {
        Stream::Plain(socket)
    };
    let (sender, driver) = http1::Builder::new()
        .max_buf_size(BUFFER)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    Ok(Box::new(Connection::new(sender, driver)))
}
