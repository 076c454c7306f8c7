//! This node's conversation with the control plane: one connection, two streams, and life without it.
//!
//! ```text
//! control plane ── Subscribe ──▶ snapshots: compiled beside the serving one, swapped, then ACKed; or NACKed
//!               ──           ──▶ live state
//!               ◀── Report ───── what the workers saw, once a second
//! ```
//!
//! Nothing here is on a request's way. When the connection breaks, it is made again with full jitter, from the first try
//! on, so that a fleet does not come back in one instant; reports that were not acknowledged are sent again and counted
//! once, because they carry sequence numbers.

mod backoff;
mod convert;
mod outbox;
mod session;

use std::sync::Arc;
use std::time::Duration;

use penstock_model::Problem;
use penstock_model::live::LiveState;
use penstock_proto::fleet::v1::{NodeIdentity, NodeReport, Snapshot};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tracing::{info, warn};

use backoff::Backoff;
use outbox::Outbox;

/// A connection that held this long was a good one.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The part of a proxy that holds the policy.
pub trait Serving: Send + Sync + 'static {
    /// What it serves now.
    fn held(&self) -> Held;
    /// Compiles `snapshot` beside the serving one and swaps it in. When this returns, requests are served by it.
    ///
    /// # Errors
    /// What is wrong with it; the old one serves on.
    fn take(&self, snapshot: Snapshot) -> Result<(), Vec<Problem>>;
    /// Is there a control plane at the other end?
    fn connected(&self, connected: bool);
    /// The newest live state.
    fn live(&self, state: LiveState);
}

/// Which snapshot a node holds; all empty when it holds none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Its version.
    pub version: u64,
    /// Its content hash.
    pub hash: String,
    /// Its store's lineage.
    pub lineage: String,
    /// The checksum of its capability model; empty when it came without one.
    pub capability_model: String,
}

/// Whom to talk to, and as whom.
#[derive(Debug, Clone)]
pub struct Link {
    /// `http://HOST:PORT` of the control plane.
    pub endpoint: Endpoint,
    /// This node.
    pub identity: NodeIdentity,
    /// The policy to serve.
    pub policy: String,
}

impl Link {
    /// Checks the address.
    ///
    /// # Errors
    /// When it is no `http://HOST:PORT`.
    pub fn new(
        control: &str,
        identity: NodeIdentity,
        policy: String,
    ) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(control.to_owned())?
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true);
        Ok(Self { endpoint, identity, policy })
    }

    /// Talks to the control plane until the reports end, whatever happens to the connection.
    pub async fn run(self, serving: Arc<dyn Serving>, mut reports: mpsc::Receiver<NodeReport>) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(15));
        let mut outbox = Outbox::default();
        let mut lost = false;
        loop {
            let connected = tokio::select! {
                channel = self.endpoint.connect() => channel,
                () = outbox.collect(&mut reports) => return,
            };
            let reason = match connected {
                Ok(channel) => {
                    info!(endpoint = %self.endpoint.uri(), "connected to the control plane");
                    lost = false;
                    let since = tokio::time::Instant::now();
                    serving.connected(true);
                    let ended = self.session(channel, &*serving, &mut reports, &mut outbox).await;
                    serving.connected(false);
                    if since.elapsed() > STABLE_AFTER {
                        backoff.reset();
                    }
                    match ended {
                        Ok(()) => return,
                        Err(status) => status.message().to_owned(),
                    }
                }
                Err(error) => session::cause(&error),
            };
            // Once per outage: a line for every try would bury everything else.
            if !std::mem::replace(&mut lost, true) {
                warn!(reason, "no control plane; serving on, and trying again");
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next(rand::random())) => {}
                () = outbox.collect(&mut reports) => return,
            }
        }
    }

    /// Both streams over one connection, until one of them ends. `Ok` when the reports have ended.
    async fn session(
        &self,
        channel: Channel,
        serving: &dyn Serving,
        reports: &mut mpsc::Receiver<NodeReport>,
        outbox: &mut Outbox,
    ) -> Result<(), tonic::Status> {
        tokio::select! {
            ended = session::subscribe(self, channel.clone(), serving) => ended,
            ended = session::report(channel, reports, outbox) => ended,
        }
    }
}

#[cfg(test)]
mod tests;
