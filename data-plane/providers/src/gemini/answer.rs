//! Whole answers, read and written.
//!
//! What a candidate says beside its content and its citations (`safetyRatings`, `avgLogprobs`, `tokenCount`) has no place
//! in other dialects and is not carried.

use bytes::Bytes;
use penstock_model::Usage;
use penstock_model::vendor::Wire;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::candidate::{CITATIONS, Candidate, Response, block_reason};
use super::fields::Fields;
use super::part::{Call, RawPart, string, write_signature};
use super::wire::{OutCall, OutContent, OutPart, Piece};
use super::{finish, ids, logprobs, usage};
use crate::dialect::Asked;
use crate::exchange::{Answer, Choice, Part, Stop, ToolCall};
use crate::openai::error_body::VendorError;

/// Reads an answer; `id` is ours.
pub(super) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(VendorError::default());
    }
    let response: Response<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    if let Some(error) = response.error {
        return Err(VendorError::read(format!("{{\"error\":{}}}", error.get()).as_bytes()));
    }
    let mut choices = Vec::new();
    for (position, candidate) in response.candidates.iter().flatten().enumerate() {
        choices.push(read_candidate(candidate, position, id)?);
    }
    if choices.is_empty() {
        let reason = block_reason(response.prompt_feedback).ok_or_else(VendorError::default)?;
        let stop = Some(Stop::ContentFilter);
        choices.push(Choice { stop, native_stop: Some(reason), ..Choice::default() });
    }
    choices.sort_by_key(|choice| choice.index);
    let text = |raw| string(raw).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned);
    Ok(Answer {
        id: text(response.response_id),
        model: text(response.model_version),
        created: None,
        choices,
        usage: response.usage_metadata.as_ref().map(Usage::from).filter(|usage| !usage.is_empty()),
        extra: extra(body),
    })
}

fn extra(body: &[u8]) -> Map<String, Value> {
    let mut extra = Map::new();
    let fields = serde_json::from_slice::<&RawValue>(body).ok().and_then(|raw| Fields::read(raw, "").ok());
    if let Some(mut fields) = fields {
        for known in ["candidates", "usageMetadata", "modelVersion", "responseId"] {
            fields.take(known);
        }
        fields.rest("", &mut extra);
    }
    extra
}

fn read_candidate(candidate: &Candidate<'_>, position: usize, id: &str) -> Result<Choice, VendorError> {
    let index = candidate.index.unwrap_or(u32::try_from(position).unwrap_or(u32::MAX));
    let mut calls = 0;
    let mut parts = Vec::with_capacity(candidate.parts().len());
    for raw in candidate.parts() {
        let part = serde_json::from_str::<RawPart<'_>>(raw.get()).ok();
        if let Some(call) = part.as_ref().and_then(|part| part.function_call.as_ref()) {
            let made_up = || ids::in_answer(id, index, calls);
            let mut call =
                read_call(call, made_up).ok_or_else(|| finish::failure(finish::MALFORMED_CALL, None))?;
            call.signature = part.as_ref().and_then(RawPart::signature).map(|(signature, _)| signature);
            parts.push(Part::ToolCall(call));
            calls += 1;
        } else if let Some(part) = part.as_ref().and_then(RawPart::plain) {
            parts.push(part);
        } else if let Some(part) = other(raw) {
            parts.push(part);
        }
    }
    for citation in candidate.citations() {
        match parts
            .iter_mut()
            .rev()
            .find_map(|part| if let Part::Text(text) = part { Some(text) } else { None })
        {
            Some(text) => text.citations.push(citation),
            None => parts.push(Part::Other { wire: Wire::Gemini, value: citation }),
        }
    }
    let reason = string(candidate.finish_reason).unwrap_or_default();
    let stop = finish::read(&reason, calls > 0)
        .map_err(|()| finish::failure(&reason, string(candidate.finish_message).as_deref()))?;
    Ok(Choice {
        index,
        parts,
        stop,
        native_stop: stop.map(|_| reason.into_owned()),
        stop_sequence: None,
        logprobs: logprobs::read(candidate.logprobs_result),
    })
}

/// A call without its signature; `None` when it is broken.
pub(super) fn read_call(call: &Call<'_>, made_up: impl FnOnce() -> String) -> Option<ToolCall> {
    let id = string(call.id).filter(|id| !id.is_empty());
    Some(ToolCall {
        id: id.map_or_else(made_up, std::borrow::Cow::into_owned),
        name: string(call.name)?.into_owned(),
        arguments: call.arguments()?.into_owned(),
        signature: None,
        cache: None,
    })
}

/// A part that nobody knows, whole; `None` when it says nothing.
pub(super) fn other(raw: &RawValue) -> Option<Part> {
    let value: Value = serde_json::from_str(raw.get()).ok()?;
    let empty = value.as_object().is_none_or(Map::is_empty);
    (!empty).then_some(Part::Other { wire: Wire::Gemini, value })
}

/// `GenerateContentResponse`, as a whole answer and as one event of a stream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutResponse<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) candidates: Vec<OutCandidate<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_metadata: Option<usage::Written>,
    pub(super) model_version: &'a str,
    pub(super) response_id: &'a str,
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// `Candidate`
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutCandidate<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<OutContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<&'a str>,
    pub(super) index: u32,
    #[serde(flatten)]
    pub(super) citations: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs_result: Option<Value>,
}

/// Top-level fields of this dialect that readers keep in [`Answer::extra`].
const EXTRA: [&str; 3] = ["promptFeedback", "createTime", "modelStatus"];

/// Writes an answer for a client.
pub(super) fn write(answer: &Answer, asked: &Asked) -> Bytes {
    let known = |(name, _): &(&String, &Value)| EXTRA.contains(&name.as_str());
    let extra: Map<String, Value> =
        answer.extra.iter().filter(known).map(|(name, value)| (name.clone(), value.clone())).collect();
    // A blocked prompt has no candidate at all.
    let blocked = extra.contains_key("promptFeedback");
    let says = |choice: &&Choice| !(blocked && choice.parts.is_empty());
    let response = OutResponse {
        candidates: answer.choices.iter().filter(says).map(write_candidate).collect(),
        usage_metadata: answer.usage.as_ref().map(usage::Written::from),
        model_version: answer.model.as_deref().unwrap_or(&asked.model),
        response_id: answer.id.as_deref().unwrap_or(&asked.id),
        extra,
    };
    serde_json::to_vec(&response).expect("strings and JSON values always serialise").into()
}

fn write_candidate(choice: &Choice) -> OutCandidate<'_> {
    let mut citations = Map::new();
    let mut pieces = Vec::with_capacity(choice.parts.len());
    let mut broken_call = false;
    for part in &choice.parts {
        if let Part::Text(text) = part {
            for citation in &text.citations {
                keep_citation(citation, &mut citations);
            }
        }
        if let Part::Other { wire: Wire::Gemini, value } = part
            && keep_citation(value, &mut citations)
        {
            continue;
        }
        match part {
            Part::ToolCall(call) => match write_call(call) {
                Some(piece) => pieces.push(piece),
                None => broken_call = true,
            },
            other => pieces.extend(write_part(other)),
        }
    }
    let native = choice.native_stop.as_deref();
    OutCandidate {
        content: (!pieces.is_empty()).then_some(OutContent { role: Some("model"), parts: pieces }),
        finish_reason: choice.stop.map(|stop| finish_reason(stop, native, broken_call)),
        index: choice.index,
        citations,
        logprobs_result: choice.logprobs.as_ref().and_then(logprobs::write),
    }
}

/// The reason that a client is told. Where an answer as long as it may be ends within a call, the call is left out;
/// elsewhere a call whose arguments are no JSON object is what this dialect has a reason for.
pub(super) fn finish_reason(stop: Stop, native: Option<&str>, broken_call: bool) -> &str {
    if broken_call && stop != Stop::Length { finish::MALFORMED_CALL } else { finish::write(stop, native) }
}

/// Takes over a citation that came in this dialect; others have no place here.
pub(super) fn keep_citation(citation: &Value, citations: &mut Map<String, Value>) -> bool {
    let Some((name, value)) =
        citation.as_object().filter(|one| one.len() == 1).and_then(|one| one.iter().next())
    else {
        return false;
    };
    let known = CITATIONS.contains(&name.as_str());
    if known {
        citations.insert(name.clone(), value.clone());
    }
    known
}

/// A call; `None` when its arguments are no JSON object.
pub(super) fn write_call(call: &ToolCall) -> Option<Piece<'_>> {
    let args =
        serde_json::from_str::<&RawValue>(&call.arguments).ok().filter(|raw| raw.get().starts_with('{'))?;
    let signature = call.signature.as_ref().map(|signature| write_signature(signature, false));
    Some(Piece::call(OutCall { id: ids::given(&call.id), name: &call.name, args }, signature))
}

/// Any other part; `None` for what clients of this dialect cannot be told.
pub(super) fn write_part(part: &Part) -> Option<Piece<'_>> {
    match part {
        Part::Text(text) => {
            let signature = text.signature.as_ref().map(|signature| write_signature(signature, false));
            (!text.text.is_empty() || signature.is_some()).then(|| Piece::text(&text.text, signature))
        }
        Part::Reasoning(reasoning) => {
            let signature = reasoning.signature.as_ref();
            let signature = signature.map(|signature| write_signature(signature, reasoning.redacted));
            (!reasoning.text.is_empty() || signature.is_some())
                .then(|| Piece::thought(&reasoning.text, signature))
        }
        Part::Image(media) | Part::Audio(media) | Part::File(media) => {
            OutPart::media(media).map(|part| Piece::Made(Box::new(part)))
        }
        Part::Refusal(text) => (!text.is_empty()).then(|| Piece::text(text, None)),
        Part::Other { wire: Wire::Gemini, value } => Some(Piece::AsCame(value)),
        Part::ToolCall(call) => write_call(call),
        Part::ToolResult(_) | Part::Other { .. } => None,
    }
}
