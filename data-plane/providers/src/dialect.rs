//! The seam between the data plane and the dialects.
//!
//! A [`Dialect`] is how a service is spoken to, a [`Protocol`] how a client speaks to us. Adding one is a folder that
//! implements it and a line in [`dialect`] or [`protocol`].

use bytes::Bytes;
use penstock_model::Usage;
use penstock_model::vendor::{Call, MaxTokens, Vendor, Wire};

use crate::exchange::{Answer, Event, Field, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// What a request is written for.
#[derive(Debug, Clone, Copy)]
pub struct TargetFacts<'a> {
    /// Whose service.
    pub vendor: &'a Vendor,
    /// Which model, as the service calls it.
    pub model: &'a str,
    /// The name of the output limit, where this deployment differs from its vendor's others (TR-05).
    pub max_tokens_name: MaxTokens,
    /// The output limit of requests without one, where the dialect requires it.
    pub default_max_tokens: u64,
}

/// A wire dialect as services speak it.
pub trait Dialect: Sync {
    /// The call that carries `request`: the one of the wire, but where a service has several for conversations.
    fn call(&self, request: &Request, target: &TargetFacts<'_>) -> Call {
        target.vendor.wire.call(request.stream)
    }

    /// Writes `request` for a target.
    ///
    /// # Errors
    /// When this target, or any, cannot carry it.
    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable>;

    /// Reads a whole answer that came with a status of success. `id` is ours, and unique: tool calls to which the service
    /// gives no id get one made of it.
    ///
    /// # Errors
    /// What the service says went wrong in spite of the status; an empty error when it is no answer of this dialect.
    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError>;

    /// Reads a streamed answer; `id` as in [`Self::read_answer`].
    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader>;

    /// The usage in a whole answer that is passed through, found without reading all of it.
    fn find_usage(&self, body: &[u8]) -> Option<Usage>;
}

/// Reads a stream of one answer. Any chunking of the same bytes gives the same events.
pub trait StreamReader {
    /// Takes in one read of the body.
    fn feed(&mut self, read: &[u8], sink: &mut dyn FnMut(Event<'_>));

    /// The body has ended. That alone is no [`Event::End`]: an answer that just stops is not complete (SSE-04).
    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>));

    /// Bytes that have come since the last event ended: the caller sets a limit to it (SSE-11).
    fn open_bytes(&self) -> u64;
}

/// What a writer needs to know of the request it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Ours, for answers to which the service gave no id.
    pub id: String,
    /// The model as the client named it, for answers in which the service names none.
    pub model: String,
    /// When, seconds since 1970.
    pub created: u64,
    /// Did the client ask for a usage report within the stream?
    pub include_usage: bool,
}

/// An error as clients are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientError<'a> {
    /// The status: 400 to 599. Inside a stream, the one that it would have had.
    pub status: u16,
    /// Our stable code.
    pub code: &'a str,
    /// For people.
    pub message: &'a str,
    /// Which field is wrong.
    pub field: Option<&'a str>,
    /// The request's id.
    pub request_id: &'a str,
}

/// A protocol as clients speak it.
pub trait Protocol: Sync {
    /// Reads a request. The body has been looked at before: it is a JSON object, without fields that occur twice.
    /// `path_model` and `stream` are what the path says, where it is the path that says it (Gemini).
    ///
    /// # Errors
    /// When a field has a form that the protocol does not allow.
    fn read_request(&self, body: &[u8], path_model: Option<&str>, stream: bool) -> Result<Request, Field>;

    /// Writes a whole answer.
    fn write_answer(&self, answer: &Answer, asked: &Asked) -> Bytes;

    /// Writes a streamed answer.
    fn stream_writer(&self, asked: Asked) -> Box<dyn StreamWriter>;

    /// The body of an error answer.
    fn error(&self, error: &ClientError<'_>) -> Bytes;

    /// The error as the last event of a stream that is under way, whoever wrote what was before it.
    fn error_event(&self, error: &ClientError<'_>) -> Bytes;
}

/// Writes a stream. What it writes are whole events: the bytes of one call can be sent at once.
pub trait StreamWriter {
    /// Writes what an event amounts to, which may be nothing yet.
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// The answer is complete: writes what is still to be said, end mark included.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// The protocol that everybody knows.
pub const OPENAI: &dyn Protocol = &crate::openai::chat::Chat;

/// The dialect of a wire.
#[must_use]
pub fn dialect(wire: Wire) -> Option<&'static dyn Dialect> {
    match wire {
        Wire::Openai => Some(&crate::openai::chat::Chat),

        Wire::OpenaiResponses => Some(&crate::responses::Responses),

        Wire::Anthropic => Some(&crate::anthropic::Anthropic),

        Wire::Gemini => Some(&crate::gemini::Gemini),

        Wire::Bedrock => Some(&crate::bedrock::Bedrock),

        Wire::Cohere => Some(&crate::cohere::Cohere),

        Wire::Dashscope => Some(&crate::dashscope::Dashscope),

        Wire::Ollama => Some(&crate::ollama::Ollama),

        Wire::Http | Wire::Grpc => None,
    }
}

/// The protocol that clients of a wire speak. Only four have clients that come to us.
#[must_use]
pub fn protocol(wire: Wire) -> Option<&'static dyn Protocol> {
    match wire {
        Wire::Openai => Some(&crate::openai::chat::Chat),

        Wire::OpenaiResponses => Some(&crate::responses::Responses),

        Wire::Anthropic => Some(&crate::anthropic::Anthropic),

        Wire::Gemini => Some(&crate::gemini::Gemini),

        Wire::Bedrock | Wire::Cohere | Wire::Dashscope | Wire::Ollama | Wire::Http | Wire::Grpc => None,
    }
}
