//! As many calls as the connections carry, one after the other on each.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Load;
use crate::connection::Connection;
use crate::summary::Summary;

pub(crate) async fn run(load: Load) -> Result<Value> {
    let from = Instant::now() + load.warm_up();
    let until = from + load.measured();
    let mut connections = JoinSet::new();
    for _ in 0..load.connections {
        connections.spawn(drive(Connection::new(load, false), from, until));
    }
    let mut all = Summary::default();
    while let Some(one) = connections.join_next().await {
        all.merge(one?);
    }
    Ok(all.into_json("saturate", load))
}

async fn drive(mut connection: Connection, from: Instant, until: Instant) -> Summary {
    let mut summary = Summary::default();
    loop {
        let sent = Instant::now();
        if sent >= until {
            return summary;
        }
        let result = connection.call().await;
        let now = Instant::now();
        if let Err(error) = &result {
            summary.error(error);
            // A gateway that is down must not be hammered.
            tokio::time::sleep(Duration::from_millis(10)).await;
        } else if sent >= from && now <= until {
            summary.latency.record(now - sent);
        }
    }
}
