//! Writes a generation request.

use std::collections::BTreeMap;

use penstock_model::vendor::{JsonOutput, Vendor};
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::is_multimodal;
use crate::chat_shaped::{
    Tool, arguments, called_tools, carries, image, joined_texts, one_choice, own_fields, own_thought,
    part_place, report_lost, role, stops, tools, unsupported,
};
use crate::dialect::TargetFacts;
use crate::exchange::shape::place;
use crate::exchange::{
    Dropped, Format, Part, ReasoningRequest, Request, Role, ToolCall, ToolChoice, ToolResult, Turn,
    Unwritable, Written,
};

/// Parameters that the dialect has, by the names that OpenAI's clients give them.
const CARRIED: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "presence_penalty",
    "logprobs",
    "top_logprobs",
    "parallel_tool_calls",
];

/// DashScope's own parameters. Clients of its OpenAI-shaped interface send them at the top level.
const OWN: &[&str] = &[
    "enable_thinking",
    "thinking_budget",
    "preserve_thinking",
    "repetition_penalty",
    "enable_search",
    "search_options",
    "translation_options",
    "vl_high_resolution_images",
];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Input<'a>,
    parameters: Parameters<'a>,
}

#[derive(Serialize)]
struct Input<'a> {
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    content: Content<'a>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    List(Vec<Item<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Item<'a> {
    Text(&'a str),
    Image(String),
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
struct Parameters<'a> {
    result_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    incremental_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    own: BTreeMap<&'static str, Value>,
}

pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    let mut dropped = Dropped::default();
    one_choice(request, target.vendor)?;
    report_lost(request, target.vendor, CARRIED, OWN, &mut dropped);
    let body = Body {
        model: target.model,
        input: Input { messages: messages(request, target, &mut dropped)? },
        parameters: parameters(request, target, &mut dropped)?,
    };
    let body = serde_json::to_vec(&body).expect("text, numbers and JSON always serialise").into();
    Ok(Written { body, dropped, json_tool: None })
}

fn parameters<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Parameters<'a>, Unwritable> {
    let (vendor, sampling) = (target.vendor, &request.sampling);
    let keep = |name: &str| carries(vendor, name);
    let tools = tools(request, dropped)?;
    let has_tools = !tools.is_empty();
    Ok(Parameters {
        result_format: "message",
        incremental_output: request.stream.then_some(true),
        max_tokens: request.output.max_tokens,
        temperature: sampling.temperature.as_ref().filter(|_| keep("temperature")),
        top_p: sampling.top_p.as_ref().filter(|_| keep("top_p")),
        top_k: sampling.top_k.as_ref().filter(|_| keep("top_k")),
        seed: sampling.seed.as_ref().filter(|_| keep("seed")),
        presence_penalty: sampling.presence_penalty.as_ref().filter(|_| keep("presence_penalty")),
        logprobs: sampling.logprobs.filter(|_| keep("logprobs")),
        top_logprobs: sampling.top_logprobs.filter(|_| keep("top_logprobs")),
        stop: stops(request, vendor)?,
        n: request.output.choices.filter(|n| *n > 1),
        tool_choice: tool_choice(request, tools.len(), dropped),
        tools,
        parallel_tool_calls: request.parallel_tool_calls.filter(|_| has_tools && keep("parallel_tool_calls")),
        response_format: response_format(request, vendor)?,
        own: own_parameters(request, vendor, dropped),
    })
}

/// DashScope has `none` and one named tool. That any must be called is the same as naming it when there is only one.
fn tool_choice(request: &Request, offered: usize, dropped: &mut Dropped) -> Option<Value> {
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let only_one = match &request.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => return None,
        Some(ToolChoice::None) => return (offered > 0).then(|| json!("none")),
        Some(ToolChoice::Tool(name)) => Some(name),
        Some(ToolChoice::Required) => request.tools.first().map(|tool| &tool.name),
        Some(ToolChoice::Allowed { names, .. }) => names.first(),
    };
    match only_one {
        Some(name) if offered == 1 => Some(named(name)),
        _ => {
            dropped.add("tool_choice");
            None
        }
    }
}

fn response_format(request: &Request, vendor: &Vendor) -> Result<Option<Value>, Unwritable> {
    let (kind, format) = match &request.output.format {
        None | Some(Format::Text) => return Ok(None),
        Some(Format::JsonObject) => (JsonOutput::Object, json!({ "type": "json_object" })),
        Some(Format::JsonSchema(schema)) => {
            let mut described =
                json!({ "name": schema.name.as_deref().unwrap_or("answer"), "schema": schema.schema });
            if let Some(description) = &schema.description {
                described["description"] = json!(description);
            }
            if let Some(strict) = schema.strict {
                described["strict"] = json!(strict);
            }
            (JsonOutput::Schema, json!({ "type": "json_schema", "json_schema": described }))
        }
    };
    if !vendor.parameters.json.contains(&kind) {
        return unsupported("response_format", "this target has no such structured output");
    }
    Ok(Some(format))
}

/// DashScope's own parameters as the client wrote them, and the switch for thinking where it did not.
fn own_parameters(
    request: &Request,
    vendor: &Vendor,
    dropped: &mut Dropped,
) -> BTreeMap<&'static str, Value> {
    let own = own_fields(request, vendor, OWN);
    let mut own: BTreeMap<_, _> = own.into_iter().map(|(name, value)| (name, value.clone())).collect();
    if let Some(reasoning) = &request.reasoning {
        let (on, budget) = thinking(reasoning, dropped);
        if let Some(on) = on.filter(|_| carries(vendor, "enable_thinking")) {
            own.entry("enable_thinking").or_insert_with(|| json!(on));
        }
        if let Some(budget) = budget.filter(|_| carries(vendor, "thinking_budget")) {
            own.entry("thinking_budget").or_insert_with(|| json!(budget));
        }
    }
    own
}

/// Thinking is on or off, with a budget; there are no levels.
fn thinking(reasoning: &ReasoningRequest, dropped: &mut Dropped) -> (Option<bool>, Option<u64>) {
    let effort = reasoning.effort.as_deref();
    if reasoning.enabled == Some(false) || reasoning.budget_tokens == Some(0) || effort == Some("none") {
        return (Some(false), None);
    }
    if effort.is_some() {
        dropped.add("reasoning_effort");
    }
    let on = reasoning.enabled == Some(true) || reasoning.budget_tokens.is_some() || effort.is_some();
    (on.then_some(true), reasoning.budget_tokens)
}

fn messages<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<Message<'a>>, Unwritable> {
    called_tools(request)?;
    let multimodal = is_multimodal(request, target.model);
    let mut messages = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.iter().enumerate() {
        for part in &turn.parts {
            if let Part::ToolResult(result) = part {
                messages.push(tool_message(request, index, result, multimodal)?);
            }
        }
        let only_results =
            !turn.parts.is_empty() && turn.parts.iter().all(|part| matches!(part, Part::ToolResult(_)));
        if !only_results {
            messages.push(message(request, index, turn, target, multimodal, dropped)?);
        }
    }
    Ok(messages)
}

fn message<'a>(
    request: &'a Request,
    index: usize,
    turn: &'a Turn,
    target: &TargetFacts<'_>,
    multimodal: bool,
    dropped: &mut Dropped,
) -> Result<Message<'a>, Unwritable> {
    let (mut items, mut tool_calls, mut reasoning_content) = (Vec::new(), Vec::new(), String::new());
    for (at, part) in turn.parts.iter().enumerate() {
        let place = || part_place(request, index, at);
        match part {
            Part::ToolResult(_) => {}
            Part::Text(text) if text.text.is_empty() => {}
            Part::Text(text) => items.push(Item::Text(&text.text)),
            Part::Refusal(text) => items.push(Item::Text(text)),
            Part::Image(media) => {
                if media.detail.is_some() {
                    dropped.add(format!("{}.detail", place()));
                }
                items.push(Item::Image(image(media, target.vendor, &place())?.to_url()));
            }
            Part::Audio(_) | Part::File(_) => {
                return unsupported(place(), "this target takes text and images");
            }
            Part::ToolCall(call) => tool_calls.push(written_call(request, index, call)?),
            Part::Reasoning(reasoning) => reasoning_content.extend(own_thought(reasoning)),
            Part::Other { .. } if turn.role == Role::Assistant => dropped.add(place()),
            Part::Other { .. } => return unsupported(place(), "this target has no such content"),
        }
    }
    let content = if multimodal { Content::List(items) } else { Content::Text(joined_texts(&turn.parts)) };
    Ok(Message { role: role(turn.role), tool_call_id: None, content, reasoning_content, tool_calls })
}

fn written_call<'a>(request: &Request, index: usize, call: &'a ToolCall) -> Result<Call<'a>, Unwritable> {
    let arguments = arguments(call, || place(request, index))?.get();
    Ok(Call { id: &call.id, r#type: "function", function: CalledFunction { name: &call.name, arguments } })
}

fn tool_message<'a>(
    request: &Request,
    index: usize,
    result: &'a ToolResult,
    multimodal: bool,
) -> Result<Message<'a>, Unwritable> {
    let mut items = Vec::with_capacity(result.parts.len());
    for part in &result.parts {
        let Part::Text(text) = part else {
            return unsupported(place(request, index), "this target takes text as results of tools");
        };
        items.push(Item::Text(&text.text));
    }
    let content = if multimodal { Content::List(items) } else { Content::Text(joined_texts(&result.parts)) };
    Ok(Message {
        role: "tool",
        tool_call_id: Some(&result.call_id),
        content,
        reasoning_content: String::new(),
        tool_calls: Vec::new(),
    })
}
