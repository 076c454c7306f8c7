//! The two streams of one connection.

use std::error::Error;

use penstock_proto::fleet::v1::fleet_service_client::FleetServiceClient;
use penstock_proto::fleet::v1::{
    Ack, Hello, Nack, NodeReport, Snapshot, SubscribeRequest, subscribe_request, subscribe_response,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;
use tracing::{info, warn};

use super::convert;
use super::outbox::Outbox;
use super::{Link, Serving};

/// A document is at most 1 MiB, as is a capability model; live state of a large fleet is larger.
const MAX_MESSAGE: usize = 64 << 20;

/// Takes snapshots and live states until the stream breaks.
pub(super) async fn subscribe(link: &Link, channel: Channel, serving: &dyn Serving) -> Result<(), Status> {
    let mut client = FleetServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
    let (answers, queue) = mpsc::channel(4);
    let held = serving.held();
    let hello = subscribe_request::Message::Hello(Hello {
        node: Some(link.identity.clone()),
        policy: link.policy.clone(),
        have_version: held.version,
        have_hash: held.hash,
        have_lineage: held.lineage,
        have_capability_model: held.capability_model,
    });
    say(&answers, hello).await?;
    let mut stream = client.subscribe(ReceiverStream::new(queue)).await?.into_inner();
    while let Some(response) = stream.message().await? {
        match response.message {
            Some(subscribe_response::Message::Snapshot(snapshot)) => {
                say(&answers, take(serving, snapshot)).await?;
            }
            Some(subscribe_response::Message::Live(live)) => serving.live(convert::live(live)),
            None => {}
        }
    }
    Err(Status::unavailable("the control plane ended the stream"))
}

async fn say(
    answers: &mpsc::Sender<SubscribeRequest>,
    message: subscribe_request::Message,
) -> Result<(), Status> {
    let request = SubscribeRequest { message: Some(message) };
    answers.send(request).await.map_err(|_| Status::unavailable("the control plane ended the stream"))
}

/// Takes a snapshot in, or says why not. Compiling a large policy takes milliseconds, of this thread alone.
fn take(serving: &dyn Serving, snapshot: Snapshot) -> subscribe_request::Message {
    let (nonce, version, content_hash) = (snapshot.nonce, snapshot.version, snapshot.content_hash.clone());
    match serving.take(snapshot) {
        Ok(()) => {
            info!(version, content_hash, "policy taken");
            subscribe_request::Message::Ack(Ack { nonce, version, content_hash })
        }
        Err(problems) => {
            warn!(version, problems = problems.len(), "policy refused; the old one serves on");
            let problems = problems.into_iter().map(convert::problem).collect();
            subscribe_request::Message::Nack(Nack { nonce, version, problems })
        }
    }
}

/// Sends reports until the stream breaks (an error) or there are no more (`Ok`).
pub(super) async fn report(
    channel: Channel,
    reports: &mut mpsc::Receiver<NodeReport>,
    outbox: &mut Outbox,
) -> Result<(), Status> {
    let mut client = FleetServiceClient::new(channel);
    let (sender, queue) = mpsc::channel(16);
    for waiting in outbox.all() {
        // There is room: the outbox holds fewer than the queue.
        let _ = sender.try_send(waiting);
    }
    let opening = client.report(ReceiverStream::new(queue));
    let mut acks = opening.await?.into_inner();
    loop {
        tokio::select! {
            report = reports.recv() => {
                let Some(report) = report else { return Ok(()) };
                outbox.add(report.clone());
                // A full queue is a control plane that does not read: the outbox has the report.
                let _ = sender.try_send(report);
            }
            ack = acks.message() => match ack? {
                Some(ack) => outbox.acknowledge(ack.sequence),
                None => return Err(Status::unavailable("the control plane ended the stream")),
            },
        }
    }
}

/// The deepest cause of an error: "transport error" helps nobody.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error).to_string()
}
