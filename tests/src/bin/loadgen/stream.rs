//! Streams, one after the other on each connection.

use std::time::{Duration, Instant};

use anyhow::Result;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Load;
use crate::connection::Connection;
use crate::summary::Summary;

pub(crate) async fn run(load: Load) -> Result<Value> {
    let from = Instant::now() + load.warm_up();
    let until = from + load.measured();
    let mut connections = JoinSet::new();
    for number in 0..load.connections {
        // Spread over the warm-up, so that streams do not beat in step.
        let delay = load.warm_up().mul_f64(0.5 * number as f64 / load.connections as f64);
        connections.spawn(drive(Connection::new(load, true), delay, from, until));
    }
    let mut all = Summary::default();
    while let Some(one) = connections.join_next().await {
        all.merge(one?);
    }
    Ok(all.into_json("streams", load))
}

async fn drive(mut connection: Connection, delay: Duration, from: Instant, until: Instant) -> Summary {
    let mut summary = Summary::default();
    tokio::time::sleep(delay).await;
    while Instant::now() < until {
        if let Err(error) = stream(&mut connection, from, until, &mut summary).await {
            summary.error(&error);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    summary
}

/// One stream to its end, or to the end of the measurement.
async fn stream(
    connection: &mut Connection,
    from: Instant,
    until: Instant,
    summary: &mut Summary,
) -> Result<()> {
    let sent = Instant::now();
    let mut body = connection.send().await?.into_body();
    let mut events = Events::default();
    let mut first = true;
    while let Some(frame) = body.frame().await {
        let now = Instant::now();
        if now > until {
            return Ok(());
        }
        let frame = frame?;
        let Some(data) = frame.data_ref() else { continue };
        let counted = events.count(data);
        if now >= from {
            summary.chunks += counted;
            summary.frames += 1;
        }
        if first && counted > 0 {
            first = false;
            if sent >= from {
                summary.latency.record(now - sent);
            }
        }
    }
    Ok(())
}

/// Counts server-sent events: each ends in an empty line.
#[derive(Debug, Default)]
pub(crate) struct Events {
    ended_line: bool,
}

impl Events {
    /// How many end in `data`, which goes on where the last piece stopped.
    pub(crate) fn count(&mut self, data: &[u8]) -> u64 {
        let mut events = 0;
        for byte in data {
            if *byte == b'\n' {
                events += u64::from(self.ended_line);
                self.ended_line = !self.ended_line;
            } else if *byte != b'\r' {
                self.ended_line = false;
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_across_pieces() {
        let mut events = Events::default();
        assert_eq!(events.count(b"data: a\n\ndata: b\n"), 1);
        assert_eq!(events.count(b"\ndata: c\r\n\r"), 1);
        assert_eq!(events.count(b"\n"), 1);
    }
}
