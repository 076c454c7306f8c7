//! Reads tools, what is to be chosen of them, and calls of them.

use penstock_model::vendor::Wire;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::members::{Members, elements, string, typed, value};
use super::part_reader::cache_hint;
use crate::exchange::{Field, Part, Signature, Tool, ToolCall, ToolChoice, ToolKind};

/// A tool; a bare function where the list is the old `functions`.
pub(super) fn tool(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Tool, Field> {
    let members = Members::read(raw.get(), path)?;
    let kind = members.get("type").map(|kind| string(kind, &format!("{path}.type"))).transpose()?;
    let cache = members.get("cache_control").map(|hint| cache_hint(hint, path)).transpose()?;
    match (kind.as_deref(), members.get("function")) {
        (None | Some("function"), Some(inner)) => {
            let path = format!("{path}.function");
            Ok(Tool { cache, ..function(&Members::read(inner.get(), &path)?, &path, extra)? })
        }
        (None, None) => function(&members, path, extra),
        (Some("function"), None) => Err(Field::new(format!("{path}.function"), "is missing")),
        (Some(kind), _) => {
            let inner = members.get(kind).and_then(|inner| Members::read(inner.get(), path).ok());
            let name =
                inner.as_ref().and_then(|inner| inner.get("name")).and_then(|name| string(name, path).ok());
            Ok(Tool {
                name: name.unwrap_or_else(|| kind.to_owned()),
                description: None,
                kind: ToolKind::Other(value(raw, path)?),
                cache: None,
            })
        }
    }
}

fn function(members: &Members<'_>, path: &str, extra: &mut Map<String, Value>) -> Result<Tool, Field> {
    let (mut name, mut description, mut parameters, mut strict) = (None, None, None, None);
    for (key, raw) in &members.0 {
        let path = format!("{path}.{key}");
        match key.as_ref() {
            _ if raw.get() == "null" => {}
            "name" => name = Some(string(raw, &path)?),
            "description" => description = Some(string(raw, &path)?),
            "parameters" => parameters = Some(value(raw, &path)?),
            "strict" => strict = Some(typed(raw, &path)?),
            _ => {
                extra.insert(path.clone(), value(raw, &path)?);
            }
        }
    }
    let name = name.ok_or_else(|| Field::new(format!("{path}.name"), "is missing"))?;
    Ok(Tool { name, description, kind: ToolKind::Function { parameters, strict }, cache: None })
}

/// `None` for a choice of a kind that only some service knows.
pub(super) fn choice(raw: &RawValue, path: &str) -> Result<Option<ToolChoice>, Field> {
    if raw.get().starts_with('"') {
        return match string(raw, path)?.as_str() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "none" => Ok(Some(ToolChoice::None)),
            // `any` is Mistral's word.
            "required" | "any" => Ok(Some(ToolChoice::Required)),
            _ => Err(Field::new(path, "must be `auto`, `none`, `required` or an object")),
        };
    }
    let members = Members::read(raw.get(), path)?;
    let kind = members.get("type").map(|kind| string(kind, path)).transpose()?;
    match kind.as_deref() {
        Some("allowed_tools") => allowed(&members, path),
        // The old `function_call` is the bare name.
        None if members.get("name").is_some() => named(&members, path).map(Some),
        _ => match ["function", "custom"].iter().find_map(|kind| members.get(kind)) {
            Some(inner) => named(&Members::read(inner.get(), path)?, path).map(Some),
            None => Ok(None),
        },
    }
}

fn named(members: &Members<'_>, path: &str) -> Result<ToolChoice, Field> {
    let Some(name) = members.get("name") else { return Err(Field::new(path, "names no tool")) };
    string(name, path).map(ToolChoice::Tool)
}

fn allowed(members: &Members<'_>, path: &str) -> Result<Option<ToolChoice>, Field> {
    // The interface's reference nests the list; some clients send it flat.
    let nested = members.get("allowed_tools").map(|inner| Members::read(inner.get(), path)).transpose()?;
    let members = nested.as_ref().unwrap_or(members);
    let mut names = Vec::new();
    for tool in members.get("tools").map(|tools| elements(tools, path)).transpose()?.unwrap_or_default() {
        match choice(tool, path)? {
            Some(ToolChoice::Tool(name)) => names.push(name),
            _ => return Ok(None),
        }
    }
    let required = members.get("mode").is_some_and(|mode| mode.get() == "\"required\"");
    Ok(Some(ToolChoice::Allowed { required, names }))
}

/// A tool call of an assistant's message.
pub(super) fn call(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Part, Field> {
    let members = Members::read(raw.get(), path)?;
    let Some(function) = members.get("function") else {
        return Ok(Part::Other { wire: Wire::Openai, value: value(raw, path)? });
    };
    let Some(id) = members.get("id") else { return Err(Field::new(format!("{path}.id"), "is missing")) };
    let id = string(id, &format!("{path}.id"))?;
    let function_path = format!("{path}.function");
    let mut call = function_call(function, &function_path, id)?;
    for (key, raw) in &members.0 {
        match key.as_ref() {
            "id" | "type" | "function" | "index" => {}
            "cache_control" if raw.get() != "null" => call.cache = Some(cache_hint(raw, path)?),
            "extra_content" => call.signature = thought_signature(raw),
            _ => {
                extra.insert(format!("{path}.{key}"), value(raw, path)?);
            }
        }
    }
    Ok(Part::ToolCall(call))
}

/// The name and the arguments of a call.
pub(super) fn function_call(raw: &RawValue, path: &str, id: String) -> Result<ToolCall, Field> {
    let members = Members::read(raw.get(), path)?;
    let Some(name) = members.get("name") else {
        return Err(Field::new(format!("{path}.name"), "is missing"));
    };
    let name = string(name, &format!("{path}.name"))?;
    let written = match members.get("arguments") {
        // Some clients keep them as the object that they are.
        Some(raw) if raw.get().starts_with('{') => raw.get().to_owned(),
        Some(raw) => string(raw, &format!("{path}.arguments"))?,
        None => String::new(),
    };
    let arguments = arguments(written).ok_or_else(|| {
        let shown = crate::json::clip(&id, 100);
        Field::new(
            format!("{path}.arguments"),
            format!("the arguments of call `{shown}` are not a JSON object"),
        )
    })?;
    Ok(ToolCall { id, name, arguments, signature: None, cache: None })
}

/// The arguments if they are a JSON object; nothing stands for one without members (TR-14).
pub(super) fn arguments(written: String) -> Option<String> {
    let trimmed = written.trim_ascii();
    if trimmed.is_empty() || trimmed == "null" {
        return Some("{}".to_owned());
    }
    let sound = trimmed.starts_with('{') && serde_json::from_str::<IgnoredAny>(trimmed).is_ok();
    sound.then_some(written)
}

/// `{"google":{"thought_signature":…}}`: Google's own way to carry its signature in this dialect.
pub(super) fn thought_signature(raw: &RawValue) -> Option<Signature> {
    let extra: Value = serde_json::from_str(raw.get()).ok()?;
    let value = extra.get("google")?.get("thought_signature")?.as_str()?.to_owned();
    Some(Signature { wire: Wire::Gemini, value })
}
