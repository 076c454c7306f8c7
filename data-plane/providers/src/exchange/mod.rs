//! The exchange model: a conversation, its answer, and the answer's events, in terms of no vendor.
//!
//! Where a client and a service speak the same dialect, bytes pass and nothing here is made. Where they differ, the
//! client's body is read into a [`Request`], the service's body written from it, and the answer goes the other way, whole
//! as an [`Answer`] or as a sequence of [`Event`]s:
//!
//! ```text
//! client ──Protocol::read_request──▶ Request ──Dialect::write_request──▶ service
//! client ◀──Protocol::write_answer── Answer  ◀──Dialect::read_answer──── service
//! client ◀──StreamWriter──────────── Event   ◀──StreamReader──────────── service
//! ```
//!
//! Nothing disappears silently: what a writer cannot carry it names in [`Written::dropped`], or refuses. What a reader
//! does not know it keeps, in `extra` or as [`Part::Other`], with the dialect that it belongs to.

mod answer;
mod content;
mod event;
pub mod json_tool;
mod loss;
mod replay;
mod request;
pub mod shape;

pub use answer::{Answer, Choice, Stop};
pub use content::{CacheHint, Media, Part, Reasoning, Signature, Source, Text, ToolCall, ToolResult};
pub use event::{Event, Facts};
pub use loss::{Dropped, Field, Unwritable, Written};
pub use penstock_model::Usage;
pub use replay::replay;
pub use request::{
    Format, JsonSchema, Output, ReasoningRequest, Request, Role, Sampling, Tool, ToolChoice, ToolKind, Turn,
};
