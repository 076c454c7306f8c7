//! How Penstock decides. Pure: time and chance are arguments, nothing blocks, nothing is read from anywhere.
//!
//! ```text
//! per request   decide: route (rules) → capability → pool        pick: the better of two weighted draws
//!                                                                  ▲ local: own last seconds   ▲ breaker
//! per second    plan: shares and expectations of every pool ◀── live state ◀── fleet: evidence → score → weights
//! ```
//!
//! The right-hand side of the lower line runs in the control plane, all else in the proxies.

pub mod breaker;
pub mod capability;
pub mod classifier;
pub mod context;
mod decide;
pub mod facts;
pub mod filter;
pub mod fleet;
mod language;
pub mod local;
pub mod pick;
pub mod plan;
pub mod retry;
pub mod rules;
pub mod score;
#[cfg(test)]
mod testing;

pub use decide::{Decided, Undecided, decide};
pub use facts::Facts;
