//! Cohere, version 2: chat, embed and rerank.
//!
//! Read from the API reference at docs.cohere.com.

mod check;
mod write;

use bytes::Bytes;
use serde_json::{Value, json};

use super::openai::rank;
use super::{Frame, Incoming, Plain, Speech};
use crate::answer::digest;
use crate::check::{At, What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;
use crate::script::{Asked, Script};

/// `POST /v2/chat`
#[derive(Debug)]
struct CohereChat;

pub(crate) fn route(post: bool, path: &str) -> Found {
    let endpoint = match (post, path) {
        (true, "/v2/chat") => Endpoint::Speech(&CohereChat),
        (true, "/v2/embed") => Endpoint::Direct(embed),
        (true, "/v2/rerank") => Endpoint::Direct(rerank),
        (false, "/v1/models") => Endpoint::Models,
        _ => return None,
    };
    Some((endpoint, None))
}

impl Speech for CohereChat {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let body = incoming.json()?;
        let model = model(incoming, &body)?;
        check::chat(&body, incoming.asked(model, "messages")).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream(script)
    }

    /// A stream that fails ends with an ordinary end that says so.
    fn broken(&self, rejection: &Rejection) -> Bytes {
        let delta = json!({"finish_reason": "ERROR", "error": rejection.message});
        Frame::named("message-end", &json!({"type": "message-end", "delta": delta}), false).bytes
    }
}

fn model(incoming: &Incoming<'_>, body: &Value) -> Result<String, Rejection> {
    match &body["model"] {
        Value::String(model) if incoming.has(model) => Ok(model.clone()),
        Value::String(model) => Err(Rejection::plain(
            404,
            format!(
                "model '{model}' not found, make sure the correct model ID was used and that you have access to the model."
            ),
        )),
        _ => Err(Rejection::plain(400, "invalid request: model is required")),
    }
}

fn embed(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = incoming.json()?;
    model(incoming, &body)?;
    let root = At::root(&body);
    root.only(&[
        "model",
        "input_type",
        "texts",
        "images",
        "inputs",
        "max_tokens",
        "output_dimension",
        "embedding_types",
        "truncate",
        "priority",
    ])
    .map_err(refuse)?;
    root.need_text("input_type").map_err(refuse)?;
    let texts = root.texts_of("texts").map_err(refuse)?;
    let value = |text: &str, index: u32| f64::from(digest(&format!("{index}{text}")) % 2000) / 1000.0 - 1.0;
    let vector = |text: &String| (0..8).map(|index| value(text, index)).collect::<Vec<f64>>();
    let vectors: Vec<Vec<f64>> = texts.iter().map(vector).collect();
    let tokens: usize = texts.iter().map(|text| text.len().div_ceil(4)).sum();
    Ok(json!({
        "id": "5e1d1c1a-0000-4000-8000-000000000000", "embeddings": {"float": vectors}, "texts": texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": tokens}},
    })
    .into())
}

fn rerank(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = incoming.json()?;
    model(incoming, &body)?;
    let root = At::root(&body);
    root.only(&["model", "query", "documents", "top_n", "max_tokens_per_doc", "priority"]).map_err(refuse)?;
    let (results, _) = rank(&root).map_err(refuse)?;
    Ok(json!({
        "id": "6f2e2d2b-0000-4000-8000-000000000000", "results": results,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    })
    .into())
}

fn refuse(wrong: Wrong) -> Rejection {
    let path = wrong.bracketed();
    let message = match &wrong.what {
        What::Unknown => format!("unknown field: parameter '{path}' is not a valid field"),
        What::Missing => format!("invalid request: {path} is required"),
        What::Type(expected) => {
            format!("invalid type: parameter {path} is of the wrong type, but should be of type {expected}.")
        }
        What::Said(said) if path.is_empty() => format!("invalid request: {said}"),
        What::Said(said) => format!("invalid request: {path}: {said}"),
    };
    Rejection::plain(400, message)
}
