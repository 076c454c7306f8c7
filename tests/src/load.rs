//! Open-loop load: calls leave at a fixed rate whatever the answers do, and every answer is recorded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::client::{Answer, Client};

/// What became of one call.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it was sent, since the load began.
    pub sent: Duration,
    /// How long it took.
    pub took: Duration,
    /// 0 when no answer came.
    pub status: u16,
    /// `x-penstock-backend`.
    pub backend: String,
    /// `x-penstock-policy`.
    pub policy: String,
    /// What went wrong, or the body of an answer that is not 200.
    pub error: String,
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    started: Instant,
    finished: oneshot::Receiver<Vec<Call>>,
}

impl Load {
    /// Sends `body` to `path` of the `targets` in turn, `per_second` times a second, over `connections` connections
    /// each.
    #[must_use]
    pub fn start(
        targets: Vec<SocketAddr>,
        path: &'static str,
        body: String,
        per_second: u32,
        connections: usize,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let started = Instant::now();
        let (sender, finished) = oneshot::channel();
        let stopping = Arc::clone(&stop);
        tokio::spawn(async move {
            let calls = run(targets, path, body, per_second, connections, started, stopping).await;
            let _ = sender.send(calls);
        });
        Self { stop, started, finished }
    }

    /// Time since the load began: the scale of [`Call::sent`].
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Stops sending, waits for what is under way, and returns every call in the order of sending.
    pub async fn stop(self) -> Vec<Call> {
        self.stop.store(true, Ordering::Relaxed);
        let mut calls = self.finished.await.unwrap_or_default();
        calls.sort_by_key(|call| call.sent);
        calls
    }
}

async fn run(
    targets: Vec<SocketAddr>,
    path: &'static str,
    body: String,
    per_second: u32,
    connections: usize,
    started: Instant,
    stop: Arc<AtomicBool>,
) -> Vec<Call> {
    let mut workers = JoinSet::new();
    let mut queues = Vec::new();
    for address in &targets {
        for _ in 0..connections {
            let (queue, jobs) = mpsc::channel(1);
            queues.push(queue);
            workers.spawn(worker(*address, path, body.clone(), started, jobs));
        }
    }
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    let mut sent = 0_u64;
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        tick.tick().await;
        let due = (started.elapsed().as_secs_f64() * f64::from(per_second)) as u64;
        while sent < due {
            // The first idle connection takes it; when all are busy, the load waits in line like a client's pool.
            let idle = (0..queues.len()).map(|step| (next + step) % queues.len());
            let free = idle.into_iter().find(|&index| queues[index].capacity() > 0);
            let index = free.unwrap_or(next);
            if queues[index].send(()).await.is_err() {
                break;
            }
            next = (index + 1) % queues.len();
            sent += 1;
        }
    }
    drop(queues);
    let mut calls = Vec::new();
    while let Some(done) = workers.join_next().await {
        calls.extend(done.unwrap_or_default());
    }
    calls
}

async fn worker(
    address: SocketAddr,
    path: &'static str,
    body: String,
    started: Instant,
    mut jobs: mpsc::Receiver<()>,
) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut client = None;
    while jobs.recv().await.is_some() {
        let sent = started.elapsed();
        let result = match client.take() {
            Some(client) => Ok(client),
            None => Client::connect(address).await,
        };
        let result = match result {
            Ok(mut open) => {
                let answer = open.send(Method::POST, path, body.clone()).await;
                client = answer.is_ok().then_some(open);
                answer
            }
            Err(error) => Err(error),
        };
        calls.push(record(sent, started.elapsed() - sent, result));
    }
    calls
}

fn record(sent: Duration, took: Duration, result: anyhow::Result<Answer>) -> Call {
    match result {
        Ok(answer) => Call {
            sent,
            took,
            status: answer.status.as_u16(),
            backend: answer.header("x-penstock-backend").to_owned(),
            policy: answer.header("x-penstock-policy").to_owned(),
            error: if answer.status.is_success() {
                String::new()
            } else {
                String::from_utf8_lossy(&answer.body).into_owned()
            },
        },
        Err(error) => Call {
            sent,
            took,
            status: 0,
            backend: String::new(),
            policy: String::new(),
            error: format!("{error:#}"),
        },
    }
}

/// The share of `calls` sent within `[from, to)` that went to a backend, and how many there were.
#[must_use]
pub fn share(calls: &[Call], backend: &str, from: Duration, to: Duration) -> (f64, usize) {
    let window: Vec<_> = calls.iter().filter(|call| call.sent >= from && call.sent < to).collect();
    let hits = window.iter().filter(|call| call.backend == backend).count();
    (hits as f64 / window.len().max(1) as f64, window.len())
}

/// The calls that did not end with 200.
#[must_use]
pub fn failures(calls: &[Call]) -> Vec<&Call> {
    calls.iter().filter(|call| call.status != 200).collect()
}
