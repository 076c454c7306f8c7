//! Simulated AI services that speak the vendors' dialects.
//!
//! The demo's backends and the tests' vendors. Three aims: *strict*, refusing what the real service refuses, so that a
//! gateway's mistake shows; *repeatable*, every draw following from the seed and the number of the request; *fast*, so
//! that a benchmark measures the gateway: at zero latency a request takes no timer, no task and no lock that it shares.
//!
//! ```text
//! accept ─▶ connection ─▶ route ─▶ fault? ─▶ check the request ─▶ queue for a slot ─▶ wait ─▶ answer
//! ```
//!
//! A service is told to misbehave while it runs, by [`Handle::set_fault`] or `POST /sim/fault`, and counts what it did,
//! by [`Handle::stats`] or `GET /sim/stats`. It does not run a model: answers name the service and a digest of the
//! messages, so that people see who answered and tests see that nothing was lost on the way. What a request asks for
//! decides the rest: `use tool NAME` in the last user text calls a declared tool, `use tools A and B` calls both, results
//! of tools are quoted, a JSON schema gets an instance, images are named by type and size, reasoning comes when asked for.
//!
//! Each [`Dialect`] was read from its vendor's own documentation, apart from Penstock's adapters, so that a mistake on one
//! side shows on the other.

mod answer;
mod auth;
mod body;
mod check;
mod config;
mod dialect;
mod embeddings;
mod fault;
mod io;
mod media;
mod reject;
mod reply;
mod request;
mod sample;
mod script;
mod server;
mod service;
mod shape;
mod sigv4;
mod speech;
mod stats;

pub use answer::digest;
pub use config::{Capacity, Latency, ServiceConfig};
pub use dialect::{Dialect, UnknownDialect};
pub use fault::{Fault, Garbage, InvalidFault, Truncate};
pub use server::{Handle, Running, start};
pub use stats::{CapturedRequest, Ending, Stats};
