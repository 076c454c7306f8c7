//! Answers as Gemini writes them.

use serde_json::{Value, json};

use crate::script::{Finish, Part, Script, ToolCall, sign};

pub(super) fn whole(script: &Script) -> Value {
    let mut signature = Signature::new(script);
    let parts: Vec<Value> = script
        .parts
        .iter()
        .map(|part| match part {
            Part::Reasoning(pieces) => thought(&pieces.concat()),
            Part::Text(pieces) => json!({"text": pieces.concat()}),
            Part::Call(call) => function_call(call, &mut signature),
        })
        .collect();
    answer(script, parts, true)
}

/// Each element of a stream is a full answer with what is new; `true` where it has to be waited for.
pub(super) fn stream(script: &Script) -> Vec<(Value, bool)> {
    let mut signature = Signature::new(script);
    let mut pieces: Vec<Value> = Vec::new();
    for part in &script.parts {
        match part {
            Part::Reasoning(texts) => pieces.extend(texts.iter().map(|text| thought(text))),
            Part::Text(texts) => pieces.extend(texts.iter().map(|text| json!({"text": text}))),
            Part::Call(call) => pieces.push(function_call(call, &mut signature)),
        }
    }
    let last = pieces.len() - 1;
    let element = |(index, piece): (usize, Value)| (answer(script, vec![piece], index == last), true);
    pieces.into_iter().enumerate().map(element).collect()
}

/// The first call of an answer that was reasoned about carries the signature.
struct Signature(bool);

impl Signature {
    fn new(script: &Script) -> Self {
        Self(script.reasoning().is_some())
    }
}

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

fn function_call(call: &ToolCall, signature: &mut Signature) -> Value {
    let mut part = json!({"functionCall": {"name": call.name, "args": call.arguments}});
    if std::mem::take(&mut signature.0) {
        part["thoughtSignature"] = sign(&call.name).into();
    }
    part
}

fn answer(script: &Script, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        candidate["finishReason"] =
            if script.finish == Finish::Length { "MAX_TOKENS" } else { "STOP" }.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(script, is_last),
        "modelVersion": script.model,
        "responseId": format!("sim{:012x}", script.number),
    })
}

fn usage(script: &Script, is_last: bool) -> Value {
    let tokens = script.tokens;
    let mut usage = json!({
        "promptTokenCount": tokens.input,
        "totalTokenCount": tokens.input,
        "cachedContentTokenCount": tokens.cached,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.input}],
    });
    if is_last {
        usage["candidatesTokenCount"] = (tokens.output - tokens.reasoning).into();
        usage["thoughtsTokenCount"] = tokens.reasoning.into();
        usage["totalTokenCount"] = (tokens.input + tokens.output).into();
    }
    usage
}
