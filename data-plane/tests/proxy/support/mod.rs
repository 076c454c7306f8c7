//! What the tests stand on: a proxy, services that send exact bytes, and a client that sees exact bytes.

pub(crate) mod client;
pub(crate) mod grpc;
pub(crate) mod scripted;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use penstock_data_plane::{AccessLog, Config, Running, lkg, start};
use penstock_proto::fleet::v1::Snapshot;
use penstock_sim::ServiceConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The patience of every wait. No test waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy that serves one policy, with its folder and its access log.
pub(crate) struct Proxy {
    running: Running,
    folder: TempDir,
}

impl Proxy {
    /// Starts one that finds `policy` on disk.
    pub(crate) async fn start(policy: &Value) -> Self {
        Self::start_document(&policy.to_string()).await
    }

    /// Starts one that finds this policy on disk, in YAML or JSON.
    pub(crate) async fn start_document(document: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        lkg::write(folder.path(), &snapshot_of(document)).unwrap();
        Self::start_in(folder).await
    }

    /// Starts one on a folder as it is.
    pub(crate) async fn start_in(folder: TempDir) -> Self {
        Self::start_with(folder, 1).await
    }

    /// Starts one with so many workers.
    pub(crate) async fn start_with(folder: TempDir, workers: usize) -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = Config {
            listen: local,
            admin_listen: local,
            data_dir: folder.path().to_owned(),
            workers,
            access_log: AccessLog::File(folder.path().join("access.log")),
            environment: [("KEY".to_owned(), "sk-OURS".to_owned())].into(),
            ..Config::default()
        };
        Self { running: start(config).await.unwrap(), folder }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.traffic_addr()
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.running.admin_addr()
    }

    /// The lines of the access log, once there are `count`.
    pub(crate) async fn log(&self, count: usize) -> Vec<Value> {
        let path = self.folder.path().join("access.log");
        until(|| std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() >= count)).await;
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The sum of the samples of `metric` whose labels contain every one of `labels`.
    pub(crate) async fn metric(&self, metric: &str, labels: &[&str]) -> f64 {
        let text = client::get(self.admin(), "/metrics").await.text();
        let samples = text.lines().filter(|line| {
            line.split(['{', ' ']).next() == Some(metric) && labels.iter().all(|label| line.contains(label))
        });
        samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Ends it as an operator would.
    pub(crate) async fn shutdown(self) {
        self.running.shutdown(PATIENCE).await;
    }
}

/// `policy` as a control plane would send it.
pub(crate) fn snapshot(policy: &Value) -> Snapshot {
    snapshot_of(&policy.to_string())
}

fn snapshot_of(document: &str) -> Snapshot {
    Snapshot {
        policy: "default".to_owned(),
        version: 7,
        content_hash: penstock_model::content_hash(document),
        document: document.as_bytes().to_vec(),
        lineage: "test".to_owned(),
        ..Snapshot::default()
    }
}

/// A policy with one capability, one route over all of `backends`, and one model, `m`, at each.
pub(crate) fn policy(backends: &[(&str, SocketAddr)]) -> Value {
    let backend = |(name, addr): &(&str, SocketAddr)| {
        let backend = json!({
            "provider": "openai",
            "base_url": format!("http://{addr}/v1"),
            "credential": "env:KEY",
            "capabilities": ["chat"],
            "models": [{"name": "m", "price": {"input": "1", "output": "2"}}],
        });
        ((*name).to_owned(), backend)
    };
    json!({
        "version": 1,
        "capabilities": {"chat": {"default": true}},
        "backends": backends.iter().map(backend).collect::<serde_json::Map<_, _>>(),
        "routes": [{"name": "all", "retry": {"attempts": 2}}],
    })
}

/// `policy` with these timeouts on its route; those that are not named stay long.
pub(crate) fn with_timeouts(mut policy: Value, timeouts: Value) -> Value {
    policy["routes"][0]["timeouts"] = timeouts;
    policy
}

/// A simulated service with the model `m` that keeps its last request.
pub(crate) async fn sim(name: &str) -> penstock_sim::Running {
    let config = ServiceConfig { models: vec!["m".to_owned()], capture: true, ..ServiceConfig::new(name) };
    penstock_sim::start(config).await.unwrap()
}

/// Waits until `condition` holds, which something already under way brings about.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "it never came true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
