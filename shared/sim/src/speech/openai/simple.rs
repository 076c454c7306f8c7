//! The smaller calls: completions, rerank, moderations, images and audio, each strict about what it must have.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::HeaderValue;
use serde_json::{Value, json};

use super::super::{Incoming, Plain};
use super::refuse;
use crate::answer::{CREATED, digest};
use crate::check::{At, Checked};
use crate::reject::Rejection;

/// A PNG of one grey pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0,
    0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 0x0a, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63,
    0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42,
    0x60, 0x82,
];

/// A request that names a model the service has.
fn request(incoming: &Incoming<'_>) -> Result<Value, Rejection> {
    let body = incoming.json()?;
    match &body["model"] {
        Value::String(model) if incoming.has(model) => Ok(body),
        Value::String(model) => Err(Rejection::unknown_model(model)),
        _ => Err(Rejection::missing("model")),
    }
}

pub(crate) fn completions(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = request(incoming)?;
    let prompt = At::root(&body).need("prompt").map_err(refuse)?;
    if !prompt.value.is_string() && !prompt.value.is_array() {
        return Err(refuse(prompt.wrong("expected a string or an array")));
    }
    let text = prompt.value.to_string();
    let tokens = text.len().div_ceil(4);
    let said = format!("{}: [{:08x}]", incoming.config.name, digest(&text));
    Ok(json!({
        "id": "cmpl-00000000", "object": "text_completion", "created": CREATED, "model": body["model"],
        "choices": [{"text": said, "index": 0, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2},
    })
    .into())
}

pub(crate) fn rerank(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = request(incoming)?;
    let (results, tokens) = rank(&At::root(&body)).map_err(refuse)?;
    Ok(json!({"id": "rerank-00000000", "model": body["model"], "results": results, "usage": {"total_tokens": tokens}}).into())
}

/// Documents that share more words with the query come first.
pub(crate) fn rank(root: &At<'_>) -> Checked<(Vec<Value>, usize)> {
    let query = root.need_text("query")?;
    let most = root.at_least("top_n", 1)?.map_or(usize::MAX, |most| most as usize);
    let mut ranked = Vec::new();
    for (index, document) in root.need("documents")?.list()?.iter().enumerate() {
        let text = document.value["text"].as_str().map_or_else(|| document.text(), Ok)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let shared = words.iter().filter(|word| query.contains(**word)).count();
        ranked.push((shared as f64 / words.len().max(1) as f64, index));
    }
    if ranked.is_empty() {
        return Err(root.need("documents")?.wrong("expected at least one document"));
    }
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    let result = |(score, index): &(f64, usize)| json!({"index": index, "relevance_score": score});
    Ok((ranked.iter().take(most).map(result).collect(), query.len().div_ceil(4)))
}

pub(crate) fn moderations(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = incoming.json()?;
    let input = At::root(&body).need("input").map_err(refuse)?;
    let inputs = input.value.as_array().map_or(1, Vec::len);
    let flagged = input.value.to_string().contains("attack");
    let result = json!({
        "flagged": flagged, "categories": {"violence": flagged},
        "category_scores": {"violence": if flagged { 0.9 } else { 0.01 }},
    });
    let model = body.get("model").cloned().unwrap_or_else(|| "omni-moderation-latest".into());
    Ok(json!({"id": "modr-00000000", "model": model, "results": vec![result; inputs]}).into())
}

pub(crate) fn images(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = request(incoming)?;
    let root = At::root(&body);
    root.need_text("prompt").map_err(refuse)?;
    let count = root.at_least("n", 1).map_err(refuse)?.unwrap_or(1).min(10) as usize;
    let image = json!({"b64_json": BASE64_STANDARD.encode(PIXEL)});
    let usage = json!({"input_tokens": 10, "output_tokens": 20, "total_tokens": 30,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 0}});
    Ok(json!({"created": CREATED, "data": vec![image; count], "usage": usage}).into())
}

pub(crate) fn speech(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let body = request(incoming)?;
    let root = At::root(&body);
    for field in ["input", "voice"] {
        root.need(field).map_err(refuse)?;
    }
    let formats = &["mp3", "opus", "aac", "flac", "wav", "pcm"];
    let format = root.get("response_format").map(|at| at.one_of(formats)).transpose().map_err(refuse)?;
    let content_type = match format.unwrap_or("mp3") {
        "wav" => "audio/wav",
        "opus" => "audio/opus",
        "aac" => "audio/aac",
        "flac" => "audio/flac",
        "pcm" => "audio/pcm",
        _ => "audio/mpeg",
    };
    let sound: Vec<u8> = body["input"].to_string().bytes().rev().cycle().take(2048).collect();
    Ok(Plain { content_type: HeaderValue::from_static(content_type), body: sound.into() })
}

/// The form must hold a file and a model; which, is not looked at closely.
pub(crate) fn transcriptions(incoming: &Incoming<'_>) -> Result<Plain, Rejection> {
    let form = String::from_utf8_lossy(incoming.body);
    for field in ["file", "model"] {
        if !form.contains(&format!("name=\"{field}\"")) {
            return Err(Rejection::missing(field));
        }
    }
    let text = format!("{} heard {} bytes", incoming.config.name, incoming.body.len());
    Ok(json!({"text": text, "usage": {"type": "duration", "seconds": 1}}).into())
}
