//! What the Messages API refuses about a request as a whole.

use serde_json::Value;

use super::blocks;
use crate::check::{At, Checked, Wrong, is_name};
use crate::script::{Asked, Choice, Tool};

/// Which call it is: they differ in a few fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Messages,
    Messages2026,
    CountTokens,
    Vertex,
}

const COUNTED: &[&str] = &[
    "model",
    "messages",
    "system",
    "thinking",
    "tool_choice",
    "tools",
    "cache_control",
    "output_config",
    "context_management",
    "mcp_servers",
    "output_format",
];
const SENT: &[&str] =
    &["max_tokens", "metadata", "stop_sequences", "stream", "service_tier", "container", "inference_geo"];
const SAMPLING: &[&str] = &["temperature", "top_k", "top_p"];
const SINCE_2026: &[&str] = &["diagnostics", "speed", "user_profile_id"];
/// Smallest budget for thinking.
const LEAST_BUDGET: i64 = 1024;

pub(super) fn messages(body: &Value, kind: Kind, asked: Asked) -> Checked<Asked> {
    let root = At::root(body);
    let known: Vec<&str> = match kind {
        Kind::CountTokens => COUNTED.to_vec(),
        Kind::Messages => [COUNTED, SENT, SAMPLING].concat(),
        Kind::Messages2026 => [COUNTED, SENT, SINCE_2026].concat(),
        Kind::Vertex => {
            [COUNTED, SENT, SAMPLING].concat().into_iter().filter(|name| *name != "model").collect()
        }
    };
    root.only(&known)?;
    let mut asked = Asked { stream: root.flag_of("stream")?.unwrap_or(false), include_usage: true, ..asked };
    if kind != Kind::CountTokens {
        root.need("max_tokens")?;
        asked.max_tokens = root.at_least("max_tokens", 1)?;
    }
    sampling(&root)?;
    asked.stop = stop_sequences(&root)?;
    if let Some(metadata) = root.get("metadata") {
        metadata.only(&["user_id"])?;
        metadata.text_of("user_id")?;
    }
    asked.tools = tools(&root)?;
    (asked.choice, asked.one_tool) = tool_choice(&root, &asked.tools)?;
    asked.reasoning = thinking(&root, &asked)?;
    asked.schema = output_config(&root)?;
    system(&root)?;
    blocks::conversation(&root, &mut asked, kind == Kind::Messages2026)?;
    asked.cache = cache_marks(body);
    Ok(asked)
}

fn sampling(root: &At<'_>) -> Checked<()> {
    root.range("temperature", 0.0, 1.0)?;
    root.range("top_p", 0.0, 1.0)?;
    root.at_least("top_k", 0)?;
    if let Some(tier) = root.get("service_tier") {
        tier.one_of(&["auto", "standard_only"])?;
    }
    Ok(())
}

fn stop_sequences(root: &At<'_>) -> Checked<Vec<String>> {
    let texts = root.texts_of("stop_sequences")?;
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(at) => {
            Err(Wrong::said(format!("stop_sequences.{at}"), "each stop sequence must contain non-whitespace"))
        }
        None => Ok(texts),
    }
}

fn system(root: &At<'_>) -> Checked<()> {
    let Some(system) = root.get("system") else { return Ok(()) };
    if system.value.is_string() {
        return Ok(());
    }
    for block in system.list()? {
        if block.need("type")?.text()? != "text" {
            return Err(block.need("type")?.wrong("Input should be 'text'"));
        }
        blocks::text(&block, "system")?;
    }
    Ok(())
}

fn tools(root: &At<'_>) -> Checked<Vec<Tool>> {
    let mut tools: Vec<Tool> = Vec::new();
    for at in root.list_of("tools")? {
        // The service's own tools have a type with a date; they declare no schema.
        if at.text_of("type")?.is_some_and(|kind| kind != "custom") {
            continue;
        }
        at.only(&[
            "type",
            "name",
            "description",
            "input_schema",
            "cache_control",
            "strict",
            "eager_input_streaming",
            "defer_loading",
            "allowed_callers",
            "input_examples",
        ])?;
        let name = at.need_text("name")?;
        if !is_name(name, "_-", 128) {
            let message = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
            return Err(at.need("name")?.wrong(message));
        }
        if tools.iter().any(|tool| tool.name == name) {
            return Err(root.need("tools")?.wrong("Tool names must be unique."));
        }
        at.text_of("description")?;
        cache_control(&at)?;
        let schema = at.need("input_schema")?;
        if schema.need_text("type")? != "object" {
            return Err(schema.need("type")?.wrong("Input should be 'object'"));
        }
        tools.push(Tool { name: name.to_owned(), schema: schema.value.clone() });
    }
    Ok(tools)
}

fn tool_choice(root: &At<'_>, tools: &[Tool]) -> Checked<(Choice, bool)> {
    let Some(at) = root.get("tool_choice") else { return Ok((Choice::Auto, false)) };
    if root.get("tools").is_none() {
        return Err(at.wrong("tool_choice may only be specified while providing tools."));
    }
    let kind = at.need("type")?.one_of(&["auto", "any", "tool", "none"])?;
    at.only(match kind {
        "none" => &["type"],
        "tool" => &["type", "name", "disable_parallel_tool_use"],
        _ => &["type", "disable_parallel_tool_use"],
    })?;
    let one = at.flag_of("disable_parallel_tool_use")?.unwrap_or(false);
    let choice = match kind {
        "any" => Choice::Any,
        "none" => Choice::None,
        "tool" => {
            let name = at.need_text("name")?;
            if !tools.iter().any(|tool| tool.name == name) {
                return Err(at.need("name")?.wrong(format!("Tool '{name}' not found in provided tools")));
            }
            Choice::Named(name.to_owned())
        }
        _ => Choice::Auto,
    };
    Ok((choice, one))
}

fn thinking(root: &At<'_>, asked: &Asked) -> Checked<bool> {
    let Some(at) = root.get("thinking") else { return Ok(false) };
    let kind = at.need("type")?.one_of(&["enabled", "disabled", "adaptive", "between_tools"])?;
    if kind == "disabled" {
        at.only(&["type"])?;
        return Ok(false);
    }
    if kind == "enabled" {
        at.only(&["type", "budget_tokens", "display"])?;
        let budget = at.need("budget_tokens")?;
        let tokens = budget.whole()?;
        if tokens < LEAST_BUDGET {
            return Err(budget.wrong(format!("Input should be greater than or equal to {LEAST_BUDGET}")));
        }
        if asked.max_tokens.is_some_and(|most| tokens >= i64::from(most)) {
            return Err(Wrong::said("", "`max_tokens` must be greater than `thinking.budget_tokens`."));
        }
    } else {
        at.only(&["type", "display"])?;
    }
    if root.get("temperature").is_some_and(|at| at.value.as_f64() != Some(1.0)) {
        return Err(Wrong::said("", "`temperature` may only be set to 1 when thinking is enabled."));
    }
    if root.get("top_k").is_some() {
        return Err(Wrong::said("", "`top_k` must be unset when thinking is enabled."));
    }
    if matches!(asked.choice, Choice::Any | Choice::Named(_)) {
        return Err(Wrong::said("", "Thinking may not be enabled when tool_choice forces tool use."));
    }
    Ok(true)
}

/// The schema that is asked for, under its new and its old name.
fn output_config(root: &At<'_>) -> Checked<Option<Value>> {
    let mut format = root.get("output_format");
    if let Some(at) = root.get("output_config") {
        at.only(&["effort", "format", "task_budget"])?;
        if let Some(effort) = at.get("effort") {
            effort.one_of(&["low", "medium", "high", "xhigh", "max"])?;
        }
        format = at.get("format").or(format);
    }
    let Some(format) = format else { return Ok(None) };
    format.only(&["type", "schema"])?;
    format.need("type")?.one_of(&["json_schema"])?;
    let schema = format.need("schema")?;
    check_schema(&schema)?;
    Ok(Some(schema.value.clone()))
}

/// Structured outputs take a part of JSON Schema only.
fn check_schema(at: &At<'_>) -> Checked<()> {
    let kind = at.value["type"].as_str().unwrap_or_default();
    for keyword in
        ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"]
    {
        if at.get(keyword).is_some() {
            let message = format!("For '{kind}' type, property '{keyword}' is not supported");
            return Err(at.wrong(message));
        }
    }
    if kind == "object" {
        if at.value["additionalProperties"] != false {
            let message = "For 'object' type, 'additionalProperties' must be explicitly set to false";
            return Err(at.wrong(message));
        }
        if let Some(properties) = at.get("properties") {
            for name in properties.object()?.keys() {
                check_schema(&properties.need(name)?)?;
            }
        }
    }
    at.get("items").map_or(Ok(()), |items| check_schema(&items))
}

pub(super) fn cache_control(at: &At<'_>) -> Checked<()> {
    let Some(at) = at.get("cache_control") else { return Ok(()) };
    at.only(&["type", "ttl"])?;
    at.need("type")?.one_of(&["ephemeral"])?;
    at.get("ttl").map_or(Ok(()), |ttl| ttl.one_of(&["5m", "1h"]).map(|_| ()))
}

/// Is anything marked to be cached? How many may be marked, [`blocks::conversation`] has checked.
fn cache_marks(value: &Value) -> bool {
    count_marks(value) > 0
}

pub(super) fn count_marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let own = usize::from(fields.get("cache_control").is_some_and(|mark| !mark.is_null()));
            own + fields.values().map(count_marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_marks).sum(),
        _ => 0,
    }
}
