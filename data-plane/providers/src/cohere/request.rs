//! Writes a chat request.

use std::collections::BTreeMap;

use penstock_model::vendor::{JsonOutput, Vendor};
use serde::Serialize;
use serde_json::{Number, Value};

use crate::chat_shaped::{
    Tool, arguments, called_tools, carries, image, joined_texts, one_choice, own_fields, own_thought,
    part_place, report_lost, role, stops, tools, unsupported,
};
use crate::dialect::TargetFacts;
use crate::exchange::shape::place;
use crate::exchange::{
    Dropped, Format, Part, ReasoningRequest, Request, Role, ToolCall, ToolChoice, ToolResult, Turn,
    Unwritable, Written, json_tool,
};

/// Parameters that the dialect has, by the names that OpenAI's clients give them.
const CARRIED: &[&str] = &["temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"];

/// Cohere's own top-level fields.
const OWN: &[&str] = &["documents", "citation_options", "safety_mode", "priority"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(flatten)]
    own: BTreeMap<&'static str, &'a Value>,
}

#[derive(Serialize, Default)]
struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    tool_plan: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<&'a Value>,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_budget: Option<u64>,
}

pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    let (vendor, sampling) = (target.vendor, &request.sampling);
    let mut dropped = Dropped::default();
    one_choice(request, vendor)?;
    report_lost(request, vendor, CARRIED, OWN, &mut dropped);
    let keep = |name: &str| carries(vendor, name);
    let mut tools = tools(request, &mut dropped)?;
    let mut tool_choice = tool_choice(request).filter(|_| !tools.is_empty());
    let hidden = hidden_tool(request, vendor, &mut tools, &mut tool_choice);
    if let Some(hidden) = &hidden {
        tools.push(Tool::of(hidden));
    }
    let format = request.output.format.as_ref().filter(|_| tools.is_empty());
    let body = Body {
        model: target.model,
        messages: messages(request, target, &mut dropped)?,
        stream: request.stream,
        max_tokens: request.output.max_tokens,
        temperature: sampling.temperature.as_ref().filter(|_| keep("temperature")),
        p: sampling.top_p.as_ref().filter(|_| keep("top_p")),
        k: sampling.top_k.as_ref().filter(|_| keep("top_k")),
        seed: sampling.seed.as_ref().filter(|_| keep("seed")),
        frequency_penalty: sampling.frequency_penalty.as_ref().filter(|_| keep("frequency_penalty")),
        presence_penalty: sampling.presence_penalty.as_ref().filter(|_| keep("presence_penalty")),
        stop_sequences: stops(request, vendor)?,
        tools,
        tool_choice,
        response_format: format.and_then(response_format),
        thinking: request.reasoning.as_ref().and_then(|reasoning| thinking(reasoning, &mut dropped)),
        own: own_fields(request, vendor, OWN),
    };
    let body = serde_json::to_vec(&body).expect("text, numbers and JSON always serialise").into();
    Ok(Written { body, dropped, json_tool: hidden.map(|tool| tool.name) })
}

/// `None` is for the model to decide.
fn tool_choice(request: &Request) -> Option<&'static str> {
    match &request.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => None,
        Some(ToolChoice::None) => Some("NONE"),
        Some(ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Allowed { required: true, .. }) => {
            Some("REQUIRED")
        }
    }
}

/// The tool that stands in for JSON output beside the client's tools, or where the vendor file says that there is none.
/// Where the client's choice rules out either side, that side is left out instead.
fn hidden_tool(
    request: &Request,
    vendor: &Vendor,
    tools: &mut Vec<Tool<'_>>,
    tool_choice: &mut Option<&'static str>,
) -> Option<crate::exchange::Tool> {
    let format = request.output.format.as_ref()?;
    let native = match format {
        Format::Text => return None,
        Format::JsonObject => vendor.parameters.json.contains(&JsonOutput::Object),
        Format::JsonSchema(_) => vendor.parameters.json.contains(&JsonOutput::Schema),
    };
    match &request.tool_choice {
        Some(ToolChoice::Tool(_) | ToolChoice::Allowed { required: true, .. }) => return None,
        Some(ToolChoice::None) => {
            tools.clear();
            *tool_choice = None;
        }
        _ => {}
    }
    if tools.is_empty() && native {
        return None;
    }
    *tool_choice = Some("REQUIRED");
    Some(json_tool::tool(&json_tool::name(request), format))
}

fn response_format(format: &Format) -> Option<ResponseFormat<'_>> {
    let json_schema = match format {
        Format::Text => return None,
        Format::JsonObject => None,
        Format::JsonSchema(schema) => Some(&schema.schema),
    };
    Some(ResponseFormat { r#type: "json_object", json_schema })
}

/// Thinking is on or off, with a budget; there are no levels.
fn thinking(reasoning: &ReasoningRequest, dropped: &mut Dropped) -> Option<Thinking> {
    let effort = reasoning.effort.as_deref();
    let off =
        reasoning.enabled == Some(false) || reasoning.budget_tokens == Some(0) || effort == Some("none");
    if off {
        return Some(Thinking { r#type: "disabled", token_budget: None });
    }
    if effort.is_some() {
        dropped.add("reasoning_effort");
    }
    let on = reasoning.enabled == Some(true) || reasoning.budget_tokens.is_some() || effort.is_some();
    on.then_some(Thinking { r#type: "enabled", token_budget: reasoning.budget_tokens })
}

fn messages<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<Message<'a>>, Unwritable> {
    called_tools(request)?;
    let mut messages = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.iter().enumerate() {
        for part in &turn.parts {
            if let Part::ToolResult(result) = part {
                messages.push(tool_message(request, index, result)?);
            }
        }
        let message = message(request, index, turn, target, dropped)?;
        // A message that says nothing is refused.
        if message.content.is_some() || !message.tool_calls.is_empty() {
            messages.push(message);
        }
    }
    Ok(messages)
}

fn message<'a>(
    request: &'a Request,
    index: usize,
    turn: &'a Turn,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Message<'a>, Unwritable> {
    let mut message = Message { role: role(turn.role), ..Message::default() };
    let has_calls = turn.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let mut blocks = Vec::new();
    for (at, part) in turn.parts.iter().enumerate() {
        let place = || part_place(request, index, at);
        match part {
            Part::ToolResult(_) => {}
            // The plan, written below.
            Part::Text(_) | Part::Refusal(_) if has_calls => {}
            Part::Text(text) if text.text.is_empty() => {}
            Part::Text(text) => blocks.push(Block::Text { text: &text.text }),
            Part::Refusal(text) => blocks.push(Block::Text { text }),
            Part::Image(media) => {
                let url = image(media, target.vendor, &place())?.to_url();
                blocks.push(Block::ImageUrl { image_url: ImageUrl { url, detail: media.detail.as_deref() } });
            }
            Part::Audio(_) | Part::File(_) => {
                return unsupported(place(), "this target takes text and images");
            }
            Part::ToolCall(call) => message.tool_calls.push(written_call(request, index, call)?),
            Part::Reasoning(reasoning) => {
                blocks.extend(own_thought(reasoning).map(|thinking| Block::Thinking { thinking }));
            }
            Part::Other { .. } if turn.role == Role::Assistant => dropped.add(place()),
            Part::Other { .. } => return unsupported(place(), "this target has no such content"),
        }
    }
    if has_calls {
        message.tool_plan = joined_texts(&turn.parts);
    }
    message.content = match blocks.as_slice() {
        [] => None,
        [Block::Text { text }] => Some(Content::Text(text)),
        _ => Some(Content::Blocks(blocks)),
    };
    Ok(message)
}

fn written_call<'a>(request: &Request, index: usize, call: &'a ToolCall) -> Result<Call<'a>, Unwritable> {
    let arguments = arguments(call, || place(request, index))?.get();
    Ok(Call { id: &call.id, r#type: "function", function: CalledFunction { name: &call.name, arguments } })
}

fn tool_message<'a>(
    request: &Request,
    index: usize,
    result: &'a ToolResult,
) -> Result<Message<'a>, Unwritable> {
    let mut blocks = Vec::with_capacity(result.parts.len());
    for part in &result.parts {
        let Part::Text(text) = part else {
            return unsupported(place(request, index), "this target takes text as results of tools");
        };
        blocks.push(Block::Text { text: &text.text });
    }
    let content = match blocks.as_slice() {
        [] => Content::Text(""),
        [Block::Text { text }] => Content::Text(text),
        _ => Content::Blocks(blocks),
    };
    Ok(Message {
        role: "tool",
        tool_call_id: Some(&result.call_id),
        content: Some(content),
        ..Message::default()
    })
}
