//! Gemini: `generateContent`, `streamGenerateContent`, `countTokens` and embeddings.
//!
//! Read from the API reference at ai.google.dev and, for errors, from what that service answers. Field names may come
//! in camel case or with underscores, as everywhere where Google reads JSON into protocol buffers.

mod check;
mod contents;
mod schema;
mod write;

use bytes::Bytes;
use http::Uri;
use http::header::HeaderValue;
use serde_json::{Map, Value, json};

use super::{Frame, Incoming, Plain, Speech};
use crate::answer::digest;
use crate::check::{At, What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;
use crate::script::{Asked, Script};
use crate::shape;

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    Whole,
    Events,
    /// A JSON array, one element at a time: what `streamGenerateContent` does without `alt=sse`.
    Array,
}

/// `generateContent`, in each way of sending, here and on Vertex AI.
#[derive(Debug)]
pub(crate) struct Generate {
    sending: Sending,
    vertex: bool,
}

static HERE: [Generate; 3] = generate(false);
static ON_VERTEX: [Generate; 3] = generate(true);

const fn generate(vertex: bool) -> [Generate; 3] {
    [
        Generate { sending: Sending::Whole, vertex },
        Generate { sending: Sending::Events, vertex },
        Generate { sending: Sending::Array, vertex },
    ]
}

pub(crate) fn route(post: bool, uri: &Uri) -> Found {
    let path = ["/v1beta", "/v1alpha", "/v1"].iter().find_map(|version| uri.path().strip_prefix(version))?;
    if !post {
        return (path == "/models").then_some((Endpoint::Models, None));
    }
    call(path.strip_prefix("/models/")?, uri, false)
}

/// `MODEL:METHOD`
pub(super) fn call(model_and_method: &str, uri: &Uri, vertex: bool) -> Found {
    let (model, method) = model_and_method.rsplit_once(':')?;
    let ways = if vertex { &ON_VERTEX } else { &HERE };
    let is_sse = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
    let endpoint = match method {
        "generateContent" => Endpoint::Speech(&ways[0]),
        "streamGenerateContent" => Endpoint::Speech(&ways[if is_sse { 1 } else { 2 }]),
        "countTokens" => Endpoint::Direct(count_tokens),
        "embedContent" => Endpoint::Direct(embed),
        "batchEmbedContents" => Endpoint::Direct(embed_batch),
        _ => return None,
    };
    Some((endpoint, Some(model.to_owned())))
}

impl Speech for Generate {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let body = camel(incoming.json()?);
        let model = model(incoming)?;
        let asked = check::generate(&body, incoming.asked(model, "contents"), self.vertex).map_err(refuse)?;
        Ok(Asked { stream: self.sending != Sending::Whole, ..asked })
    }

    fn whole(&self, script: &Script) -> Value {
        write::whole(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        let answers = write::stream(script);
        if self.sending != Sending::Array {
            return answers.iter().map(|(answer, token)| Frame::data(answer, *token)).collect();
        }
        let element = |(index, (answer, token)): (usize, &(Value, bool))| {
            let before = if index == 0 { "[" } else { ",\r\n" };
            Frame { bytes: format!("{before}{answer}").into(), token: *token }
        };
        let mut frames: Vec<Frame> = answers.iter().enumerate().map(element).collect();
        frames.push(Frame { bytes: Bytes::from_static(b"]"), token: false });
        frames
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        let error = shape::google(rejection);
        match self.sending {
            Sending::Array => format!(",\r\n{error}]").into(),
            _ => Frame::data(&error, false).bytes,
        }
    }

    fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.sending {
            Sending::Events => "text/event-stream",
            _ => "application/json; charset=UTF-8",
        })
    }
}

fn count_tokens(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = camel(incoming.json()?);
    let asked = incoming.asked(model(incoming)?, "contents");
    let root = At::root(&body);
    root.only(&["contents", "generateContentRequest", "model", "systemInstruction", "tools"])
        .map_err(refuse)?;
    let tokens = asked.length.div_ceil(4);
    contents::conversation(&root, &mut Asked::default(), false).map_err(refuse)?;
    Ok(json!({"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})
        .into())
}

fn embed(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = camel(incoming.json()?);
    model(incoming)?;
    Ok(json!({"embedding": embedding(&At::root(&body)).map_err(refuse)?}).into())
}

fn embed_batch(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = camel(incoming.json()?);
    model(incoming)?;
    let requests = At::root(&body).need("requests").and_then(|at| at.list()).map_err(refuse)?;
    let embeddings: Result<Vec<Value>, Wrong> = requests.iter().map(embedding).collect();
    Ok(json!({"embeddings": embeddings.map_err(refuse)?}).into())
}

fn embedding(request: &At<'_>) -> Result<Value, Wrong> {
    request.only(&["model", "content", "taskType", "title", "outputDimensionality"])?;
    let text = request.need("content")?.value.to_string();
    let dimensions = request.at_least("outputDimensionality", 1)?.unwrap_or(8).min(3072);
    let value = |index: u32| f64::from(digest(&format!("{index}{text}")) % 2000) / 1000.0 - 1.0;
    Ok(json!({"values": (0..dimensions).map(value).collect::<Vec<f64>>()}))
}

fn model(incoming: &Incoming<'_>) -> Result<String, Rejection> {
    let model = incoming.model.unwrap_or_default();
    if incoming.has(model) {
        return Ok(model.to_owned());
    }
    let message = format!(
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels \
         to see the list of available models and their supported methods."
    );
    Err(Rejection::plain(404, message))
}

/// Field names in camel case, except inside what is free: arguments, results, JSON Schemas, names of properties.
fn camel(value: Value) -> Value {
    let Value::Object(fields) = value else {
        return match value {
            Value::Array(items) => items.into_iter().map(camel).collect(),
            other => other,
        };
    };
    let mut out = Map::new();
    for (key, value) in fields {
        let key = camel_name(&key);
        let value = match (key.as_str(), value) {
            ("args" | "response" | "parametersJsonSchema" | "responseJsonSchema" | "labels", free) => free,
            ("properties", Value::Object(names)) => {
                names.into_iter().map(|(name, schema)| (name, camel(schema))).collect::<Map<_, _>>().into()
            }
            (_, value) => camel(value),
        };
        out.insert(key, value);
    }
    Value::Object(out)
}

fn camel_name(name: &str) -> String {
    // Words of JSON Schema such as `$ref` stay, to be refused under their own name.
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let head: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        name + &head + letters.as_str()
    })
}

fn refuse(wrong: Wrong) -> Rejection {
    let path = wrong.bracketed();
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", &path));
    let message = match &wrong.what {
        What::Unknown => {
            let at = if parent.is_empty() { String::new() } else { format!(" at '{parent}'") };
            format!("Invalid JSON payload received. Unknown name \"{field}\"{at}: Cannot find field.")
        }
        What::Missing => format!("* GenerateContentRequest.{path}: {field} is not specified\n"),
        What::Type(expected) => format!("Invalid value at '{path}' (expected {expected})"),
        What::Said(said) if path.is_empty() => said.clone(),
        What::Said(said) => format!("* GenerateContentRequest.{path}: {said}\n"),
    };
    Rejection::plain(400, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_camel_case_except_where_they_are_free() {
        let body = json!({"system_instruction": {"parts": [{"function_call": {"args": {"a_b": 1}}}]},
            "tools": [{"function_declarations": [{"parameters": {"properties": {"a_b": {"min_items": 1}}}}]}]});
        let expected = json!({"systemInstruction": {"parts": [{"functionCall": {"args": {"a_b": 1}}}]},
            "tools": [{"functionDeclarations": [{"parameters": {"properties": {"a_b": {"minItems": 1}}}}]}]});
        assert_eq!(camel(body), expected);
    }
}
