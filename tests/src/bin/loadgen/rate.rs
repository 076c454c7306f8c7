//! Calls at a fixed rate. Latency counts from the instant a call was due, not from when it could be sent: a gateway that
//! stops for a moment pays for every call it kept waiting.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Load;
use crate::connection::Connection;
use crate::summary::Summary;

pub(crate) async fn run(load: Load, per_second: u32) -> Result<Value> {
    let mut connections = JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..load.connections {
        let (sender, due) = mpsc::channel(1024);
        connections.spawn(drive(Connection::new(load, false), due));
        senders.push(sender);
    }
    // The runtime's timer ticks once a millisecond; a thread of its own sleeps more exactly.
    let pacer = std::thread::spawn(move || pace(load, per_second, &senders));
    let mut all = Summary::default();
    while let Some(one) = connections.join_next().await {
        all.merge(one?);
    }
    let dropped = pacer.join().expect("the pacer does not panic");
    all.errors += dropped;
    Ok(all.into_json("rate", load))
}

/// A call that is due.
struct Due {
    at: Instant,
    counted: bool,
}

/// Hands each call to the next connection when it is due. Returns how many found no room: a connection that is a
/// thousand calls behind.
fn pace(load: Load, per_second: u32, connections: &[mpsc::Sender<Due>]) -> u64 {
    let start = Instant::now();
    let every = Duration::from_secs(1) / per_second;
    let calls = ((load.warm_up + load.seconds) * f64::from(per_second)) as u32;
    let mut dropped = 0;
    for (number, connection) in (0..calls).zip(connections.iter().cycle()) {
        let at = start + every * number;
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        let counted = at - start >= load.warm_up();
        dropped += u64::from(connection.try_send(Due { at, counted }).is_err());
    }
    dropped
}

async fn drive(mut connection: Connection, mut due: mpsc::Receiver<Due>) -> Summary {
    let mut summary = Summary::default();
    while let Some(call) = due.recv().await {
        let sent = Instant::now();
        match connection.call().await {
            Err(error) => summary.error(&error),
            Ok(_) if call.counted => {
                summary.latency.record(call.at.elapsed());
                summary.late.record(sent - call.at);
            }
            Ok(_) => {}
        }
    }
    summary
}
