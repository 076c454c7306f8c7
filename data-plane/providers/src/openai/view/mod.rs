//! One borrowed pass over a request body: what routing needs to know, without rebuilding anything.
//!
//! The body is checked to be JSON to its last byte, but only the fields listed here are typed. All else, the size of its
//! numbers included, is the vendor's business and reaches it untouched.

mod chat;
mod embeddings;

pub use chat::{ChatView, Role, chat};
pub use embeddings::{EmbeddingsView, embeddings};

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::json::{InvalidBody, JsonStr, span_of};

/// The text of a `model` field, and where its value stands in the body.
type Model<'a> = (Option<Cow<'a, str>>, Option<Range<usize>>);

fn read_model<'a>(body: &[u8], raw: Option<&'a RawValue>) -> Result<Model<'a>, InvalidBody> {
    let Some(raw) = raw else { return Ok((None, None)) };
    let span = span_of(body, raw.get());
    match JsonStr::new(raw) {
        Some(text) => Ok((Some(text.decode()), Some(span))),
        None if raw.get() == "null" => Ok((None, Some(span))),
        None => Err(InvalidBody::wrong_shape("`model` must be a string", body, span.start)),
    }
}

#[cfg(test)]
mod tests;
