//! One keep-alive connection.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Where all calls go.
const PATH: &str = "/v1/chat/completions";

/// The size of a request's body in bytes.
const REQUEST_BYTES: usize = 1024;

/// A connection that is made anew when it broke.
pub(crate) struct Connection {
    address: SocketAddr,
    body: Bytes,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, stream: bool) -> Self {
        Self { address, body: request_body(stream), sender: None }
    }

    /// Sends the call and returns the answer's head; the answer's body follows.
    pub(crate) async fn send(&mut self) -> Result<Response<Incoming>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            self.sender = Some(connect(self.address).await?);
        }
        let sender = self.sender.as_mut().expect("just connected");
        sender.ready().await?;
        let request = Request::post(PATH)
            .header("host", "gateway")
            .header("content-type", "application/json")
            .body(Full::new(self.body.clone()))?;
        let response = sender.send_request(request).await?;
        ensure!(response.status() == 200, "status {}", response.status());
        Ok(response)
    }

    /// Sends the call and reads the whole answer; its size in bytes.
    pub(crate) async fn call(&mut self) -> Result<usize> {
        let mut body = self.send().await?.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            size += frame?.data_ref().map_or(0, Bytes::len);
        }
        ensure!(size > 0, "an empty answer");
        Ok(size)
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A chat completion request of exactly [`REQUEST_BYTES`].
fn request_body(stream: bool) -> Bytes {
    let with = |text: &str| {
        serde_json::json!({
            "model": "auto",
            "messages": [
                {"role": "system", "content": "You are a helpful assistant. Answer in one short paragraph."},
                {"role": "user", "content": text},
            ],
            "temperature": 0.7,
            "max_tokens": 512,
            "stream": stream,
        })
        .to_string()
    };
    let sentence = "Tell me how water gets from a lake in the mountains to the turbine in the valley. ";
    let room = REQUEST_BYTES - with("").len();
    let text: String = sentence.chars().cycle().take(room).collect();
    Bytes::from(with(&text))
}
