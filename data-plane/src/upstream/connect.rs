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
    http1: TlsConnector,
    http2: TlsConnector,
}

/// What is to be spoken over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// The name of HTTP/2 in TLS (RFC 9113 section 3.2).
const H2: &[u8] = b"h2";

impl std::fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Trusts Mozilla's root certificates, which are compiled in.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        Self::trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
    }

    pub(super) fn trusting(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut connector = |protocol: &[u8]| {
            config.alpn_protocols = vec![protocol.to_vec()];
            TlsConnector::from(Arc::new(config.clone()))
        };
        Ok(Self { http1: connector(b"http/1.1"), http2: connector(H2) })
    }

    /// Opens a socket, TLS included.
    pub(super) async fn open(&self, address: &Address, protocol: Protocol) -> io::Result<Stream> {
        let socket = match &address.host {
            Host::Ip(ip) => TcpStream::connect(SocketAddr::new(*ip, address.port)).await?,
            Host::Name(name) => TcpStream::connect((name.as_str(), address.port)).await?,
        };
        socket.set_nodelay(true)?;
        if !address.tls {
            return Ok(Stream::Plain(socket));
        }
        let name = match &address.host {
            Host::Ip(ip) => ServerName::from(*ip),
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        };
        if protocol == Protocol::Http1 {
            return Ok(Stream::Tls(Box::new(self.http1.connect(name, socket).await?)));
        }
        let stream = self.http2.connect(name, socket).await?;
        // A service that says nothing would take the first frames for a broken HTTP/1.1.
        if stream.get_ref().1.alpn_protocol() != Some(H2) {
            return Err(io::Error::other("the service does not speak HTTP/2"));
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Opens a connection for one request at a time. The caller sets the limit in time.
pub(crate) async fn connect(connector: &Connector, address: &Address) -> io::Result<Box<Connection>> {
    let stream = connector.open(address, Protocol::Http1).await?;
    let (sender, driver) = http1::Builder::new()
        .max_buf_size(BUFFER)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    Ok(Box::new(Connection::new(sender, driver)))
}
