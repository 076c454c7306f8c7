//! Reads a chat request into the exchange model.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use penstock_model::vendor::Wire;

use super::members::{Members, elements, string, typed, value};
use super::message_reader::Messages;
use super::tool_reader;
use crate::exchange::{Field, Format, JsonSchema, ReasoningRequest, Request};

/// Reads the body of `POST …/chat/completions`.
///
/// Top-level fields that are not known go to [`Request::extra`]; so do unknown fields of messages, under their path
/// (`messages[0].prefix`), so that writers can name them among what was dropped.
pub(super) fn read(body: &[u8]) -> Result<Request, Field> {
    let text = str::from_utf8(body).map_err(|_| Field::new("", "the body is not UTF-8"))?;
    let mut reader = Reader { request: Request::new(Wire::Openai), old_limit: None, new_limit: None };
    for (name, raw) in Members::read(text, "the body")?.0 {
        // An absent field and one that is `null` mean the same.
        if raw.get() != "null" && !reader.member(&name, raw)? {
            reader.request.extra.insert(name.into_owned(), value(raw, "the body")?);
        }
    }
    reader.finish()
}

struct Reader {
    request: Request,
    old_limit: Option<u64>,
    new_limit: Option<u64>,
}

impl Reader {
    /// Takes over a field; `false` when it is not known.
    fn member(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let known = self.conversation(name, raw)?
            || self.sampling(name, raw)?
            || self.output(name, raw)?
            || self.reasoning(name, raw)?
            || self.about(name, raw)?;
        Ok(known)
    }

    fn conversation(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let request = &mut self.request;
        match name {
            "model" => request.model = Some(string(raw, name)?),
            "messages" => {
                let mut messages = Messages::new(&mut request.extra);
                for message in elements(raw, name)? {
                    messages.read(message)?;
                }
                request.turns = messages.turns;
            }
            "tools" | "functions" => {
                for (index, tool) in elements(raw, name)?.into_iter().enumerate() {
                    let path = format!("{name}[{index}]");
                    request.tools.push(tool_reader::tool(tool, &path, &mut request.extra)?);
                }
            }
            "tool_choice" | "function_call" => {
                match tool_reader::choice(raw, name)? {
                    Some(choice) => request.tool_choice = Some(choice),
                    None => return Ok(false),
                };
            }
            "parallel_tool_calls" => request.parallel_tool_calls = Some(typed(raw, name)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn sampling(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let sampling = &mut self.request.sampling;
        match name {
            "temperature" => sampling.temperature = Some(typed(raw, name)?),
            "top_p" => sampling.top_p = Some(typed(raw, name)?),
            "top_k" => sampling.top_k = Some(typed(raw, name)?),
            "seed" => sampling.seed = Some(typed(raw, name)?),
            "frequency_penalty" => sampling.frequency_penalty = Some(typed(raw, name)?),
            "presence_penalty" => sampling.presence_penalty = Some(typed(raw, name)?),
            "logit_bias" => sampling.logit_bias = Some(value(raw, name)?),
            "logprobs" => sampling.logprobs = Some(typed(raw, name)?),
            "top_logprobs" => sampling.top_logprobs = Some(typed(raw, name)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn output(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let output = &mut self.request.output;
        match name {
            "max_tokens" => self.old_limit = Some(typed(raw, name)?),
            "max_completion_tokens" => self.new_limit = Some(typed(raw, name)?),
            "stop" if raw.get().starts_with('"') => output.stop = vec![string(raw, name)?],
            "stop" => {
                let stops = elements(raw, name)?.into_iter().map(|stop| string(stop, name));
                output.stop = stops.collect::<Result<_, _>>()?;
            }
            "n" => output.choices = Some(typed(raw, name)?),
            "verbosity" => output.verbosity = Some(string(raw, name)?),
            "response_format" => match format(raw, name)? {
                Some(format) => output.format = Some(format),
                None => return Ok(false),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// OpenAI's `reasoning_effort`; OpenRouter's `reasoning` and Anthropic's `thinking`, which other gateways have taught
    /// clients to send here, when they hold nothing that has no place in the model.
    fn reasoning(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let mut read = self.request.reasoning.clone().unwrap_or_default();
        match name {
            "reasoning_effort" => read.effort = Some(string(raw, name)?),
            "reasoning" | "thinking" if raw.get().starts_with('{') => {
                for (key, raw) in Members::read(raw.get(), name)?.0 {
                    match (key.as_ref(), raw.get()) {
                        (_, "null") => {}
                        ("effort", _) => read.effort = Some(string(raw, name)?),
                        ("max_tokens" | "budget_tokens", _) => read.budget_tokens = Some(typed(raw, name)?),
                        ("enabled", _) => read.enabled = Some(typed(raw, name)?),
                        ("exclude", _) => read.visible = Some(!typed::<bool>(raw, name)?),
                        ("type", "\"enabled\"" | "\"adaptive\"") => read.enabled = Some(true),
                        ("type", "\"disabled\"") => read.enabled = Some(false),
                        _ => return Ok(false),
                    }
                }
            }
            _ => return Ok(false),
        }
        if read != ReasoningRequest::default() {
            self.request.reasoning = Some(read);
        }
        Ok(true)
    }

    fn about(&mut self, name: &str, raw: &RawValue) -> Result<bool, Field> {
        let request = &mut self.request;
        match name {
            "stream" => request.stream = typed(raw, name)?,
            "stream_options" => {
                for (key, raw) in Members::read(raw.get(), name)?.0 {
                    let path = format!("{name}.{key}");
                    if raw.get() == "null" {
                    } else if key == "include_usage" {
                        request.include_usage = typed(raw, &path)?;
                    } else {
                        request.extra.insert(path, value(raw, name)?);
                    }
                }
            }
            "user" => request.user = Some(string(raw, name)?),
            "prompt_cache_key" => request.cache_key = Some(string(raw, name)?),
            "service_tier" => request.service_tier = Some(string(raw, name)?),
            "metadata" => request.metadata = Some(typed::<Map<String, Value>>(raw, name)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Both limits may be given when they agree (TR-05).
    fn finish(mut self) -> Result<Request, Field> {
        if let (Some(old), Some(new)) = (self.old_limit, self.new_limit)
            && old != new
        {
            return Err(Field::new("max_tokens", "differs from `max_completion_tokens`: give one of them"));
        }
        self.request.output.max_tokens = self.new_limit.or(self.old_limit);
        Ok(self.request)
    }
}

/// `None` for a kind that only some service knows (a grammar).
fn format(raw: &RawValue, path: &str) -> Result<Option<Format>, Field> {
    let members = Members::read(raw.get(), path)?;
    let kind = members.get("type").map(|kind| string(kind, "response_format.type")).transpose()?;
    Ok(match kind.as_deref() {
        Some("text") => Some(Format::Text),
        Some("json_object") => Some(Format::JsonObject),
        Some("json_schema") => {
            let Some(schema) = members.get("json_schema") else {
                return Err(Field::new("response_format.json_schema", "is missing"));
            };
            Some(Format::JsonSchema(json_schema(schema, "response_format.json_schema")?))
        }
        Some(_) => None,
        None => return Err(Field::new("response_format.type", "is missing")),
    })
}

fn json_schema(raw: &RawValue, path: &str) -> Result<JsonSchema, Field> {
    let members = Members::read(raw.get(), path)?;
    let text = |name: &str| members.get(name).map(|raw| string(raw, &format!("{path}.{name}"))).transpose();
    Ok(JsonSchema {
        name: text("name")?,
        description: text("description")?,
        schema: match members.get("schema") {
            Some(schema) => value(schema, &format!("{path}.schema"))?,
            None => Value::Object(Map::new()),
        },
        strict: members.get("strict").map(|raw| typed(raw, &format!("{path}.strict"))).transpose()?,
    })
}

#[cfg(test)]
mod tests;
