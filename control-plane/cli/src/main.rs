//! Penstock.
fn main() {}
