//! The items of the input, as turns.
//!
//! What the model said in one go is several items here: thoughts, a message, calls. They are one turn of the exchange
//! model, so that other services see calls beside the text they came with. Only a message right after a message starts a
//! new turn. A tool's output is a turn of its own.

use penstock_model::vendor::Wire;
use serde_json::Value;
use serde_json::value::RawValue;

use super::content;
use super::fields::Object;
use crate::exchange::{Field, Part, Reasoning, Role, Signature, ToolCall, ToolResult, Turn};
use crate::json::clip;
use crate::responses::OWN;

/// Adds the turns of `input`.
pub(super) fn read(input: Value, turns: &mut Vec<Turn>) -> Result<(), Field> {
    match input {
        Value::String(text) => turns.push(Turn::new(Role::User, vec![Part::text(text)])),
        Value::Array(items) => {
            let instructions = turns.len();
            for (index, item) in items.into_iter().enumerate() {
                let (role, parts) = read_item(format!("input[{index}]"), item)?;
                add(turns, instructions, role, parts);
            }
        }
        _ => return Err(Field::new("input", "must be a string or a list of items")),
    }
    Ok(())
}

fn add(turns: &mut Vec<Turn>, instructions: usize, role: Role, parts: Vec<Part>) {
    if role == Role::Assistant && parts.is_empty() {
        return;
    }
    let says = |part: Option<&Part>| matches!(part, Some(Part::Text(_) | Part::Refusal(_)));
    if role == Role::Assistant
        && turns.len() > instructions
        && let Some(last) = turns.last_mut()
        && last.role == role
        && !(says(last.parts.last()) && says(parts.first()))
    {
        last.parts.extend(parts);
    } else {
        turns.push(Turn::new(role, parts));
    }
}

fn read_item(place: String, item: Value) -> Result<(Role, Vec<Part>), Field> {
    // Messages written the easy way have no type.
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    let reader = match kind {
        "message" => read_message,
        "reasoning" => read_reasoning,
        "function_call" => read_call,
        "function_call_output" => read_output,
        "item_reference" => {
            let reason = "items stored at the vendor cannot be sent to another service: send the item itself";
            return Err(Field::new(place, reason));
        }
        other => {
            let of_client = other.ends_with("_output") || other == "mcp_approval_response";
            let role = if of_client { Role::User } else { Role::Assistant };
            return Ok((role, vec![Part::Other { wire: OWN, value: item }]));
        }
    };
    reader(&mut Object::new(place, item)?)
}

fn read_message(item: &mut Object) -> Result<(Role, Vec<Part>), Field> {
    let role = match item.required_string("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        other => return Err(item.wrong("role", format!("there is no role `{}`", clip(other, 100)))),
    };
    let content = item.take("content").ok_or_else(|| item.wrong("content", "is missing"))?;
    Ok((role, content::read(&item.place_of("content"), content)?))
}

/// What was thought: the summary, or the thought itself where open models show it. A signature of another dialect whose
/// block had no text comes with an empty summary; one whose block was encrypted comes with none.
fn read_reasoning(item: &mut Object) -> Result<(Role, Vec<Part>), Field> {
    let summary = item.list("summary")?.unwrap_or_default();
    let content = item.list("content")?.unwrap_or_default();
    let signature = item.string("encrypted_content")?.map(|text| Signature::from_text(&text, OWN));
    let redacted = signature.as_ref().is_some_and(|signature| signature.wire == OWN || summary.is_empty());
    let text = joined(if summary.is_empty() { &content } else { &summary });
    let nothing = text.is_empty() && signature.is_none();
    let parts = if nothing { vec![] } else { vec![Part::Reasoning(Reasoning { text, signature, redacted })] };
    Ok((Role::Assistant, parts))
}

/// The texts of a summary or of thoughts: paragraphs of one block.
fn joined(parts: &[Value]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
    texts.join("\n\n")
}

fn read_call(item: &mut Object) -> Result<(Role, Vec<Part>), Field> {
    let id = item.required_string("call_id")?;
    let mut arguments = item.required_string("arguments")?;
    if arguments.trim().is_empty() {
        "{}".clone_into(&mut arguments);
    }
    let is_object = arguments.trim_start().starts_with('{');
    if !is_object || serde_json::from_str::<&RawValue>(&arguments).is_err() {
        let reason = format!("the arguments of call `{}` are not a JSON object", clip(&id, 100));
        return Err(item.wrong("arguments", reason));
    }
    let name = item.required_string("name")?;
    Ok((
        Role::Assistant,
        vec![Part::ToolCall(ToolCall { id, name, arguments, signature: signature(item), cache: None })],
    ))
}

/// Gemini's signature on a call, where our answers put it.
fn signature(item: &mut Object) -> Option<Signature> {
    let extra = item.take("extra_content")?;
    let text = extra.get("google")?.get("thought_signature")?.as_str()?;
    Some(Signature::from_text(text, Wire::Gemini))
}

fn read_output(item: &mut Object) -> Result<(Role, Vec<Part>), Field> {
    let output = item.take("output").ok_or_else(|| item.wrong("output", "is missing"))?;
    let result = ToolResult {
        call_id: item.required_string("call_id")?,
        name: item.string("name")?,
        parts: content::read(&item.place_of("output"), output)?,
        is_error: false,
        cache: None,
    };
    Ok((Role::User, vec![Part::ToolResult(result)]))
}
