//! The wire dialects of AI services: how to read a request, what to send, and what an answer means.
//!
//! Everything here is a function of bytes, headers and (where time matters) an instant that the caller passes in: no
//! sockets, no clock. The data plane owns the bytes and decides; this crate only looks at them and says where to cut.
//!
//! - [`exchange`]: a conversation in terms of no vendor, for the calls where client and service differ.
//! - [`dialect`]: the seam that the data plane sees, and the register of what is behind it.
//! - [`openai`], [`responses`], [`anthropic`], [`gemini`], [`bedrock`], [`cohere`], [`dashscope`], [`ollama`]: one folder
//!   a dialect. The first four are also what clients speak.
//! - [`view`]: what routing needs to know of a request.
//! - [`splice`]: changes one field of a body without copying the rest.
//! - [`google_auth`]: how a service account gets the access tokens that Vertex wants.
//! - [`headers`]: which headers may pass, in both directions.
//! - [`vendor_error`], [`classify`]: what a service says about its failure, and what that means.
//! - [`rate_limit`], [`retry_after`]: what is left of its limits, and how long it wishes to be left alone.
//! - [`sse`]: the framing of event streams.
//! - [`aws`]: the framing of AWS's binary event streams, and the signature of requests to AWS.
//! - [`grpc`]: framing and status of gRPC calls.
//! - [`inflate`]: compressed bodies, decoded as they come.
//! - [`ndjson`]: the framing of streams that have one JSON value a line.
//! - [`json`]: what the others need of JSON and serde does not offer.
//!
//! Invariant: nothing here alters bytes that pass. Where a client and a service speak the same dialect, what goes
//! through is what came in, apart from the fields that the policy changes.

pub mod anthropic;
pub mod aws;
pub mod bedrock;
mod chat_shaped;
pub mod classify;
pub mod cohere;
pub mod dashscope;
pub mod dialect;
pub mod exchange;
pub mod gemini;
pub mod google_auth;
pub mod grpc;
pub mod headers;
pub mod inflate;
pub mod json;
pub mod ndjson;
pub mod ollama;
pub mod openai;
pub mod rate_limit;
pub mod responses;
pub mod retry_after;
pub mod splice;
pub mod sse;
mod tokens;
pub mod vendor_error;
pub mod view;
