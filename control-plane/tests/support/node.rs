//! A node made by hand: it says what a test tells it to.

use std::sync::atomic::{AtomicU64, Ordering};

use penstock_proto::fleet::v1::fleet_service_client::FleetServiceClient;
use penstock_proto::fleet::v1::subscribe_request::Message as Up;
use penstock_proto::fleet::v1::subscribe_response::Message as Down;
use penstock_proto::fleet::v1::{
    Ack, Hello, LiveState, Nack, NodeIdentity, NodeReport, Problem, ReportAck, Snapshot, SubscribeRequest,
    SubscribeResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

pub(crate) struct Node {
    pub(crate) id: String,
    up: mpsc::Sender<SubscribeRequest>,
    down: Streaming<SubscribeResponse>,
    client: FleetServiceClient<Channel>,
}

/// A node's `Report` stream.
pub(crate) struct Reports {
    up: mpsc::Sender<NodeReport>,
    down: Streaming<ReportAck>,
}

static INCARNATION: AtomicU64 = AtomicU64::new(0);

impl Node {
    /// Connects holding nothing.
    pub(crate) async fn connect(control: &str, id: &str) -> Self {
        Self::connect_with(control, id, Hello::default()).await
    }

    /// Connects holding what `hello` says.
    pub(crate) async fn connect_with(control: &str, id: &str, hello: Hello) -> Self {
        let mut client = FleetServiceClient::connect(control.to_owned()).await.unwrap();
        let identity = NodeIdentity {
            id: id.to_owned(),
            incarnation: INCARNATION.fetch_add(1, Ordering::Relaxed).to_string(),
            ..NodeIdentity::default()
        };
        let (up, requests) = mpsc::channel(8);
        let hello = Hello { node: Some(identity), ..hello };
        up.send(SubscribeRequest { message: Some(Up::Hello(hello)) }).await.unwrap();
        let down = client.subscribe(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Self { id: id.to_owned(), up, down, client }
    }

    pub(crate) async fn next(&mut self) -> Result<Down, Status> {
        let next = super::within("a message to the node", self.down.message()).await?;
        next.and_then(|response| response.message).ok_or_else(|| Status::unavailable("the stream ended"))
    }

    /// The next snapshot; live states in between are passed over.
    pub(crate) async fn snapshot(&mut self) -> Snapshot {
        loop {
            if let Down::Snapshot(snapshot) = self.next().await.unwrap() {
                return snapshot;
            }
        }
    }

    /// The next live state; it must not be preceded by a snapshot.
    pub(crate) async fn live(&mut self) -> LiveState {
        match self.next().await.unwrap() {
            Down::Live(live) => live,
            Down::Snapshot(snapshot) => panic!("an unexpected snapshot of version {}", snapshot.version),
        }
    }

    pub(crate) async fn ack(&self, snapshot: &Snapshot) {
        let ack = Ack {
            nonce: snapshot.nonce,
            version: snapshot.version,
            content_hash: snapshot.content_hash.clone(),
        };
        self.up.send(SubscribeRequest { message: Some(Up::Ack(ack)) }).await.unwrap();
    }

    pub(crate) async fn nack(&self, snapshot: &Snapshot, path: &str, message: &str) {
        let problem =
            Problem { path: path.to_owned(), message: message.to_owned(), severity: 1, ..Problem::default() };
        let nack = Nack { nonce: snapshot.nonce, version: snapshot.version, problems: vec![problem] };
        self.up.send(SubscribeRequest { message: Some(Up::Nack(nack)) }).await.unwrap();
    }

    pub(crate) async fn reports(&mut self) -> Reports {
        let (up, requests) = mpsc::channel(8);
        let down = self.client.report(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Reports { up, down }
    }
}

impl Reports {
    /// Sends one report and waits until it is taken in; gives the acknowledged sequence.
    pub(crate) async fn send(&mut self, report: NodeReport) -> u64 {
        self.up.send(report).await.unwrap();
        super::within("a report's ack", self.down.message()).await.unwrap().unwrap().sequence
    }
}
