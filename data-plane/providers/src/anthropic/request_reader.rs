//! A client's request: `POST /v1/messages` (docs: "Messages", "Create a Message").

use std::borrow::Cow;
use std::collections::BTreeMap;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::block_reader::{CacheControl, content, typed};
use crate::exchange::{
    Field, Format, JsonSchema, ReasoningRequest, Request, Role, Tool, ToolChoice, ToolKind, Turn,
};

/// The body's fields, each taken out once; what is left is not known here.
struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, Field> {
        match self.raw(name) {
            Some(raw) => typed(raw, name).map(Some),
            None => Ok(None),
        }
    }

    /// `None` for `null` too.
    fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name).filter(|raw| raw.get() != "null")
    }
}

/// Reads a request.
///
/// # Errors
/// When a field has a form that the protocol does not allow.
pub(super) fn read(body: &[u8]) -> Result<Request, Field> {
    let fields = serde_json::from_slice(body).map_err(|_| Field::new("body", "not a JSON object"))?;
    let mut fields = Fields(fields);
    let mut request = Request { include_usage: true, ..Request::new(Wire::Anthropic) };
    request.model = fields.take("model")?;
    request.stream = fields.take("stream")?.unwrap_or(false);
    if let Some(system) = fields.raw("system") {
        request.turns.push(Turn::new(Role::System, content(system, "system")?));
    }
    read_messages(&mut request, &mut fields)?;
    for (index, tool) in fields.take::<Vec<&RawValue>>("tools")?.unwrap_or_default().into_iter().enumerate() {
        request.tools.push(read_tool(tool, &format!("tools[{index}]"))?);
    }
    if let Some(choice) = fields.take::<Choice<'_>>("tool_choice")? {
        read_choice(&mut request, choice)?;
    }
    request.output.max_tokens = fields.take("max_tokens")?;
    request.output.stop = fields.take("stop_sequences")?.unwrap_or_default();
    request.sampling.temperature = fields.take("temperature")?;
    request.sampling.top_p = fields.take("top_p")?;
    request.sampling.top_k = fields.take("top_k")?;
    request.service_tier = fields.take("service_tier")?;
    if let Some(mut metadata) = fields.take::<Map<String, Value>>("metadata")? {
        request.user = match metadata.remove("user_id") {
            Some(Value::String(user)) => Some(user),
            _ => None,
        };
        request.metadata = Some(metadata).filter(|rest| !rest.is_empty());
    }
    read_reasoning(&mut request, &mut fields)?;
    for (name, raw) in fields.0 {
        let value = typed(raw, &name)?;
        request.extra.insert(name, value);
    }
    Ok(request)
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

fn read_messages(request: &mut Request, fields: &mut Fields<'_>) -> Result<(), Field> {
    let messages: Vec<&RawValue> =
        fields.take("messages")?.ok_or_else(|| Field::new("messages", "this field is required"))?;
    for (index, raw) in messages.into_iter().enumerate() {
        let place = format!("messages[{index}]");
        let message: Message<'_> = typed(raw, &place)?;
        let role = match message.role.as_ref() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => {
                return Err(Field::new(format!("{place}.role"), "a role is `user`, `assistant` or `system`"));
            }
        };
        let parts = content(message.content, &format!("{place}.content"))?;
        request.turns.push(Turn::new(role, parts));
    }
    Ok(())
}

#[derive(Deserialize)]
struct ToolFields<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    input_schema: Option<Value>,
    strict: Option<bool>,
    #[serde(borrow)]
    cache_control: Option<CacheControl<'a>>,
}

/// A tool of the client (`type` absent or `custom`), or one of Anthropic's own, which is kept whole.
fn read_tool(raw: &RawValue, place: &str) -> Result<Tool, Field> {
    let fields: ToolFields<'_> = typed(raw, place)?;
    let kind = match fields.r#type.as_deref() {
        None | Some("custom") => {
            ToolKind::Function { parameters: fields.input_schema, strict: fields.strict }
        }
        Some(_) => ToolKind::Other(typed(raw, place)?),
    };
    Ok(Tool {
        name: fields.name.unwrap_or_default().into_owned(),
        description: fields.description.map(Cow::into_owned),
        kind,
        cache: fields.cache_control.map(|cache| cache.hint()),
    })
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

fn read_choice(request: &mut Request, choice: Choice<'_>) -> Result<(), Field> {
    request.parallel_tool_calls = choice.disable_parallel_tool_use.map(|disable| !disable);
    request.tool_choice = Some(match (choice.r#type.as_ref(), choice.name) {
        ("auto", _) => ToolChoice::Auto,
        ("any", _) => ToolChoice::Required,
        ("none", _) => ToolChoice::None,
        ("tool", Some(name)) => ToolChoice::Tool(name),
        ("tool", None) => return Err(Field::new("tool_choice.name", "this field is required")),
        _ => return Err(Field::new("tool_choice.type", "a choice is `auto`, `any`, `tool` or `none`")),
    });
    Ok(())
}

#[derive(Deserialize)]
struct ThinkingConfig<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    budget_tokens: Option<u64>,
    #[serde(borrow)]
    display: Option<Cow<'a, str>>,
}

/// `thinking` and `output_config`. A kind of thinking that is not known stays in `extra`, and so does the rest of
/// `output_config`.
fn read_reasoning(request: &mut Request, fields: &mut Fields<'_>) -> Result<(), Field> {
    let mut reasoning = ReasoningRequest::default();
    if let Some(raw) = fields.raw("thinking") {
        let config: ThinkingConfig<'_> = typed(raw, "thinking")?;
        reasoning.visible = config.display.map(|display| display != "omitted");
        match config.r#type.as_ref() {
            "disabled" => reasoning.enabled = Some(false),
            "adaptive" => reasoning.enabled = Some(true),
            "enabled" => {
                reasoning.enabled = Some(true);
                reasoning.budget_tokens = config.budget_tokens;
            }
            _ => {
                reasoning.visible = None;
                request.extra.insert("thinking".to_owned(), typed(raw, "thinking")?);
            }
        }
    }
    if let Some(mut config) = fields.take::<Map<String, Value>>("output_config")? {
        match config.remove("effort") {
            None | Some(Value::Null) => {}
            Some(Value::String(effort)) => reasoning.effort = Some(effort),
            Some(_) => return Err(Field::new("output_config.effort", "a string was expected")),
        }
        request.output.format =
            config.remove("format").filter(|format| !format.is_null()).map(read_format).transpose()?;
        if !config.is_empty() {
            request.extra.insert("output_config".to_owned(), Value::Object(config));
        }
    }
    request.reasoning = (reasoning != ReasoningRequest::default()).then_some(reasoning);
    Ok(())
}

fn read_format(mut format: Value) -> Result<Format, Field> {
    let schema = format.get_mut("schema").map(Value::take);
    match (format.get("type").and_then(Value::as_str), schema) {
        (Some("json_schema"), Some(schema)) => {
            Ok(Format::JsonSchema(JsonSchema { name: None, description: None, schema, strict: Some(true) }))
        }
        _ => Err(Field::new("output_config.format", "a format is `json_schema`, with its schema")),
    }
}
