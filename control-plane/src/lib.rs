//! The control plane: what the fleet serves, and how it is doing.
//!
//! ```text
//! operator ─▶ api ─▶ policy ─▶ store ─watch─▶ policy::follower ─▶ fleet ─snapshot──▶ proxies
//!                                              learning ──model──┘  ▲                   │
//!                              scoring ──live state, every second───┘◀────reports───────┘
//! ```
//!
//! The store holds what must survive (policies, who changed them); evidence, scores and nodes live in memory and
//! grow back within a minute of a restart. Proxies never wait for any of this: with the control plane gone they serve
//! on with what they have.

mod api;
mod backoff;
mod clock;
mod config;
mod evidence;
mod fleet;
mod learning;
mod metrics;
mod policy;
mod ready;
mod scoring;
mod server;
pub mod store;

pub use config::{Config, StoreConfig};
pub use server::{Error, Running, start};
