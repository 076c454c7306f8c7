//! Anthropic Messages: `POST /v1/messages` and `/v1/messages/count_tokens`.
//!
//! Read from the API reference and the guides on tool use, extended thinking and structured outputs at
//! platform.claude.com, from the types of the official clients, and with error texts as that service gives them.

mod blocks;
mod check;
mod write;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Direct, Frame, Incoming, Plain, Speech};
use crate::check::{What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;
use crate::script::{Asked, Script};
use crate::shape::{self, Shape};

/// `POST /v1/messages`
#[derive(Debug)]
pub(crate) struct Messages;

/// Claude on Vertex AI: the version is in the body, the model and whether to stream in the path.
#[derive(Debug)]
pub(crate) struct OnVertex {
    pub(crate) stream: bool,
}

/// The versions of the API. The newest has no sampling parameters and takes instructions between turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V2023,
    V2026,
}

const VERTEX_VERSION: &str = "vertex-2023-10-16";

pub(crate) fn route(post: bool, path: &str) -> Found {
    let endpoint = match (post, path) {
        (true, "/v1/messages") => Endpoint::Speech(&Messages),
        (true, "/v1/messages/count_tokens") => Endpoint::Direct(count_tokens as Direct),
        (false, "/v1/models") => Endpoint::Models,
        _ => return None,
    };
    Some((endpoint, None))
}

impl Speech for Messages {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let kind = match version(incoming)? {
            Version::V2023 => check::Kind::Messages,
            Version::V2026 => check::Kind::Messages2026,
        };
        let body = incoming.json()?;
        let model = model(incoming, &body)?;
        check::messages(&body, kind, incoming.asked(model, "messages")).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream(script)
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        Frame::named("error", &shape::anthropic(rejection), false).bytes
    }
}

impl Speech for OnVertex {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let mut body = incoming.json()?;
        let version = body.as_object_mut().and_then(|body| body.shift_remove("anthropic_version"));
        match version.as_ref().and_then(Value::as_str) {
            Some(VERTEX_VERSION) => {}
            Some(_) => return Err(Rejection::plain(400, "anthropic_version: unsupported version")),
            None => return Err(Rejection::plain(400, "anthropic_version: Field required")),
        }
        let model = incoming.model.unwrap_or_default();
        if !incoming.has(model) {
            return Err(Rejection::plain(404, format!("Publisher Model `{model}` was not found.")));
        }
        let asked = incoming.asked(model.to_owned(), "messages");
        let asked = check::messages(&body, check::Kind::Vertex, asked).map_err(refuse)?;
        Ok(Asked { stream: self.stream, ..asked })
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream(script)
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        Messages.broken(rejection)
    }

    fn shape(&self) -> Option<Shape> {
        Some(Shape::Anthropic)
    }
}

/// `POST /v1/messages/count_tokens`
fn count_tokens(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    version(incoming)?;
    let body = incoming.json()?;
    let model = model(incoming, &body)?;
    let asked = incoming.asked(model, "messages");
    let tokens = asked.length.div_ceil(4);
    check::messages(&body, check::Kind::CountTokens, asked).map_err(refuse)?;
    Ok(json!({"input_tokens": tokens}).into())
}

fn version(incoming: &Incoming<'_>) -> Result<Version, Rejection> {
    match incoming.header("anthropic-version") {
        Some("2023-01-01" | "2023-06-01") => Ok(Version::V2023),
        Some("2026-10-21") => Ok(Version::V2026),
        Some(other) => {
            let message = format!("anthropic-version: \"{other}\" is not a valid version");
            Err(Rejection::plain(400, message))
        }
        None => Err(Rejection::plain(400, "anthropic-version: header is required")),
    }
}

fn model(incoming: &Incoming<'_>, body: &Value) -> Result<String, Rejection> {
    let model = match &body["model"] {
        Value::String(model) => model,
        Value::Null => return Err(Rejection::plain(400, "model: Field required")),
        _ => return Err(Rejection::plain(400, "model: Input should be a valid string")),
    };
    if incoming.has(model) {
        Ok(model.clone())
    } else {
        Err(Rejection::plain(404, format!("model: {model}")))
    }
}

fn refuse(wrong: Wrong) -> Rejection {
    let what = match &wrong.what {
        What::Unknown => "Extra inputs are not permitted".to_owned(),
        What::Missing => "Field required".to_owned(),
        What::Type(expected) => format!("Input should be a valid {expected}"),
        What::Said(said) => said.clone(),
    };
    let path = &wrong.path;
    Rejection::plain(400, if path.is_empty() { what } else { format!("{path}: {what}") })
}
