//! Ollama's native chat call, `POST /api/chat`.
//!
//! What differs from OpenAI's: answers are streamed as one JSON object a line; arguments of tool calls are objects; calls
//! have no ids before version 0.12; images are a list of base64 strings beside the text; sampling parameters are in
//! `options`, under llama.cpp's names; `stream` is on unless turned off. There is no tool choice: to forbid tools they are
//! left out, to name one the others are, and that one must be called is lost.
//!
//! Wire facts: the project's `docs/api.md` and `api/types.go`.

mod answer;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use penstock_model::Usage;

use crate::dialect::{Dialect, StreamReader, TargetFacts};
use crate::exchange::{Answer, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// The dialect.
#[derive(Debug)]
pub struct Ollama;

impl Dialect for Ollama {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        request::write(request, target)
    }

    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError> {
        answer::read(body, id)
    }

    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader> {
        Box::new(stream::Reader::new(id))
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        answer::find_usage(body)
    }
}
