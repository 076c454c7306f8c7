//! The body of a request.

use penstock_model::vendor::Wire;
use serde_json::{Map, Number, Value, json};

use super::body::{Body, InferenceConfig};
use super::content::Writer;
use super::family::{Family, wanted};
use super::tools;
use crate::anthropic::thinking;
use crate::chat_shaped::{carries, unsupported};
use crate::dialect::TargetFacts;
use crate::exchange::shape::{alternating, instructions};
use crate::exchange::{Dropped, ReasoningRequest, Request, Role, Turn, Unwritable, Written};

/// Most stop sequences that Converse takes; models may take fewer.
const MAX_STOPS: u32 = 2500;

pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    if request.output.choices.is_some_and(|choices| choices > 1) {
        let field = client_name(request.wire, "n");
        return unsupported(field, "Bedrock gives one answer at a time");
    }
    let mut dropped = Dropped::default();
    let family = Family::of(target.model);
    let image_types = &target.vendor.parameters.image_types;
    let mut writer = Writer { request, family, image_types, dropped: &mut dropped, documents: 0 };
    let system_texts = instructions(request);
    let turns = alternating(request)?;
    let system = writer.system(&system_texts);
    let messages = writer.messages(&turns)?;
    let (tool_config, json_tool) = tools::write(request, &turns, family, &mut dropped)?;

    let mut fields = Map::new();
    let mut inference_config = inference(request, target, &mut dropped)?;
    let forced = tools::is_forced(tool_config.as_ref());
    think(request, target, &turns, forced, &mut inference_config, &mut fields, &mut dropped);
    let thinks = fields.contains_key("thinking");
    if family == Family::Claude {
        suit_claude(request, thinks, &mut inference_config, &mut dropped);
    }
    if let Some(top_k) = taken(request.sampling.top_k.as_ref(), "top_k", request, target, &mut dropped)
        && (thinks || !family.write_top_k(&Value::from(top_k.clone()), &mut fields))
    {
        dropped.add(client_name(request.wire, "top_k"));
    }
    drop_the_rest(request, &mut dropped);

    let tells_its_stop = family == Family::Claude && !inference_config.stop_sequences.is_empty();
    let body = Body {
        messages,
        system,
        inference_config,
        tool_config,
        additional_model_request_fields: fields,
        additional_model_response_field_paths: if tells_its_stop { &["/stop_sequence"] } else { &[] },
        more: &target.vendor.body,
    };
    let body = serde_json::to_vec(&body).expect("strings, numbers and maps of strings always serialise");
    Ok(Written { body: body.into(), dropped, json_tool })
}

fn inference<'a>(
    request: &'a Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<InferenceConfig<'a>, Unwritable> {
    let given = &request.output.stop;
    // Claude refuses what is all whitespace (TR-13), and nothing ends with an empty text.
    let stops: Vec<&str> = given.iter().map(String::as_str).filter(|stop| !stop.trim().is_empty()).collect();
    let name = client_name(request.wire, "stop");
    if stops.len() < given.len() {
        dropped.add(name);
    }
    let most = target.vendor.parameters.max_stops.unwrap_or(MAX_STOPS);
    if stops.len() > most as usize {
        return unsupported(name, format!("at most {most} stop sequences are taken"));
    }
    Ok(InferenceConfig {
        max_tokens: request.output.max_tokens,
        temperature: taken(request.sampling.temperature.as_ref(), "temperature", request, target, dropped),
        top_p: taken(request.sampling.top_p.as_ref(), "top_p", request, target, dropped),
        stop_sequences: stops,
    })
}

/// A parameter, unless the vendor's file says that it is refused.
fn taken<'a>(
    value: Option<&'a Number>,
    name: &'static str,
    request: &Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Option<&'a Number> {
    let taken = value.filter(|_| carries(target.vendor, name));
    if taken.is_none() && value.is_some() {
        dropped.add(client_name(request.wire, name));
    }
    taken
}

/// Asks the model to think, in the words of its maker, or notes that it cannot be asked.
///
/// Claude is asked as Anthropic's own service is (see [`thinking`]). It cannot think when a call is forced, as it is for
/// structured output: the form of the answer goes before.
fn think(
    request: &Request,
    target: &TargetFacts<'_>,
    turns: &[Turn],
    forced: bool,
    inference: &mut InferenceConfig<'_>,
    fields: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let Some(reasoning) = &request.reasoning else { return };
    let is_wanted = wanted(reasoning) == Some(true);
    let is_prefilled = turns.last().is_some_and(|turn| turn.role == Role::Assistant);
    match Family::of(target.model) {
        Family::Claude if !(is_wanted && (forced || is_prefilled)) => {
            let plan = thinking::plan(request, turns, target, forced, dropped);
            if let Some(config) = plan.thinking.as_ref().filter(|_| plan.thinks()) {
                fields.insert("thinking".to_owned(), json!(config));
                inference.max_tokens = Some(plan.max_tokens);
            }
            if let Some(effort) = plan.effort {
                fields.insert("output_config".to_owned(), json!({ "effort": effort }));
            }
        }
        Family::GptOss if matches!(reasoning.effort.as_deref(), Some("low" | "medium" | "high")) => {
            fields.insert("reasoning_effort".to_owned(), json!(reasoning.effort));
        }
        _ if is_wanted => dropped.add(reasoning_name(request.wire, reasoning)),
        _ => {}
    }
}

/// Takes out what Claude refuses: a temperature above 1, `top_p` beside one, and either while it thinks. A client of
/// Anthropic's knows, and gets what it wrote.
fn suit_claude(request: &Request, thinks: bool, inference: &mut InferenceConfig<'_>, dropped: &mut Dropped) {
    if request.wire == Wire::Anthropic {
        return;
    }
    let too_hot = |number: &Number| number.as_f64().is_some_and(|degrees| degrees > 1.0);
    if inference.top_p.take_if(|_| thinks || inference.temperature.is_some()).is_some() {
        dropped.add(client_name(request.wire, "top_p"));
    }
    if inference.temperature.take_if(|number| thinks || too_hot(number)).is_some() {
        dropped.add(client_name(request.wire, "temperature"));
    }
}

fn reasoning_name(wire: Wire, reasoning: &ReasoningRequest) -> &'static str {
    match wire {
        Wire::Openai if reasoning.effort.is_some() => "reasoning_effort",
        Wire::Anthropic => "thinking",
        Wire::Gemini => "generationConfig.thinkingConfig",
        _ => "reasoning",
    }
}

/// Notes what Converse has no field for.
fn drop_the_rest(request: &Request, dropped: &mut Dropped) {
    let sampling = &request.sampling;
    let lost = [
        ("seed", sampling.seed.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("logit_bias", sampling.logit_bias.is_some()),
        ("logprobs", sampling.logprobs == Some(true)),
        ("top_logprobs", sampling.top_logprobs.is_some_and(|count| count > 0)),
        ("parallel_tool_calls", request.parallel_tool_calls == Some(false) && !request.tools.is_empty()),
        ("verbosity", request.output.verbosity.is_some()),
        ("user", request.user.is_some()),
        ("prompt_cache_key", request.cache_key.is_some()),
        ("service_tier", request.service_tier.is_some()),
        ("metadata", request.metadata.as_ref().is_some_and(|metadata| !metadata.is_empty())),
    ];
    for (name, _) in lost.into_iter().filter(|(_, is_lost)| *is_lost) {
        dropped.add(client_name(request.wire, name));
    }
    for (name, value) in &request.extra {
        if !value.is_null() {
            dropped.add(name.as_str());
        }
    }
}

/// The name of one of OpenAI's fields in the client's protocol.
pub(super) fn client_name(wire: Wire, name: &'static str) -> &'static str {
    match (wire, name) {
        (Wire::Anthropic, "stop") => "stop_sequences",
        (Wire::Anthropic, "user") => "metadata.user_id",
        (Wire::Anthropic, "parallel_tool_calls") => "tool_choice.disable_parallel_tool_use",
        (Wire::Gemini, "tool_choice") => "toolConfig",
        (Wire::Gemini, "stop") => "generationConfig.stopSequences",
        (Wire::Gemini, "n") => "generationConfig.candidateCount",
        (Wire::Gemini, "top_k") => "generationConfig.topK",
        (Wire::Gemini, "top_p") => "generationConfig.topP",
        (Wire::Gemini, "frequency_penalty") => "generationConfig.frequencyPenalty",
        (Wire::Gemini, "presence_penalty") => "generationConfig.presencePenalty",
        (Wire::Gemini, "logprobs") => "generationConfig.responseLogprobs",
        (Wire::Gemini, "top_logprobs") => "generationConfig.logprobs",
        (Wire::Gemini, "seed") => "generationConfig.seed",
        (Wire::Gemini, "temperature") => "generationConfig.temperature",
        _ => name,
    }
}
