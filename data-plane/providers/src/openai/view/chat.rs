//! `POST /v1/chat/completions`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::{self, InvalidBody, JsonStr, span_of};
use crate::tokens;
use crate::view::{Role, View};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "json::raw")]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(borrow)]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    functions: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    response_format: Option<&'a RawValue>,
    /// Of the voice that is to answer.
    audio: Option<IgnoredAny>,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    user: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: Role,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    image_url: Option<IgnoredAny>,
    input_audio: Option<IgnoredAny>,
}

/// Reads a chat request.
///
/// # Errors
/// When the body is not JSON, when `messages` is not an array of objects, or when a field of [`View`] has the wrong
/// type or occurs twice.
pub fn chat(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let tools = parsed.tools.iter().chain(&parsed.functions).flatten();
    let span = |raw: Option<&RawValue>| raw.map(|raw| span_of(body, raw.get()));
    let options: Option<StreamOptions> = typed(body, "stream_options", parsed.stream_options)?;
    let limits = [parsed.max_tokens, parsed.max_completion_tokens];
    let old: Option<u64> = typed(body, "max_tokens", limits[0])?;
    let new: Option<u64> = typed(body, "max_completion_tokens", limits[1])?;
    let mut view = View {
        stream: parsed.stream.unwrap_or(false),
        include_usage: options.and_then(|options| options.include_usage).unwrap_or(false),
        stream_options_span: span(parsed.stream_options),
        limit_spans: limits.map(span),
        message_count: parsed.messages.len(),
        system_prompt: parsed.messages.iter().any(|m| matches!(m.role, Role::System | Role::Developer)),
        max_tokens: new.or(old),
        audio: parsed.audio.is_some(),
        user: parsed.user.and_then(JsonStr::new).map(JsonStr::decode),
        ..View::default()
    };
    view.read_model(body, parsed.model)?;
    view.read_temperature(parsed.temperature);
    view.read_format(parsed.response_format);
    view.push_tools(tools.clone().count(), tools.map(|tool| tool.get().len() as u64).sum());
    view.push_tokens(tokens::PER_MESSAGE * parsed.messages.len() as u64);
    for (index, message) in parsed.messages.iter().enumerate() {
        read_message(&mut view, index, message);
    }
    Ok(view)
}

pub(in crate::openai) fn typed<'a, T: Deserialize<'a>>(
    body: &[u8],
    name: &str,
    raw: Option<&'a RawValue>,
) -> Result<Option<T>, InvalidBody> {
    let Some(raw) = raw else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|error| {
        let reason = format!("`{name}`: {error}");
        let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
        InvalidBody::wrong_shape(reason, body, span_of(body, raw.get()).start)
    })
}

fn read_message<'a>(view: &mut View<'a>, index: usize, message: &Message<'a>) {
    let Some(content) = message.content else { return };
    if let Some(text) = JsonStr::new(content) {
        return view.push_text(index, message.role, text);
    }
    // Anything but an array of objects is for the vendor to refuse: it has no text for us to see.
    let parts: Vec<Part<'a>> = serde_json::from_str(content.get()).unwrap_or_default();
    for part in parts {
        if let Some(text) = part.text.and_then(JsonStr::new) {
            view.push_text(index, message.role, text);
        }
        if part.image_url.is_some() {
            view.push_image();
        }
        view.audio |= part.input_audio.is_some();
    }
}
