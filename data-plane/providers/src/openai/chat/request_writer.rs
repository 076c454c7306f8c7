//! Writes a request for a service.

use bytes::Bytes;
use penstock_model::vendor::{JsonOutput, MaxTokens, Parameters, ReasoningSwitch, StreamUsage, Vendor, Wire};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{message_writer, tool_writer};
use crate::dialect::TargetFacts;
use crate::exchange::{
    Dropped, Field, Format, JsonSchema, Output, ReasoningRequest, Request, Unwritable, Written, json_tool,
};

/// Writes `request` as this vendor takes it.
pub(super) fn write(request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
    let parameters = &target.vendor.parameters;
    let mut body = Body::new(request.wire, target.vendor);
    if !target.vendor.model_in_path {
        body.member("model", target.model);
    }
    let hints = message_writer::Target {
        parameters,
        cache_hints: request.wire == Wire::Openai && !drops(parameters, "cache_control"),
    };
    let messages = message_writer::write(request, &hints, &mut body.dropped)?;
    body.member("messages", &messages);
    let json_tool = needs_json_tool(&request.output, parameters).then(|| json_tool::name(request));
    tool_writer::write(request, json_tool.as_deref(), hints.cache_hints, &mut body)?;
    sampling(request, &mut body);
    output(request, target, json_tool.is_none(), &mut body)?;
    if let Some(reasoning) = &request.reasoning {
        reasoning_switch(reasoning, parameters.reasoning, &mut body);
    }
    about(request, &mut body);
    stream(request, parameters, &mut body);
    extra(request, &mut body);
    let (body, dropped) = body.finish(&target.vendor.body);
    Ok(Written { body, dropped, json_tool })
}

fn drops(parameters: &Parameters, name: &str) -> bool {
    parameters.drop.iter().any(|dropped| dropped == name)
}

/// A body under way, and what it lacks.
pub(super) struct Body<'a> {
    out: Vec<u8>,
    wire: Wire,
    vendor: &'a Vendor,
    pub(super) dropped: Dropped,
}

impl<'a> Body<'a> {
    fn new(wire: Wire, vendor: &'a Vendor) -> Self {
        Self { out: vec![b'{'], wire, vendor, dropped: Dropped::default() }
    }

    /// A parameter under its name in this dialect: renamed, or dropped, where the vendor has it so.
    pub(super) fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if drops(&self.vendor.parameters, name) {
            return self.lacks(name);
        }
        let name = self.vendor.parameters.rename.get(name).map_or(name, String::as_str);
        if !self.vendor.body.contains_key(name) {
            self.write(name, value);
        }
    }

    /// A parameter, if it is given.
    fn given<T: Serialize>(&mut self, name: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    /// Takes note of a parameter, named as here, that the body does not carry.
    pub(super) fn lacks(&mut self, name: &str) {
        self.dropped.add(clients_name(self.wire, name));
    }

    fn write<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        let sound = "texts, numbers and JSON values always serialise";
        serde_json::to_writer(&mut self.out, name).expect(sound);
        self.out.push(b':');
        serde_json::to_writer(&mut self.out, value).expect(sound);
    }

    fn finish(mut self, fixed: &Map<String, Value>) -> (Bytes, Dropped) {
        for (name, value) in fixed {
            self.write(name, value);
        }
        self.out.push(b'}');
        (self.out.into(), self.dropped)
    }
}

/// What a client of another protocol calls a parameter.
fn clients_name(wire: Wire, name: &str) -> &str {
    match (wire, name) {
        (Wire::Anthropic, "stop") => "stop_sequences",
        (Wire::Anthropic, "reasoning_effort") => "thinking",
        (Wire::Anthropic, "user") => "metadata.user_id",
        (Wire::Anthropic, "response_format") => "output_config.format",
        (Wire::Gemini, "stop") => "generationConfig.stopSequences",
        (Wire::Gemini, "reasoning_effort") => "generationConfig.thinkingConfig",
        (Wire::Gemini, "top_k") => "generationConfig.topK",
        (Wire::Gemini, "top_p") => "generationConfig.topP",
        (Wire::Gemini, "temperature") => "generationConfig.temperature",
        (Wire::Gemini, "seed") => "generationConfig.seed",
        (Wire::Gemini, "frequency_penalty") => "generationConfig.frequencyPenalty",
        (Wire::Gemini, "presence_penalty") => "generationConfig.presencePenalty",
        (Wire::Gemini, "logprobs") => "generationConfig.responseLogprobs",
        (Wire::Gemini, "top_logprobs") => "generationConfig.logprobs",
        (Wire::Gemini, "response_format") => "generationConfig.responseSchema",
        (Wire::OpenaiResponses, "reasoning_effort") => "reasoning.effort",
        (Wire::OpenaiResponses, "response_format") => "text.format",
        (Wire::OpenaiResponses, "verbosity") => "text.verbosity",
        _ => name,
    }
}

fn sampling(request: &Request, body: &mut Body<'_>) {
    let sampling = &request.sampling;
    body.given("temperature", sampling.temperature.as_ref());
    body.given("top_p", sampling.top_p.as_ref());
    body.given("top_k", sampling.top_k.as_ref());
    body.given("seed", sampling.seed.as_ref());
    body.given("frequency_penalty", sampling.frequency_penalty.as_ref());
    body.given("presence_penalty", sampling.presence_penalty.as_ref());
    body.given("logit_bias", sampling.logit_bias.as_ref());
    body.given("logprobs", sampling.logprobs.as_ref());
    body.given("top_logprobs", sampling.top_logprobs.as_ref());
}

fn output(
    request: &Request,
    target: &TargetFacts<'_>,
    with_format: bool,
    body: &mut Body<'_>,
) -> Result<(), Unwritable> {
    let parameters = &target.vendor.parameters;
    let output = &request.output;
    let unsupported = |name: &str, reason: String| {
        Err(Unwritable::Unsupported(Field::new(clients_name(request.wire, name), reason)))
    };
    // The newer name where both will do: OpenAI's reasoning models refuse the older one.
    let limit = match target.max_tokens_name {
        MaxTokens::MaxTokens => "max_tokens",
        MaxTokens::AsGiven | MaxTokens::MaxCompletionTokens => "max_completion_tokens",
    };
    body.given(limit, output.max_tokens.as_ref());
    if let Some(most) = parameters.max_stops.filter(|most| output.stop.len() > *most as usize) {
        return unsupported("stop", format!("this service takes at most {most} stop sequences"));
    }
    if !output.stop.is_empty() {
        body.member("stop", &output.stop);
    }
    match output.choices {
        Some(choices) if choices > 1 && !parameters.many_choices => {
            return unsupported("n", "this service gives one answer only".to_owned());
        }
        Some(1) if !parameters.many_choices => {}
        choices => body.given("n", choices.as_ref()),
    }
    if let Some(format) = output.format.as_ref().filter(|_| with_format) {
        body.member("response_format", &response_format(format, parameters));
    }
    body.given("verbosity", output.verbosity.as_ref());
    Ok(())
}

/// Does the vendor lack the kind of structured output that is asked for (TR-11)?
fn needs_json_tool(output: &Output, parameters: &Parameters) -> bool {
    match &output.format {
        None | Some(Format::Text) => false,
        Some(Format::JsonSchema(_)) => !parameters.json.contains(&JsonOutput::Schema),
        // A schema that takes any object says the same.
        Some(Format::JsonObject) => parameters.json.is_empty(),
    }
}

fn response_format(format: &Format, parameters: &Parameters) -> Value {
    match format {
        Format::Text => json!({ "type": "text" }),
        Format::JsonObject if parameters.json.contains(&JsonOutput::Object) => {
            json!({ "type": "json_object" })
        }
        Format::JsonObject => {
            json!({ "type": "json_schema", "json_schema": { "name": "object", "schema": { "type": "object" } } })
        }
        Format::JsonSchema(schema) => json!({ "type": "json_schema", "json_schema": json_schema(schema) }),
    }
}

fn json_schema(schema: &JsonSchema) -> Value {
    let mut members = Map::new();
    members.insert("name".to_owned(), schema.name.as_deref().unwrap_or("answer").into());
    if let Some(description) = &schema.description {
        members.insert("description".to_owned(), description.as_str().into());
    }
    members.insert("schema".to_owned(), schema.schema.clone());
    if let Some(strict) = schema.strict {
        members.insert("strict".to_owned(), strict.into());
    }
    Value::Object(members)
}

fn reasoning_switch(reasoning: &ReasoningRequest, switch: ReasoningSwitch, body: &mut Body<'_>) {
    let off = reasoning.enabled == Some(false) || reasoning.effort.as_deref() == Some("none");
    match switch {
        ReasoningSwitch::Effort => {
            let effort = reasoning.effort.as_deref().or_else(|| reasoning.budget_tokens.map(effort));
            match effort {
                Some(effort) if reasoning.enabled != Some(false) => body.member("reasoning_effort", effort),
                // No service of this kind has a common word for "off"; without the field it is up to the model.
                _ if off => body.lacks("reasoning_effort"),
                _ => {}
            }
        }
        ReasoningSwitch::EnableThinking => {
            body.member("enable_thinking", &!off);
            body.given("thinking_budget", reasoning.budget_tokens.as_ref().filter(|_| !off));
        }
        ReasoningSwitch::ThinkingType => {
            body.member("thinking", &json!({ "type": if off { "disabled" } else { "enabled" } }));
        }
        ReasoningSwitch::Object => body.member("reasoning", &reasoning_object(reasoning)),
        ReasoningSwitch::None if off => {}
        ReasoningSwitch::None => body.lacks("reasoning_effort"),
    }
}

/// The effort that a budget amounts to, by the shares that OpenRouter gives each effort of a usual limit of 32k.
pub(crate) fn effort(budget: u64) -> &'static str {
    match budget {
        0..=1024 => "minimal",
        1025..=6553 => "low",
        6554..=16_384 => "medium",
        _ => "high",
    }
}

fn reasoning_object(reasoning: &ReasoningRequest) -> Value {
    let mut members = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        members.extend(value.map(|value| (name.to_owned(), value)));
    };
    set("enabled", reasoning.enabled.map(Value::from));
    set("effort", reasoning.effort.as_deref().map(Value::from));
    // The service takes one of the two.
    set("max_tokens", reasoning.budget_tokens.filter(|_| reasoning.effort.is_none()).map(Value::from));
    set("exclude", reasoning.visible.map(|visible| Value::from(!visible)));
    Value::Object(members)
}

fn about(request: &Request, body: &mut Body<'_>) {
    body.given("user", request.user.as_ref());
    body.given("prompt_cache_key", request.cache_key.as_ref());
    // Tiers and metadata mean what their own vendor makes of them.
    let own = matches!(request.wire, Wire::Openai | Wire::OpenaiResponses);
    if own {
        body.given("service_tier", request.service_tier.as_ref());
        body.given("metadata", request.metadata.as_ref());
    } else {
        if request.service_tier.is_some() {
            body.lacks("service_tier");
        }
        if request.metadata.is_some() {
            body.lacks("metadata");
        }
    }
}

const STREAM_OPTION: &str = "stream_options.";

fn stream(request: &Request, parameters: &Parameters, body: &mut Body<'_>) {
    if !request.stream {
        return;
    }
    body.member("stream", &true);
    // What a stream consumed is always wanted, for the bill.
    if parameters.stream_usage == StreamUsage::Option {
        let mut options = Map::new();
        options.insert("include_usage".to_owned(), true.into());
        let own = request.extra.iter().filter(|_| request.wire == Wire::Openai);
        options.extend(
            own.filter_map(|(name, value)| {
                Some((name.strip_prefix(STREAM_OPTION)?.to_owned(), value.clone()))
            }),
        );
        body.member("stream_options", &options);
    }
}

/// Unknown fields go to services of their own dialect. Those of messages are told by their path: there is no place to put
/// them back.
fn extra(request: &Request, body: &mut Body<'_>) {
    for (name, value) in &request.extra {
        if request.wire == Wire::Openai && name.starts_with(STREAM_OPTION) {
            if !request.stream || body.vendor.parameters.stream_usage != StreamUsage::Option {
                body.dropped.add(name.as_str());
            }
        } else if request.wire == Wire::Openai && !name.contains('[') {
            body.member(name, value);
        } else {
            body.dropped.add(name.as_str());
        }
    }
}

#[cfg(test)]
mod tests;
