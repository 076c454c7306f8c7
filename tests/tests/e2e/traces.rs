//! A real OpenTelemetry collector gets what the planes send.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use penstock_tests::client;
use penstock_tests::cluster::Demo;
use penstock_tests::process::{Process, free_port, local, rotel, until};

use crate::alone;

const SERVER: &str = "SPAN_KIND_SERVER";
const CLIENT: &str = "SPAN_KIND_CLIENT";

/// One trace per request: a server span, and the attempt below it; and metrics from both planes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_one_trace_per_request_with_its_attempt_as_a_child() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    let (grpc, http) = (local(free_port()?), local(free_port()?));
    let mut command = Command::new(rotel());
    command.args(["start", "--exporter", "blackhole"]);
    command.args(["--otlp-grpc-endpoint", &grpc.to_string(), "--otlp-http-endpoint", &http.to_string()]);
    command.args(["--debug-log", "traces", "--debug-log", "metrics", "--debug-log-verbosity", "detailed"]);
    let collector = Process::start("rotel", command, folder.path())
        .context("no OpenTelemetry collector: run `make tools`, or set ROTEL")?;
    until("the collector listens", Duration::from_secs(20), async || {
        tokio::net::TcpStream::connect(grpc).await.is_ok()
    })
    .await?;

    let demo = Demo::start(folder.path(), &["--otlp", &format!("http://{grpc}")]).await?;
    let answer = client::post(demo.traffic, "/api/invoke", &serde_json::json!({"prompt": "你好"})).await?;
    assert_eq!(answer.status, 200);

    until("spans arrive", Duration::from_secs(30), async || spans(&collector.output()).len() >= 2).await?;
    let found = spans(&collector.output());
    let roots: Vec<_> = found.iter().filter(|span| span.kind == SERVER).collect();
    assert_eq!(roots.len(), 1, "one server span for one request: {found:?}");
    let children: Vec<_> = found.iter().filter(|span| span.kind == CLIENT).collect();
    assert_eq!(children.len(), 1, "one client span for its one attempt: {found:?}");
    assert_eq!(children[0].trace, roots[0].trace);
    assert_eq!(children[0].parent, roots[0].id);

    for metric in ["gen_ai.server.request.duration", "penstock.nodes"] {
        until(&format!("{metric} arrives"), Duration::from_secs(30), async || {
            collector.output().contains(metric)
        })
        .await?;
    }
    Ok(())
}

#[derive(Debug, Default, Clone)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    kind: String,
}

/// Reads the collector's detailed log: blocks that begin with `Span #`, a `Name : value` a line.
fn spans(log: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for line in log.lines() {
        if line.starts_with("Span #") {
            spans.push(Span::default());
        }
        let (Some(span), Some((name, value))) = (spans.last_mut(), line.split_once(':')) else {
            continue;
        };
        let value = value.trim().to_owned();
        match name.trim() {
            "Trace ID" => span.trace = value,
            "ID" | "Span ID" => span.id = value,
            "Parent ID" => span.parent = value,
            "Kind" => span.kind = value,
            _ => {}
        }
    }
    spans.retain(|span| span.kind == SERVER || span.kind == CLIENT);
    spans
}
