//! Reasoning, in the fields that this dialect's services and clients have agreed on.
//!
//! `reasoning_content` (DeepSeek and most others) or `reasoning` (OpenRouter, newer vLLM) is the text.
//! `reasoning_details` (OpenRouter) is a list of blocks that holds what a service needs to take its reasoning back:
//! `{"type":"reasoning.text","text":…,"signature":…,"format":…,"index":0}` or
//! `{"type":"reasoning.encrypted","data":…,"format":…,"index":1}`. In the blocks that we write, `format` is the dialect
//! that the signature belongs to; blocks with a format that is none of our dialects' are kept whole. Streams cut a block
//! into several entries of one index.

use penstock_model::vendor::Wire;
use serde_json::{Map, Value};

use super::members::{Members, string, typed};
use crate::exchange::{Field, Reasoning, Signature};

/// The blocks of an assistant's message, in order; none without text and signature (TR-08).
pub(super) fn read(members: &Members<'_>, path: &str) -> Result<Vec<Reasoning>, Field> {
    let text = ["reasoning_content", "reasoning"].iter().find_map(|name| members.get(name));
    let text = text.map(|raw| string(raw, &format!("{path}.reasoning_content"))).transpose()?;
    let mut blocks = match members.get("reasoning_details") {
        Some(raw) => blocks(&typed::<Vec<Value>>(raw, &format!("{path}.reasoning_details"))?),
        None => Vec::new(),
    };
    match (blocks.as_mut_slice(), text) {
        ([], Some(text)) => blocks.push(Reasoning { text, signature: None, redacted: false }),
        // A client that kept the signature's entry of a stream, and the text apart.
        ([only], Some(text)) if only.text.is_empty() && !only.redacted => only.text = text,
        _ => {}
    }
    blocks.retain(|block| !block.text.is_empty() || block.signature.is_some());
    Ok(blocks)
}

/// The blocks that a list of entries amounts to.
pub(super) fn blocks(details: &[Value]) -> Vec<Reasoning> {
    let mut blocks: Vec<(Option<&Value>, Reasoning)> = Vec::new();
    for detail in details {
        let index = detail.get("index").filter(|index| !index.is_null());
        let goes_on = blocks
            .last()
            .is_some_and(|(last, block)| index.is_some() && *last == index && block.signature.is_none());
        if !goes_on {
            blocks.push((index, Reasoning::default()));
        }
        let Some((_, block)) = blocks.last_mut() else { continue };
        block.text.push_str(text(detail).unwrap_or_default());
        if let Some((signature, redacted)) = signature(detail) {
            block.signature = Some(signature);
            block.redacted = redacted;
        }
    }
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// The text of an entry.
pub(super) fn text(detail: &Value) -> Option<&str> {
    detail.get("text").or_else(|| detail.get("summary"))?.as_str()
}

/// What an entry holds to be given back, and whether that is the thought itself.
pub(super) fn signature(detail: &Value) -> Option<(Signature, bool)> {
    let opaque = |name: &str| detail.get(name).and_then(Value::as_str).filter(|value| !value.is_empty());
    let (value, redacted) = match opaque("data") {
        Some(data) => (data, true),
        None => (opaque("signature")?, false),
    };
    let format = detail.get("format").and_then(Value::as_str);
    let known = Wire::ALL.into_iter().find(|wire| Some(wire.as_str()) == format);
    let signature = match known {
        Some(wire) => Signature { wire, value: value.to_owned() },
        // Another gateway's block: only all of it can be taken back.
        None => {
            let mut whole = detail.clone();
            if let Some(members) = whole.as_object_mut() {
                members.remove("text");
            }
            Signature { wire: Wire::Openai, value: whole.to_string() }
        }
    };
    Some((signature, redacted))
}

/// The entry for a block, or for its end in a stream (`text` is empty then).
pub(super) fn detail(text: &str, signature: Option<(&Signature, bool)>, index: usize) -> Value {
    let mut entry = Map::new();
    let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    match signature {
        Some((signature, _)) if signature.wire == Wire::Openai && whole(signature).is_some() => {
            entry = whole(signature).unwrap_or_default();
            if !text.is_empty() {
                entry.insert("text".to_owned(), text.into());
            }
            return Value::Object(entry);
        }
        Some((signature, true)) => {
            set("type", "reasoning.encrypted".into());
            if !text.is_empty() {
                set("text", text.into());
            }
            set("data", signature.value.as_str().into());
            set("format", signature.wire.as_str().into());
        }
        Some((signature, false)) => {
            set("type", "reasoning.text".into());
            set("text", text.into());
            set("signature", signature.value.as_str().into());
            set("format", signature.wire.as_str().into());
        }
        None => {
            set("type", "reasoning.text".into());
            set("text", text.into());
        }
    }
    set("index", index.into());
    Value::Object(entry)
}

/// Another gateway's block, as [`signature`] keeps it.
fn whole(signature: &Signature) -> Option<Map<String, Value>> {
    let members: Map<String, Value> = serde_json::from_str(&signature.value).ok()?;
    members.contains_key("type").then_some(members)
}
