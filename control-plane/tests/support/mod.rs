//! What the tests share: a real etcd process, a connection that can be cut, a copy of the store kept up to date by a
//! watch, a whole control plane, and a node made by hand.

#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub(crate) mod control;
pub(crate) mod etcd;
pub(crate) mod http;
pub(crate) mod node;
pub(crate) mod proxy;
pub(crate) mod replica;

use std::time::Duration;

/// Longer than anything here takes on a busy machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails the test when nothing happens.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for: {what}"))
}

/// Asks again until the answer is there: for what another process or task does without telling.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
