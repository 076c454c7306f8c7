//! What a proxy is started with.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use opentelemetry_sdk::trace::SdkTracer;

/// Settings of one proxy. The binary reads flags, files and the environment; this crate reads none of them.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where applications send their calls. Port 0 takes a free one: see [`crate::Running::traffic_addr`].
    pub listen: SocketAddr,
    /// Where `/health`, `/ready` and `/metrics` are. Port 0 takes a free one.
    pub admin_listen: SocketAddr,
    /// `http://HOST:PORT` of the control plane. Without one, the proxy lives on what is on disk.
    pub control: Option<String>,
    /// The policy to serve, usually `default`.
    pub policy_name: String,
    /// This node's name, stable across restarts. Drawn once per data folder when not given.
    pub node_id: Option<String>,
    /// Where it runs; compared with the backends' zones.
    pub zone: String,
    /// Where it runs, more coarsely.
    pub region: String,
    /// For the last-known-good snapshot and the node's name.
    pub data_dir: PathBuf,
    /// Threads that serve traffic, at least 1.
    pub workers: usize,
    /// Where the access log goes.
    pub access_log: AccessLog,
    /// What `env:NAME` credentials refer to.
    pub environment: HashMap<String, String>,
    /// Where spans go, if anywhere.
    pub tracer: Option<SdkTracer>,
    /// What the wall clock is taken to show at the start, instead of the system's: for trying out what depends on the time
    /// of day. The binary leaves it alone.
    pub wall_clock: Option<SystemTime>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin_listen: SocketAddr::from(([127, 0, 0, 1], 9901)),
            control: None,
            policy_name: "default".to_owned(),
            node_id: None,
            zone: String::new(),
            region: String::new(),
            data_dir: PathBuf::from("."),
            workers: 1,
            access_log: AccessLog::Off,
            environment: HashMap::new(),
            tracer: None,
            wall_clock: None,
        }
    }
}

/// Where the access log goes: a JSON line per request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}
