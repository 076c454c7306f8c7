//! Watches the head and publishes what the fleet is to serve.
//!
//! A reconciler: whatever the watch says, the answer is to read the head and publish the version it names, if it is
//! another than the published one. With the store away, the published one stays.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use penstock_model::Policy;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Error, Policies, Version};
use crate::backoff::Backoff;
use crate::fleet::Frame;
use crate::learning;
use crate::store::{Event, Reason, keys};

/// A version to be served.
#[derive(Debug)]
pub(crate) struct Published {
    /// Grows with every publication of this process: what nodes answer to.
    pub(crate) nonce: u64,
    pub(crate) version: Version,
    pub(crate) document: String,
    pub(crate) lineage: String,
    /// `None` when this build refuses the document (written past the API, or by a newer build). It is pushed all the
    /// same: proxies check for themselves, and say who refused what.
    pub(crate) policy: Option<Arc<Policy>>,
    /// What was trained from its examples, encoded; empty when there is nothing to train.
    pub(crate) capability_model: Bytes,
    frame: OnceLock<Frame>,
}

impl Published {
    /// Is it this very version?
    pub(crate) fn is(&self, lineage: &str, version: u64, content_hash: &str) -> bool {
        self.lineage == lineage
            && self.version.version == version
            && self.version.content_hash == content_hash
    }

    /// The message that brings it to a node, encoded when the first node needs it.
    pub(crate) fn frame(&self, policy: &str) -> Frame {
        self.frame.get_or_init(|| Frame::snapshot(policy, self)).clone()
    }
}

/// How the connection to the store is doing.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    state: Mutex<HealthState>,
}

#[derive(Debug, Default, Clone, Copy)]
struct HealthState {
    confirmed: Option<Instant>,
    resyncs: u64,
}

impl StoreHealth {
    fn confirm(&self) {
        self.state.lock().confirmed = Some(Instant::now());
    }

    /// Age of the last word from the store that all changes are known; `None` when there was none yet.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.state.lock().confirmed.map(|at| at.elapsed())
    }

    /// How often everything had to be read anew.
    pub(crate) fn resyncs(&self) -> u64 {
        self.state.lock().resyncs
    }
}

/// The task that keeps the published version current.
pub(crate) struct Follower {
    pub(crate) policies: Policies,
    pub(crate) initial_policy: Option<String>,
    pub(crate) published: watch::Sender<Option<Arc<Published>>>,
    pub(crate) health: Arc<StoreHealth>,
}

impl Follower {
    /// Runs until dropped.
    #[tracing::instrument(name = "policy_follower", skip_all)]
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        while let Err(error) = self.bootstrap().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot set up the store yet, trying again"
            );
            backoff.wait().await;
        }
        let mut watch = self.policies.store.watch(&keys::head(self.policies.name()), None);
        while let Some(event) = watch.next().await {
            match event {
                Event::Progress => {}
                Event::Changes { .. } => self.reconcile_until_done().await,
                Event::Resync { reason, .. } => {
                    if reason != Reason::Opened {
                        tracing::warn!(?reason, "everything was read anew from the store");
                        self.health.state.lock().resyncs += 1;
                    }
                    self.reconcile_until_done().await;
                }
            }
            self.health.confirm();
        }
    }

    async fn bootstrap(&self) -> Result<(), Error> {
        self.policies.lineage().await?;
        if let Some(document) = &self.initial_policy {
            self.policies.apply_first(document).await?;
        }
        Ok(())
    }

    /// Tries until the store answers. A damaged entry is left as it is until it changes.
    async fn reconcile_until_done(&self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        loop {
            let error = match self.reconcile().await {
                Ok(()) => return,
                Err(error) => error,
            };
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot read the stable policy version"
            );
            if !matches!(error, Error::Store(_)) {
                return;
            }
            backoff.wait().await;
        }
    }

    #[tracing::instrument(level = "debug", skip_all)]
    async fn reconcile(&self) -> Result<(), Error> {
        let head = self.policies.head().await?.head;
        if head.stable == 0 {
            if self.published.borrow().is_some() {
                tracing::error!("the store lost its policy; the last known one is served on: apply it again");
            }
            return Ok(());
        }
        let lineage = self.policies.lineage().await?;
        let known = self.published.borrow().clone();
        if known.as_ref().is_some_and(|known| known.is(&lineage, head.stable, &head.content_hash)) {
            return Ok(());
        }
        let version = head.stable;
        let record = self.policies.record(version).await?.ok_or(Error::Missing { version })?;
        let (document, policy) = compile(record.document).await;
        if policy.is_none() {
            tracing::error!(version, "the stable policy version does not validate; proxies will say why");
        }
        let capability_model = learning::capability_model(&*self.policies.store, policy.as_ref()).await;
        tracing::info!(version, "policy version published");
        let nonce = known.map_or(1, |known| known.nonce + 1);
        let frame = OnceLock::new();
        let published =
            Published { nonce, version: record.version, document, lineage, policy, capability_model, frame };
        self.published.send_replace(Some(Arc::new(published)));
        Ok(())
    }
}

async fn compile(document: String) -> (String, Option<Arc<Policy>>) {
    let compiled = tokio::task::spawn_blocking(move || {
        let policy = penstock_model::load(&document).policy.map(Arc::new);
        (document, policy)
    });
    compiled.await.expect("loading a document does not panic")
}
