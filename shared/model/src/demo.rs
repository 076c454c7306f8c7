//! The policy that `penstock up` starts with.

/// Three capabilities with two simulated services each, at `http://127.0.0.1:18081/v1` and the five ports after it.
pub const DEMO_POLICY: &str = include_str!("../demo.yaml");
