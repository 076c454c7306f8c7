//! What the tests of the store share: a real etcd process, a connection that can be cut, and a copy of the store kept
//! up to date by a watch.

#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub(crate) mod etcd;
pub(crate) mod proxy;
pub(crate) mod replica;

use std::time::Duration;

/// Longer than anything here takes on a busy machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails the test when nothing happens.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for: {what}"))
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
