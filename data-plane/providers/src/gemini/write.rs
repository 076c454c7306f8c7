//! Requests, written.

mod check;
mod config;
mod contents;
mod model;

use penstock_model::vendor::Wire;
use serde::Serialize;
use serde_json::{Map, Value};

use super::tools;
use super::wire::OutContent;
use crate::dialect::TargetFacts;
use crate::exchange::shape::{alternating, instructions};
use crate::exchange::{Dropped, Field, Format, Request, Tool, ToolKind, Unwritable, Written, json_tool};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<OutContent<'a>>,
    contents: Vec<OutContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    tool_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Writes `request` for `target`. The model is not in the body: it is in the path.
pub(super) fn request(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    match with_json_tool(request, target.model)? {
        Some((request, name)) => Ok(Written { json_tool: Some(name), ..write(&request, target)? }),
        None => write(request, target),
    }
}

/// Models before Gemini 3 refuse structured output beside functions: there, the form is one more function (TR-11). Gives
/// the request with it, and its name.
fn with_json_tool(request: &Request, model: &str) -> Result<Option<(Request, String)>, Unwritable> {
    let function = |tool: &Tool| matches!(tool.kind, ToolKind::Function { .. });
    let functions = request.wire != Wire::Gemini && request.tools.iter().any(function);
    let (Some(format), true, true) = (&request.output.format, functions, model::is_old(model)) else {
        return Ok(None);
    };
    if *format == Format::Text {
        return Ok(None);
    }
    if request.output.choices.is_some_and(|choices| choices > 1) {
        let reason = "this model gives one answer when its form is prescribed and there are tools";
        return Err(Unwritable::Unsupported(Field::new("n", reason)));
    }
    let name = json_tool::name(request);
    let mut with_tool = request.clone();
    with_tool.tools.push(json_tool::tool(&name, format));
    with_tool.tool_choice = Some(json_tool::choice(request, &name));
    with_tool.output.format = None;
    Ok(Some((with_tool, name)))
}

fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    let mut dropped = Dropped::default();
    check::parts(request, target, &mut dropped)?;
    let turns = alternating(request)?;
    let mut instruction = instructions(request);
    let writer = contents::Writer { request, target };
    let mut contents = writer.turns(&turns)?;
    if contents.is_empty() {
        // The service wants at least one content: instructions alone are what is asked.
        let asked = contents::texts(&std::mem::take(&mut instruction));
        if asked.is_empty() {
            return Err(Unwritable::Wrong(Field::new("messages", "there is nothing in them")));
        }
        contents.push(OutContent { role: Some("user"), parts: asked });
    }
    let system_instruction =
        (!instruction.is_empty()).then(|| OutContent { role: None, parts: contents::texts(&instruction) });
    let taken = |name: &str| !target.vendor.parameters.drop.iter().any(|dropped| dropped == name);
    let mut body = Body {
        system_instruction,
        contents,
        tools: tools::write(request, taken("parametersJsonSchema"), &mut dropped)?,
        tool_config: Map::new(),
        generation_config: config::write(request, target, &mut dropped)?,
        extra: Map::new(),
    };
    if let Some(calling) = tools::write_choice(request) {
        body.tool_config.insert("functionCallingConfig".to_owned(), calling);
    }
    carry_rest(request, &mut body, &mut dropped);
    let body = serde_json::to_vec(&body).expect("strings and JSON values always serialise").into();
    Ok(Written { body, dropped, json_tool: None })
}

/// Fields that only one dialect has: of this one they go back where they were, of others they are left out.
fn carry_rest(request: &Request, body: &mut Body<'_>, dropped: &mut Dropped) {
    for (name, value) in &request.extra {
        let place = name.split_once('.');
        match place {
            _ if request.wire != Wire::Gemini => dropped.add(name),
            None => drop(body.extra.insert(name.clone(), value.clone())),
            Some(("toolConfig", inner)) => drop(body.tool_config.insert(inner.to_owned(), value.clone())),
            Some(("generationConfig", inner)) if !inner.contains('.') => {
                body.generation_config.insert(inner.to_owned(), value.clone());
            }
            Some(_) => dropped.add(name),
        }
    }
    let one_at_a_time = if request.wire == Wire::Anthropic {
        "tool_choice.disable_parallel_tool_use"
    } else {
        "parallel_tool_calls"
    };
    let alone = [
        ("user", request.user.is_some()),
        ("prompt_cache_key", request.cache_key.is_some()),
        ("service_tier", request.service_tier.is_some()),
        ("verbosity", request.output.verbosity.is_some()),
        // Several calls at a time cannot be turned off here (TR-10).
        (one_at_a_time, request.parallel_tool_calls == Some(false)),
        ("metadata", request.metadata.as_ref().is_some_and(|all| !all.is_empty())),
    ];
    for (name, given) in alone {
        if given {
            dropped.add(name);
        }
    }
}
