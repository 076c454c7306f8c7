//! Cohere's chat call, version 2: `POST /v2/chat`.
//!
//! What differs from OpenAI's: what a model says beside tool calls is their `tool_plan`; thoughts are content blocks;
//! `p` and `k` are the sampling limits; a tool choice is `REQUIRED` or `NONE`, so to name tools the others are left out;
//! JSON output and tools exclude each other, so where both are wanted a hidden tool stands in for the former (TR-11).
//!
//! Usage is what the model read and wrote, `usage.tokens`. `usage.billed_units` leaves out what Cohere adds to the prompt
//! itself; it is an amount to pay, not a count, and is not taken for one.
//!
//! Wire facts: <https://docs.cohere.com/reference/chat>, <https://docs.cohere.com/docs/streaming> and
//! <https://docs.cohere.com/docs/tool-use-streaming>.

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
pub struct Cohere;

impl Dialect for Cohere {
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
