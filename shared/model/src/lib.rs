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

pub mod adapter;
mod address;
pub mod condition;
mod constraint;
mod demo;
pub mod document;
mod features;
pub mod live;
mod load;
pub mod outcome;
mod pattern;
pub mod policy;
pub mod price;
pub mod problem;
pub mod schema;
mod settings;
pub mod snapshot;
mod units;
pub mod usage;
pub mod vendor;
mod window;

pub use demo::DEMO_POLICY;
pub use load::{Loaded, load};
pub use policy::Policy;
pub use problem::{Problem, Severity};
pub use snapshot::{Snapshot, content_hash};
pub use usage::Usage;
pub use vendor::Vendor;
