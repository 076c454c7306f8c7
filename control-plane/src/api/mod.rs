//! What operators call: gRPC for the command line, JSON over HTTP for everything else. Both ask [`Service`], so that
//! they cannot differ.

mod convert;
mod failure;
mod grpc;
mod http;
mod service;

pub(crate) use grpc::{PolicyGrpc, StateGrpc};
pub(crate) use http::router;
pub(crate) use service::Service;
