//! Writes a chat request.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::chat_shaped::{
    Image, Tool, arguments, called_tools, carries, image, joined_texts, one_choice, own_fields, own_thought,
    part_place, report_lost, role, stops, tools, unsupported,
};
use crate::dialect::TargetFacts;
use crate::exchange::shape::place;
use crate::exchange::{
    Dropped, Format, Part, ReasoningRequest, Request, Role, ToolCall, ToolChoice, ToolResult, Turn,
    Unwritable, Written,
};

/// Parameters that the dialect has, by the names that OpenAI's clients give them.
const CARRIED: &[&str] = &["temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"];

/// Ollama's own top-level field.
const OWN: &[&str] = &["keep_alive"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatField<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options<'a>>,
    #[serde(flatten)]
    own: BTreeMap<&'static str, &'a Value>,
}

#[derive(Serialize, Default)]
struct Message<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Switch(bool),
    Level(&'static str),
}

#[derive(Serialize)]
#[serde(untagged)]
enum FormatField<'a> {
    Json(&'static str),
    Schema(&'a Value),
}

#[derive(Serialize, Default, PartialEq)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a Number>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
}

pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    let mut dropped = Dropped::default();
    one_choice(request, target.vendor)?;
    report_lost(request, target.vendor, CARRIED, OWN, &mut dropped);
    let body = Body {
        model: target.model,
        messages: messages(request, target, &mut dropped)?,
        stream: request.stream,
        think: request.reasoning.as_ref().and_then(|reasoning| think(reasoning, target.model, &mut dropped)),
        format: match &request.output.format {
            None | Some(Format::Text) => None,
            Some(Format::JsonObject) => Some(FormatField::Json("json")),
            Some(Format::JsonSchema(schema)) => Some(FormatField::Schema(&schema.schema)),
        },
        tools: offered_tools(request, &mut dropped)?,
        options: options(request, target)?,
        own: own_fields(request, target.vendor, OWN),
    };
    let body = serde_json::to_vec(&body).expect("text, numbers and checked JSON always serialise").into();
    Ok(Written { body, dropped, json_tool: None })
}

fn options<'a>(request: &'a Request, target: &TargetFacts<'_>) -> Result<Option<Options<'a>>, Unwritable> {
    let sampling = &request.sampling;
    let keep =
        |name: &str, value: &'a Option<Number>| value.as_ref().filter(|_| carries(target.vendor, name));
    let options = Options {
        num_predict: request.output.max_tokens,
        temperature: keep("temperature", &sampling.temperature),
        top_p: keep("top_p", &sampling.top_p),
        top_k: keep("top_k", &sampling.top_k),
        seed: keep("seed", &sampling.seed),
        frequency_penalty: keep("frequency_penalty", &sampling.frequency_penalty),
        presence_penalty: keep("presence_penalty", &sampling.presence_penalty),
        stop: stops(request, target.vendor)?,
    };
    Ok(Some(options).filter(|options| *options != Options::default()))
}

/// `think` is a switch, and for the models of OpenAI's `gpt-oss` one of three levels. Others refuse levels they do not know.
fn think(reasoning: &ReasoningRequest, model: &str, dropped: &mut Dropped) -> Option<Think> {
    let effort = reasoning.effort.as_deref();
    if reasoning.enabled == Some(false) || reasoning.budget_tokens == Some(0) || effort == Some("none") {
        return Some(Think::Switch(false));
    }
    if reasoning.budget_tokens.is_some() {
        dropped.add("thinking.budget_tokens");
    }
    let level = match effort {
        Some("minimal" | "low") => Some("low"),
        Some("medium") => Some("medium"),
        Some("high" | "xhigh" | "max") => Some("high"),
        _ => None,
    };
    if let Some(level) = level.filter(|_| model.contains("gpt-oss")) {
        return Some(Think::Level(level));
    }
    if effort.is_some() {
        dropped.add("reasoning_effort");
    }
    let on = reasoning.enabled == Some(true) || reasoning.budget_tokens.is_some() || effort.is_some();
    on.then_some(Think::Switch(true))
}

fn offered_tools<'a>(request: &'a Request, dropped: &mut Dropped) -> Result<Vec<Tool<'a>>, Unwritable> {
    match &request.tool_choice {
        Some(ToolChoice::None) => return Ok(Vec::new()),
        Some(ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Allowed { required: true, .. }) => {
            dropped.add("tool_choice");
        }
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) | None => {}
    }
    tools(request, dropped)
}

fn messages<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<Message<'a>>, Unwritable> {
    let called = called_tools(request)?;
    let mut messages = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.iter().enumerate() {
        for part in &turn.parts {
            if let Part::ToolResult(result) = part {
                messages.push(tool_message(request, index, result, &called, target)?);
            }
        }
        let only_results =
            !turn.parts.is_empty() && turn.parts.iter().all(|part| matches!(part, Part::ToolResult(_)));
        if !only_results {
            messages.push(message(request, index, turn, target, dropped)?);
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
    let mut message =
        Message { role: role(turn.role), content: joined_texts(&turn.parts), ..Message::default() };
    for (at, part) in turn.parts.iter().enumerate() {
        let place = || part_place(request, index, at);
        match part {
            Part::Text(_) | Part::Refusal(_) | Part::ToolResult(_) => {}
            Part::Image(media) => {
                if media.detail.is_some() {
                    dropped.add(format!("{}.detail", place()));
                }
                message.images.push(inline(image(media, target.vendor, &place())?, &place())?);
            }
            Part::Audio(_) | Part::File(_) => {
                return unsupported(place(), "this target takes text and images");
            }
            Part::ToolCall(call) => message.tool_calls.push(written_call(request, index, call)?),
            Part::Reasoning(reasoning) => {
                if let Some(text) = own_thought(reasoning) {
                    message.thinking.get_or_insert_default().push_str(text);
                }
            }
            Part::Other { .. } if turn.role == Role::Assistant => dropped.add(place()),
            Part::Other { .. } => return unsupported(place(), "this target has no such content"),
        }
    }
    Ok(message)
}

fn written_call<'a>(request: &Request, index: usize, call: &'a ToolCall) -> Result<Call<'a>, Unwritable> {
    let arguments = arguments(call, || place(request, index))?;
    Ok(Call { id: &call.id, function: CalledFunction { name: &call.name, arguments } })
}

fn inline<'a>(image: Image<'a>, place: &str) -> Result<&'a str, Unwritable> {
    match image {
        Image::Inline { data, .. } => Ok(data),
        Image::Url(_) => unsupported(place, "this target takes images in base64 only"),
    }
}

fn tool_message<'a>(
    request: &Request,
    index: usize,
    result: &'a ToolResult,
    called: &HashMap<&'a str, &'a str>,
    target: &TargetFacts<'_>,
) -> Result<Message<'a>, Unwritable> {
    let mut message = Message {
        role: "tool",
        content: joined_texts(&result.parts),
        tool_name: called.get(result.call_id.as_str()).copied(),
        tool_call_id: Some(&result.call_id),
        ..Message::default()
    };
    let place = place(request, index);
    for part in &result.parts {
        match part {
            Part::Text(_) => {}
            Part::Image(media) => message.images.push(inline(image(media, target.vendor, &place)?, &place)?),
            _ => return unsupported(place, "this target takes text and images as results of tools"),
        }
    }
    Ok(message)
}
