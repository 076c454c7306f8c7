//! Reading a whole answer, and the items that streams have in common with it.

use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::exchange::{Answer, Choice, Part, Reasoning, Signature, Stop, Text, ToolCall};
use crate::json::{count, text};
use crate::openai::error_body::VendorError;
use crate::openai::usage;
use crate::responses::OWN;

/// A response, whole or within an event.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "count")]
    pub(super) created_at: Option<u64>,
    #[serde(borrow, default, deserialize_with = "text")]
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    service_tier: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    reason: Option<Cow<'a, str>>,
}

impl Response<'_> {
    /// Why it ended, and the service's word for it where there is more to say than that it is complete.
    pub(super) fn stop(&self, calls_tools: bool) -> (Stop, &str) {
        let reason = self.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        match reason {
            Some(reason @ "content_filter") => (Stop::ContentFilter, reason),
            // Of the reasons for an incomplete answer most are limits (`max_output_tokens`).
            Some(reason) => (Stop::Length, reason),
            None if calls_tools => (Stop::ToolCalls, ""),
            None => (Stop::End, ""),
        }
    }

    /// What it says went wrong.
    pub(super) fn error(&self) -> Option<VendorError> {
        let error = self.error.filter(|error| error.get() != "null")?;
        Some(VendorError::read(error.get().as_bytes()))
    }
}

/// An item of the output.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) r#type: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) arguments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<Piece<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<Piece<'a>>>,
    #[serde(borrow, default, deserialize_with = "text")]
    encrypted_content: Option<Cow<'a, str>>,
}

/// A part of a message, or a paragraph of thoughts.
#[derive(Debug, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) refusal: Option<Cow<'a, str>>,
    annotations: Option<Vec<Value>>,
    logprobs: Option<Vec<Value>>,
}

impl<'a> Item<'a> {
    /// The call's id, or one made of `answer_id` for the `number`th call of the answer.
    pub(super) fn call_id(&self, answer_id: &str, number: u32) -> Cow<'a, str> {
        let own = self.call_id.clone().filter(|id| !id.is_empty());
        own.unwrap_or_else(|| Cow::Owned(format!("call_{answer_id}_{number}")))
    }

    /// What was thought: its summary, or itself where open models show it.
    pub(super) fn thought(&self) -> String {
        let pieces = self.summary.as_ref().filter(|summary| !summary.is_empty()).or(self.content.as_ref());
        let texts: Vec<&str> =
            pieces.into_iter().flatten().filter_map(|piece| piece.text.as_deref()).collect();
        texts.join("\n\n")
    }

    /// The thought itself, encrypted.
    pub(super) fn signature(&self) -> Option<Signature> {
        let value = self.encrypted_content.as_ref().filter(|value| !value.is_empty())?;
        Some(Signature { wire: OWN, value: value.clone().into_owned() })
    }
}

/// A piece that only this dialect knows.
pub(super) fn other(raw: &RawValue) -> Option<Part> {
    let wire: Wire = OWN;
    Some(Part::Other { wire, value: serde_json::from_str(raw.get()).ok()? })
}

/// Reads a whole answer.
///
/// # Errors
/// What went wrong, when the response failed; an empty error when it is none.
pub(in crate::responses) fn read(body: &[u8], id: &str) -> Result<Answer, VendorError> {
    let response: Response<'_> = serde_json::from_slice(body).map_err(|_| VendorError::default())?;
    if let Some(error) = response.error() {
        return Err(error);
    }
    let Some(output) = &response.output else { return Err(VendorError::default()) };
    if response.status.as_deref().is_some_and(|status| !matches!(status, "completed" | "incomplete")) {
        let message = Some("the service gave no complete response".to_owned());
        return Err(VendorError { message, ..VendorError::default() });
    }
    let mut read = Output { id, parts: Vec::new(), calls: 0, logprobs: Vec::new() };
    for raw in output {
        read.add(raw);
    }
    let (stop, native) = response.stop(read.calls > 0);
    let choice = Choice {
        stop: Some(stop),
        native_stop: Some(native.to_owned()).filter(|native| !native.is_empty()),
        logprobs: (!read.logprobs.is_empty()).then(|| json!({ "content": read.logprobs })),
        parts: read.parts,
        ..Choice::default()
    };
    let mut answer = Answer {
        choices: vec![choice],
        created: response.created_at,
        usage: usage::find(body),
        ..Answer::default()
    };
    if let Some(tier) = response.service_tier {
        answer.extra.insert("service_tier".to_owned(), tier);
    }
    answer.id = response.id.map(Cow::into_owned);
    answer.model = response.model.map(Cow::into_owned);
    Ok(answer)
}

struct Output<'i> {
    id: &'i str,
    parts: Vec<Part>,
    calls: u32,
    logprobs: Vec<Value>,
}

impl Output<'_> {
    fn add(&mut self, raw: &RawValue) {
        let item: Item<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        match item.r#type.as_deref() {
            Some("message") => self.message(item),
            Some("reasoning") => {
                let (text, signature) = (item.thought(), item.signature());
                if !text.is_empty() || signature.is_some() {
                    let redacted = signature.is_some();
                    self.parts.push(Part::Reasoning(Reasoning { text, signature, redacted }));
                }
            }
            Some("function_call") => {
                let arguments = item.arguments.as_deref().filter(|text| !text.trim().is_empty());
                let call = ToolCall {
                    id: item.call_id(self.id, self.calls).into_owned(),
                    name: item.name.as_deref().unwrap_or_default().to_owned(),
                    arguments: arguments.unwrap_or("{}").to_owned(),
                    signature: None,
                    cache: None,
                };
                self.calls += 1;
                self.parts.push(Part::ToolCall(call));
            }
            _ => self.parts.extend(other(raw)),
        }
    }

    fn message(&mut self, item: Item<'_>) {
        for piece in item.content.into_iter().flatten() {
            self.logprobs.extend(piece.logprobs.into_iter().flatten());
            let citations = piece.annotations.unwrap_or_default();
            if let Some(text) = piece.text.filter(|text| !text.is_empty()) {
                self.parts.push(Part::Text(Text { text: text.into_owned(), citations, ..Text::default() }));
            }
            if let Some(refusal) = piece.refusal.filter(|text| !text.is_empty()) {
                self.parts.push(Part::Refusal(refusal.into_owned()));
            }
        }
    }
}
