//! Connections to services: one HTTP/1.1 exchange at a time each, kept for the next.
//!
//! hyper gives a connection as two halves, a sender and a driver that does the reading and writing and is usually a task
//! of its own. Here the request drives it itself ([`connection::Connection`]): no task per connection, no wake-up from
//! one task to another on a request's way, and a dropped request closes its connection at once.

mod body;
mod connect;
mod connection;
mod pool;
mod stream;

pub(crate) use body::RequestBody;
pub(crate) use connect::{Connector, connect};
pub(crate) use connection::{Connection, Exchange};
pub(crate) use pool::Pool;
