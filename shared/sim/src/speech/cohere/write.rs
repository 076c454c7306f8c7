//! Answers as Cohere's chat writes them.

use serde_json::{Value, json};

use super::super::Frame;
use crate::script::{Finish, Part, Script, ToolCall};

pub(super) fn whole(script: &Script) -> Value {
    let plan = plan(script);
    let mut message = json!({"role": "assistant"});
    if !plan.is_empty() {
        message["tool_plan"] = plan.concat().into();
    }
    let calls: Vec<Value> = script.calls().map(|call| tool_call(call, &call.arguments.to_string())).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let content = |part: &Part| match part {
        Part::Reasoning(pieces) => Some(json!({"type": "thinking", "thinking": pieces.concat()})),
        Part::Text(pieces) if script.finish != Finish::Calls => {
            Some(json!({"type": "text", "text": pieces.concat()}))
        }
        _ => None,
    };
    let content: Vec<Value> = script.parts.iter().filter_map(content).collect();
    if !content.is_empty() {
        message["content"] = content.into();
    }
    json!({"id": id(script), "finish_reason": finish_reason(script), "message": message, "usage": usage(script)})
}

pub(super) fn stream(script: &Script) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut put = |name: &str, fields: Value, token: bool| {
        let mut data = json!({"type": name});
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        frames.push(Frame::named(name, &data, token));
    };
    let message =
        json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []});
    put("message-start", json!({"id": id(script), "delta": {"message": message}}), false);
    let (mut blocks, mut calls) = (0, 0);
    for part in &script.parts {
        match part {
            Part::Text(pieces) if script.finish == Finish::Calls => {
                for piece in pieces {
                    put("tool-plan-delta", json!({"delta": {"message": {"tool_plan": piece}}}), true);
                }
            }
            Part::Text(pieces) | Part::Reasoning(pieces) => {
                let kind = if matches!(part, Part::Text(_)) { "text" } else { "thinking" };
                let start = json!({"type": kind, kind: ""});
                put(
                    "content-start",
                    json!({"index": blocks, "delta": {"message": {"content": start}}}),
                    false,
                );
                for piece in pieces {
                    let delta = json!({"message": {"content": {kind: piece}}});
                    put("content-delta", json!({"index": blocks, "delta": delta}), true);
                }
                put("content-end", json!({"index": blocks}), false);
                blocks += 1;
            }
            Part::Call(call) => {
                let start = json!({"message": {"tool_calls": tool_call(call, "")}});
                put("tool-call-start", json!({"index": calls, "delta": start}), true);
                for piece in &call.pieces {
                    let delta = json!({"message": {"tool_calls": {"function": {"arguments": piece}}}});
                    put("tool-call-delta", json!({"index": calls, "delta": delta}), true);
                }
                put("tool-call-end", json!({"index": calls}), false);
                calls += 1;
            }
        }
    }
    let end = json!({"finish_reason": finish_reason(script), "usage": usage(script)});
    put("message-end", json!({"delta": end}), false);
    frames
}

/// What is said before tools are called.
fn plan(script: &Script) -> Vec<String> {
    let text = script.text().filter(|_| script.finish == Finish::Calls);
    text.into_iter().collect()
}

fn id(script: &Script) -> String {
    format!("7a3f3e3c-0000-4000-8000-{:012x}", script.number)
}

fn tool_call(call: &ToolCall, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": format!("{}_{}", call.name, call.id), "type": "function", "function": function})
}

fn finish_reason(script: &Script) -> &'static str {
    match script.finish {
        Finish::Stop => "COMPLETE",
        Finish::Sequence(_) => "STOP_SEQUENCE",
        Finish::Length => "MAX_TOKENS",
        Finish::Calls => "TOOL_CALL",
    }
}

fn usage(script: &Script) -> Value {
    let tokens = script.tokens;
    json!({
        "billed_units": {"input_tokens": tokens.input, "output_tokens": tokens.output},
        "tokens": {"input_tokens": tokens.input, "output_tokens": tokens.output},
        "cached_tokens": tokens.cached,
    })
}
