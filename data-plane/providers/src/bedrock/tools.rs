//! What the model may call, and whether it must.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::body::{InputSchema, ToolChoice as Choice, ToolConfig, ToolEntry};
use super::content::cache_point;
use super::family::Family;
use super::write::client_name;
use crate::chat_shaped::unsupported;
use crate::exchange::{
    Dropped, Format, Part, Request, Tool, ToolChoice, ToolKind, Turn, Unwritable, json_tool,
};

/// The tools of a request, and the name of the hidden one that stands in for structured output (TR-11).
///
/// Where the conversation holds calls, Converse wants their tools declared even if none may be called any more: then
/// they stay, and that they could be called is reported. A call's tool that the client no longer declares is declared
/// by its name.
///
/// # Errors
/// When a tool is none of the client's functions.
pub(super) fn write<'a>(
    request: &'a Request,
    turns: &'a [Turn],
    family: Family,
    dropped: &mut Dropped,
) -> Result<(Option<ToolConfig<'a>>, Option<String>), Unwritable> {
    let format = request.output.format.as_ref().filter(|format| !matches!(format, Format::Text));
    let hidden = format.map(|format| json_tool::tool(&json_tool::name(request), format));
    let wanted = match &hidden {
        Some(tool) => Some(json_tool::choice(request, &tool.name)),
        None => request.tool_choice.clone(),
    };
    let called = called(turns);
    // With a hidden tool, "none" means none of the client's: they go unless the conversation holds calls.
    let none = request.tool_choice == Some(ToolChoice::None);
    let mut entries = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let is_allowed = is_allowed(wanted.as_ref(), &tool.name);
        let is_called = called.contains(&tool.name.as_str());
        if none && called.is_empty() {
            dropped.add("tools");
            continue;
        }
        match (is_allowed, is_called) {
            (true, _) => {}
            (false, true) => dropped.add(client_name(request.wire, "tool_choice")),
            (false, false) => continue,
        }
        declare(index, tool, family, request, dropped, &mut entries)?;
    }
    for name in called {
        if !request.tools.iter().any(|tool| tool.name == name) {
            entries.push(spec(name, None, None));
        }
    }
    if none && hidden.is_none() && !entries.is_empty() {
        dropped.add(client_name(request.wire, "tool_choice"));
    }
    let name = hidden.as_ref().map(|tool| tool.name.clone());
    if let Some(tool) = hidden {
        entries.push(own(tool));
    }
    let tool_choice = choice(wanted);
    Ok(((!entries.is_empty()).then_some(ToolConfig { tools: entries, tool_choice }), name))
}

/// Must the model call a tool?
pub(super) fn is_forced(config: Option<&ToolConfig<'_>>) -> bool {
    matches!(
        config.and_then(|config| config.tool_choice.as_ref()),
        Some(Choice::Any {} | Choice::Tool { .. })
    )
}

/// Names of the tools that the conversation holds calls of, each once.
fn called(turns: &[Turn]) -> Vec<&str> {
    let mut names = Vec::new();
    for part in turns.iter().flat_map(|turn| &turn.parts) {
        if let Part::ToolCall(call) = part
            && !names.contains(&call.name.as_str())
        {
            names.push(call.name.as_str());
        }
    }
    names
}

fn is_allowed(choice: Option<&ToolChoice>, name: &str) -> bool {
    match choice {
        Some(ToolChoice::Allowed { names, .. }) => names.iter().any(|allowed| allowed == name),
        _ => true,
    }
}

fn declare<'a>(
    index: usize,
    tool: &'a Tool,
    family: Family,
    request: &Request,
    dropped: &mut Dropped,
    entries: &mut Vec<ToolEntry<'a>>,
) -> Result<(), Unwritable> {
    let ToolKind::Function { parameters, strict } = &tool.kind else {
        return unsupported(format!("tools[{index}]"), "Bedrock has only tools of the client");
    };
    if *strict == Some(true) {
        dropped.add(format!("tools[{index}].strict"));
    }
    let description = tool.description.as_deref().filter(|text| !text.is_empty());
    entries.push(spec(&tool.name, description, parameters.as_ref()));
    entries.extend(cache_point(tool.cache, family, request.wire, dropped).map(ToolEntry::CachePoint));
    Ok(())
}

fn spec<'a>(name: &'a str, description: Option<&'a str>, parameters: Option<&'a Value>) -> ToolEntry<'a> {
    let schema = parameters.filter(|schema| schema.as_object().is_some_and(|object| !object.is_empty()));
    let json = schema.map_or_else(|| Cow::Owned(no_parameters()), Cow::Borrowed);
    ToolEntry::ToolSpec {
        name: Cow::Borrowed(name),
        description: description.map(Cow::Borrowed),
        input_schema: InputSchema { json },
    }
}

/// A tool of ours.
fn own<'a>(tool: Tool) -> ToolEntry<'a> {
    let parameters = match tool.kind {
        ToolKind::Function { parameters, .. } => parameters,
        ToolKind::Other(_) => None,
    };
    ToolEntry::ToolSpec {
        name: Cow::Owned(tool.name),
        description: tool.description.map(Cow::Owned),
        input_schema: InputSchema { json: Cow::Owned(parameters.unwrap_or_else(no_parameters)) },
    }
}

/// The schema of a tool without parameters: Converse requires one.
fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

fn choice<'a>(wanted: Option<ToolChoice>) -> Option<Choice<'a>> {
    match wanted? {
        ToolChoice::Auto | ToolChoice::Allowed { required: false, .. } => Some(Choice::Auto {}),
        ToolChoice::Required | ToolChoice::Allowed { required: true, .. } => Some(Choice::Any {}),
        ToolChoice::Tool(name) => Some(Choice::Tool { name: Cow::Owned(name) }),
        ToolChoice::None => None,
    }
}
