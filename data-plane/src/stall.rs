//! A client's socket that gives up on a client that has stopped reading.
//!
//! A client sets the pace of its answer, and one that stops altogether would hold a service's generation, a connection
//! and what lies in its buffers for as long as it likes (SSE-13). It is cut off when the system has taken nothing more for
//! [`STALL`]; however slow, a client that reads is not. Within an HTTP/2 connection this sees the connection as a
//! whole, not its streams.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may read nothing while there is something for it.
pub(crate) const STALL: Duration = Duration::from_secs(60);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Stalling<S> {
    socket: S,
    stall: Duration,
    /// Set while a write waits.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    pub(crate) fn new(socket: S, stall: Duration) -> Self {
        Self { socket, stall, alarm: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let stall = self.stall;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(stall)));
        alarm.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(context, bytes);
        this.watch(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, slices);
        this.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_cut_off_sse_13() {
        let (client, socket) = duplex(16);
        let mut socket = Stalling::new(socket, SHORT);
        socket.write_all(&[0; 16]).await.unwrap();
        let error = socket.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_everything() {
        let (mut client, socket) = duplex(16);
        let mut socket = Stalling::new(socket, SHORT);
        let reading = async {
            let mut piece = [0; 16];
            for _ in 0..6 {
                sleep(SHORT / 4).await;
                client.read_exact(&mut piece).await.unwrap();
            }
        };
        // All of it takes longer than a stall may.
        let (written, ()) = tokio::join!(socket.write_all(&[0; 96]), reading);
        written.unwrap();
    }
}
