//! Writing one event of a stream.

use serde::Serialize;
use serde_json::Value;

use crate::responses::response::{Content, Item, Response, Summary};

/// What an event says; each kind of event has some of these fields.
#[derive(Debug, Default, Serialize)]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotation_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotation: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<Piece<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<&'a Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<&'a Response<'a>>,
}

/// A part of an item.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Piece<'a> {
    Content(&'a Content),
    Summary(&'a Summary),
}

/// Numbers the events of a stream and writes them; writes nothing where only the outcome is wanted.
#[derive(Debug)]
pub(super) struct Emitter {
    quiet: bool,
    sequence_number: u64,
}

impl Emitter {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, sequence_number: 0 }
    }

    /// Writes an event. `body` has at least one field.
    pub(super) fn emit(&mut self, out: &mut Vec<u8>, kind: &str, body: &Body<'_>) {
        if self.quiet {
            return;
        }
        for piece in ["event: ", kind, "\ndata: {\"type\":\"", kind, "\",\"sequence_number\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        serde_json::to_writer(&mut *out, &self.sequence_number).expect("memory takes every number");
        let brace = out.len();
        serde_json::to_writer(&mut *out, body).expect("strings always serialise");
        // The body continues the object that has been begun.
        out[brace] = b',';
        out.extend_from_slice(b"\n\n");
        self.sequence_number += 1;
    }
}
