//! A connection that can end badly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How a connection is to end, if not with FIN as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Farewell {
    /// RST.
    Reset = 1,
    /// Bytes that are no HTTP, then FIN.
    Garbage = 2,
}

/// The service's say in how its connection ends. Zero is FIN.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link(Arc<AtomicU8>);

impl Link {
    pub(crate) fn end_with(&self, farewell: Farewell) {
        self.0.store(farewell as u8, Relaxed);
    }
}

/// A TCP connection that says farewell as its [`Link`] tells when hyper lets go of it.
#[derive(Debug)]
pub(crate) struct SimIo {
    tcp: TokioIo<TcpStream>,
    link: Link,
}

impl SimIo {
    pub(crate) fn new(tcp: TcpStream, link: Link) -> Self {
        Self { tcp: TokioIo::new(tcp), link }
    }
}

impl Drop for SimIo {
    fn drop(&mut self) {
        let farewell = self.link.0.load(Relaxed);
        // Nobody is left to tell of a failure, and the connection closes either way.
        if farewell == Farewell::Reset as u8 {
            let _ = self.tcp.inner().set_zero_linger();
        } else if farewell == Farewell::Garbage as u8 {
            let _ = self.tcp.inner().try_write(b"\x15\x03\x03\x00\x02\x02\x28 this is not HTTP\r\n\r\n");
        }
    }
}

impl Read for SimIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl Write for SimIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }
}
