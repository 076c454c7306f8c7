//! The gRPC face of the fleet, written out by hand because the generated one would encode every message per node.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use penstock_proto::fleet::v1::{NodeReport, ReportAck, SubscribeRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::frame::FrameCodec;
use super::{Fleet, Frame, session};

/// `penstock.fleet.v1.FleetService`.
#[derive(Clone)]
pub(crate) struct FleetServer(pub(crate) Arc<Fleet>);

impl NamedService for FleetServer {
    const NAME: &'static str = "penstock.fleet.v1.FleetService";
}

impl Service<http::Request<Body>> for FleetServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let fleet = Arc::clone(&self.0);
        match request.uri().path().rsplit('/').next() {
            Some("Subscribe") => {
                Box::pin(async move { Ok(Grpc::new(FrameCodec).streaming(Subscribe(fleet), request).await) })
            }
            Some("Report") => Box::pin(async move {
                let codec = ProstCodec::<ReportAck, NodeReport>::default();
                Ok(Grpc::new(codec).streaming(Report(fleet), request).await)
            }),
            _ => Box::pin(ready(Ok(Status::unimplemented("no such method").into_http()))),
        }
    }
}

struct Subscribe(Arc<Fleet>);

impl StreamingService<SubscribeRequest> for Subscribe {
    type Response = Frame;
    type ResponseStream = ReceiverStream<Result<Frame, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<SubscribeRequest>>) -> Self::Future {
        let (outbox, frames) = mpsc::channel(1);
        tokio::spawn(session::serve(Arc::clone(&self.0), request.into_inner(), outbox));
        ready(Ok(Response::new(ReceiverStream::new(frames))))
    }
}

struct Report(Arc<Fleet>);

impl StreamingService<NodeReport> for Report {
    type Response = ReportAck;
    type ResponseStream = BoxStream<'static, Result<ReportAck, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<NodeReport>>) -> Self::Future {
        let stop = self.0.stop.clone().cancelled_owned();
        let acks =
            stream::unfold((Arc::clone(&self.0), request.into_inner()), async |(fleet, mut reports)| {
                let ack = reports.message().await.transpose()?.and_then(|report| fleet.take_report(report));
                Some((ack, (fleet, reports)))
            });
        ready(Ok(Response::new(acks.take_until(stop).boxed())))
    }
}
