//! Answers as chat completions write them.

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::Frame;
use crate::answer::CREATED;
use crate::reject::Rejection;
use crate::reply;
use crate::script::{Finish, Part, Script, ToolCall};

pub(crate) fn completion(script: &Script) -> Value {
    let mut message = json!({"role": "assistant", "content": script.text(), "refusal": null});
    if let (Some(reasoning), true) = (script.reasoning(), tells_reasoning(script)) {
        message["reasoning_content"] = reasoning.into();
    }
    let calls: Vec<Value> = script.calls().map(|call| tool_call(call, &call.arguments.to_string())).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut completion = head(script, "chat.completion");
    completion["choices"] =
        json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(script)}]);
    completion["usage"] = usage(script);
    completion
}

/// `extra`: fields that each choice has besides, as Azure adds them.
pub(crate) fn stream_chat(script: &Script, extra: Option<(&str, &Value)>) -> Vec<Frame> {
    let chunk = |delta: Value, finish: Option<&str>, token: bool| {
        let mut choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        if let Some((name, value)) = extra {
            choice[name] = value.clone();
        }
        let mut chunk = head(script, "chat.completion.chunk");
        chunk["choices"] = json!([choice]);
        if script.include_usage {
            chunk["usage"] = Value::Null;
        }
        Frame::data(&chunk, token)
    };
    let content = script.calls().next().is_none().then_some("");
    let mut frames =
        vec![chunk(json!({"role": "assistant", "content": content, "refusal": null}), None, false)];
    let mut index = 0;
    for part in &script.parts {
        match part {
            Part::Reasoning(pieces) if tells_reasoning(script) => {
                let delta = |piece: &String| json!({"reasoning_content": piece, "content": null});
                frames.extend(pieces.iter().map(|piece| chunk(delta(piece), None, true)));
            }
            Part::Reasoning(_) => {}
            Part::Text(pieces) => {
                frames.extend(pieces.iter().map(|piece| chunk(json!({"content": piece}), None, true)));
            }
            Part::Call(call) => {
                let mut first = tool_call(call, "");
                first["index"] = index.into();
                frames.push(chunk(json!({"tool_calls": [first]}), None, true));
                let delta = |piece: &String| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
                frames.extend(call.pieces.iter().map(|piece| chunk(delta(piece), None, true)));
                index += 1;
            }
        }
    }
    frames.push(chunk(json!({}), Some(finish_reason(script)), false));
    if script.include_usage {
        let mut last = head(script, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(script);
        frames.push(Frame::data(&last, false));
    }
    frames.push(Frame { bytes: Bytes::from_static(b"data: [DONE]\n\n"), token: false });
    frames
}

/// An error inside a stream.
pub(crate) fn error_event(rejection: &Rejection) -> Bytes {
    reply::error_frames(rejection)
}

/// OpenAI keeps its reasoning to itself; the services shaped like it tell it.
fn tells_reasoning(script: &Script) -> bool {
    script.echo == Value::Bool(true)
}

pub(super) fn head(script: &Script, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{:08x}", script.number),
        "object": object,
        "created": CREATED,
        "model": script.model,
        "choices": [],
        "service_tier": "default",
        "system_fingerprint": "fp_sim",
    })
}

fn tool_call(call: &ToolCall, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": format!("call_{}", call.id), "type": "function", "function": function})
}

fn finish_reason(script: &Script) -> &'static str {
    match script.finish {
        Finish::Stop | Finish::Sequence(_) => "stop",
        Finish::Length => "length",
        Finish::Calls => "tool_calls",
    }
}

pub(super) fn usage(script: &Script) -> Value {
    let tokens = script.tokens;
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
