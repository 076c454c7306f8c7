//! A whole proxy over real sockets, before services that behave and services that do not.

#![expect(clippy::unwrap_used, reason = "a test may fail at once")]

mod cache;
mod capabilities;
mod connections;
mod generic;
mod generic_grpc;
mod hostile;
mod lifecycle;
mod needs;
mod requests;
mod resilience;
mod retries;
mod streams;
mod support;
mod translate;
