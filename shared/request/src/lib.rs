//! A client's request as rules see it: its path, its head, and one look at its body. Pure.
//!
//! ```text
//! path ─▶ Api ─┬─▶ context   what the head says
//! body ────────┴─▶ look ──▶ with_view   and what the body says ──▶ penstock_decision::decide
//!                    └────▶ needs       what a service must be able to do ──▶ penstock_decision::filter
//! ```
//!
//! A proxy decides by it, and the control plane explains by it what a proxy would decide: one code, so that they cannot
//! differ.

mod api;
mod context;
mod look;
mod needs;

pub use api::{Api, is_plain};
pub use context::{Origin, context, with_view};
pub use look::{Look, look};
pub use needs::needs;
