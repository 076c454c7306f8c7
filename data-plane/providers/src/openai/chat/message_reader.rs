//! Reads messages into turns.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::members::{Members, elements, string, value};
use super::part_reader::{cache_hint, content};
use super::reasoning;
use super::tool_reader;
use crate::exchange::{Field, Media, Part, Role, Source, Text, ToolResult, Turn};

/// The messages read so far.
pub(super) struct Messages<'e> {
    pub(super) turns: Vec<Turn>,
    extra: &'e mut Map<String, Value>,
    /// The id given to the last call in the old form, which has none, and to its result.
    old_call: Option<String>,
}

impl<'e> Messages<'e> {
    pub(super) fn new(extra: &'e mut Map<String, Value>) -> Self {
        Self { turns: Vec::new(), extra, old_call: None }
    }

    /// Reads the next message.
    pub(super) fn read(&mut self, raw: &RawValue) -> Result<(), Field> {
        let path = format!("messages[{}]", self.turns.len());
        let members = Members::read(raw.get(), &path)?;
        let role_path = format!("{path}.role");
        let Some(role) = members.get("role") else { return Err(Field::new(role_path, "is missing")) };
        let turn = match string(role, &role_path)?.as_str() {
            "system" => self.plain(Role::System, &members, &path)?,
            "developer" => self.plain(Role::Developer, &members, &path)?,
            "user" => self.plain(Role::User, &members, &path)?,
            "assistant" => self.assistant(&members, &path)?,
            "tool" => self.result(&members, &path)?,
            "function" => self.old_result(&members, &path)?,
            _ => {
                let known = "must be `system`, `developer`, `user`, `assistant` or `tool`";
                return Err(Field::new(role_path, known));
            }
        };
        self.turns.push(turn);
        Ok(())
    }

    fn plain(&mut self, role: Role, members: &Members<'_>, path: &str) -> Result<Turn, Field> {
        let mut turn = Turn::new(role, Vec::new());
        for (key, raw) in present(members) {
            match key {
                "role" => {}
                "name" => turn.name = Some(string(raw, &format!("{path}.name"))?),
                "content" => turn.parts = content(raw, &format!("{path}.content"), self.extra)?,
                "cache_control" => mark(&mut turn.parts, raw, path)?,
                _ => self.keep(path, key, raw)?,
            }
        }
        Ok(turn)
    }

    /// Whatever the order of its fields: reasoning comes first (TR-08), calls after the text.
    fn assistant(&mut self, members: &Members<'_>, path: &str) -> Result<Turn, Field> {
        let mut turn = Turn::new(Role::Assistant, Vec::new());
        let (mut texts, mut after, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        let mut citations = Vec::new();
        for (key, raw) in present(members) {
            let at = format!("{path}.{key}");
            match key {
                "role" | "reasoning" | "reasoning_content" | "reasoning_details" => {}
                "name" => turn.name = Some(string(raw, &at)?),
                "content" => texts = content(raw, &at, self.extra)?,
                "refusal" => after.push(Part::Refusal(string(raw, &at)?)),
                "audio" => after.push(Part::Audio(past_audio(raw, &at)?)),
                "annotations" => citations = super::members::typed(raw, &at)?,
                "tool_calls" => {
                    for (index, call) in elements(raw, &at)?.into_iter().enumerate() {
                        calls.push(tool_reader::call(call, &format!("{at}[{index}]"), self.extra)?);
                    }
                }
                "function_call" => {
                    let id = format!("call_{}", self.turns.len());
                    calls.push(Part::ToolCall(tool_reader::function_call(raw, &at, id.clone())?));
                    self.old_call = Some(id);
                }
                "cache_control" => {}
                _ => self.keep(path, key, raw)?,
            }
        }
        if !calls.is_empty() {
            // An empty text beside calls stands for none (TR-04).
            texts.retain(|part| !matches!(part, Part::Text(text) if text.text.is_empty()));
        }
        if let Some(Part::Text(Text { citations: own, .. })) = texts.last_mut() {
            *own = citations;
        }
        turn.parts = reasoning::read(members, path)?.into_iter().map(Part::Reasoning).collect();
        turn.parts.extend(texts.into_iter().chain(after).chain(calls));
        if let Some(hint) = members.get("cache_control") {
            mark(&mut turn.parts, hint, path)?;
        }
        Ok(turn)
    }

    fn result(&mut self, members: &Members<'_>, path: &str) -> Result<Turn, Field> {
        let id_path = format!("{path}.tool_call_id");
        let Some(id) = members.get("tool_call_id") else { return Err(Field::new(id_path, "is missing")) };
        let call_id = string(id, &id_path)?;
        self.tool_result(call_id, members, path)
    }

    fn old_result(&mut self, members: &Members<'_>, path: &str) -> Result<Turn, Field> {
        match self.old_call.take() {
            Some(call_id) => self.tool_result(call_id, members, path),
            None => Err(Field::new(path, "a function's result without a `function_call` before it")),
        }
    }

    fn tool_result(&mut self, call_id: String, members: &Members<'_>, path: &str) -> Result<Turn, Field> {
        let mut result = ToolResult { call_id, name: None, parts: Vec::new(), is_error: false, cache: None };
        for (key, raw) in present(members) {
            match key {
                "role" | "tool_call_id" => {}
                "name" => result.name = Some(string(raw, &format!("{path}.name"))?),
                "content" => result.parts = content(raw, &format!("{path}.content"), self.extra)?,
                "cache_control" => result.cache = Some(cache_hint(raw, path)?),
                _ => self.keep(path, key, raw)?,
            }
        }
        Ok(Turn::new(Role::User, vec![Part::ToolResult(result)]))
    }

    /// A field that has no place in the model.
    fn keep(&mut self, path: &str, key: &str, raw: &RawValue) -> Result<(), Field> {
        let at = format!("{path}.{key}");
        let value = value(raw, &at)?;
        self.extra.insert(at, value);
        Ok(())
    }
}

fn present<'m>(members: &'m Members<'_>) -> impl Iterator<Item = (&'m str, &'m RawValue)> {
    members.0.iter().filter(|(_, raw)| raw.get() != "null").map(|(key, raw)| (key.as_ref(), *raw))
}

/// A cache boundary on the message is one behind its last part.
fn mark(parts: &mut [Part], raw: &RawValue, path: &str) -> Result<(), Field> {
    let hint = Some(cache_hint(raw, path)?);
    match parts.last_mut() {
        Some(Part::Text(text)) => text.cache = hint,
        Some(Part::Image(media) | Part::Audio(media) | Part::File(media)) => media.cache = hint,
        Some(Part::ToolCall(call)) => call.cache = hint,
        _ => {}
    }
    Ok(())
}

/// What the model said before, by the id that the service gave it.
fn past_audio(raw: &RawValue, path: &str) -> Result<Media, Field> {
    let members = Members::read(raw.get(), path)?;
    let Some(id) = members.get("id") else { return Err(Field::new(format!("{path}.id"), "is missing")) };
    Ok(Media::new(Source::FileId(string(id, path)?), None))
}
