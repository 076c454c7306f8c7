use std::net::SocketAddr;
use std::sync::Arc;

use opentelemetry::trace::{Span, SpanKind, Tracer, TracerProvider};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::*;
use crate::metric::{Histogram, Metric, MetricsSource};
use crate::names::{self, attribute};

const PATIENCE: Duration = Duration::from_secs(10);

/// A collector that passes on what it gets.
#[derive(Clone)]
struct Collector {
    traces: mpsc::Sender<ExportTraceServiceRequest>,
    metrics: mpsc::Sender<ExportMetricsServiceRequest>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.traces.send(request.into_inner()).await.unwrap();
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics.send(request.into_inner()).await.unwrap();
        Ok(Response::new(Default::default()))
    }
}

struct Received {
    endpoint: String,
    traces: mpsc::Receiver<ExportTraceServiceRequest>,
    metrics: mpsc::Receiver<ExportMetricsServiceRequest>,
}

async fn collector() -> Received {
    let (traces_in, traces) = mpsc::channel(16);
    let (metrics_in, metrics) = mpsc::channel(16);
    let collector = Collector { traces: traces_in, metrics: metrics_in };
    let incoming =
        tonic::transport::server::TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let endpoint = format!("http://{}", incoming.local_addr().unwrap());
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(collector.clone()))
            .add_service(MetricsServiceServer::new(collector))
            .serve_with_incoming(incoming),
    );
    Received { endpoint, traces, metrics }
}

fn config(endpoint: &str) -> Config {
    Config {
        endpoint: endpoint.to_owned(),
        service: names::span::SERVICE_PROXY,
        version: "1.2.3".to_owned(),
        instance: "node-1".to_owned(),
        sample_ratio: 1.0,
    }
}

fn source() -> MetricsSource {
    Arc::new(|| {
        let mut duration = Metric::new(&names::SERVER_REQUEST_DURATION);
        let mut histogram = Histogram::new(&names::SERVER_REQUEST_DURATION);
        histogram.record(0.3);
        duration.histogram(&[(attribute::BACKEND, "a")], histogram);
        vec![
            Metric::single(&names::REQUESTS, 7.0),
            Metric::single(&names::NODES, 2.0),
            duration,
            Metric::new(&names::ATTEMPTS),
        ]
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_every_kind_of_metric_with_unit_and_resource() {
    let mut received = collector().await;
    let exporter = spawn_metrics(&config(&received.endpoint), source()).unwrap();
    let request = tokio::time::timeout(PATIENCE, received.metrics.recv()).await.unwrap().unwrap();
    exporter.shutdown(PATIENCE).await;

    let resource = &request.resource_metrics[0].resource.as_ref().unwrap().attributes;
    let keys: Vec<_> = resource.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["service.name", "service.version", "service.instance.id"]);
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let found: Vec<_> = metrics.iter().map(|metric| (metric.name.as_str(), metric.unit.as_str())).collect();
    assert_eq!(
        found,
        [
            ("penstock.requests", "{request}"),
            ("penstock.nodes", "{node}"),
            ("gen_ai.server.request.duration", "s"),
            ("penstock.telemetry.export.failures", "{export}"),
        ]
    );
    assert!(matches!(&metrics[0].data, Some(Data::Sum(sum)) if sum.is_monotonic));
    assert!(matches!(&metrics[1].data, Some(Data::Gauge(_))));
    let Some(Data::Histogram(histogram)) = &metrics[2].data else {
        panic!("{:?}", metrics[2]);
    };
    let point = &histogram.data_points[0];
    assert_eq!((point.count, point.bucket_counts.len()), (1, point.explicit_bounds.len() + 1));
    assert!(point.start_time_unix_nano > 0 && point.time_unix_nano >= point.start_time_unix_nano);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_exports_metrics_once_more() {
    let mut received = collector().await;
    let exporter = spawn_metrics(&config(&received.endpoint), source()).unwrap();
    tokio::time::timeout(PATIENCE, received.metrics.recv()).await.unwrap().unwrap();
    exporter.shutdown(PATIENCE).await;
    assert!(received.metrics.try_recv().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_gone_does_not_hold_up_shutdown() {
    let exporter = spawn_metrics(&config("http://127.0.0.1:9"), source()).unwrap();
    tokio::time::timeout(PATIENCE, exporter.shutdown(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_are_flushed_at_shutdown_with_their_resource() {
    let mut received = collector().await;
    let provider = traces(&config(&received.endpoint)).unwrap();
    let tracer = provider.tracer("test");
    let mut span = tracer.span_builder("chat sim").with_kind(SpanKind::Server).start(&tracer);
    span.end();
    shutdown_traces(provider, PATIENCE).await;
    let request = tokio::time::timeout(PATIENCE, received.traces.recv()).await.unwrap().unwrap();
    let spans = &request.resource_spans[0];
    assert_eq!(spans.resource.as_ref().unwrap().attributes.len(), 3);
    assert_eq!(spans.scope_spans[0].spans[0].name, "chat sim");
}

#[test]
fn an_endpoint_that_cannot_work_is_refused() {
    for endpoint in
        ["collector:4317", "https://collector:4317", "http://ann:secret@collector:4317", "http://", ""]
    {
        let error = config(endpoint).check().unwrap_err();
        assert!(error.to_string().contains("4317"), "{error}");
    }
}
