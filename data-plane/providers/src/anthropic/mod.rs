//! The Anthropic dialect: messages. Services speak it, and clients.
//!
//! Facts are from Anthropic's API reference ("Messages", "Streaming messages", "Errors", "Prompt caching", "Extended
//! thinking", "Adaptive thinking", "Effort", "Structured outputs"), as of November 2026.

mod answer;
mod block;
mod block_reader;
mod content_writer;
mod error;
mod model;
mod request_reader;
mod request_writer;
mod stop;
mod stream_reader;
mod stream_writer;
mod structured;
pub(crate) mod thinking;
mod usage;
mod view;

use bytes::Bytes;
use penstock_model::Usage;

pub use view::view;

use crate::dialect::{Asked, ClientError, Dialect, Protocol, StreamReader, StreamWriter, TargetFacts};
use crate::exchange::{Answer, Field, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// Messages.
#[derive(Debug, Clone, Copy)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        request_writer::write(request, target)
    }

    fn read_answer(&self, body: &[u8], _id: &str) -> Result<Answer, VendorError> {
        answer::read(body)
    }

    fn stream_reader(&self, _id: &str) -> Box<dyn StreamReader> {
        Box::<stream_reader::Reader>::default()
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        usage::find(body)
    }
}

impl Protocol for Anthropic {
    fn read_request(&self, body: &[u8], _path_model: Option<&str>, _stream: bool) -> Result<Request, Field> {
        request_reader::read(body)
    }

    fn write_answer(&self, answer: &Answer, asked: &Asked) -> Bytes {
        answer::write(answer, asked)
    }

    fn stream_writer(&self, asked: Asked) -> Box<dyn StreamWriter> {
        Box::new(stream_writer::Writer::new(asked))
    }

    fn error(&self, error: &ClientError<'_>) -> Bytes {
        error::body(error).into()
    }

    fn error_event(&self, error: &ClientError<'_>) -> Bytes {
        error::event(error)
    }
}

/// The answer to `/v1/messages/count_tokens`.
#[must_use]
pub fn count_tokens(input_tokens: u64) -> Bytes {
    format!(r#"{{"input_tokens":{input_tokens}}}"#).into()
}

#[cfg(test)]
mod tests;
