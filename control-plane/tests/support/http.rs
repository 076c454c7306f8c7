//! The smallest HTTP client that can ask the JSON API.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), "", b"").await
}

/// `headers`: whole lines, each with its line end.
pub(crate) async fn post(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> Answer {
    ask(address, &format!("POST {path}"), headers, body).await
}

async fn ask(address: SocketAddr, method_and_path: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method_and_path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that has read enough closes early.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "answers have a length");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, body: body.to_owned() }
}
