//! OpenAI's Responses interface, the newer of its two conversation calls.
//!
//! State that lives at the vendor (`previous_response_id`, `conversation`, stored prompts, background answers) passes
//! through where the service speaks this dialect, and is refused where a request has to be translated.
//!
//! Thoughts travel as `reasoning` items: their text as summary, what the vendor needs to take them back as
//! `encrypted_content`, marked with the dialect it belongs to where that is not this one.

mod error;
mod request;
mod response;
mod stream;
mod view;

use bytes::Bytes;

pub use self::view::view;
use crate::dialect::{Asked, ClientError, Protocol, StreamWriter};
use crate::exchange::{Answer, Field, Request};

/// The Responses interface, towards clients and towards services.
#[derive(Debug, Clone, Copy)]
pub struct Responses;

impl Protocol for Responses {
    fn read_request(&self, body: &[u8], _path_model: Option<&str>, _stream: bool) -> Result<Request, Field> {
        request::read(body)
    }

    fn write_answer(&self, answer: &Answer, asked: &Asked) -> Bytes {
        stream::whole(answer, asked).into()
    }

    fn stream_writer(&self, asked: Asked) -> Box<dyn StreamWriter> {
        Box::new(stream::Writer::new(asked))
    }

    fn error(&self, error: &ClientError<'_>) -> Bytes {
        error::body(error)
    }

    fn error_event(&self, error: &ClientError<'_>) -> Bytes {
        error::event(error)
    }
}
