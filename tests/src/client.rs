//! A small HTTP client for tests: one kept-alive connection, nothing hidden.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status line's code.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// A header's value, empty when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// One connection to one address.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { address, sender })
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Answer> {
        if self.sender.ready().await.is_err() {
            *self = Self::connect(self.address).await?;
        }
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .body(Full::new(body.into()))?;
        let response = self.sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body: body.collect().await?.to_bytes() })
    }

    /// POSTs JSON.
    pub async fn post(&mut self, path: &str, body: &serde_json::Value) -> Result<Answer> {
        self.send(Method::POST, path, body.to_string()).await
    }
}

/// One GET over a connection of its own.
pub async fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    Client::connect(address).await?.send(Method::GET, path, Bytes::new()).await
}

/// One POST of JSON over a connection of its own.
pub async fn post(address: SocketAddr, path: &str, body: &serde_json::Value) -> Result<Answer> {
    Client::connect(address).await?.post(path, body).await
}

/// A chat completion request of one user message.
#[must_use]
pub fn chat(prompt: &str, stream: bool) -> serde_json::Value {
    serde_json::json!({
        "model": "auto",
        "stream": stream,
        "messages": [{"role": "user", "content": prompt}],
    })
}
