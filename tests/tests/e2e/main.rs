//! The whole product, as shipped: the real binary, real sockets, real gRPC, a real etcd, a real OpenTelemetry collector.
//!
//! Tests that measure shares or send steady load run one after the other ([`alone`]), so that they do not take each
//! other's processor.

mod drain;
mod faults;
mod prompts;
mod rollout;
mod stability;
mod traces;

use std::net::SocketAddr;

use tokio::sync::{Mutex, MutexGuard};

/// Held by a test for as long as it runs.
async fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// A policy of one capability over these services, with a remark that makes each text differ.
fn policy(services: &[(&str, SocketAddr)], remark: &str) -> String {
    let mut text = format!(
        "# {remark}\nversion: 1\ncapabilities:\n  chat: {{default: true}}\nroutes:\n  - name: default\n    timeouts: \
         {{first_token: 3s}}\nbackends:\n"
    );
    for (name, address) in services {
        text.push_str(&format!(
            "  {name}:\n    provider: openai\n    base_url: http://{address}/v1\n    capabilities: [chat]\n    \
             models: [{{name: sim}}]\n"
        ));
    }
    text
}
