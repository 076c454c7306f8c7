use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Mutex;

use penstock_model::Severity;
use penstock_proto::fleet::v1 as wire;
use penstock_proto::fleet::v1::fleet_service_server::{FleetService, FleetServiceServer};
use penstock_proto::fleet::v1::{
    ReportAck, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use super::*;

/// A control plane that says what a test wants and tells what it hears.
struct Fake {
    says: Mutex<Vec<SubscribeResponse>>,
    hears: mpsc::Sender<SubscribeRequest>,
    reports: mpsc::Sender<u64>,
    acknowledges: bool,
}

type Out<T> = Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl FleetService for Fake {
    type SubscribeStream = Out<SubscribeResponse>;
    type ReportStream = Out<ReportAck>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let mut heard = request.into_inner();
        let hears = self.hears.clone();
        let says = std::mem::take(&mut *self.says.lock().unwrap());
        let (out, stream) = mpsc::channel(8);
        tokio::spawn(async move {
            for response in says {
                out.send(Ok(response)).await.unwrap();
            }
            while let Ok(Some(message)) = heard.message().await {
                hears.send(message).await.unwrap();
            }
            drop(out);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn report(
        &self,
        request: Request<Streaming<NodeReport>>,
    ) -> Result<Response<Self::ReportStream>, Status> {
        let mut heard = request.into_inner();
        let (reports, acknowledges) = (self.reports.clone(), self.acknowledges);
        let (out, stream) = mpsc::channel(8);
        tokio::spawn(async move {
            while let Ok(Some(report)) = heard.message().await {
                let _ = reports.send(report.sequence).await;
                if acknowledges {
                    let _ = out.send(Ok(ReportAck { sequence: report.sequence })).await;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

#[derive(Default)]
struct Holder {
    taken: Mutex<Vec<u64>>,
    live: Mutex<Vec<u64>>,
}

impl Serving for Holder {
    fn held(&self) -> Held {
        Held { version: 1, hash: "one".to_owned(), lineage: "l".to_owned(), capability_model: String::new() }
    }

    fn take(&self, snapshot: Snapshot) -> Result<(), Vec<Problem>> {
        if snapshot.document.is_empty() {
            return Err(vec![Problem {
                path: "/routes/0".to_owned(),
                line: 1,
                column: 2,
                message: "bad".to_owned(),
                hint: String::new(),
                severity: Severity::Error,
            }]);
        }
        self.taken.lock().unwrap().push(snapshot.version);
        Ok(())
    }

    fn connected(&self, _: bool) {}

    fn live(&self, state: LiveState) {
        self.live.lock().unwrap().push(state.sequence);
    }
}

/// Serves on a runtime of its own: ending that ends its connections too, as the end of a process would.
fn serve(fake: Fake, address: SocketAddr) -> (SocketAddr, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_service(FleetServiceServer::new(fake));
    runtime.spawn(async move {
        let _ = server.serve_with_incoming(TcpListenerStream::new(listener)).await;
    });
    (address, runtime)
}

fn snapshot(version: u64, document: &str) -> SubscribeResponse {
    let snapshot = Snapshot { nonce: version, version, document: document.into(), ..Snapshot::default() };
    SubscribeResponse { message: Some(subscribe_response::Message::Snapshot(snapshot)) }
}

fn link(address: SocketAddr) -> Link {
    let identity = NodeIdentity { id: "n1".to_owned(), ..NodeIdentity::default() };
    Link::new(&format!("http://{address}"), identity, "default".to_owned()).unwrap()
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn node() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn a_good_snapshot_is_acked_after_the_swap_and_a_bad_one_nacked_with_its_path() {
    let (hears, mut heard) = mpsc::channel(8);
    let (reports, _reported) = mpsc::channel(8);
    let live = wire::LiveState { sequence: 7, ..wire::LiveState::default() };
    let live = SubscribeResponse { message: Some(subscribe_response::Message::Live(live)) };
    let says = Mutex::new(vec![snapshot(2, "good"), snapshot(3, ""), live]);
    let (address, server) = serve(Fake { says, hears, reports, acknowledges: true }, anywhere());
    node().block_on(async {
        let holder = Arc::new(Holder::default());
        let (_keep, queue) = mpsc::channel(1);
        tokio::spawn(link(address).run(Arc::clone(&holder) as Arc<dyn Serving>, queue));

        let hello = heard.recv().await.unwrap().message.unwrap();
        assert!(matches!(hello, subscribe_request::Message::Hello(hello) if hello.have_version == 1));
        let ack = heard.recv().await.unwrap().message.unwrap();
        assert!(matches!(ack, subscribe_request::Message::Ack(ack) if ack.version == 2 && ack.nonce == 2));
        let nack = heard.recv().await.unwrap().message.unwrap();
        let subscribe_request::Message::Nack(nack) = nack else { panic!("{nack:?}") };
        assert_eq!((nack.version, nack.problems[0].path.as_str()), (3, "/routes/0"));
        assert_eq!(*holder.taken.lock().unwrap(), [2]);
    });
    server.shutdown_background();
}

#[test]
fn reports_without_an_acknowledgement_are_sent_again_on_the_next_connection() {
    let (hears, mut heard) = mpsc::channel(8);
    let (reports, mut reported) = mpsc::channel(64);
    let fake = |acknowledges| Fake {
        says: Mutex::default(),
        hears: hears.clone(),
        reports: reports.clone(),
        acknowledges,
    };
    let (address, server) = serve(fake(false), anywhere());
    let (outgoing, queue) = mpsc::channel(4);
    let node = node();
    node.spawn(link(address).run(Arc::new(Holder::default()), queue));
    node.block_on(async {
        heard.recv().await.unwrap();
        for sequence in [1, 2] {
            outgoing.send(NodeReport { sequence, ..NodeReport::default() }).await.unwrap();
        }
        assert_eq!((reported.recv().await, reported.recv().await), (Some(1), Some(2)));
    });
    // Not until its last connection is gone: the node must not find the old server again.
    server.shutdown_timeout(Duration::from_secs(5));

    let (_, server) = serve(fake(true), address);
    node.block_on(async {
        assert_eq!((reported.recv().await, reported.recv().await), (Some(1), Some(2)));
        outgoing.send(NodeReport { sequence: 3, ..NodeReport::default() }).await.unwrap();
        assert_eq!(reported.recv().await, Some(3));
    });
    server.shutdown_background();
    node.shutdown_background();
}
