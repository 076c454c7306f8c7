//! Changes top-level members of a request body without copying the body.

mod edits;

use std::ops::Range;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

pub use edits::Edits;

use crate::json::quote;

/// A model's name, made ready once for every body that it is put into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// `"name"`
    value: Bytes,
    /// `"model":"name",`
    member: Bytes,
}

impl ModelName {
    /// Quotes and escapes `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let value = quote(name);
        let member = format!("\"model\":{value},");
        Self { value: value.into(), member: member.into() }
    }
}

/// A body in pieces, to be sent one after the other. None is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedBody {
    segments: SmallVec<[Bytes; 3]>,
}

impl SplicedBody {
    /// A body that is sent as it is.
    #[must_use]
    pub fn whole(body: Bytes) -> Self {
        Self::of([body])
    }

    fn of<const N: usize>(pieces: [Bytes; N]) -> Self {
        let mut segments = smallvec![];
        segments.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        Self { segments }
    }

    /// Bytes of all pieces: the `content-length`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(Bytes::len).sum()
    }

    /// Is there nothing to send?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The pieces in order.
    pub fn into_segments(self) -> impl Iterator<Item = Bytes> {
        self.segments.into_iter()
    }
}

/// The body with its model set to `model`. `span` is where the view found the value; without one the field is put in
/// front of the others. Every other byte stays, and stays where it is in memory.
///
/// `body` must be a JSON object, as the views have checked.
#[must_use]
pub fn replace_model(body: &Bytes, span: Option<Range<usize>>, model: &ModelName) -> SplicedBody {
    if let Some(span) = span {
        return replace(body, span, model.value.clone());
    }
    let Some(brace) = memchr::memchr(b'{', body) else { return SplicedBody::whole(body.clone()) };
    let after = brace + 1;
    let empty_object = body[after..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let comma = usize::from(empty_object);
    let member = model.member.slice(..model.member.len() - comma);
    SplicedBody::of([body.slice(..after), member, body.slice(after..)])
}

/// The body with the bytes of `span` replaced by `value`. Every other byte stays where it is in memory.
#[must_use]
pub fn replace(body: &Bytes, span: Range<usize>, value: Bytes) -> SplicedBody {
    if body[span.clone()] == value {
        return SplicedBody::whole(body.clone());
    }
    SplicedBody::of([body.slice(..span.start), value, body.slice(span.end..)])
}

#[cfg(test)]
mod tests;
