//! Chat completions, translated: the protocol of most clients and the dialect of most services.
//!
//! As a protocol: [`request_reader`] with [`message_reader`], [`part_reader`] and [`tool_reader`]; [`answer_writer`],
//! [`stream_writer`], [`error`]. As a dialect: [`request_writer`] with [`message_writer`], [`part_writer`] and
//! [`tool_writer`]; [`answer_reader`], [`stream_reader`] with [`call_reader`]. Shared: [`members`] (JSON objects, lazily),
//! [`media`], [`reasoning`], [`finish`] (why it ended).
//!
//! Wire facts: OpenAI's API reference for chat completions; what vendors add to it, each at its place.

mod answer_reader;
mod answer_writer;
mod call_reader;
mod error;
mod finish;
mod media;
pub(super) mod members;
mod message_reader;
mod message_writer;
mod part_reader;
mod part_writer;
mod reasoning;
mod request_reader;
mod request_writer;
mod stream_reader;
mod stream_writer;
mod tool_reader;
mod tool_writer;

use bytes::Bytes;

use penstock_model::Usage;

pub(crate) use self::request_writer::effort;
use super::error_body::VendorError;
use super::usage;
use crate::dialect::{Asked, ClientError, Dialect, Protocol, StreamReader, StreamWriter, TargetFacts};
use crate::exchange::{Answer, Field, Request, Unwritable, Written};

/// `POST …/chat/completions`.
pub(crate) struct Chat;

impl Protocol for Chat {
    fn read_request(&self, body: &[u8], _path_model: Option<&str>, _stream: bool) -> Result<Request, Field> {
        request_reader::read(body)
    }

    fn write_answer(&self, answer: &Answer, asked: &Asked) -> Bytes {
        answer_writer::write(answer, asked)
    }

    fn stream_writer(&self, asked: Asked) -> Box<dyn StreamWriter> {
        Box::new(stream_writer::Writer::new(asked))
    }

    fn error(&self, error: &ClientError<'_>) -> Bytes {
        error::body(error)
    }

    fn error_event(&self, error: &ClientError<'_>) -> Bytes {
        error::event(error)
    }
}

impl Dialect for Chat {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        request_writer::write(request, target)
    }

    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError> {
        answer_reader::read(body, id)
    }

    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader> {
        Box::new(stream_reader::Reader::new(id))
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        usage::find(body)
    }
}

#[cfg(test)]
mod identity_tests;
#[cfg(test)]
mod tests;
