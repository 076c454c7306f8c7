//! Writing a request for a service that speaks the Responses interface.
//!
//! Always `store: false`: what a client did not send as a Responses request it cannot mean to be stored. Where the model
//! is to think, or thoughts of this dialect are in the conversation, encrypted thoughts are asked for, so that they can be
//! given back. Models that do not think refuse that wish, and are not asked otherwise.

use penstock_model::vendor::Vendor;
use serde_json::{Value, json};

use super::fields::Fields;
use super::input::{Input, is_openais};
use crate::chat_shaped::{called_tools, report_lost, unsupported};
use crate::dialect::TargetFacts;
use crate::exchange::{
    Dropped, Format, Part, Request, Role, Tool, ToolChoice, ToolKind, Unwritable, Written,
};
use crate::openai::chat::effort;
use crate::responses::OWN;
use crate::responses::request::{ENCRYPTED, LOGPROBS};

/// Parameters that the dialect has, by the names that OpenAI's clients give them.
const CARRIED: [&str; 8] = [
    "temperature",
    "top_p",
    "logprobs",
    "top_logprobs",
    "parallel_tool_calls",
    "user",
    "prompt_cache_key",
    "verbosity",
];

/// Writes a request.
///
/// # Errors
/// When the dialect cannot carry it: it has no stop sequences, and gives one answer.
pub(in crate::responses) fn write(
    request: &Request,
    target: &TargetFacts<'_>,
) -> Result<Written, Unwritable> {
    if !request.output.stop.is_empty() {
        return unsupported("stop", "this target takes no stop sequences");
    }
    if request.output.choices.is_some_and(|n| n > 1) {
        return unsupported("n", "this target gives one answer");
    }
    called_tools(request)?;
    let vendor = target.vendor;
    let mut dropped = Dropped::default();
    let mut body = Fields::default();
    if !vendor.model_in_path {
        body.set("model", target.model);
    }
    conversation(request, vendor, &mut dropped, &mut body)?;
    tools(request, &mut body)?;
    parameters(request, &mut body);
    reasoning(request, &mut body);
    text(request, &mut body);
    extra(request, &mut body);
    report(request, vendor, &mut dropped);
    for name in &vendor.parameters.drop {
        body.remove(name);
    }
    for (name, value) in &vendor.body {
        body.set(name, value);
    }
    Ok(Written { body: body.to_bytes(), dropped, json_tool: None })
}

/// The first instruction, where it is one text, has a field of its own; others are messages (TR-01).
fn conversation<'a>(
    request: &'a Request,
    vendor: &'a Vendor,
    dropped: &mut Dropped,
    body: &mut Fields<'a>,
) -> Result<(), Unwritable> {
    let mut input = Input { request, vendor, dropped, items: Vec::with_capacity(request.turns.len()) };
    for (index, turn) in request.turns.iter().enumerate() {
        match (index, turn.role, turn.parts.as_slice()) {
            (0, Role::System, [Part::Text(text)]) => body.set("instructions", &text.text),
            _ => input.add(index, turn)?,
        }
    }
    body.set("input", &input.items);
    Ok(())
}

fn tools<'a>(request: &'a Request, body: &mut Fields<'a>) -> Result<(), Unwritable> {
    let mut tools = Vec::with_capacity(request.tools.len());
    for (index, tool) in request.tools.iter().enumerate() {
        tools.push(write_tool(request, index, tool)?);
    }
    if !tools.is_empty() {
        body.set("tools", &tools);
    }
    let function = |name: &String| json!({ "type": "function", "name": name });
    body.set_some(
        "tool_choice",
        request.tool_choice.as_ref().map(|choice| match choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Tool(name) => function(name),
            ToolChoice::Allowed { required, names } => json!({
                "type": "allowed_tools",
                "mode": if *required { "required" } else { "auto" },
                "tools": names.iter().map(function).collect::<Vec<_>>(),
            }),
        }),
    );
    body.set_some("parallel_tool_calls", request.parallel_tool_calls.filter(|_| !tools.is_empty()));
    Ok(())
}

fn write_tool<'a>(request: &'a Request, index: usize, tool: &'a Tool) -> Result<Fields<'a>, Unwritable> {
    let mut fields = Fields::default();
    match &tool.kind {
        ToolKind::Function { parameters, strict } => {
            fields.set("type", "function");
            fields.set("name", &tool.name);
            fields.set_some("description", tool.description.as_ref());
            fields.set("parameters", parameters);
            // Here functions are strict unless said otherwise; in every other dialect they are not.
            let default = (request.wire != OWN).then_some(false);
            fields.set_some("strict", strict.or(default));
            nested(request, &format!("tools[{index}]."), &mut fields);
        }
        ToolKind::Other(Value::Object(own)) if request.wire == OWN => {
            for (name, value) in own {
                fields.set(name, value);
            }
        }
        ToolKind::Other(_) => {
            return unsupported(format!("tools[{index}]"), "this target has no such tool of its own");
        }
    }
    Ok(fields)
}

fn parameters<'a>(request: &'a Request, body: &mut Fields<'a>) {
    let sampling = &request.sampling;
    body.set_some("max_output_tokens", request.output.max_tokens);
    body.set_some("temperature", sampling.temperature.as_ref());
    body.set_some("top_p", sampling.top_p.as_ref());
    body.set_some("top_logprobs", sampling.top_logprobs);
    body.set_some("safety_identifier", request.user.as_ref());
    body.set_some("prompt_cache_key", request.cache_key.as_ref());
    if is_openais(request.wire) {
        body.set_some("service_tier", request.service_tier.as_ref());
        body.set_some("metadata", request.metadata.as_ref());
    }
    if request.stream {
        body.set("stream", true);
    }
}

fn reasoning<'a>(request: &'a Request, body: &mut Fields<'a>) {
    let mut fields = Fields::default();
    if let Some(asked) = &request.reasoning {
        let off = (asked.enabled == Some(false)).then_some("none");
        let effort = asked.effort.as_deref().or(off).or_else(|| asked.budget_tokens.map(effort));
        fields.set_some("effort", effort);
        fields.set_some("summary", asked.visible.filter(|visible| *visible).map(|_| "auto"));
    }
    nested(request, "reasoning.", &mut fields);
    if !fields.is_empty() {
        body.set("reasoning", fields);
    }
}

fn text<'a>(request: &'a Request, body: &mut Fields<'a>) {
    let mut format = Fields::default();
    match &request.output.format {
        Some(Format::Text) => format.set("type", "text"),
        Some(Format::JsonObject) => format.set("type", "json_object"),
        Some(Format::JsonSchema(schema)) => {
            format.set("type", "json_schema");
            format.set("name", schema.name.as_deref().unwrap_or("answer"));
            format.set_some("description", schema.description.as_ref());
            format.set("schema", &schema.schema);
            format.set_some("strict", schema.strict);
        }
        None => {}
    }
    nested(request, "text.format.", &mut format);
    let mut fields = Fields::default();
    if !format.is_empty() {
        fields.set("format", format);
    }
    fields.set_some("verbosity", request.output.verbosity.as_ref());
    nested(request, "text.", &mut fields);
    if !fields.is_empty() {
        body.set("text", fields);
    }
}

/// Adds the fields that the reader of requests kept under this place.
fn nested<'a>(request: &'a Request, place: &str, fields: &mut Fields<'a>) {
    if request.wire == OWN {
        let below = request.extra.iter().filter_map(|(name, value)| Some((name.strip_prefix(place)?, value)));
        for (name, value) in below.filter(|(name, _)| !name.contains('.')) {
            fields.set(name, value);
        }
    }
}

/// Is it kept under the place of another field?
fn is_nested(name: &str) -> bool {
    ["reasoning.", "text.", "tools["].iter().any(|place| name.starts_with(place))
}

fn extra<'a>(request: &'a Request, body: &mut Fields<'a>) {
    body.set("store", false);
    let mut include: Vec<&Value> = Vec::new();
    if request.wire == OWN {
        for (name, value) in request.extra.iter().filter(|(name, _)| !is_nested(name)) {
            match value {
                Value::Array(more) if name == "include" => include.extend(more),
                _ => body.set(name, value),
            }
        }
    }
    let (encrypted, logprobs) = (Value::from(ENCRYPTED), Value::from(LOGPROBS));
    if wants_thoughts(request) {
        include.push(&encrypted);
    }
    if request.sampling.logprobs == Some(true) {
        include.push(&logprobs);
    }
    if !include.is_empty() {
        body.set("include", include);
    }
}

fn wants_thoughts(request: &Request) -> bool {
    let asked = request.reasoning.as_ref();
    let off =
        asked.is_some_and(|asked| asked.enabled == Some(false) || asked.effort.as_deref() == Some("none"));
    let own = |part: &Part| {
        matches!(part, Part::Reasoning(reasoning)
            if reasoning.signature.as_ref().is_some_and(|signature| signature.wire == OWN))
    };
    !off && (asked.is_some() || request.turns.iter().flat_map(|turn| &turn.parts).any(own))
}

fn report(request: &Request, vendor: &Vendor, dropped: &mut Dropped) {
    let mut carried = CARRIED.to_vec();
    if is_openais(request.wire) {
        carried.extend(["service_tier", "metadata"]);
    }
    let mut own: Vec<&str> = Vec::new();
    if request.wire == OWN {
        carried.push("cache_control");
        own.extend(request.extra.keys().map(String::as_str));
    }
    // Nothing is stored anyway.
    if request.extra.get("store") == Some(&Value::Bool(false)) {
        own.push("store");
    }
    report_lost(request, vendor, &carried, &own, dropped);
}
