//! A TCP connection that can fall silent or break.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Bytes go through.
    Open,
    /// Connections stay open, but bytes are thrown away: a network that drops packets.
    Silent,
    /// Connections are closed, new ones too.
    Cut,
}

/// Forwards to one address.
pub(crate) struct Proxy {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, watched) = watch::channel(Mode::Open);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, port, watched.clone()));
            }
        });
        Self { address, mode, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections made before and during the silence never carry anything again, as after a lost packet without a
    /// retransmission: only new ones work after [`Proxy::heal`].
    pub(crate) fn silence(&self) {
        self.mode.send_replace(Mode::Silent);
    }

    pub(crate) fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }

    pub(crate) fn heal(&self) {
        self.mode.send_replace(Mode::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(client: TcpStream, port: u16, mode: watch::Receiver<Mode>) {
    if *mode.borrow() == Mode::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    tokio::join!(copy(client_read, server_write, mode.clone()), copy(server_read, client_write, mode));
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mode: watch::Receiver<Mode>) {
    let mut buffer = vec![0; 16 << 10];
    let mut silent = *mode.borrow_and_update() == Mode::Silent;
    loop {
        tokio::select! {
            biased;
            changed = mode.changed() => {
                if changed.is_err() || *mode.borrow() == Mode::Cut {
                    return;
                }
                silent |= *mode.borrow_and_update() == Mode::Silent;
            }
            read = from.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) if silent => {}
                Ok(count) => {
                    if to.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
