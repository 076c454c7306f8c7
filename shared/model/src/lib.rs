//! The policy document and what it becomes.
//!
//! ```text
//! YAML or JSON ──decode──▶ document::Document ──validate──▶ Policy ──number it──▶ Snapshot
//! ```
//!
//! [`load`] is the one way in; both planes call it, so that what the control plane accepts is exactly what a proxy
//! accepts. Everything after it is indices into the [`Policy`]'s vectors: a request never looks a name up.
//!
//! This crate does not decide anything: see `penstock-decision`.

pub mod document;
pub mod live;
pub mod outcome;
pub mod policy;
pub mod problem;
pub mod snapshot;

pub use policy::Policy;
pub use problem::{Problem, Severity};
pub use snapshot::Snapshot;
