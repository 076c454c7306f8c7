//! Writes a whole answer for a client.

use std::borrow::Cow;

use bytes::Bytes;
use penstock_model::vendor::Wire;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{finish, media, reasoning};
use crate::dialect::Asked;
use crate::exchange::{Answer, Choice, Media, Part, Signature, Source, Stop, ToolCall};
use crate::openai::usage::WrittenUsage;

#[derive(Serialize)]
struct Body<'a> {
    id: Cow<'a, str>,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<WrittenChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<WrittenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_fingerprint: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a Value>,
}

#[derive(Serialize)]
struct WrittenChoice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<&'a Value>,
    finish_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
}

#[derive(Serialize, Default)]
struct Message<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WrittenCall<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenCall<'a> {
    Function {
        id: &'a str,
        r#type: &'static str,
        function: Function<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<Value>,
    },
    Other(&'a Value),
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

pub(super) fn write(answer: &Answer, asked: &Asked) -> Bytes {
    let body = Body {
        id: id(answer.id.as_deref(), asked),
        object: "chat.completion",
        created: answer.created.unwrap_or(asked.created),
        model: answer.model.as_deref().unwrap_or(&asked.model),
        choices: answer.choices.iter().map(choice).collect(),
        usage: answer.usage.map(WrittenUsage::from),
        // The rest of `extra` is in another dialect's words.
        system_fingerprint: answer.extra.get("system_fingerprint"),
        service_tier: answer.extra.get("service_tier"),
    };
    serde_json::to_vec(&body).expect("strings and numbers always serialise").into()
}

/// The service's id, or ours in this dialect's form.
pub(super) fn id<'a>(service: Option<&'a str>, asked: &Asked) -> Cow<'a, str> {
    match service {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(format!("chatcmpl-{}", asked.id)),
    }
}

fn choice(choice: &Choice) -> WrittenChoice<'_> {
    let message = message(&choice.parts);
    let calls = !message.tool_calls.is_empty();
    let unsaid = if calls { Stop::ToolCalls } else { Stop::End };
    let finish_reason = finish::word(choice.stop.unwrap_or(unsaid));
    WrittenChoice {
        index: choice.index,
        message,
        logprobs: choice.logprobs.as_ref(),
        finish_reason,
        native_finish_reason: choice.native_stop.as_deref().filter(|native| *native != finish_reason),
        stop_reason: choice.stop_sequence.as_deref(),
    }
}

fn message(parts: &[Part]) -> Message<'_> {
    let mut message = Message { role: "assistant", ..Message::default() };
    let mut signed = false;
    for part in parts {
        match part {
            Part::Text(text) => {
                append(&mut message.content, &text.text);
                message.annotations.extend(&text.citations);
            }
            Part::Refusal(refusal) => append(&mut message.refusal, refusal),
            Part::Reasoning(block) => {
                if !block.text.is_empty() {
                    message.reasoning_content.get_or_insert_default().push_str(&block.text);
                }
                signed |= block.signature.is_some();
                let signature = block.signature.as_ref().map(|signature| (signature, block.redacted));
                let index = message.reasoning_details.len();
                message.reasoning_details.push(reasoning::detail(&block.text, signature, index));
            }
            Part::ToolCall(call) => message.tool_calls.push(tool_call(call)),
            Part::Image(media) => message.images.extend(image(media)),
            Part::Audio(media) => message.audio = Some(audio(media)),
            Part::Other { wire: Wire::Openai, value } if value.get("id").is_some() => {
                message.tool_calls.push(WrittenCall::Other(value));
            }
            // A piece of another dialect's own, of which this one has no notion.
            Part::Other { .. } | Part::File(_) | Part::ToolResult(_) => {}
        }
    }
    if !signed {
        // Nothing that `reasoning_content` does not say.
        message.reasoning_details.clear();
    }
    let says_something =
        !message.tool_calls.is_empty() || message.refusal.is_some() || message.audio.is_some();
    if says_something {
        message.content = message.content.filter(|content| !content.is_empty());
    } else {
        message.content.get_or_insert_default();
    }
    message
}

fn append<'a>(whole: &mut Option<Cow<'a, str>>, text: &'a str) {
    match whole {
        Some(before) => before.to_mut().push_str(text),
        None => *whole = Some(Cow::Borrowed(text)),
    }
}

fn tool_call(call: &ToolCall) -> WrittenCall<'_> {
    WrittenCall::Function {
        id: &call.id,
        r#type: "function",
        function: Function { name: &call.name, arguments: &call.arguments },
        extra_content: extra_content(call.signature.as_ref()),
    }
}

/// Where Google puts the signature of a call in this dialect.
pub(super) fn extra_content(signature: Option<&Signature>) -> Option<Value> {
    let value = signature?.for_wire(Wire::Gemini)?;
    Some(json!({ "google": { "thought_signature": value } }))
}

/// A picture that the model made, where OpenRouter puts it.
pub(super) fn image(media: &Media) -> Option<Value> {
    let kind = media.media_type.as_deref().unwrap_or("image/png");
    let url = match &media.source {
        Source::Base64(data) => media::to_url(data, kind),
        Source::Url(url) => url.clone(),
        Source::Text(_) | Source::FileId(_) => return None,
    };
    Some(json!({ "type": "image_url", "image_url": { "url": url } }))
}

/// What the model says aloud.
pub(super) fn audio(media: &Media) -> Value {
    let mut members: Map<String, Value> = media.extra.clone();
    if let Source::Base64(data) = &media.source
        && !data.is_empty()
    {
        members.insert("data".to_owned(), data.as_str().into());
    }
    Value::Object(members)
}
