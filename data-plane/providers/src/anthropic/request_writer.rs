//! A request as the service takes it (docs: "Messages", "Create a Message").

use penstock_model::vendor::{Vendor, Wire};
use serde::Serialize;
use serde_json::{Value, json};

use super::block::{Block, CacheControl, Content};
use super::content_writer::Writer;
use super::structured::{self, Structured};
use super::thinking;
use crate::dialect::TargetFacts;
use crate::exchange::shape::{alternating, instructions};
use crate::exchange::{
    Dropped, Field, Request, Role, Tool, ToolChoice, ToolKind, Turn, Unwritable, Written, json_tool,
};

/// A JSON object that is written field by field.
struct Body<'v> {
    out: Vec<u8>,
    vendor: &'v Vendor,
}

impl Body<'_> {
    fn put(&mut self, name: &str, value: &impl Serialize, dropped: &mut Dropped) {
        let parameters = &self.vendor.parameters;
        if parameters.drop.iter().any(|refused| refused == name) {
            return dropped.add(name);
        }
        if !self.vendor.body.contains_key(name) {
            self.write(parameters.rename.get(name).map_or(name, String::as_str), value);
        }
    }

    fn write(&mut self, name: &str, value: &impl Serialize) {
        self.out.push(if self.out.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut self.out, name).expect("a string always serialises");
        self.out.push(b':');
        serde_json::to_writer(&mut self.out, value).expect("values made here always serialise");
    }

    fn finish(mut self) -> Vec<u8> {
        for (name, value) in &self.vendor.body {
            self.write(name, value);
        }
        if self.out.is_empty() {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        self.out
    }
}

/// Writes a request.
///
/// # Errors
/// When this target, or any, cannot carry it.
pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    check(request, target)?;
    let turns = alternating(request)?;
    let mut dropped = Dropped::default();
    let form = structured::plan(request, target);
    let tools = tools(request, target, &form, &mut dropped)?;
    let choice = choice(request, &form, !tools.is_empty());
    let forced = matches!(&choice, Some(choice) if matches!(choice["type"].as_str(), Some("any" | "tool")));
    let plan = thinking::plan(request, &turns, target, forced, &mut dropped);

    let mut body = Body { out: Vec::with_capacity(1024), vendor: target.vendor };
    if !target.vendor.model_in_path {
        body.put("model", &target.model, &mut dropped);
    }
    body.put("max_tokens", &plan.max_tokens, &mut dropped);
    if request.stream {
        body.put("stream", &true, &mut dropped);
    }
    put_conversation(&mut body, request, &turns, target, &mut dropped)?;
    if !tools.is_empty() {
        body.put("tools", &tools, &mut dropped);
    }
    if let Some(choice) = choice {
        body.put("tool_choice", &choice, &mut dropped);
    }
    put_sampling(&mut body, request, plan.thinks(), &mut dropped);
    if let Some(config) = &plan.thinking {
        body.put("thinking", config, &mut dropped);
    }
    put_output_config(&mut body, request, plan.effort, &form, &mut dropped);
    put_rest(&mut body, request, &mut dropped);
    let json_tool = match form {
        Structured::Tool(name) => Some(name),
        Structured::No | Structured::Native(_) => None,
    };
    Ok(Written { body: body.finish().into(), dropped, json_tool })
}

/// What the dialect cannot say at all.
fn check(request: &Request, target: &TargetFacts<'_>) -> Result<(), Unwritable> {
    if request.output.choices.is_some_and(|choices| choices > 1) {
        return Err(Unwritable::Unsupported(Field::new("n", "this service gives one answer to a request")));
    }
    match target.vendor.parameters.max_stops {
        Some(limit) if request.output.stop.len() > limit as usize => {
            let reason = format!("this service takes at most {limit} stop sequences");
            Err(Unwritable::Unsupported(Field::new(stop_name(request), reason)))
        }
        _ => Ok(()),
    }
}

fn stop_name(request: &Request) -> &'static str {
    match request.wire {
        Wire::Anthropic | Wire::Cohere => "stop_sequences",
        Wire::Gemini => "generationConfig.stopSequences",
        _ => "stop",
    }
}

fn put_conversation(
    body: &mut Body<'_>,
    request: &Request,
    turns: &[Turn],
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<(), Unwritable> {
    #[derive(Serialize)]
    struct Message<'a> {
        role: &'static str,
        content: Content<'a>,
    }
    let mut writer = Writer { request, target, dropped };
    let system: Vec<Block<'_>> = instructions(request).into_iter().map(|text| writer.text(text)).collect();
    let mut messages = Vec::with_capacity(turns.len());
    for turn in turns {
        let content = Content::new(writer.turn(turn)?);
        // A turn of nothing but another vendor's thoughts.
        if !content.is_empty() {
            let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
            messages.push(Message { role, content });
        }
    }
    if !system.is_empty() {
        body.put("system", &Content::new(system), dropped);
    }
    body.put("messages", &messages, dropped);
    Ok(())
}

/// A tool of the client, or one of the service's own.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenTool<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Own(&'a Value),
    Hidden {
        name: String,
        description: Option<String>,
        input_schema: Option<Value>,
    },
}

fn tools<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    form: &Structured,
    dropped: &mut Dropped,
) -> Result<Vec<WrittenTool<'a>>, Unwritable> {
    let allowed = |tool: &Tool| match &request.tool_choice {
        // There is no such choice here: the others are not shown, which comes to the same.
        Some(ToolChoice::Allowed { names, .. }) => names.contains(&tool.name),
        _ => true,
    };
    let mut tools = Vec::with_capacity(request.tools.len() + 1);
    for (index, tool) in request.tools.iter().enumerate().filter(|(_, tool)| allowed(tool)) {
        tools.push(match &tool.kind {
            ToolKind::Function { parameters, strict } => {
                let strict = strict.filter(|strict| *strict || request.wire == Wire::Anthropic);
                let kept = strict.filter(|_| structured::keeps_schemas(target));
                if kept != strict {
                    dropped.add(format!("tools[{index}].strict"));
                }
                WrittenTool::Function {
                    name: &tool.name,
                    description: tool.description.as_deref(),
                    input_schema: input_schema(parameters.as_ref()),
                    strict: kept,
                    cache_control: tool.cache.map(Into::into),
                }
            }
            ToolKind::Other(value) if request.wire == Wire::Anthropic => WrittenTool::Own(value),
            ToolKind::Other(_) => {
                let reason = "this service does not have this tool";
                return Err(Unwritable::Unsupported(Field::new(format!("tools[{index}]"), reason)));
            }
        });
    }
    if let (Structured::Tool(name), Some(format)) = (form, &request.output.format) {
        let Tool { name, description, kind, .. } = json_tool::tool(name, format);
        let input_schema = match kind {
            ToolKind::Function { parameters, .. } => parameters,
            ToolKind::Other(_) => None,
        };
        tools.push(WrittenTool::Hidden { name, description, input_schema });
    }
    Ok(tools)
}

/// A schema is required, and its type must be `object`.
fn input_schema(parameters: Option<&Value>) -> Value {
    match parameters {
        Some(Value::Object(fields)) if fields.contains_key("type") => Value::Object(fields.clone()),
        Some(Value::Object(fields)) => {
            let mut typed = serde_json::Map::from_iter([("type".to_owned(), json!("object"))]);
            typed.extend(fields.clone());
            Value::Object(typed)
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

/// `tool_choice`, with "one at a time" in it (TR-10). Nothing without tools: nothing can be called then.
fn choice(request: &Request, form: &Structured, any_tools: bool) -> Option<Value> {
    let forced = match form {
        Structured::Tool(name) => Some(json_tool::choice(request, name)),
        Structured::No | Structured::Native(_) => None,
    };
    let choice = forced.as_ref().or(request.tool_choice.as_ref());
    let one_at_a_time = request.parallel_tool_calls == Some(false);
    if !any_tools {
        return None;
    }
    let mut written = match choice {
        Some(ToolChoice::None) => return Some(json!({ "type": "none" })),
        Some(ToolChoice::Tool(name)) => json!({ "type": "tool", "name": name }),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => json!({ "type": "any" }),
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => json!({ "type": "auto" }),
        None if one_at_a_time => json!({ "type": "auto" }),
        None => return None,
    };
    if one_at_a_time {
        written["disable_parallel_tool_use"] = json!(true);
    }
    Some(written)
}

/// The service takes temperature up to 1, which is also its default, on many models not together with `top_p`, and
/// neither while it thinks. Stop sequences of nothing but whitespace are refused (TR-13).
fn put_sampling(body: &mut Body<'_>, request: &Request, thinks: bool, dropped: &mut Dropped) {
    let sampling = &request.sampling;
    let own = request.wire == Wire::Anthropic;
    let too_hot = sampling.temperature.as_ref().and_then(serde_json::Number::as_f64).is_some_and(|t| t > 1.0);
    let values = [
        ("temperature", &sampling.temperature, thinks || too_hot),
        ("top_p", &sampling.top_p, thinks || sampling.temperature.is_some()),
        ("top_k", &sampling.top_k, thinks),
    ];
    for (name, value, refused) in values {
        match value {
            Some(_) if refused && !own => dropped.add(name),
            Some(value) => body.put(name, value, dropped),
            None => {}
        }
    }
    let stops: Vec<&str> =
        request.output.stop.iter().map(String::as_str).filter(|stop| !stop.trim().is_empty()).collect();
    if stops.len() < request.output.stop.len() {
        dropped.add(stop_name(request));
    }
    if !stops.is_empty() {
        body.put("stop_sequences", &stops, dropped);
    }
}

fn put_output_config(
    body: &mut Body<'_>,
    request: &Request,
    effort: Option<&str>,
    form: &Structured,
    dropped: &mut Dropped,
) {
    let mut config = match request.extra.get("output_config") {
        Some(Value::Object(rest)) if request.wire == Wire::Anthropic => rest.clone(),
        _ => serde_json::Map::new(),
    };
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), json!(effort));
    }
    if let Structured::Native(schema) = form {
        config.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema }));
    }
    if !config.is_empty() {
        body.put("output_config", &config, dropped);
    }
}

/// The end user, fields of this dialect that the model has no word for, and the names of all that is left out.
fn put_rest(body: &mut Body<'_>, request: &Request, dropped: &mut Dropped) {
    let own = request.wire == Wire::Anthropic;
    let mut metadata = request.metadata.clone().filter(|_| own).unwrap_or_default();
    if let Some(user) = &request.user {
        metadata.insert("user_id".to_owned(), json!(user));
    }
    if !metadata.is_empty() {
        body.put("metadata", &metadata, dropped);
    }
    if own {
        if let Some(tier) = &request.service_tier {
            body.put("service_tier", tier, dropped);
        }
        for (name, value) in request.extra.iter().filter(|(name, _)| *name != "output_config") {
            body.put(name, value, dropped);
        }
    } else {
        request.extra.keys().for_each(|name| dropped.add(name.clone()));
    }
    let sampling = &request.sampling;
    let losses = [
        ("seed", sampling.seed.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("logit_bias", sampling.logit_bias.is_some()),
        ("logprobs", sampling.logprobs == Some(true)),
        ("top_logprobs", sampling.top_logprobs.is_some()),
        ("verbosity", request.output.verbosity.is_some()),
        ("prompt_cache_key", request.cache_key.is_some()),
        ("metadata", !own && request.metadata.is_some()),
        ("service_tier", !own && request.service_tier.as_deref().is_some_and(|tier| tier != "auto")),
    ];
    losses.into_iter().filter(|(_, lost)| *lost).for_each(|(name, _)| dropped.add(name));
}
