//! A service that sends exact bytes in exact pieces, and remembers what it was sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One thing that a service does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Writes this, in one piece of its own.
    Send(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Waits until the script is opened.
    Gate,
    /// Closes the connection in good order.
    Close,
    /// Resets it.
    Reset,
    /// Says nothing more, until the caller leaves.
    Silence,
}

/// Services that answer from one script: the first request that reaches any of them gets the first answer, and so on. The
/// last answer is for all requests after it.
#[derive(Debug, Clone)]
pub(crate) struct Script(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    answers: Mutex<VecDeque<Vec<Step>>>,
    requests: Mutex<Vec<Request>>,
    /// Callers that left while a service was silent.
    left: watch::Sender<usize>,
    /// Bytes that the system took for sending.
    sent: AtomicUsize,
    /// Connections that have ended.
    ended: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The number of the connection that it came on.
    pub(crate) connection: usize,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self(Arc::new(Shared {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            left: watch::channel(0).0,
            sent: AtomicUsize::new(0),
            ended: watch::channel(0).0,
            open: watch::channel(false).0,
        }))
    }

    /// One more service that answers from this script.
    pub(crate) async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((socket, _)) = listener.accept().await {
                number += 1;
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    shared.serve(socket, number).await;
                    shared.ended.send_modify(|ended| *ended += 1);
                });
            }
        });
        addr
    }

    /// What has come so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.0.requests.lock().unwrap().clone()
    }

    /// Lets those go on that wait at a gate.
    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Bytes sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.0.sent.load(Relaxed)
    }

    /// Waits until `count` callers have left a silent service.
    pub(crate) async fn left(&self, count: usize) {
        self.0.left.subscribe().wait_for(|left| *left >= count).await.unwrap();
    }

    /// Waits until `count` connections have ended.
    pub(crate) async fn ended(&self, count: usize) {
        self.0.ended.subscribe().wait_for(|ended| *ended >= count).await.unwrap();
    }
}

impl Shared {
    async fn serve(&self, mut socket: TcpStream, connection: usize) {
        socket.set_nodelay(true).unwrap();
        let mut buffer = Vec::new();
        while let Some((head, body)) = read_request(&mut socket, &mut buffer).await {
            self.requests.lock().unwrap().push(Request { head, body, connection });
            let steps = {
                let mut answers = self.answers.lock().unwrap();
                if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
            };
            for step in steps {
                match step {
                    Step::Send(bytes) => {
                        if socket.write_all(&bytes).await.is_err() {
                            return;
                        }
                        self.sent.fetch_add(bytes.len(), Relaxed);
                    }
                    Step::Pause(wait) => tokio::time::sleep(wait).await,
                    Step::Gate => drop(self.open.subscribe().wait_for(|open| *open).await.unwrap()),
                    Step::Close => return,
                    Step::Reset => return socket.set_zero_linger().unwrap(),
                    Step::Silence => {
                        while socket.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
                        self.left.send_modify(|left| *left += 1);
                        return;
                    }
                }
            }
        }
    }
}

/// The next request of a connection; `None` when there is none.
async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer.drain(..end).collect()).unwrap().to_ascii_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    while buffer.len() < length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, buffer.drain(..length).collect()))
}

/// A whole answer, and its status.
pub(crate) fn whole(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    vec![Step::Send(text.into_bytes())]
}

/// A good chat completion.
pub(crate) fn good() -> Vec<Step> {
    whole(200, "", GOOD)
}

/// The body of [`good`].
pub(crate) const GOOD: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"good"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#;

/// An event stream in chunked coding: each piece is a chunk and a write of its own. It is left open.
pub(crate) fn stream<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> Vec<Step> {
    let mut steps = vec![Step::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
    )];
    for piece in pieces {
        // Time for the reader to take the piece before, so that the two are not one read.
        steps.push(Step::Pause(Duration::from_millis(10)));
        steps.push(chunk(piece.as_ref()));
    }
    steps
}

/// One chunk of a stream.
pub(crate) fn chunk(bytes: &[u8]) -> Step {
    Step::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// The end of a chunked body.
pub(crate) fn end() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}

/// `steps` and then `step`.
pub(crate) fn then(mut steps: Vec<Step>, step: Step) -> Vec<Step> {
    steps.push(step);
    steps
}

/// A content delta as an event.
pub(crate) fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// The chunk that begins an answer and holds nothing of it.
pub(crate) const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
/// The chunk that ends an answer.
pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// The end mark.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
