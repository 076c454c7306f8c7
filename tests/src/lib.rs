//! What end-to-end tests and benchmarks share: a client, an open-loop load, processes that die with their handle, and
//! a whole Penstock made of them.

pub mod client;
pub mod cluster;
pub mod load;
pub mod process;
