//! The Gemini dialect: `generateContent`, at the Gemini API and at Vertex, which share the body.
//!
//! Facts are from Google's references of `GenerateContentRequest` and `GenerateContentResponse` (Gemini API v1beta, Vertex
//! v1) and its guides on thinking, thought signatures, function calling and structured output. What was decided here:
//!
//! - **Names** are read in camelCase and in snake_case, as Google's own JSON reader does, and written in camelCase.
//! - **Ids of calls** are optional in this dialect. A call without one gets an id that begins with `penstock_`; such
//!   ids are never written in this dialect, where order and name say the same.
//! - **Schemas** go as JSON Schema, in `parametersJsonSchema` and `responseJsonSchema`. For a deployment that knows only
//!   the older `parameters` and `responseSchema`, the vendor's file lists the newer names under `parameters.drop`; schemas
//!   are then lowered (`lower.rs`).
//! - **Streams** are read as server-sent events (`alt=sse`). The other form, one JSON array, is read by nobody: a stream
//!   of it ends without an answer, which is a failure.
//! - **Signatures** of other dialects are carried for clients in base64, because Google's clients decode the field.

mod answer;
mod candidate;
mod errors;
mod fields;
mod finish;
mod ids;
mod logprobs;
mod lower;
mod part;
mod read;
mod stream;
mod tools;
mod usage;
mod view;
mod wire;
mod write;
mod writer;

use bytes::Bytes;
use penstock_model::Usage;

pub use view::{count_tokens_view, view};

use crate::dialect::{Asked, ClientError, Dialect, Protocol, StreamReader, StreamWriter, TargetFacts};
use crate::exchange::{Answer, Field, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// Gemini, as services and as clients speak it.
#[derive(Debug, Clone, Copy)]
pub struct Gemini;

impl Dialect for Gemini {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        write::request(request, target)
    }

    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError> {
        answer::read(body, id)
    }

    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader> {
        Box::new(stream::Reader::new(id))
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        usage::find(body)
    }
}

impl Protocol for Gemini {
    fn read_request(&self, body: &[u8], path_model: Option<&str>, stream: bool) -> Result<Request, Field> {
        read::request(body, path_model, stream)
    }

    fn write_answer(&self, answer: &Answer, asked: &Asked) -> Bytes {
        answer::write(answer, asked)
    }

    fn stream_writer(&self, asked: Asked) -> Box<dyn StreamWriter> {
        Box::new(writer::Writer::new(asked))
    }

    fn error(&self, error: &ClientError<'_>) -> Bytes {
        errors::body(error).into()
    }

    fn error_event(&self, error: &ClientError<'_>) -> Bytes {
        errors::event(error)
    }
}

/// The answer to `:countTokens`.
#[must_use]
pub fn count_tokens_answer(tokens: u64) -> Bytes {
    format!("{{\"totalTokens\":{tokens}}}").into()
}

#[cfg(test)]
mod tests;
