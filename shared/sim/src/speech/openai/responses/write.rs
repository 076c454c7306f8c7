//! Answers as the Responses API writes them.

use serde_json::{Value, json};

use super::super::super::Frame;
use crate::answer::CREATED;
use crate::script::{Finish, Part, Script, sign};

pub(super) fn whole(script: &Script) -> Value {
    let output: Vec<Value> = (0..script.parts.len()).map(|index| item(script, index, true)).collect();
    ended(script, output)
}

pub(super) fn stream(script: &Script) -> Vec<Frame> {
    let mut events = Events::default();
    let begun = response(script, "in_progress", Vec::new());
    events.put("response.created", json!({"response": begun}), false);
    events.put("response.in_progress", json!({"response": begun}), false);
    let mut output = Vec::new();
    for (index, part) in script.parts.iter().enumerate() {
        let start = item(script, index, false);
        let id = start["id"].clone();
        events.put("response.output_item.added", json!({"output_index": index, "item": start}), false);
        let place = json!({"item_id": id, "output_index": index});
        match part {
            Part::Reasoning(pieces) => events.summary(&place, pieces),
            Part::Text(pieces) => events.text(&place, pieces),
            Part::Call(call) => {
                for piece in &call.pieces {
                    let delta = with(&place, json!({"delta": piece}));
                    events.put("response.function_call_arguments.delta", delta, true);
                }
                let done = with(&place, json!({"arguments": call.arguments.to_string(), "name": call.name}));
                events.put("response.function_call_arguments.done", done, false);
            }
        }
        let done = item(script, index, true);
        events.put("response.output_item.done", json!({"output_index": index, "item": done}), false);
        output.push(done);
    }
    let end = ended(script, output);
    let name = if script.finish == Finish::Length { "response.incomplete" } else { "response.completed" };
    events.put(name, json!({"response": end}), false);
    events.0
}

/// Events, each with its number.
#[derive(Default)]
struct Events(Vec<Frame>);

impl Events {
    fn put(&mut self, name: &str, fields: Value, token: bool) {
        let head = json!({"type": name, "sequence_number": self.0.len()});
        self.0.push(Frame::named(name, &with(&head, fields), token));
    }

    fn text(&mut self, place: &Value, pieces: &[String]) {
        let place = with(place, json!({"content_index": 0}));
        let part = |text: &str| with(&place, json!({"part": output_text(text)}));
        self.put("response.content_part.added", part(""), false);
        for piece in pieces {
            let delta = with(&place, json!({"delta": piece, "logprobs": []}));
            self.put("response.output_text.delta", delta, true);
        }
        let text = pieces.concat();
        let done = with(&place, json!({"text": text, "logprobs": []}));
        self.put("response.output_text.done", done, false);
        self.put("response.content_part.done", part(&text), false);
    }

    fn summary(&mut self, place: &Value, pieces: &[String]) {
        let place = with(place, json!({"summary_index": 0}));
        let part = |text: &str| with(&place, json!({"part": {"type": "summary_text", "text": text}}));
        self.put("response.reasoning_summary_part.added", part(""), false);
        for piece in pieces {
            let delta = with(&place, json!({"delta": piece}));
            self.put("response.reasoning_summary_text.delta", delta, true);
        }
        let text = pieces.concat();
        self.put("response.reasoning_summary_text.done", with(&place, json!({"text": text})), false);
        self.put("response.reasoning_summary_part.done", part(&text), false);
    }
}

/// The fields of both.
fn with(first: &Value, second: Value) -> Value {
    let mut all = first.clone();
    if let (Some(all), Value::Object(second)) = (all.as_object_mut(), second) {
        all.extend(second);
    }
    all
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// An output item, with what it holds or as it stands at its start.
fn item(script: &Script, index: usize, full: bool) -> Value {
    let status = if full { "completed" } else { "in_progress" };
    let id = |kind: &str| format!("{kind}_{:08x}{index:02x}", script.number);
    match &script.parts[index] {
        Part::Reasoning(pieces) => {
            let text = pieces.concat();
            let summary = if full { json!([{"type": "summary_text", "text": text}]) } else { json!([]) };
            let mut item = json!({"id": id("rs"), "type": "reasoning", "summary": summary});
            if script.echo["encrypted"] == true {
                item["encrypted_content"] = if full { sign(&text).into() } else { "".into() };
            }
            item
        }
        Part::Text(pieces) => {
            let content = if full { json!([output_text(&pieces.concat())]) } else { json!([]) };
            json!({"id": id("msg"), "type": "message", "status": status, "role": "assistant", "content": content})
        }
        Part::Call(call) => {
            let arguments = if full { call.arguments.to_string() } else { String::new() };
            json!({
                "id": id("fc"), "type": "function_call", "status": status, "call_id": format!("call_{}", call.id),
                "name": call.name, "arguments": arguments,
            })
        }
    }
}

fn ended(script: &Script, output: Vec<Value>) -> Value {
    let is_cut = script.finish == Finish::Length;
    let mut response = response(script, if is_cut { "incomplete" } else { "completed" }, output);
    if is_cut {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    let tokens = script.tokens;
    response["usage"] = json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    });
    response
}

fn response(script: &Script, status: &str, output: Vec<Value>) -> Value {
    let head = json!({
        "id": format!("resp_{:016x}", script.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "model": script.model,
        "output": output,
        "service_tier": "default",
        "usage": null,
        "user": null,
    });
    with(&head, script.echo["fields"].clone())
}
