//! An HTTP/1.1 client that shows what really came, and when.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// An answer, as far as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and headers as they came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Did its framing come to its end?
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of an error in OpenAI's shape, every field of which must be there.
    pub(crate) fn error_code(&self) -> String {
        let body = self.json();
        let error = &body["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{body}");
        assert!(error.as_object().unwrap().contains_key("param"), "{body}");
        error["code"].as_str().unwrap().to_owned()
    }
}

/// A connection.
pub(crate) struct Client {
    socket: TcpStream,
    raw: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, raw: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) {
        self.send(request(path, "", body).as_bytes()).await;
    }

    /// Reads until the body, without its framing, contains `text`.
    pub(crate) async fn until(&mut self, text: &str) -> Answer {
        self.read_until(|answer| answer.body.windows(text.len()).any(|window| window == text.as_bytes()))
            .await
    }

    /// Reads one whole answer, or what comes of it until the connection ends.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.read_until(|answer| answer.whole).await
    }

    /// Reads the head of an answer.
    pub(crate) async fn answer_head(&mut self) -> Answer {
        self.read_until(|_| true).await
    }

    /// Reads to the end of a chunked body without looking at it; returns how many bytes came.
    pub(crate) async fn drain(&mut self) -> usize {
        let mut length = self.raw.len();
        while !self.raw.ends_with(b"\r\n0\r\n\r\n") {
            let keep = self.raw.len().saturating_sub(7);
            self.raw.drain(..keep);
            length += timeout(PATIENCE, self.socket.read_buf(&mut self.raw)).await.unwrap().unwrap();
        }
        length
    }

    /// True when the proxy has ended the connection and nothing more came.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let read = timeout(PATIENCE, self.socket.read_buf(&mut self.raw)).await.unwrap();
        read.map_or(true, |read| read == 0)
    }

    async fn read_until(&mut self, enough: impl Fn(&Answer) -> bool) -> Answer {
        timeout(PATIENCE, async {
            loop {
                if let Some((answer, length)) = parse(&self.raw)
                    && enough(&answer)
                {
                    if answer.whole {
                        self.raw.drain(..length);
                    }
                    return answer;
                }
                if !matches!(self.socket.read_buf(&mut self.raw).await, Ok(1..)) {
                    return parse(&self.raw).expect("the connection ended before an answer").0;
                }
            }
        })
        .await
        .unwrap_or_else(|_| panic!("only this came: {}", String::from_utf8_lossy(&self.raw)))
    }
}

/// A POST request as text. `headers` are whole lines.
pub(crate) fn request(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

/// Sends `bytes` on a connection of their own and reads one answer.
pub(crate) async fn raw(addr: SocketAddr, bytes: &[u8]) -> Answer {
    let mut client = Client::connect(addr).await;
    client.send(bytes).await;
    client.answer().await
}

pub(crate) async fn post(addr: SocketAddr, path: &str, body: &str) -> Answer {
    raw(addr, request(path, "", body).as_bytes()).await
}

pub(crate) async fn get(addr: SocketAddr, path: &str) -> Answer {
    raw(addr, format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n").as_bytes()).await
}

/// A small chat call.
pub(crate) async fn chat(addr: SocketAddr, stream: bool) -> Answer {
    post(addr, "/v1/chat/completions", &chat_body(stream)).await
}

pub(crate) fn chat_body(stream: bool) -> String {
    format!(r#"{{"model":"auto","stream":{stream},"messages":[{{"role":"user","content":"hi"}}]}}"#)
}

/// The answer at the start of `raw`, as far as it came, and how many bytes it takes.
fn parse(raw: &[u8]) -> Option<(Answer, usize)> {
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(raw[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: Vec::new(), whole: false };
    let rest = &raw[end..];
    if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().unwrap();
        answer.whole = rest.len() >= length;
        answer.body = rest[..length.min(rest.len())].to_vec();
        return Some((answer, end + length));
    }
    let mut at = 0;
    while let Some(line) = rest[at..].windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[at..at + line]).unwrap(), 16).unwrap();
        at += line + 2;
        let piece = &rest[at.min(rest.len())..(at + size).min(rest.len())];
        answer.body.extend_from_slice(piece);
        if size == 0 {
            answer.whole = rest.len() >= at + 2;
            return Some((answer, end + at + 2));
        }
        at += size + 2;
        if at > rest.len() {
            break;
        }
    }
    Some((answer, raw.len()))
}
