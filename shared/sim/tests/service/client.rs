//! A client that shows what went over the wire.

use std::net::SocketAddr;

use penstock_sim::Running;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// How the connection ended, if badly.
    pub(crate) error: Option<std::io::ErrorKind>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The `data` of each event of a chunked stream.
    pub(crate) fn events(&self) -> Vec<String> {
        unchunk(&self.body)
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("data: "))
            .map(str::to_owned)
            .collect()
    }

    /// Did a chunked body end with its last chunk?
    pub(crate) fn is_whole(&self) -> bool {
        self.body.ends_with(b"0\r\n\r\n")
    }
}

fn unchunk(mut body: &[u8]) -> String {
    let mut out = Vec::new();
    while let Some(line) = body.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        let Some(chunk) = body.get(line + 2..line + 2 + size) else { break };
        out.extend_from_slice(chunk);
        body = body.get(line + 2 + size + 2..).unwrap_or_default();
    }
    String::from_utf8(out).unwrap()
}

/// Sends bytes on a fresh connection and reads until it closes.
pub(crate) async fn raw(addr: SocketAddr, request: &str) -> Answer {
    let mut tcp = TcpStream::connect(addr).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let error = tcp.read_to_end(&mut bytes).await.err().map(|error| error.kind());
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let body = bytes.split_off(split);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body, error }
}

/// One call on a connection of its own.
pub(crate) async fn call(service: &Running, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    raw(service.addr(), &request).await
}

pub(crate) async fn post(service: &Running, path: &str, body: &Value) -> Answer {
    call(service, "POST", path, "content-type: application/json\r\n", &body.to_string()).await
}

/// A chat call to the model `m`.
pub(crate) async fn chat(service: &Running, stream: bool) -> Answer {
    post(service, "/v1/chat/completions", &chat_body(stream)).await
}

pub(crate) fn chat_body(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}
