//! `generationConfig`.

use penstock_model::vendor::Wire;
use serde_json::{Map, Value};

use super::model;
use crate::dialect::TargetFacts;
use crate::exchange::{Dropped, Field, Format, Request, Unwritable};
use crate::gemini::lower::lower;

/// Most stop sequences (reference of `GenerationConfig`), where the vendor's file says nothing else.
const MAX_STOPS: u32 = 5;

/// What `request` asks for, in this dialect's words.
pub(super) fn write(
    request: &Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Map<String, Value>, Unwritable> {
    let mut config = Map::new();
    sampling(request, target, &mut config, dropped);
    if let Some(limit) = request.output.max_tokens {
        config.insert("maxOutputTokens".to_owned(), limit.into());
    }
    let stops = stops(request, target, dropped)?;
    if !stops.is_empty() {
        config.insert("stopSequences".to_owned(), stops.into());
    }
    if let Some(choices) = request.output.choices {
        if choices > 1 && !target.vendor.parameters.many_choices {
            return Err(Unwritable::Unsupported(Field::new("n", "this service gives one answer")));
        }
        config.insert("candidateCount".to_owned(), choices.into());
    }
    format(request, target, &mut config, dropped);
    if let Some(asked) = &request.reasoning
        && let Some(thinking) = model::thinking(request, asked, target.model)
    {
        config.insert("thinkingConfig".to_owned(), thinking);
    }
    Ok(config)
}

fn sampling(
    request: &Request,
    target: &TargetFacts<'_>,
    config: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let sampling = &request.sampling;
    let numbers = [
        ("temperature", "temperature", &sampling.temperature),
        ("top_p", "topP", &sampling.top_p),
        ("top_k", "topK", &sampling.top_k),
        ("seed", "seed", &sampling.seed),
        ("presence_penalty", "presencePenalty", &sampling.presence_penalty),
        ("frequency_penalty", "frequencyPenalty", &sampling.frequency_penalty),
    ];
    let refused = |name: &str| target.vendor.parameters.drop.iter().any(|one| one == name);
    for (name, own, value) in numbers {
        match value {
            Some(_) if refused(name) || refused(own) => dropped.add(name),
            Some(value) => drop(config.insert(own.to_owned(), value.clone().into())),
            None => {}
        }
    }
    if sampling.logit_bias.is_some() {
        dropped.add("logit_bias");
    }
    if refused("logprobs") {
        if sampling.logprobs == Some(true) {
            dropped.add("logprobs");
        }
        return;
    }
    if let Some(wanted) = sampling.logprobs {
        config.insert("responseLogprobs".to_owned(), wanted.into());
    }
    if let Some(alternatives) = sampling.top_logprobs {
        config.insert("logprobs".to_owned(), alternatives.into());
    }
}

/// Empty ones are refused by the service; white space is not (TR-13).
fn stops<'r>(
    request: &'r Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<&'r str>, Unwritable> {
    let name = if request.wire == Wire::Gemini { "generationConfig.stopSequences" } else { "stop" };
    let stops: Vec<&str> =
        request.output.stop.iter().map(String::as_str).filter(|stop| !stop.is_empty()).collect();
    if stops.len() < request.output.stop.len() {
        dropped.add(name);
    }
    let limit = target.vendor.parameters.max_stops.unwrap_or(MAX_STOPS);
    if stops.len() > limit as usize {
        let reason = format!("{} stop sequences; this service takes at most {limit}", stops.len());
        return Err(Unwritable::Unsupported(Field::new(name, reason)));
    }
    Ok(stops)
}

fn format(
    request: &Request,
    target: &TargetFacts<'_>,
    config: &mut Map<String, Value>,
    dropped: &mut Dropped,
) {
    let mut kind = |kind: &str| config.insert("responseMimeType".to_owned(), kind.into());
    match &request.output.format {
        None => {}
        Some(Format::Text) => drop(kind("text/plain")),
        Some(Format::JsonObject) => drop(kind("application/json")),
        Some(Format::JsonSchema(format)) => {
            kind("application/json");
            if !target.vendor.parameters.drop.iter().any(|name| name == "responseJsonSchema") {
                config.insert("responseJsonSchema".to_owned(), format.schema.clone());
                return;
            }
            let lowered = lower(&format.schema);
            for path in lowered.removed {
                dropped.add(format!("response_format.json_schema.schema{path}"));
            }
            config.insert("responseSchema".to_owned(), lowered.schema);
        }
    }
}
