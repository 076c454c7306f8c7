//! What chat completions refuse about a request as a whole.

use bytes::Bytes;
use serde_json::Value;

use super::super::{Frame, Incoming, Speech};
use super::{message, refuse, write};
use crate::check::{At, Checked, is_name};
use crate::dialect::Dialect;
use crate::reject::Rejection;
use crate::request;
use crate::script::{Asked, Choice, Script, Tool};

/// `POST /v1/chat/completions`
#[derive(Debug)]
pub(crate) struct Chat;

const KNOWN: &[&str] = &[
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
pub(super) const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];
const MOST_STOPS: usize = 4;

impl Speech for Chat {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let short = request::chat(incoming.body, &incoming.config.models)?;
        let asked = Asked {
            stream: short.stream,
            include_usage: short.include_usage,
            max_tokens: short.max_tokens,
            ..incoming.asked(short.model.into_owned(), "messages")
        };
        let body = incoming.json()?;
        check(&body, asked, incoming.config.dialect).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        write::completion(script)
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        write::stream_chat(script, None)
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        write::error_event(rejection)
    }
}

/// Everything that [`request::chat`] has not checked already.
pub(crate) fn check(body: &Value, asked: Asked, dialect: Dialect) -> Checked<Asked> {
    let root = At::root(body);
    // Services that are shaped like OpenAI ignore what they do not know, and tell their reasoning.
    let strict = dialect != Dialect::Openai;
    if strict {
        root.only(KNOWN)?;
        if reasons(&asked.model) && root.get("max_tokens").is_some() {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                           'max_completion_tokens' instead.";
            return Err(root.need("max_tokens")?.wrong(message));
        }
    }
    let mut asked = asked;
    for (penalty, most) in [("frequency_penalty", 2.0), ("presence_penalty", 2.0)] {
        root.range(penalty, -most, most)?;
    }
    asked.stop = stop(&root)?;
    asked.tools = tools(&root)?;
    asked.choice = tool_choice(&root, &asked.tools, true)?;
    if let Some(parallel) = root.get("parallel_tool_calls") {
        if asked.tools.is_empty() {
            return Err(parallel.wrong("'parallel_tool_calls' is only allowed when 'tools' are specified."));
        }
        asked.one_tool = !parallel.flag()?;
    }
    let effort = root.get("reasoning_effort").map(|at| at.one_of(EFFORTS)).transpose()?;
    let thinks = root.flag_of("enable_thinking")?.unwrap_or(false)
        || root.get("thinking").is_some_and(|at| at.value["type"] == "enabled");
    asked.reasoning = effort.is_some_and(|effort| effort != "none") || (thinks && !strict);
    if let Some(format) = root.get("response_format") {
        (asked.schema, asked.json) = response_format(&format, body)?;
    }
    message::conversation(&root, &mut asked)?;
    asked.echo = Value::Bool(!strict);
    Ok(asked)
}

/// Models that reason take the limit under its new name only.
fn reasons(model: &str) -> bool {
    model.starts_with("gpt-5")
        || model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn stop(root: &At<'_>) -> Checked<Vec<String>> {
    let Some(at) = root.get("stop") else { return Ok(Vec::new()) };
    if let Some(text) = at.value.as_str() {
        return Ok(vec![text.to_owned()]);
    }
    let stops = root.texts_of("stop")?;
    if stops.len() > MOST_STOPS {
        let message = format!("expected an array with at most {MOST_STOPS} items, got {}", stops.len());
        return Err(at.wrong(message));
    }
    Ok(stops)
}

fn tools(root: &At<'_>) -> Checked<Vec<Tool>> {
    let mut tools = Vec::new();
    for at in root.list_of("tools")? {
        if at.need("type")?.one_of(&["function", "custom"])? == "custom" {
            continue;
        }
        at.only(&["type", "function"])?;
        let function = at.need("function")?;
        function.only(&["name", "description", "parameters", "strict"])?;
        let name = tool_name(&function)?;
        let parameters = function.get("parameters");
        if let Some(parameters) = &parameters {
            tool_schema(parameters, name)?;
            if function.flag_of("strict")?.unwrap_or(false) {
                strict_schema(parameters, name)?;
            }
        }
        let schema = parameters.map_or(Value::Null, |parameters| parameters.value.clone());
        tools.push(Tool { name: name.to_owned(), schema });
    }
    Ok(tools)
}

pub(super) fn tool_name<'a>(at: &At<'a>) -> Checked<&'a str> {
    let name = at.need_text("name")?;
    if is_name(name, "_-", 64) {
        return Ok(name);
    }
    Err(at.need("name")?.wrong(
        "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'",
    ))
}

pub(super) fn tool_schema(parameters: &At<'_>, name: &str) -> Checked<()> {
    if !parameters.object()?.is_empty() && parameters.value["type"] != "object" {
        let message = format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'."
        );
        return Err(parameters.wrong(message));
    }
    Ok(())
}

/// What `strict` asks of a schema: all properties required, no others allowed, at every depth.
pub(super) fn strict_schema(at: &At<'_>, name: &str) -> Checked<()> {
    let Some(properties) = at.get("properties") else {
        return at.get("items").map_or(Ok(()), |items| strict_schema(&items, name));
    };
    if at.value["additionalProperties"] != false {
        let message = format!(
            "Invalid schema for '{name}': In context=(), 'additionalProperties' is required to be supplied and to be false."
        );
        return Err(at.wrong(message));
    }
    for property in properties.object()?.keys() {
        let required = at.value["required"].as_array();
        if !required.is_some_and(|required| required.iter().any(|name| name == property)) {
            let message = format!(
                "Invalid schema for '{name}': In context=(), 'required' is required to be supplied and to be an array \
                 including every key in properties. Missing '{property}'."
            );
            return Err(at.wrong(message));
        }
        strict_schema(&properties.need(property)?, name)?;
    }
    Ok(())
}

/// `nested`: a named tool stands under `function`, as in chat.
pub(super) fn tool_choice(root: &At<'_>, tools: &[Tool], nested: bool) -> Checked<Choice> {
    let Some(at) = root.get("tool_choice") else { return Ok(Choice::Auto) };
    if root.get("tools").is_none() {
        return Err(at.wrong("'tool_choice' is only allowed when 'tools' are specified."));
    }
    if at.value.is_string() {
        return Ok(match at.one_of(&["none", "auto", "required"])? {
            "none" => Choice::None,
            "required" => Choice::Any,
            _ => Choice::Auto,
        });
    }
    let kind = at.need("type")?.one_of(&["function", "allowed_tools", "custom"])?;
    if kind != "function" {
        return Ok(Choice::Auto);
    }
    let named = if nested { at.need("function")? } else { at.clone() };
    let name = named.need_text("name")?;
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(Choice::Named(name.to_owned()));
    }
    Err(at.wrong(format!("Tool choice '{name}' not found in 'tools' parameter.")))
}

/// The schema, or whether any JSON will do.
fn response_format(at: &At<'_>, body: &Value) -> Checked<(Option<Value>, bool)> {
    match at.need("type")?.one_of(&["text", "json_object", "json_schema"])? {
        "json_schema" => {
            at.only(&["type", "json_schema"])?;
            let described = at.need("json_schema")?;
            described.only(&["name", "description", "schema", "strict"])?;
            schema(&described).map(|schema| (Some(schema), false))
        }
        "json_object" if !body["messages"].to_string().to_lowercase().contains("json") => Err(At::root(body)
            .need("messages")?
            .wrong("'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")),
        kind => Ok((None, kind == "json_object")),
    }
}

/// The schema of a named answer.
pub(super) fn schema(described: &At<'_>) -> Checked<Value> {
    let name = tool_name(described)?;
    let Some(schema) = described.get("schema") else { return Ok(Value::Null) };
    schema.object()?;
    if described.flag_of("strict")?.unwrap_or(false) {
        strict_schema(&schema, name)?;
    }
    Ok(schema.value.clone())
}
