//! Statistics that both planes share: latency sketches that can be merged, time windows, decayed sums.
//!
//! Everything here is pure: time comes in as an argument, nothing locks, nothing reads a clock.
//!
//! | | for |
//! |---|---|
//! | [`Sketch`] | quantiles of durations within 2 %, merged over threads and nodes |
//! | [`SecondRing`] | counts of the last N seconds |
//! | [`Decayed`] | averages in which old evidence fades |
//! | [`wilson_lower`] | "at least this share, even if we were lucky" |

mod decayed;
mod ring;
mod sketch;
mod wilson;

pub use decayed::{Decayed, decay};
pub use ring::SecondRing;
pub use sketch::{Sketch, WireError};
pub use wilson::wilson_lower;
