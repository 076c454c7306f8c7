//! The routing simulator: services, proxies, a control plane and the time between them, in simulated time.
//!
//! ```text
//! Scenario + seed ──▶ World (events) ──▶ Log ──▶ Figures ──▶ docs/routing.md
//!                       ▲      │
//!          choose, ended│      ▼ servers: limited processor sharing
//!                     Policy: round robin, P2C, …, or Penstock's own decision crate
//! ```
//!
//! Every run is determined by its scenario and seed. All policies of a seed see the same requests.

pub mod measure;
mod penstock;
pub mod policy;
pub mod scenario;
pub mod server;
pub mod world;
