//! The Bedrock dialect: Converse and ConverseStream, for the models of all makers that Bedrock serves.
//!
//! ```text
//! write   the body of a request
//!   content   turns and their blocks
//!   tools     what may be called, and whether it must
//!   family    what only some makers' models take: thinking, top_k, cache points
//!   body      the shapes on the wire
//! answer  a whole answer
//! stream  a streamed one, framed by `aws::event_stream`
//! ```
//!
//! The model stands in the path. Structured output goes through a hidden tool (TR-11). Source: "Amazon Bedrock API
//! Reference", `Converse`, `ConverseStream` and their data types.

mod answer;
mod body;
mod content;
mod family;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod usage;
mod write;

use penstock_model::Usage;

use crate::dialect::{Dialect, StreamReader, TargetFacts};
use crate::exchange::{Answer, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// How Bedrock is spoken to.
#[derive(Debug, Clone, Copy)]
pub struct Bedrock;

impl Dialect for Bedrock {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        write::write(request, target)
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
