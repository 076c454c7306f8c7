//! Ollama's own chat and embeddings: lines of JSON, arguments of tools as objects, no ids of calls.
//!
//! Read from docs/api.md of the Ollama repository. Fields that it does not know it ignores; types it checks as Go does.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::HeaderValue;
use serde_json::{Value, json};

use super::{Frame, Incoming, Plain, Speech};
use crate::answer::digest;
use crate::check::{At, Checked, What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::media;
use crate::reject::Rejection;
use crate::script::{Asked, Finish, Part, Script, Tool};

/// `POST /api/chat`
#[derive(Debug)]
struct OllamaChat;

const CREATED: &str = "2026-01-01T00:00:00.000000Z";

pub(crate) fn route(post: bool, path: &str) -> Found {
    let endpoint = match (post, path) {
        (true, "/api/chat") => Endpoint::Speech(&OllamaChat),
        (true, "/api/embed") => Endpoint::Direct(embed),
        (false, "/api/tags") => Endpoint::Direct(tags),
        _ => return None,
    };
    Some((endpoint, None))
}

impl Speech for OllamaChat {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let body = incoming.json()?;
        let model = model(incoming, &body)?;
        chat(&body, incoming.asked(model, "messages")).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        let mut message = json!({"role": "assistant", "content": script.text().unwrap_or_default()});
        if let Some(reasoning) = script.reasoning() {
            message["thinking"] = reasoning.into();
        }
        let calls = calls(script);
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        last(script, message)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        let line = |message: Value, token: bool| {
            let line =
                json!({"model": script.model, "created_at": CREATED, "message": message, "done": false});
            Frame { bytes: format!("{line}\n").into(), token }
        };
        let mut frames = Vec::new();
        for part in &script.parts {
            match part {
                Part::Reasoning(pieces) => {
                    frames.extend(pieces.iter().map(|piece| {
                        line(json!({"role": "assistant", "content": "", "thinking": piece}), true)
                    }))
                }
                Part::Text(pieces) => frames.extend(
                    pieces.iter().map(|piece| line(json!({"role": "assistant", "content": piece}), true)),
                ),
                Part::Call(_) => {}
            }
        }
        let calls = calls(script);
        if !calls.is_empty() {
            frames.push(line(json!({"role": "assistant", "content": "", "tool_calls": calls}), true));
        }
        let end = last(script, json!({"role": "assistant", "content": ""}));
        frames.push(Frame { bytes: format!("{end}\n").into(), token: false });
        frames
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        format!("{}\n", json!({"error": rejection.message})).into()
    }

    fn stream_type(&self) -> HeaderValue {
        HeaderValue::from_static("application/x-ndjson")
    }
}

fn calls(script: &Script) -> Vec<Value> {
    script.calls().map(|call| json!({"function": {"name": call.name, "arguments": call.arguments}})).collect()
}

fn last(script: &Script, message: Value) -> Value {
    let reason = if script.finish == Finish::Length { "length" } else { "stop" };
    json!({
        "model": script.model, "created_at": CREATED, "message": message, "done": true, "done_reason": reason,
        "total_duration": 2_000_000, "load_duration": 500_000,
        "prompt_eval_count": script.tokens.input, "prompt_eval_duration": 500_000,
        "eval_count": script.tokens.output, "eval_duration": 1_000_000,
    })
}

fn chat(body: &Value, asked: Asked) -> Checked<Asked> {
    let root = At::root(body);
    // Ollama streams unless told not to.
    let mut asked = Asked { stream: root.flag_of("stream")?.unwrap_or(true), include_usage: true, ..asked };
    if let Some(options) = root.get("options") {
        options.object()?;
        let limit = options.whole_of("num_predict")?;
        asked.max_tokens = limit.and_then(|limit| u32::try_from(limit).ok()).filter(|limit| *limit > 0);
        for name in ["temperature", "top_p", "presence_penalty", "frequency_penalty"] {
            options.get(name).map(|at| at.number()).transpose()?;
        }
        for name in ["top_k", "seed", "num_ctx"] {
            options.whole_of(name)?;
        }
        asked.stop = options.texts_of("stop")?;
    }
    if let Some(think) = root.get("think") {
        asked.reasoning = match think.value {
            Value::String(_) => think.one_of(&["low", "medium", "high"]).map(|_| true)?,
            _ => think.flag()?,
        };
    }
    match root.get("format") {
        Some(format) if format.value.is_object() => asked.schema = Some(format.value.clone()),
        Some(format) if format.value != "" => asked.json = format.one_of(&["json"])? == "json",
        _ => {}
    }
    for at in root.list_of("tools")? {
        let function = at.need("function")?;
        let schema = function.get("parameters").map_or(Value::Null, |at| at.value.clone());
        asked.tools.push(Tool { name: function.need_text("name")?.to_owned(), schema });
    }
    conversation(&root, &mut asked)?;
    Ok(asked)
}

fn conversation(root: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let mut called = Vec::new();
    for message in root.list_of("messages")? {
        let role = message.need("role")?.one_of(&["system", "user", "assistant", "tool"])?;
        // A Go string: an array of parts is a mistake.
        let text = message.text_of("content")?.unwrap_or_default();
        let mut images = Vec::new();
        for image in message.list_of("images")? {
            images.push(self::image(&image)?);
        }
        if role == "tool" {
            let name = message.text_of("tool_name")?.or_else(|| called.get(asked.results.len()).copied());
            asked.results.push((name.unwrap_or("tool").to_owned(), text.to_owned()));
            continue;
        }
        asked.results.clear();
        if role == "user" {
            (asked.text, asked.images) = (text.to_owned(), images);
        }
        called = Vec::new();
        for call in message.list_of("tool_calls")? {
            let function = call.need("function")?;
            if let Some(arguments) = function.get("arguments") {
                arguments.object()?;
            }
            called.push(function.need_text("name")?);
        }
    }
    Ok(())
}

fn image(at: &At<'_>) -> Checked<(String, usize)> {
    let Ok(bytes) = BASE64_STANDARD.decode(at.text()?) else {
        return Err(at.wrong("illegal base64 data at input byte 4"));
    };
    let kind = media::sniff(&bytes).ok_or_else(|| at.wrong("image: unknown format"))?;
    Ok((kind.to_owned(), bytes.len()))
}

fn model(incoming: &Incoming<'_>, body: &Value) -> Result<String, Rejection> {
    match &body["model"] {
        Value::String(model) if incoming.has(model) => Ok(model.clone()),
        Value::String(model) if !model.is_empty() => {
            Err(Rejection::plain(404, format!("model '{model}' not found")))
        }
        _ => Err(Rejection::plain(400, "model is required")),
    }
}

fn embed(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = incoming.json()?;
    let model = model(incoming, &body)?;
    let inputs = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        _ => At::root(&body).texts_of("input").map_err(refuse)?,
    };
    let value = |text: &str, index: u32| f64::from(digest(&format!("{index}{text}")) % 2000) / 1000.0 - 1.0;
    let vector = |text: &String| (0..8).map(|index| value(text, index)).collect::<Vec<f64>>();
    let tokens: usize = inputs.iter().map(|text| text.len().div_ceil(4)).sum();
    let vectors: Vec<Vec<f64>> = inputs.iter().map(vector).collect();
    Ok(json!({"model": model, "embeddings": vectors, "prompt_eval_count": tokens}).into())
}

fn tags(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let model = |name: &String| json!({"name": name, "model": name, "modified_at": CREATED, "size": 1});
    Ok(json!({"models": incoming.config.models.iter().map(model).collect::<Vec<_>>()}).into())
}

fn refuse(wrong: Wrong) -> Rejection {
    let path = &wrong.path;
    let message = match &wrong.what {
        What::Type(expected) => {
            format!("json: cannot unmarshal value into Go struct field ChatRequest.{path} of type {expected}")
        }
        What::Missing => format!("{path} is required"),
        What::Unknown => format!("unknown field {path}"),
        What::Said(said) => said.clone(),
    };
    Rejection::plain(400, message)
}
