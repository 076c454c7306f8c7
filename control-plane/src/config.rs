//! What a control plane is started with.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings of one control plane. The binary reads flags, files and the environment; this crate reads none of them.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where proxies and the command line connect. Port 0 takes a free one: see [`crate::Running::grpc_addr`].
    pub grpc_listen: SocketAddr,
    /// Where the JSON API, `/health`, `/ready` and `/metrics` are. Port 0 takes a free one.
    pub http_listen: SocketAddr,
    /// Where policies are kept.
    pub store: StoreConfig,
    /// The policy this control plane serves, usually `default`.
    pub policy_name: String,
    /// The document that becomes version 1 when the store holds no version of the policy; otherwise unused.
    pub initial_policy: Option<String>,
}

/// Where policies are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// One file, used by this process alone. Created when it does not exist, with its folder.
    Embedded(PathBuf),
    /// An etcd cluster: client URLs such as `http://127.0.0.1:2379`.
    Etcd(Vec<String>),
}
