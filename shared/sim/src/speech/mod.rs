//! The dialects' own words: for each a checker, which refuses what the vendor refuses in the vendor's way, and a writer.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use http::header::HeaderValue;
use http::request::Parts;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::answer::digest;
use crate::config::ServiceConfig;
use crate::reject::Rejection;
use crate::script::{Asked, Script};
use crate::shape::Shape;

pub(crate) mod anthropic;
pub(crate) mod azure;
pub(crate) mod bedrock;
pub(crate) mod cohere;
pub(crate) mod dashscope;
pub(crate) mod gemini;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod vertex;

/// A call as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub(crate) config: &'a ServiceConfig,
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a Bytes,
    /// The model, where the path names it.
    pub(crate) model: Option<&'a str>,
}

/// A conversation in one dialect.
pub(crate) trait Speech: fmt::Debug + Sync {
    /// What a request asks for, if the vendor would take it.
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection>;

    /// An answer in one.
    fn whole(&self, script: &Script) -> Value;

    /// An answer as a stream.
    fn stream(&self, script: &Script) -> Vec<Frame>;

    /// An error inside a stream, and what ends the stream after it.
    fn broken(&self, rejection: &Rejection) -> Bytes;

    /// Content type of streams.
    fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static("text/event-stream; charset=utf-8")
    }

    /// How it words errors, if not as its dialect.
    fn shape(&self) -> Option<Shape> {
        None
    }
}

/// A call that is answered at once.
pub(crate) type Direct = fn(&Incoming<'_>) -> Result<Plain, Rejection>;

/// An answer that is not a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    pub(crate) content_type: HeaderValue,
    pub(crate) body: Bytes,
}

impl From<Value> for Plain {
    fn from(value: Value) -> Self {
        Self { content_type: HeaderValue::from_static("application/json"), body: value.to_string().into() }
    }
}

/// One piece of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    /// Does it carry a token, which has to be waited for?
    pub(crate) token: bool,
}

impl Frame {
    /// A server-sent event with a name.
    pub(crate) fn named(name: &str, data: &Value, token: bool) -> Self {
        Self { bytes: format!("event: {name}\ndata: {data}\n\n").into(), token }
    }

    /// A server-sent event without a name.
    pub(crate) fn data(data: &Value, token: bool) -> Self {
        Self { bytes: format!("data: {data}\n\n").into(), token }
    }
}

/// A stream that is sent frame by frame.
#[derive(Debug)]
pub(crate) struct Frames {
    left: VecDeque<Frame>,
    sent: u32,
    tokens: u32,
}

impl Frames {
    pub(crate) fn new(frames: Vec<Frame>) -> Self {
        let tokens = frames.iter().filter(|frame| frame.token).count() as u32;
        Self { left: frames.into(), sent: 0, tokens }
    }

    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// The number of the token that comes next, if one does.
    pub(crate) fn next_token(&self) -> Option<u32> {
        self.left.front().is_some_and(|frame| frame.token).then_some(self.sent)
    }

    pub(crate) fn next_event(&mut self) -> Option<Bytes> {
        let frame = self.left.pop_front()?;
        self.sent += u32::from(frame.token);
        Some(frame.bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

impl Incoming<'_> {
    /// The body as a JSON object.
    pub(crate) fn json(&self) -> Result<Value, Rejection> {
        let object: Map<String, Value> = serde_json::from_slice(self.body)
            .map_err(|error| Rejection::request(format!("The request body is not valid JSON: {error}")))?;
        Ok(Value::Object(object))
    }

    /// What every conversation starts from: the digest and the length of `field`, as it stands in the body.
    pub(crate) fn asked(&self, model: String, field: &str) -> Asked {
        let fields: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_slice(self.body).unwrap_or_default();
        let raw = fields.get(field).map_or("", |raw| raw.get());
        Asked { model, digest: digest(raw), length: raw.len(), ..Asked::default() }
    }

    /// Is there such a model?
    pub(crate) fn has(&self, model: &str) -> bool {
        self.config.models.iter().any(|known| known == model)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
