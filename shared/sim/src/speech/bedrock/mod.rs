//! Amazon Bedrock: `Converse` and `ConverseStream`.
//!
//! Read from the Bedrock Runtime API reference at docs.aws.amazon.com, for Claude as the model behind it.

mod check;
mod frame;
mod messages;
mod write;

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::HeaderValue;
use serde_json::{Value, json};

use super::{Frame, Incoming, Speech};
use crate::check::{What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;
use crate::script::{Asked, Script};
use crate::shape;

/// `POST /model/MODEL/converse` and `/converse-stream`
#[derive(Debug)]
pub(crate) struct Converse {
    stream: bool,
}

pub(crate) fn route(post: bool, path: &str) -> Found {
    let rest = path.strip_prefix("/model/").filter(|_| post)?;
    // A model's name may be an ARN, whose slashes must be encoded: one that is not makes another path.
    let (model, call) = rest.split_once('/')?;
    let endpoint = match call {
        "converse" => Endpoint::Speech(&Converse { stream: false }),
        "converse-stream" => Endpoint::Speech(&Converse { stream: true }),
        _ => return None,
    };
    Some((endpoint, Some(decoded(model)?)))
}

/// Percent-decoded; `None` when that is impossible.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let hex = str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

impl Speech for Converse {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let model = incoming.model.unwrap_or_default();
        if !incoming.has(model) {
            return Err(Rejection::plain(400, "The provided model identifier is invalid."));
        }
        let body = incoming.json()?;
        let asked = check::converse(&body, incoming.asked(model.to_owned(), "messages")).map_err(refuse)?;
        Ok(Asked { stream: self.stream, ..asked })
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream(script)
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        let name = shape::aws_type(rejection);
        let mut exception = String::with_capacity(name.len());
        write!(exception, "{}{}", name[..1].to_lowercase(), &name[1..]).expect("a string grows");
        frame::exception(&exception, &json!({"message": rejection.message}))
    }

    fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static("application/vnd.amazon.eventstream")
    }
}

fn refuse(wrong: Wrong) -> Rejection {
    let path = &wrong.path;
    let message = match &wrong.what {
        What::Unknown => {
            let (parent, field) = path.rsplit_once('.').unwrap_or(("#", path));
            format!(
                "The model returned the following errors: Malformed input request: {parent}: extraneous key [{field}] is \
                 not permitted, please reformat your input and try again."
            )
        }
        What::Missing => {
            format!(
                "1 validation error detected: Value at '{path}' failed to satisfy constraint: Member must not be null"
            )
        }
        What::Type(expected) => format!("Value at '{path}' has the wrong type: expected {expected}"),
        What::Said(said) => said.clone(),
    };
    Rejection::plain(400, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_with_slashes_has_to_be_encoded() {
        let arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude";
        let (_, model) =
            route(true, &format!("/model/{}/converse", arn.replace(':', "%3A").replace('/', "%2F"))).unwrap();
        assert_eq!(model.unwrap(), arn);
        assert!(route(true, &format!("/model/{arn}/converse")).is_none());
    }
}
