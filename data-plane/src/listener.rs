//! Accepting connections: HTTP/1.1 and HTTP/2 on one port, told apart by the first bytes.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::service;
use crate::stall::{STALL, Stalling};
use crate::worker::{LocalExecutor, Worker};

/// Until the first bytes of a connection are there.
const FIRST: Duration = Duration::from_secs(10);
/// The same once the proxy is about to end.
const LAST: Duration = Duration::from_secs(1);
/// Until the whole head of a request is there, on a kept connection counted from the answer before: longer than load
/// balancers keep a connection idle (60 s), so that they close it first and never send a request into a closed one.
const HEAD: Duration = Duration::from_secs(75);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4_096;
/// Request head and unit of reading.
const BUFFER: usize = 64 * 1024;
/// More headers are answered with 431.
const MAX_HEADERS: usize = 100;
/// Requests at a time on one HTTP/2 connection.
const STREAMS: u32 = 256;
/// What may lie here of one request that no service takes yet. A connection has room for that many, so that none of them
/// holds up the others.
const STREAM_WINDOW: u32 = 256 << 10;
/// The first bytes of every HTTP/2 connection. All of them are waited for: hyper has no limit in time for the rest.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first worker's socket. A socket that can be shared would silently share the port with another process's as well:
/// one that cannot is bound first, to see whether the port is free.
pub(crate) fn bind_first(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    drop(std::net::TcpListener::bind(address)?);
    bind(address)
}

/// A listening socket that others may share: the kernel spreads connections over them.
pub(crate) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Serves until told to stop, then until the last request is answered. Nobody is cut off here; the caller's patience
/// ends it.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    listener: std::net::TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let stopping = stop.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    connections.spawn_local(connection(Rc::clone(&worker), socket, peer, stopping.clone()));
                }
                Err(error) => {
                    // Out of file descriptors: give those in use time to come back.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            // Ended connections are cleared away as they end.
            Some(_) = connections.join_next() => {}
            _ = stop.wait_for(|&stop| stop) => break,
        }
    }
    // Who has connected already is served too; closing the socket would reset them.
    for (socket, peer) in waiting(listener) {
        connections.spawn_local(connection(Rc::clone(&worker), socket, peer, stopping.clone()));
    }
    while connections.join_next().await.is_some() {}
}

/// The connections that nobody has accepted yet. Asked of the kernel: the runtime may not have heard of them.
fn waiting(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let accepted = std::iter::from_fn(|| listener.accept().ok()).take(BACKLOG as usize);
    let ours = accepted.filter_map(|(socket, peer)| {
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket).ok()?, peer))
    });
    ours.collect()
}

async fn connection(
    worker: Rc<Worker>,
    socket: TcpStream,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    worker.shared.connections.fetch_add(1, Relaxed);
    let _open = Open(&worker);
    let Ok(Some(http2)) = is_http2(&socket, &mut stop).await else { return };
    let serving = Rc::clone(&worker);
    let service = service_fn(move |request| {
        let worker = Rc::clone(&serving);
        async move { Ok::<_, std::convert::Infallible>(service::serve(worker, peer, request).await) }
    });
    let io = TokioIo::new(Stalling::new(socket, STALL));
    if http2 {
        let connection = http2::Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAMS * STREAM_WINDOW)
            .keep_alive_interval(Duration::from_secs(20))
            .serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|&stop| stop) => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(BUFFER)
            .max_headers(MAX_HEADERS)
            .serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            // First the request whose bytes are there: hyper closes a connection that has not read any.
            biased;
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|&stop| stop) => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// Looks at the first bytes without taking them. `None` when there will be none.
async fn is_http2(socket: &TcpStream, stop: &mut watch::Receiver<bool>) -> io::Result<Option<bool>> {
    let looking = tokio::time::timeout(FIRST, async {
        let mut first = [0; PREFACE.len()];
        loop {
            let seen = socket.peek(&mut first).await?;
            if seen == 0 {
                return Ok(None);
            }
            if first[..seen] != PREFACE[..seen] {
                return Ok(Some(false));
            }
            if seen == PREFACE.len() {
                return Ok(Some(true));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    tokio::select! {
        seen = looking => seen.unwrap_or(Ok(None)),
        // A request may be on its way behind the connection.
        () = async {
            let _ = stop.wait_for(|&stop| stop).await;
            tokio::time::sleep(LAST).await;
        } => Ok(None),
    }
}

/// Counts a connection for as long as it is open.
struct Open<'a>(&'a Worker);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.shared.connections.fetch_sub(1, Relaxed);
    }
}
