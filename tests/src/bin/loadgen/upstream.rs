//! The service behind the gateway for streams: a simulated one that answers everybody alike, event by event.

use std::net::SocketAddr;

use anyhow::Result;
use penstock_sim::ServiceConfig;
use serde_json::Value;

/// Serves until it is killed.
pub(crate) async fn run(listen: SocketAddr, tokens_per_second: f64, tokens: u32) -> Result<Value> {
    let _running = penstock_sim::start(ServiceConfig {
        listen,
        // What clients ask for, and what Penstock makes of it.
        models: vec!["auto".to_owned(), "bench".to_owned()],
        tokens_per_second,
        answer_tokens: tokens,
        ..ServiceConfig::new("bench")
    })
    .await?;
    std::future::pending().await
}
