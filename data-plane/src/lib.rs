//! The proxy: from a client's request to an answer.
//!
//! ```text
//! listener   accept, HTTP/1.1 and HTTP/2, limits of head and body
//! service    path, body, view: one borrowed pass over the body
//! decide     route, capability, pool              penstock-decision, on a table loaded once
//! choose     who is usable; the better of two weighted draws
//! dispatch   attempts under one deadline, each at another target
//! attempt    outgoing (pass or translate), send, receive: everything before the commit point
//! relay      the rest, piece by piece, at the client's pace
//! generic    calls of no protocol, for any HTTP or gRPC service, along the same way
//! settle     counts, log line, decision record, spans: whatever became of the request
//! ```
//!
//! Each worker thread has its own listener socket, connections and counters (`worker`); what is shared is the route
//! table behind one atomic pointer (`holder`) and a few atomics per target (`target`). Nothing on a request's way
//! waits for the control plane: [`fleet`] and the reporter run beside the workers.

mod access_log;
mod admin;
mod answer;
mod ask;
mod attempt;
mod body;
mod cache;
mod choose;
mod clock;
mod config;
mod count;
mod deadline;
mod dispatch;
mod error;
mod facts;
pub mod fleet;
mod generic;
mod google;
mod holder;
mod invoke;
mod listener;
pub mod lkg;
mod meter;
mod metrics;
mod models;
mod node;
mod outgoing;
mod passage;
mod process;
mod receive;
mod record;
mod relay;
mod reporter;
mod retry;
mod secrets;
mod send;
mod server;
mod service;
mod settle;
mod spans;
mod stall;
mod table;
mod target;
mod ticket;
mod upstream;
mod worker;

pub use config::{AccessLog, Config};
pub use error::CODES;
pub use server::{Error, Running, start};
