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
mod service;
mod stream;
mod view;

use bytes::Bytes;
use penstock_model::Usage;
use penstock_model::vendor::Wire;

pub use self::view::view;
use crate::dialect::{Asked, ClientError, Dialect, Protocol, StreamReader, StreamWriter, TargetFacts};
use crate::exchange::{Answer, Field, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;
use crate::openai::usage;

/// This dialect.
const OWN: Wire = Wire::OpenaiResponses;

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

impl Dialect for Responses {
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        service::write_request(request, target)
    }

    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError> {
        service::read_answer(body, id)
    }

    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader> {
        Box::new(service::Reader::new(id))
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        usage::find(body)
    }
}
