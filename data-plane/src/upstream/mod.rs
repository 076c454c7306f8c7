//! Connections to services: HTTP/1.1, one exchange at a time each, kept for the next; HTTP/2 for gRPC.
//!
//! hyper gives a connection as two halves, a sender and a driver that does the reading and writing and is usually a task
//! of its own. Here the request drives it itself ([`connection::Connection`]): no task per connection, no wake-up from
//! one task to another on a request's way, and a dropped request closes its connection at once.
//! A connection of HTTP/2, which requests share, is the exception ([`http2`], ADR 11).

mod body;
mod connect;
mod connection;
mod http2;
mod pool;
mod stream;
mod upload;

pub(crate) use body::RequestBody;
pub(crate) use connect::{Connector, connect};
pub(crate) use connection::{Connection, Exchange};
pub(crate) use http2::{Http2Pool, connect_http2, send_http2};
pub(crate) use pool::Pool;
pub(crate) use upload::{Failed, Upload, UploadGuard};
