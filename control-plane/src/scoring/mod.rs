//! Once a second: what the fleet saw becomes scores, shares and breaker states for every proxy.

mod show;

use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_proto::admin::v1::ListBackendsResponse;
use penstock_proto::fleet::v1::LiveState;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::unix_ms;
use crate::fleet::{Fleet, Frame};
use crate::policy::Drained;

const TICK: Duration = Duration::from_secs(1);

/// The outcome of one tick.
#[derive(Debug)]
pub(crate) struct Scored {
    /// As sent to the nodes.
    pub(crate) frame: Frame,
    live: LiveState,
    /// As shown to operators.
    pub(crate) backends: ListBackendsResponse,
}

/// Ticks until dropped. What is drained is not left waiting for the next tick.
pub(crate) async fn run(
    fleet: Arc<Fleet>,
    mut drained: watch::Receiver<Option<Arc<Drained>>>,
    scores: watch::Sender<Option<Arc<Scored>>>,
) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let changed = tokio::select! {
            _ = ticks.tick() => false,
            Ok(()) = drained.changed() => true,
        };
        // Without knowing what is drained, a control plane that starts would bring it back for a moment.
        let Some(newest) = drained.borrow_and_update().clone() else { continue };
        if changed {
            let marked = scores.borrow().as_ref().map(|scored| scored.marked(&newest));
            if let Some(marked) = marked {
                scores.send_replace(Some(Arc::new(marked)));
            }
            continue;
        }
        let now = Instant::now();
        fleet.nodes.forget(now);
        if let Some(scored) = tick(&fleet, &newest, now) {
            scores.send_replace(Some(Arc::new(scored)));
        }
        fleet.counters.scoring_durations.lock().record(now.elapsed().as_secs_f64());
    }
}

/// One tick; nothing before the first policy. A stable version that this build cannot compile leaves the last one in
/// place: its scores are of use to whatever the nodes serve.
#[tracing::instrument(name = "tick", level = "debug", skip_all)]
fn tick(fleet: &Fleet, drained: &Drained, now: Instant) -> Option<Scored> {
    let published = fleet.published.borrow().clone()?;
    let (connected, _) = fleet.nodes.count();
    let evidence = &mut *fleet.evidence.lock();
    if let Some(policy) = &published.policy {
        evidence.set_policy(policy, now);
    }
    let live = evidence.tick(published.version.version, connected as u32, drained, now)?;
    let live = show::live_state(&live, evidence, unix_ms());
    let backends = published.policy.as_ref().map(|policy| show::backends(policy, &live, evidence, now));
    Some(Scored { frame: Frame::live(live.clone()), live, backends: backends.unwrap_or_default() })
}

impl Scored {
    /// The same, but for what is drained.
    fn marked(&self, drained: &Drained) -> Self {
        let (mut live, mut backends) = (self.live.clone(), self.backends.clone());
        let shown = backends.targets.iter_mut().filter_map(|target| target.state.as_mut());
        for state in live.targets.iter_mut().chain(shown) {
            state.drained = drained.contains(&state.backend, &state.model);
        }
        Self { frame: Frame::live(live.clone()), live, backends }
    }
}
