//! Chat completions, translated: the protocol of most clients and the dialect of most services.
//!
//! Requests: [`request_reader`] with [`message_reader`], [`part_reader`] and [`tool_reader`]. Answers:
//! [`answer_writer`] and [`stream_writer`] towards clients. Shared: [`members`] (JSON objects, lazily), [`media`],
//! [`reasoning`], [`finish`] (why it ended), [`error`].

mod answer_writer;
mod error;
mod finish;
mod media;
mod members;
mod message_reader;
mod part_reader;
mod reasoning;
mod request_reader;
mod stream_writer;
mod tool_reader;

use bytes::Bytes;

use crate::dialect::{Asked, ClientError, Protocol, StreamWriter};
use crate::exchange::{Answer, Field, Request};

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

#[cfg(test)]
mod tests;
