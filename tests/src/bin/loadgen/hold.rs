//! Many streams that stay open.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::stream::Events;
use crate::{Load, say};

/// How long all streams may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(load: Load) -> Result<Value> {
    let (began, mut beginnings) = mpsc::channel(load.connections.max(1));
    let mut streams = JoinSet::new();
    for _ in 0..load.connections {
        streams.spawn(hold(Connection::new(load, true), began.clone()));
    }
    tokio::time::timeout(PATIENCE, async {
        for _ in 0..load.connections {
            tokio::select! {
                _ = beginnings.recv() => {}
                Some(ended) = streams.join_next() => ended?.context("a stream ended before all had begun")?,
            }
        }
        Ok::<_, anyhow::Error>(())
    })
    .await
    .context("not all streams began")??;
    say("ready")?;
    tokio::time::sleep(load.measured()).await;
    ensure!(streams.len() == load.connections, "streams were lost");
    Ok(json!({"mode": "hold", "streams": load.connections}))
}

async fn hold(mut connection: Connection, began: mpsc::Sender<()>) -> Result<()> {
    let mut first = true;
    loop {
        let mut body = connection.send().await?.into_body();
        let mut events = Events::default();
        while let Some(frame) = body.frame().await {
            let counted = frame?.data_ref().map_or(0, |data| events.count(data));
            if first && counted > 0 {
                first = false;
                began.send(()).await?;
            }
        }
    }
}
