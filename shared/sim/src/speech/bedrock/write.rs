//! Answers as Converse writes them.

use serde_json::{Value, json};

use super::super::Frame;
use super::frame::event;
use crate::script::{Finish, Part, Script, ToolCall, sign};

pub(super) fn whole(script: &Script) -> Value {
    let content: Vec<Value> = script
        .parts
        .iter()
        .map(|part| match part {
            Part::Reasoning(pieces) => {
                let text = pieces.concat();
                json!({"reasoningContent": {"reasoningText": {"text": text, "signature": sign(&text)}}})
            }
            Part::Text(pieces) => json!({"text": pieces.concat()}),
            Part::Call(call) => {
                json!({"toolUse": {"toolUseId": id(call), "name": call.name, "input": call.arguments}})
            }
        })
        .collect();
    json!({
        "metrics": {"latencyMs": 1},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_reason(script),
        "usage": usage(script),
    })
}

pub(super) fn stream(script: &Script) -> Vec<Frame> {
    let mut frames = Vec::new();
    // The real service pads its events to hide their lengths.
    let mut put = |name: &str, mut payload: Value, token: bool| {
        payload["p"] = "abcdefgh".into();
        frames.push(Frame { bytes: event(name, &payload), token });
    };
    put("messageStart", json!({"role": "assistant"}), false);
    for (index, part) in script.parts.iter().enumerate() {
        let mut delta = |delta: Value, token: bool| {
            put("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}), token);
        };
        match part {
            Part::Reasoning(pieces) => {
                for piece in pieces {
                    delta(json!({"reasoningContent": {"text": piece}}), true);
                }
                delta(json!({"reasoningContent": {"signature": sign(&pieces.concat())}}), false);
            }
            Part::Text(pieces) => {
                for piece in pieces {
                    delta(json!({"text": piece}), true);
                }
            }
            Part::Call(call) => {
                let start = json!({"toolUse": {"toolUseId": id(call), "name": call.name}});
                put("contentBlockStart", json!({"contentBlockIndex": index, "start": start}), false);
                for piece in &call.pieces {
                    let delta = json!({"toolUse": {"input": piece}});
                    put("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}), true);
                }
            }
        }
        put("contentBlockStop", json!({"contentBlockIndex": index}), false);
    }
    put("messageStop", json!({"stopReason": stop_reason(script)}), false);
    put("metadata", json!({"usage": usage(script), "metrics": {"latencyMs": 1}}), false);
    frames
}

fn id(call: &ToolCall) -> String {
    format!("tooluse_sim{}", call.id)
}

fn stop_reason(script: &Script) -> &'static str {
    match script.finish {
        Finish::Stop => "end_turn",
        Finish::Sequence(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::Calls => "tool_use",
    }
}

/// Input counts exclude what was read from a cache or written to it.
fn usage(script: &Script) -> Value {
    let tokens = script.tokens;
    json!({
        "inputTokens": tokens.input - tokens.cached - tokens.written,
        "outputTokens": tokens.output,
        "totalTokens": tokens.input + tokens.output,
        "cacheReadInputTokens": tokens.cached,
        "cacheWriteInputTokens": tokens.written,
    })
}
