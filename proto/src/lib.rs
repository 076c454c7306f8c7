//! Wire contracts: between the planes ([`fleet`]) and towards operators ([`admin`]).
//!
//! The `.proto` files beside this crate are the source and carry the documentation of every message; this crate
//! only holds what is generated from them. The serde derives give the JSON mapping of the admin API.

#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes_without_reason,
    clippy::large_enum_variant,
    reason = "generated code; the .proto files are the documentation"
)]

/// Proxies and the control plane: snapshots and live state down, reports up.
pub mod fleet {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("penstock.fleet.v1");
    }
}

/// Operators and the control plane: policies, nodes, backends, decisions.
pub mod admin {
    /// Version 1.
    pub mod v1 {
        tonic::include_proto!("penstock.admin.v1");
    }
}
