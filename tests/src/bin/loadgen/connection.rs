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

use crate::Load;

/// The size of a request's body in bytes.
const REQUEST_BYTES: usize = 1024;

/// A connection that is made anew when it broke.
pub(crate) struct Connection {
    address: SocketAddr,
    path: &'static str,
    body: Bytes,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn new(load: Load, stream: bool) -> Self {
        let path = if load.messages { "/v1/messages" } else { "/v1/chat/completions" };
        Self { address: load.target, path, body: request_body(load.messages, stream), sender: None }
    }

    /// Sends the call and returns the answer's head; the answer's body follows.
    pub(crate) async fn send(&mut self) -> Result<Response<Incoming>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            self.sender = Some(connect(self.address).await?);
        }
        let sender = self.sender.as_mut().expect("just connected");
        sender.ready().await?;
        let request = Request::post(self.path)
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

/// A request of exactly [`REQUEST_BYTES`], in Anthropic's form or in OpenAI's.
fn request_body(messages: bool, stream: bool) -> Bytes {
    let system = "You are a helpful assistant. Answer in one short paragraph.";
    let with = |text: &str| {
        let mut turns = vec![serde_json::json!({"role": "user", "content": text})];
        if !messages {
            turns.insert(0, serde_json::json!({"role": "system", "content": system}));
        }
        let mut body = serde_json::json!({
            "model": "auto",
            "messages": turns,
            "temperature": 0.7,
            "max_tokens": 512,
            "stream": stream,
        });
        if messages {
            body["system"] = system.into();
        }
        body.to_string()
    };
    let sentence = "Tell me how water gets from a lake in the mountains to the turbine in the valley. ";
    let room = REQUEST_BYTES - with("").len();
    let text: String = sentence.chars().cycle().take(room).collect();
    Bytes::from(with(&text))
}
