//! One node's `Subscribe` stream: what it is sent, and its answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use penstock_decision::classifier::checksum;
use penstock_proto::fleet::v1::subscribe_request::Message;
use penstock_proto::fleet::v1::{Hello, SubscribeRequest};
use tokio::sync::{mpsc, watch};
use tonic::{Status, Streaming};
use tracing::Instrument;

use super::registry::Session;
use super::{Fleet, Frame, check_id};
use crate::policy::Published;
use crate::scoring::Scored;

/// How long a node may take to say who it is.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

pub(super) type Outbox = mpsc::Sender<Result<Frame, Status>>;

/// Serves the stream to its end. The outbox has room for one message: what is newest is looked up only when the last
/// one is on its way.
pub(super) async fn serve(fleet: Arc<Fleet>, mut inbound: Streaming<SubscribeRequest>, outbox: Outbox) {
    let end = match hello(&fleet, &mut inbound).await {
        Ok(hello) => {
            let node = hello.node.as_ref().map_or("", |node| node.id.as_str());
            let span = tracing::info_span!("subscribe", node, have_version = hello.have_version);
            connected(&fleet, &hello, inbound, &outbox).instrument(span).await
        }
        Err(status) => Err(status),
    };
    if let Err(status) = end {
        // The node may be gone already.
        let _ = outbox.send(Err(status)).await;
    }
}

async fn hello(fleet: &Fleet, inbound: &mut Streaming<SubscribeRequest>) -> Result<Hello, Status> {
    let first = tokio::time::timeout(HELLO_DEADLINE, inbound.message()).await;
    let first =
        first.map_err(|_| Status::deadline_exceeded("the first message must be Hello, within 10 s"))?;
    let Some(SubscribeRequest { message: Some(Message::Hello(hello)) }) = first? else {
        return Err(Status::invalid_argument("the first message must be Hello"));
    };
    check_id(hello.node.as_ref().map_or("", |node| &node.id))?;
    if !hello.policy.is_empty() && hello.policy != fleet.policy {
        let served = &fleet.policy;
        return Err(Status::failed_precondition(format!(
            "this control plane serves the policy `{served}`; start the proxy with --policy-name {served}"
        )));
    }
    Ok(hello)
}

async fn connected(
    fleet: &Arc<Fleet>,
    hello: &Hello,
    inbound: Streaming<SubscribeRequest>,
    outbox: &Outbox,
) -> Result<(), Status> {
    let session = fleet.nodes.connect(hello).map_err(|_| {
        Status::resource_exhausted("this control plane has as many nodes as it takes; start another one")
    })?;
    tracing::info!("node connected");
    let mut stream = Connected { news: News::new(fleet, hello), fleet: Arc::clone(fleet), session, inbound };
    let end = stream.run(outbox).await;
    tracing::info!("node disconnected");
    end
}

/// A node that has said hello. Disconnected when dropped.
struct Connected {
    fleet: Arc<Fleet>,
    session: Session,
    inbound: Streaming<SubscribeRequest>,
    news: News,
}

impl Connected {
    async fn run(&mut self, outbox: &Outbox) -> Result<(), Status> {
        loop {
            tokio::select! {
                biased;
                () = self.fleet.stop.cancelled() => {
                    return Err(Status::unavailable("the control plane is shutting down"));
                }
                message = self.inbound.message() => match message? {
                    Some(SubscribeRequest { message }) => self.take(message),
                    None => return Ok(()),
                },
                sent = self.news.deliver(outbox) => match sent {
                    Sent::Snapshot { nonce, version } => {
                        self.fleet.nodes.pushed(&self.session, nonce);
                        tracing::debug!(nonce, version, "snapshot sent");
                    }
                    Sent::Live => {}
                    Sent::Closed => return Ok(()),
                },
            }
        }
    }

    fn take(&self, message: Option<Message>) {
        let counters = &self.fleet.counters;
        match message {
            Some(Message::Ack(ack)) => {
                let version = ack.version;
                let latency = self.fleet.nodes.acked(&self.session, ack);
                counters.acks.fetch_add(1, Ordering::Relaxed);
                if let Some(latency) = latency {
                    counters.push_durations.lock().record(latency.as_secs_f64());
                }
                tracing::info!(version, ?latency, "node serves the policy version");
            }
            Some(Message::Nack(nack)) => {
                let first =
                    nack.problems.first().map(|problem| format!("{}: {}", problem.path, problem.message));
                tracing::warn!(version = nack.version, problem = first, "node refused the policy version");
                counters.nacks.fetch_add(1, Ordering::Relaxed);
                self.fleet.nodes.nacked(&self.session, nack);
            }
            // From a newer build, or a second greeting: neither changes anything.
            Some(Message::Hello(_)) | None => {}
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.fleet.nodes.disconnect(&self.session);
    }
}

/// What a node has not been sent yet: at most one snapshot and one live state, each the newest.
struct News {
    policy: String,
    published: watch::Receiver<Option<Arc<Published>>>,
    scores: watch::Receiver<Option<Arc<Scored>>>,
}

enum Sent {
    Snapshot {
        nonce: u64,
        version: u64,
    },
    Live,
    /// Nobody reads the stream any more, or nobody writes news.
    Closed,
}

impl News {
    fn new(fleet: &Fleet, hello: &Hello) -> Self {
        let mut published = fleet.published.clone();
        let held = published.borrow().as_ref().is_none_or(|published| {
            published.is(&hello.have_lineage, hello.have_version, &hello.have_hash)
                && checksum(&published.capability_model) == hello.have_capability_model
        });
        if held {
            published.mark_unchanged();
        } else {
            published.mark_changed();
        }
        let mut scores = fleet.scores.clone();
        scores.mark_changed();
        Self { policy: fleet.policy.clone(), published, scores }
    }

    /// Waits for room, then for news, and sends it. Between taking the news and sending it nothing waits, so that
    /// nothing is lost when this is dropped half-way.
    async fn deliver(&mut self, outbox: &Outbox) -> Sent {
        let Ok(permit) = outbox.reserve().await else { return Sent::Closed };
        loop {
            tokio::select! {
                biased;
                changed = self.published.changed() => {
                    if changed.is_err() {
                        return Sent::Closed;
                    }
                    let Some(published) = self.published.borrow_and_update().clone() else { continue };
                    permit.send(Ok(published.frame(&self.policy)));
                    return Sent::Snapshot { nonce: published.nonce, version: published.version.version };
                }
                changed = self.scores.changed() => {
                    if changed.is_err() {
                        return Sent::Closed;
                    }
                    let Some(scored) = self.scores.borrow_and_update().clone() else { continue };
                    permit.send(Ok(scored.frame.clone()));
                    return Sent::Live;
                }
            }
        }
    }
}
