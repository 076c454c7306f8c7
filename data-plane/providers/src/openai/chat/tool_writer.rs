//! Writes tools, and what is to be chosen of them.

use penstock_model::vendor::Wire;
use serde::Serialize;
use serde_json::{Value, json};

use super::message_writer::CacheControl;
use super::request_writer::Body;
use crate::exchange::{Field, Request, Tool, ToolChoice, ToolKind, Unwritable, json_tool};

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenTool<'a> {
    Function {
        r#type: &'static str,
        function: Function<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Other(&'a Value),
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// Writes `tools`, `tool_choice` and `parallel_tool_calls`; `json_tool` is the name of the one that stands in for
/// structured output.
pub(super) fn write(
    request: &Request,
    json_tool: Option<&str>,
    cache_hints: bool,
    body: &mut Body<'_>,
) -> Result<(), Unwritable> {
    let hidden =
        json_tool.zip(request.output.format.as_ref()).map(|(name, format)| json_tool::tool(name, format));
    let mut tools = Vec::with_capacity(request.tools.len() + 1);
    for (index, tool) in request.tools.iter().enumerate() {
        match written(tool, request.wire, cache_hints) {
            Some(written) => tools.push(written),
            // A tool that another vendor runs itself.
            None => body.dropped.add(format!("tools[{index}]")),
        }
        if tool.cache.is_some() && !cache_hints {
            body.dropped.add("cache_control");
        }
    }
    tools.extend(hidden.iter().filter_map(|tool| written(tool, request.wire, false)));
    if tools.is_empty() {
        return unchosen(request);
    }
    body.member("tools", &tools);
    let choice = json_tool.map(|name| json_tool::choice(request, name));
    if let Some(choice) = choice.as_ref().or(request.tool_choice.as_ref()) {
        body.member("tool_choice", &choice_value(choice, request));
    }
    if let Some(parallel) = request.parallel_tool_calls {
        body.member("parallel_tool_calls", &parallel);
    }
    Ok(())
}

/// Without tools there is nothing to choose, and services refuse to be told so.
fn unchosen(request: &Request) -> Result<(), Unwritable> {
    match &request.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::None) => Ok(()),
        Some(_) => {
            let reason = "a tool must be called, but none can be given to this service";
            Err(Unwritable::Unsupported(Field::new("tool_choice", reason)))
        }
    }
}

fn written(tool: &Tool, wire: Wire, cache_hints: bool) -> Option<WrittenTool<'_>> {
    match &tool.kind {
        ToolKind::Function { parameters, strict } => Some(WrittenTool::Function {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters: parameters.as_ref(),
                strict: *strict,
            },
            cache_control: tool.cache.filter(|_| cache_hints).map(CacheControl::from),
        }),
        ToolKind::Other(value) => (wire == Wire::Openai).then_some(WrittenTool::Other(value)),
    }
}

fn choice_value(choice: &ToolChoice, request: &Request) -> Value {
    let tool = |name: &str| {
        let custom = request.tools.iter().any(|tool| {
            tool.name == name && matches!(&tool.kind, ToolKind::Other(value) if value["type"] == "custom")
        });
        if custom {
            json!({ "type": "custom", "custom": { "name": name } })
        } else {
            json!({ "type": "function", "function": { "name": name } })
        }
    };
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => tool(name),
        ToolChoice::Allowed { required, names } => {
            let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
            let mode = if *required { "required" } else { "auto" };
            json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
        }
    }
}
