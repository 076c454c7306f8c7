//! Requests, read.

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::fields::{Fields, join, typed, wrong};
use super::lower::raise;
use super::part::{RawPart, Response, compact, string};
use super::{answer, ids, tools};
use crate::exchange::{Field, Format, JsonSchema, Part, ReasoningRequest, Request, Role, ToolResult, Turn};

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

/// Reads a request; model and `stream` come from the path. Fields that have no place in the model are kept in `extra`,
/// those of `generationConfig` and `toolConfig` under their names with a dot.
pub(super) fn request(body: &[u8], model: Option<&str>, stream: bool) -> Result<Request, Field> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|error| wrong("", &error))?;
    let mut fields = Fields::read(raw, "")?;
    let mut request = Request::new(Wire::Gemini);
    // The path decides; a body may repeat it.
    let in_body: Option<String> = fields.take_as("model", "")?;
    request.model = model.map(str::to_owned).or(in_body);
    request.stream = stream;
    request.include_usage = true;
    if let Some(raw) = fields.take("systemInstruction") {
        let turn = read_turn(raw, "systemInstruction", &mut Calls::default())?;
        request.turns.push(Turn::new(Role::System, turn.parts));
    }
    let contents: Vec<&RawValue> = fields.take_as("contents", "")?.unwrap_or_default();
    let mut calls = Calls::default();
    for (index, raw) in contents.into_iter().enumerate() {
        request.turns.push(read_turn(raw, &format!("contents[{index}]"), &mut calls)?);
    }
    if let Some(raw) = fields.take("tools") {
        tools::read(raw, &mut request)?;
    }
    if let Some(raw) = fields.take("toolConfig") {
        tools::read_config(raw, &mut request)?;
    }
    if let Some(raw) = fields.take("generationConfig") {
        read_config(raw, &mut request)?;
    }
    fields.rest("", &mut request.extra);
    Ok(request)
}

/// The calls of a conversation so far.
#[derive(Default)]
struct Calls {
    /// How many there were.
    count: usize,
    /// Id and name of those without a result.
    open: Vec<(String, String)>,
}

fn read_turn(raw: &RawValue, place: &str, calls: &mut Calls) -> Result<Turn, Field> {
    let content: Content<'_> = typed(raw, place)?;
    let role = match string(content.role).as_deref() {
        None | Some("" | "user" | "function" | "tool") => Role::User,
        Some("model") => Role::Assistant,
        Some("system") => Role::System,
        Some(other) => {
            let reason = format!("`{}` is neither `user` nor `model`", crate::json::clip(other, 50));
            return Err(Field::new(join(place, "role"), reason));
        }
    };
    let mut parts = Vec::new();
    for (index, raw) in content.parts.into_iter().flatten().enumerate() {
        parts.extend(read_part(raw, &format!("{place}.parts[{index}]"), calls)?);
    }
    Ok(Turn::new(role, parts))
}

fn read_part(raw: &RawValue, place: &str, calls: &mut Calls) -> Result<Option<Part>, Field> {
    let part: RawPart<'_> = typed(raw, place)?;
    if let Some(call) = &part.function_call {
        let broken = || Field::new(join(place, "functionCall"), "needs a `name`, and an object as `args`");
        let number = calls.count;
        let mut call = answer::read_call(call, || ids::in_request(number)).ok_or_else(broken)?;
        call.signature = part.signature().map(|(signature, _)| signature);
        calls.count += 1;
        calls.open.push((call.id.clone(), call.name.clone()));
        return Ok(Some(Part::ToolCall(call)));
    }
    if let Some(response) = &part.function_response {
        return read_result(response, place, calls).map(Some);
    }
    Ok(part.plain().or_else(|| answer::other(raw)))
}

fn read_result(response: &Response<'_>, place: &str, calls: &mut Calls) -> Result<Part, Field> {
    let name = string(response.name).unwrap_or_default().into_owned();
    let id = string(response.id).filter(|id| !id.is_empty());
    let by_id = id.as_deref().and_then(|id| calls.open.iter().position(|(open, _)| open == id));
    // Without ids, results stand in the order of the calls of their function, those without ids first.
    let of_name = |made_up: bool| {
        let fits = |(id, open): &(String, String)| *open == name && (!made_up || ids::given(id).is_none());
        calls.open.iter().position(fits)
    };
    let at = by_id.or_else(|| of_name(true)).or_else(|| of_name(false));
    let call_id = match (at, id) {
        (Some(at), _) => calls.open.remove(at).0,
        (None, Some(id)) => id.into_owned(),
        // Known to nobody: whoever writes the request refuses it by this name.
        (None, None) => name.clone(),
    };
    let (text, is_error) = read_response(response.response);
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
    for (index, raw) in response.parts.iter().flatten().enumerate() {
        let place = format!("{place}.functionResponse.parts[{index}]");
        let part: RawPart<'_> = typed(raw, &place)?;
        parts.extend(part.plain().or_else(|| answer::other(raw)));
    }
    Ok(Part::ToolResult(ToolResult { call_id, name: Some(name), parts, is_error, cache: None }))
}

/// The text of a result, and whether it is a failure. `output` and `error` are the names that Google gives to a result
/// that is no object; any other object is text as it is.
fn read_response(raw: Option<&RawValue>) -> (String, bool) {
    let Some(raw) = raw else { return (String::new(), false) };
    let fields = Fields::read(raw, "").ok().filter(|fields| fields.len() == 1);
    let alone = |mut fields: Fields<'_>| {
        let (output, error) = (fields.take("output"), fields.take("error"));
        let text = |raw| string(Some(raw)).filter(|text| !text.trim_start().starts_with('{'));
        match (output, error) {
            (Some(output), _) => Some((text(output)?.into_owned(), false)),
            (_, Some(error)) if error.get().starts_with('{') => {
                Some((compact(error.get()).into_owned(), true))
            }
            (_, Some(error)) => Some((text(error)?.into_owned(), true)),
            _ => None,
        }
    };
    fields.and_then(alone).unwrap_or_else(|| (compact(raw.get()).into_owned(), false))
}

const CONFIG: &str = "generationConfig";

fn read_config(raw: &RawValue, request: &mut Request) -> Result<(), Field> {
    let mut config = Fields::read(raw, CONFIG)?;
    let mut number = |name: &str| config.take_as::<Number>(name, CONFIG);
    request.sampling.temperature = number("temperature")?;
    request.sampling.top_p = number("topP")?;
    request.sampling.top_k = number("topK")?;
    request.sampling.seed = number("seed")?;
    request.sampling.frequency_penalty = number("frequencyPenalty")?;
    request.sampling.presence_penalty = number("presencePenalty")?;
    request.sampling.logprobs = config.take_as("responseLogprobs", CONFIG)?;
    request.sampling.top_logprobs = config.take_as("logprobs", CONFIG)?;
    request.output.max_tokens = config.take_as("maxOutputTokens", CONFIG)?;
    request.output.stop = config.take_as("stopSequences", CONFIG)?.unwrap_or_default();
    request.output.choices = config.take_as("candidateCount", CONFIG)?;
    read_format(&mut config, request)?;
    if let Some(raw) = config.take("thinkingConfig") {
        request.reasoning = Some(read_thinking(raw, request)?);
    }
    config.rest(CONFIG, &mut request.extra);
    Ok(())
}

fn read_format(config: &mut Fields<'_>, request: &mut Request) -> Result<(), Field> {
    let kind: Option<String> = config.take_as("responseMimeType", CONFIG)?;
    let full: Option<Value> = config.take_as("responseJsonSchema", CONFIG)?;
    let old: Option<Value> = config.take_as("responseSchema", CONFIG)?;
    let schema = full.or_else(|| old.as_ref().map(raise));
    request.output.format = match (kind.as_deref(), schema) {
        (None | Some("application/json"), Some(schema)) => {
            Some(Format::JsonSchema(JsonSchema { name: None, description: None, schema, strict: None }))
        }
        (Some("application/json"), None) => Some(Format::JsonObject),
        (Some("text/plain"), None) => Some(Format::Text),
        (None, None) => None,
        (Some(other), schema) => {
            // `text/x.enum`, and what may come.
            request.extra.insert(format!("{CONFIG}.responseMimeType"), other.into());
            schema.and_then(|schema| request.extra.insert(format!("{CONFIG}.responseJsonSchema"), schema));
            None
        }
    };
    Ok(())
}

fn read_thinking(raw: &RawValue, request: &mut Request) -> Result<ReasoningRequest, Field> {
    let place = join(CONFIG, "thinkingConfig");
    let mut thinking = Fields::read(raw, &place)?;
    let budget: Option<i64> = thinking.take_as("thinkingBudget", &place)?;
    let level: Option<String> = thinking.take_as("thinkingLevel", &place)?;
    let visible = thinking.take_as("includeThoughts", &place)?;
    thinking.rest(&place, &mut request.extra);
    Ok(ReasoningRequest {
        // 0 is none, −1 as much as the model likes.
        enabled: budget.map(|budget| budget != 0),
        effort: level.map(|level| level.to_ascii_lowercase()),
        budget_tokens: budget.and_then(|budget| u64::try_from(budget).ok()).filter(|budget| *budget > 0),
        visible,
    })
}
