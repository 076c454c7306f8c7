//! What the dialects have in common whose requests look much like OpenAI's chat: Cohere, DashScope, Ollama.
//!
//! None of them is strict about the order of roles, so turns go out one by one as they came. Results of tools are
//! messages of their own, in the order the client gave them.

use std::collections::{BTreeMap, HashMap};

use penstock_model::vendor::{Vendor, Wire};
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exchange;
use crate::exchange::shape::{image_type, place};
use crate::exchange::{
    Dropped, Event, Field, Media, Part, Reasoning, Request, Role, Source, ToolCall, ToolChoice, ToolKind,
    Unwritable,
};
use crate::json::parse_object;
use crate::openai::error_body::VendorError;

/// Refuses with [`Unwritable::Unsupported`].
pub(crate) fn unsupported<T>(field: impl Into<String>, reason: impl Into<String>) -> Result<T, Unwritable> {
    Err(Unwritable::Unsupported(Field::new(field, reason)))
}

/// Refuses with [`Unwritable::Wrong`].
pub(crate) fn wrong<T>(field: impl Into<String>, reason: impl Into<String>) -> Result<T, Unwritable> {
    Err(Unwritable::Wrong(Field::new(field, reason)))
}

/// Where a part of a turn stands in the client's request.
pub(crate) fn part_place(request: &Request, turn: usize, part: usize) -> String {
    let parts = if request.wire == Wire::Gemini { "parts" } else { "content" };
    format!("{}.{parts}[{part}]", place(request, turn))
}

/// The tool that each call of the conversation is of, by the call's id.
///
/// # Errors
/// When a result answers no call before it, or two calls have one id (TR-03).
pub(crate) fn called_tools(request: &Request) -> Result<HashMap<&str, &str>, Unwritable> {
    let mut calls = HashMap::new();
    for (index, turn) in request.turns.iter().enumerate() {
        for part in &turn.parts {
            match part {
                Part::ToolCall(call) => {
                    calls.insert(call.id.as_str(), call.name.as_str());
                }
                Part::ToolResult(result) if !calls.contains_key(result.call_id.as_str()) => {
                    let reason = format!("no call before it has the id `{}`", clip(&result.call_id));
                    return wrong(place(request, index), reason);
                }
                _ => {}
            }
        }
    }
    Ok(calls)
}

/// The arguments of a call as the JSON object that they are: `{}` when there are none (TR-14).
///
/// # Errors
/// When they are not a JSON object.
pub(crate) fn arguments(call: &ToolCall, place: impl FnOnce() -> String) -> Result<&RawValue, Unwritable> {
    let text = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.trim() };
    let invalid = |reason: String| {
        let reason = format!("the arguments of call `{}` are no JSON object: {reason}", clip(&call.id));
        Unwritable::Wrong(Field::new(place(), reason))
    };
    match parse_object::<IgnoredAny>(text.as_bytes()) {
        Ok(_) => Ok(serde_json::from_str(text).expect("it has just been parsed")),
        Err(error) => Err(invalid(error.to_string())),
    }
}

fn clip(text: &str) -> &str {
    crate::json::clip(text, 100)
}

/// Thoughts that may be given back: these dialects know no signatures, so what bears another dialect's is not theirs.
pub(crate) fn own_thought(reasoning: &Reasoning) -> Option<&str> {
    (reasoning.signature.is_none() && !reasoning.text.is_empty()).then_some(reasoning.text.as_str())
}

/// A failure that we find in a stream rather than its service: what came is not what the dialect allows.
pub(crate) fn broken(message: &str) -> Event<'static> {
    let error = VendorError { message: Some(message.to_owned()), ..VendorError::default() };
    Event::Failed { error, status: Some(502) }
}

/// The texts among `parts` that stand for what was said, joined by line ends.
pub(crate) fn joined_texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        Part::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// An image as these dialects take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// In base64.
    Inline { media_type: String, data: &'a str },
    /// To be fetched.
    Url(&'a str),
}

impl Image<'_> {
    /// As an address, a `data:` one if need be.
    pub(crate) fn to_url(&self) -> String {
        match self {
            Self::Inline { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Url(url) => (*url).to_owned(),
        }
    }
}

/// Checks an image against what the vendor takes (TR-07).
///
/// # Errors
/// When its type is none that the vendor knows, or it is where the vendor does not look.
pub(crate) fn image<'a>(media: &'a Media, vendor: &Vendor, place: &str) -> Result<Image<'a>, Unwritable> {
    match &media.source {
        Source::Base64(data) => {
            let media_type = image_type(media, &vendor.parameters.image_types, place)?;
            Ok(Image::Inline { media_type, data })
        }
        Source::Url(url) if vendor.parameters.image_urls => Ok(Image::Url(url)),
        Source::Url(_) => unsupported(place, "this target does not fetch images, send them in base64"),
        Source::FileId(_) | Source::Text(_) => {
            unsupported(place, "this target takes images only inline or by URL")
        }
    }
}

/// A function as all of them are told of it.
#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(serialize_with = "parameters")]
    parameters: Option<&'a Value>,
}

/// A function without parameters takes an empty object.
fn parameters<S: Serializer>(parameters: &Option<&Value>, serializer: S) -> Result<S::Ok, S::Error> {
    match parameters {
        Some(schema) => schema.serialize(serializer),
        None => serde_json::json!({ "type": "object", "properties": {} }).serialize(serializer),
    }
}

impl<'a> Tool<'a> {
    /// A function; what is none has no parameters.
    pub(crate) fn of(tool: &'a exchange::Tool) -> Self {
        let parameters = match &tool.kind {
            ToolKind::Function { parameters, .. } => parameters.as_ref(),
            ToolKind::Other(_) => None,
        };
        let description = tool.description.as_deref();
        Self { r#type: "function", function: Function { name: &tool.name, description, parameters } }
    }
}

/// The functions that the model may call at all. A tool choice that names some of them is carried by leaving out the
/// others; whether one must be called is for the dialect to say.
///
/// # Errors
/// When there is a tool that only another vendor has, or the choice names none that is there.
pub(crate) fn tools<'a>(request: &'a Request, dropped: &mut Dropped) -> Result<Vec<Tool<'a>>, Unwritable> {
    let chosen: Option<Vec<&str>> = match &request.tool_choice {
        Some(ToolChoice::Tool(name)) => Some(vec![name]),
        Some(ToolChoice::Allowed { names, .. }) => Some(names.iter().map(String::as_str).collect()),
        _ => None,
    };
    for name in chosen.iter().flatten() {
        if !request.tools.iter().any(|tool| tool.name == *name) {
            return wrong("tool_choice", format!("there is no tool `{}`", clip(name)));
        }
    }
    let mut tools = Vec::with_capacity(request.tools.len());
    for (index, tool) in request.tools.iter().enumerate() {
        if chosen.as_ref().is_some_and(|names| !names.contains(&tool.name.as_str())) {
            continue;
        }
        match &tool.kind {
            ToolKind::Function { strict: Some(true), .. } => dropped.add(format!("tools[{index}].strict")),
            ToolKind::Function { .. } => {}
            ToolKind::Other(_) => {
                return unsupported(format!("tools[{index}]"), "this target has no such tool of its own");
            }
        }
        tools.push(Tool::of(tool));
    }
    Ok(tools)
}

/// Stop sequences, within the vendor's limit (TR-13).
///
/// # Errors
/// When there are too many.
pub(crate) fn stops<'a>(request: &'a Request, vendor: &Vendor) -> Result<&'a [String], Unwritable> {
    let stops = request.output.stop.as_slice();
    match vendor.parameters.max_stops {
        Some(most) if stops.len() > most as usize => {
            unsupported("stop", format!("this target takes at most {most} stop sequences"))
        }
        _ => Ok(stops),
    }
}

/// Refuses a request for several answers where the vendor gives one (TR-12).
///
/// # Errors
/// As said.
pub(crate) fn one_choice(request: &Request, vendor: &Vendor) -> Result<(), Unwritable> {
    match request.output.choices {
        Some(n) if n > 1 && !vendor.parameters.many_choices => {
            unsupported("n", "this target gives one answer")
        }
        _ => Ok(()),
    }
}

/// Reports what a client asked for and its dialect does not carry. `carried` are the parameters that it does, by OpenAI's
/// names for them, `own` the dialect's own fields, handed on as a client writes them. What the vendor file lists under
/// `drop` is not carried either: see [`carries`].
pub(crate) fn report_lost(
    request: &Request,
    vendor: &Vendor,
    carried: &[&str],
    own: &[&str],
    dropped: &mut Dropped,
) {
    let sampling = &request.sampling;
    let asked = [
        ("temperature", sampling.temperature.is_some()),
        ("top_p", sampling.top_p.is_some()),
        ("top_k", sampling.top_k.is_some()),
        ("seed", sampling.seed.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("logit_bias", sampling.logit_bias.is_some()),
        ("logprobs", sampling.logprobs == Some(true)),
        ("top_logprobs", sampling.top_logprobs.is_some()),
        ("parallel_tool_calls", request.parallel_tool_calls == Some(false) && !request.tools.is_empty()),
        ("user", request.user.is_some()),
        ("prompt_cache_key", request.cache_key.is_some()),
        ("service_tier", request.service_tier.is_some()),
        ("metadata", request.metadata.is_some()),
        ("verbosity", request.output.verbosity.is_some()),
        ("cache_control", has_cache_hint(request)),
    ];
    for (name, asked) in asked {
        if asked && !(carried.contains(&name) && carries(vendor, name)) {
            dropped.add(name);
        }
    }
    for name in request.extra.keys() {
        if !(own.contains(&name.as_str()) && carries(vendor, name)) {
            dropped.add(name.as_str());
        }
    }
    for (index, turn) in request.turns.iter().enumerate() {
        if turn.name.is_some() {
            dropped.add(format!("{}.name", place(request, index)));
        }
        if turn.parts.iter().any(|part| matches!(part, Part::ToolResult(result) if result.is_error)) {
            dropped.add(format!("{}.is_error", place(request, index)));
        }
    }
}

/// The dialect's own fields that the client wrote.
pub(crate) fn own_fields<'a>(
    request: &'a Request,
    vendor: &Vendor,
    own: &[&'static str],
) -> BTreeMap<&'static str, &'a Value> {
    let written = own.iter().filter_map(|name| Some((*name, request.extra.get(*name)?)));
    written.filter(|(name, _)| carries(vendor, name)).collect()
}

/// Does the vendor take a parameter that its dialect has?
pub(crate) fn carries(vendor: &Vendor, name: &str) -> bool {
    !vendor.parameters.drop.iter().any(|refused| refused == name)
}

fn has_cache_hint(request: &Request) -> bool {
    let part_has = |part: &Part| match part {
        Part::Text(text) => text.cache.is_some(),
        Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache.is_some(),
        Part::ToolCall(call) => call.cache.is_some(),
        Part::ToolResult(result) => result.cache.is_some(),
        _ => false,
    };
    request.tools.iter().any(|tool| tool.cache.is_some())
        || request.turns.iter().flat_map(|turn| &turn.parts).any(part_has)
}

/// The role's name.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

#[cfg(test)]
pub(crate) mod testing;
