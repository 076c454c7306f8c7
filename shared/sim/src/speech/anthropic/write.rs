//! Answers as the Messages API writes them.

use serde_json::{Value, json};

use super::super::Frame;
use crate::script::{Finish, Part, Script, ToolCall, sign};

pub(super) fn whole(script: &Script) -> Value {
    let content: Vec<Value> = script.parts.iter().map(|part| block(part, true)).collect();
    let mut message = head(script);
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(script).into();
    message["stop_sequence"] = stop_sequence(script);
    message["usage"] = usage(script, script.tokens.output);
    message
}

pub(super) fn stream(script: &Script) -> Vec<Frame> {
    let mut message = head(script);
    message["usage"] = usage(script, 1);
    let mut frames =
        vec![Frame::named("message_start", &json!({"type": "message_start", "message": message}), false)];
    for (index, part) in script.parts.iter().enumerate() {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": block(part, false)});
        frames.push(Frame::named("content_block_start", &start, false));
        if index == 0 {
            frames.push(Frame::named("ping", &json!({"type": "ping"}), false));
        }
        let mut delta = |delta: Value, token: bool| {
            let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
            frames.push(Frame::named("content_block_delta", &data, token));
        };
        match part {
            Part::Reasoning(pieces) => {
                for piece in pieces {
                    delta(json!({"type": "thinking_delta", "thinking": piece}), true);
                }
                delta(json!({"type": "signature_delta", "signature": sign(&pieces.concat())}), false);
            }
            Part::Text(pieces) => {
                for piece in pieces {
                    delta(json!({"type": "text_delta", "text": piece}), true);
                }
            }
            Part::Call(call) => {
                // The real service begins with an empty piece, and sends no other for a call without arguments.
                delta(json!({"type": "input_json_delta", "partial_json": ""}), true);
                let is_empty = call.arguments.as_object().is_some_and(serde_json::Map::is_empty);
                for piece in call.pieces.iter().filter(|_| !is_empty) {
                    delta(json!({"type": "input_json_delta", "partial_json": piece}), true);
                }
            }
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        frames.push(Frame::named("content_block_stop", &stop, false));
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(script), "stop_sequence": stop_sequence(script)},
        "usage": usage(script, script.tokens.output),
    });
    frames.push(Frame::named("message_delta", &end, false));
    frames.push(Frame::named("message_stop", &json!({"type": "message_stop"}), false));
    frames
}

fn head(script: &Script) -> Value {
    json!({
        "id": format!("msg_01Sim{:016x}", script.number),
        "type": "message",
        "role": "assistant",
        "model": script.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

/// A block, with what it holds or as it stands at its start.
fn block(part: &Part, full: bool) -> Value {
    let text = |pieces: &[String]| if full { pieces.concat() } else { String::new() };
    match part {
        Part::Reasoning(pieces) => {
            let signature = if full { sign(&pieces.concat()) } else { String::new() };
            json!({"type": "thinking", "thinking": text(pieces), "signature": signature})
        }
        Part::Text(pieces) => json!({"type": "text", "text": text(pieces)}),
        Part::Call(call) => {
            let input = if full { call.arguments.clone() } else { json!({}) };
            json!({"type": "tool_use", "id": id(call), "name": call.name, "input": input})
        }
    }
}

fn id(call: &ToolCall) -> String {
    format!("toolu_01Sim{}", call.id)
}

fn stop_reason(script: &Script) -> &'static str {
    match script.finish {
        Finish::Stop => "end_turn",
        Finish::Sequence(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::Calls => "tool_use",
    }
}

fn stop_sequence(script: &Script) -> Value {
    match &script.finish {
        Finish::Sequence(stop) => stop.as_str().into(),
        _ => Value::Null,
    }
}

/// Input counts exclude what was read from a cache or written to it.
fn usage(script: &Script, output: u64) -> Value {
    let tokens = script.tokens;
    json!({
        "input_tokens": tokens.input - tokens.cached - tokens.written,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning.min(output)},
        "service_tier": "standard",
    })
}
