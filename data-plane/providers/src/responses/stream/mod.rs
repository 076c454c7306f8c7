//! Streams in the words of the Responses interface.

mod emit;
mod write;

pub(super) use write::{Writer, whole};
