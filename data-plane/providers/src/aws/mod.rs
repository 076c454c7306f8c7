//! What AWS services have in common: the framing of their streams, and the signature of their requests.
//!
//! Both are written here because the crates that do it (`aws-smithy-eventstream`, `aws-sigv4`) bring a dozen and thirty
//! others, an asynchronous runtime among them.

pub mod event_stream;
pub mod sign;
