//! A client's request, read into the exchange model.
//!
//! Fields within `reasoning`, `text` and the tools that the model has no place for are kept in `extra` under their
//! place: `reasoning.context`, `text.x`, `tools[0].defer_loading`. Fields that ask for what happens anyway (`store:
//! false`, `truncation: "disabled"`, encrypted reasoning) are not kept, so that nobody reports them as dropped.

mod content;
mod fields;
mod items;

use penstock_model::vendor::Wire;
use serde_json::{Map, Value};

use self::fields::Object;
use crate::exchange::{
    Field, Format, JsonSchema, Part, ReasoningRequest, Request, Role, Tool, ToolChoice, ToolKind, Turn,
};
use crate::json::clip;

/// Log-probabilities, as `include` has them.
pub(super) const LOGPROBS: &str = "message.output_text.logprobs";

/// Thoughts that can be sent back, as `include` has them.
pub(super) const ENCRYPTED: &str = "reasoning.encrypted_content";

/// Reads a request.
///
/// # Errors
/// When a field has a form that the protocol does not allow, or stands for something that is stored at the vendor.
pub(super) fn read(body: &[u8]) -> Result<Request, Field> {
    let value = serde_json::from_slice(body)
        .map_err(|error| Field::new("body", clip(&error.to_string(), 200).to_owned()))?;
    let body = &mut Object::new("", value)?;
    refuse_stored_state(body)?;
    let mut request = Request::new(Wire::OpenaiResponses);
    request.model = body.string("model")?;
    if let Some(text) = body.string("instructions")? {
        request.turns.push(Turn::new(Role::System, vec![Part::text(text)]));
    }
    if let Some(input) = body.take("input") {
        items::read(input, &mut request.turns)?;
    }
    read_tools(body, &mut request)?;
    read_reasoning(body, &mut request)?;
    read_text(body, &mut request)?;
    request.parallel_tool_calls = body.boolean("parallel_tool_calls")?;
    request.sampling.temperature = body.number("temperature")?;
    request.sampling.top_p = body.number("top_p")?;
    request.sampling.top_logprobs = body.count("top_logprobs")?;
    request.output.max_tokens = body.count("max_output_tokens")?;
    request.stream = body.boolean("stream")?.unwrap_or(false);
    request.include_usage = true;
    request.user = body.string("safety_identifier")?;
    if request.user.is_none() {
        request.user = body.string("user")?;
    }
    request.cache_key = body.string("prompt_cache_key")?;
    request.service_tier = body.string("service_tier")?;
    request.metadata = body.object("metadata")?.map(|metadata| metadata.rest);
    forget_what_happens_anyway(body, &mut request)?;
    let rest = std::mem::take(&mut body.rest);
    request.extra.extend(rest.into_iter().filter(|(_, value)| !value.is_null()));
    Ok(request)
}

/// What lives at the vendor cannot be translated: another service does not have it.
fn refuse_stored_state(body: &mut Object) -> Result<(), Field> {
    for (name, instead) in [
        ("previous_response_id", "send the items of the conversation as `input`"),
        ("conversation", "send the items of the conversation as `input`"),
        ("prompt", "send its text as `instructions` and `input`"),
    ] {
        if body.take(name).is_some() {
            let reason =
                format!("what is stored at one vendor cannot be used with another service: {instead}");
            return Err(body.wrong(name, reason));
        }
    }
    if body.boolean("background")? == Some(true) {
        return Err(body.wrong("background", "answers cannot be made in the background here: stream instead"));
    }
    Ok(())
}

fn read_tools(body: &mut Object, request: &mut Request) -> Result<(), Field> {
    for (index, value) in body.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let tool = read_tool(Object::new(format!("tools[{index}]"), value)?, &mut request.extra)?;
        request.tools.push(tool);
    }
    let Some(choice) = body.take("tool_choice") else { return Ok(()) };
    match tool_choice(&choice) {
        Some(known) => request.tool_choice = Some(known),
        None => {
            request.extra.insert("tool_choice".to_owned(), choice);
        }
    }
    Ok(())
}

fn read_tool(mut tool: Object, extra: &mut Map<String, Value>) -> Result<Tool, Field> {
    let kind = tool.rest.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind != "function" {
        let text = |name| tool.rest.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").unwrap_or_else(|| kind.to_owned());
        let description = text("description");
        let kind = ToolKind::Other(Value::Object(tool.rest));
        return Ok(Tool { name, description, kind, cache: None });
    }
    tool.take("type");
    let read = Tool {
        name: tool.required_string("name")?,
        description: tool.string("description")?,
        kind: ToolKind::Function { parameters: tool.take("parameters"), strict: tool.boolean("strict")? },
        cache: None,
    };
    keep_rest(tool, extra);
    Ok(read)
}

/// Keeps what was not taken of a nested object.
fn keep_rest(object: Object, extra: &mut Map<String, Value>) {
    let Object { place, rest } = object;
    extra.extend(
        rest.into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (format!("{place}.{name}"), value)),
    );
}

/// `None` for choices of hosted tools.
fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).map(str::to_owned);
    match choice {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Required),
            _ => None,
        },
        _ => match text(choice, "type")?.as_str() {
            "function" | "custom" => Some(ToolChoice::Tool(text(choice, "name")?)),
            "allowed_tools" => {
                let tools = choice.get("tools")?.as_array()?;
                let names = tools.iter().map(|tool| text(tool, "name")).collect::<Option<_>>()?;
                Some(ToolChoice::Allowed { required: text(choice, "mode")? == "required", names })
            }
            _ => None,
        },
    }
}

fn read_reasoning(body: &mut Object, request: &mut Request) -> Result<(), Field> {
    let Some(mut reasoning) = body.object("reasoning")? else { return Ok(()) };
    let mut asked = ReasoningRequest { effort: reasoning.string("effort")?, ..ReasoningRequest::default() };
    if asked.effort.as_deref() == Some("none") {
        asked.enabled = Some(false);
    }
    let older = reasoning.string("generate_summary")?;
    if let Some(summary) = reasoning.string("summary")?.or(older) {
        asked.visible = Some(true);
        if summary != "auto" {
            request.extra.insert("reasoning.summary".to_owned(), summary.into());
        }
    }
    keep_rest(reasoning, &mut request.extra);
    request.reasoning = Some(asked);
    Ok(())
}

fn read_text(body: &mut Object, request: &mut Request) -> Result<(), Field> {
    let Some(mut text) = body.object("text")? else { return Ok(()) };
    request.output.verbosity = text.string("verbosity")?;
    if let Some(mut format) = text.object("format")? {
        request.output.format = Some(match format.required_string("type")?.as_str() {
            "text" => Format::Text,
            "json_object" => Format::JsonObject,
            "json_schema" => Format::JsonSchema(JsonSchema {
                name: format.string("name")?,
                description: format.string("description")?,
                schema: format.take("schema").ok_or_else(|| format.wrong("schema", "is missing"))?,
                strict: format.boolean("strict")?,
            }),
            other => return Err(format.wrong("type", format!("there is no format `{}`", clip(other, 100)))),
        });
        keep_rest(format, &mut request.extra);
    }
    keep_rest(text, &mut request.extra);
    Ok(())
}

fn forget_what_happens_anyway(body: &mut Object, request: &mut Request) -> Result<(), Field> {
    let mut include = body.list("include")?.unwrap_or_default();
    include.retain(|entry| {
        let logprobs = entry.as_str() == Some(LOGPROBS);
        if logprobs {
            request.sampling.logprobs = Some(true);
        }
        !logprobs && entry.as_str() != Some(ENCRYPTED)
    });
    if !include.is_empty() {
        request.extra.insert("include".to_owned(), Value::Array(include));
    }
    for (name, anyway) in [("store", Value::Bool(false)), ("truncation", "disabled".into())] {
        if body.rest.get(name) == Some(&anyway) {
            body.take(name);
        }
    }
    let plain = |options: &Value| options.get("include_obfuscation") == Some(&Value::Bool(false));
    if body.rest.get("stream_options").is_some_and(plain) {
        body.take("stream_options");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
