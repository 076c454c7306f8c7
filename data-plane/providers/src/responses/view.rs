//! `POST /v1/responses`: what routing needs to know.

use std::borrow::Cow;

use serde::Deserialize;
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
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    max_output_tokens: Option<u64>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    conversation: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    user: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    safety_identifier: Option<&'a RawValue>,
}

/// An item of the input. Messages have no `type` when they are written the easy way.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(default)]
    r#type: Kind,
    #[serde(default)]
    role: Role,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Kind {
    #[default]
    Message,
    FunctionCall,
    FunctionCallOutput,
    InputImage,
    InputAudio,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default)]
    r#type: Kind,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Reads a request of the Responses interface. Instructions, and each item of the input, count as a message.
///
/// # Errors
/// When the body is not JSON, when `input` is neither a string nor an array of objects, or when a field of [`View`] has
/// the wrong type or occurs twice.
pub fn view(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let tools = parsed.tools.iter().flatten();
    let user = [parsed.safety_identifier, parsed.user].into_iter().flatten().find_map(JsonStr::new);
    let mut view = View {
        stream: parsed.stream.unwrap_or(false),
        // Usage is part of the last event, whether asked for or not.
        include_usage: true,
        max_tokens: parsed.max_output_tokens,
        user: user.map(JsonStr::decode),
        ..View::default()
    };
    view.read_model(body, parsed.model)?;
    view.read_format_in(parsed.text);
    view.read_temperature(parsed.temperature);
    view.session = parsed.conversation.and_then(conversation);
    view.push_tools(tools.clone().count(), tools.map(|tool| tool.get().len() as u64).sum());
    if let Some(instructions) = parsed.instructions.and_then(JsonStr::new) {
        view.push_text(0, Role::System, instructions);
        view.message_count += 1;
    }
    if let Some(input) = parsed.input {
        read_input(&mut view, input).ok_or_else(|| {
            let reason = "`input` must be a string or an array of objects";
            InvalidBody::wrong_shape(reason, body, span_of(body, input.get()).start)
        })?;
    }
    view.push_tokens(tokens::PER_MESSAGE * view.message_count as u64);
    Ok(view)
}

/// Its id, alone or in an object.
fn conversation(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Conversation<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let id = match JsonStr::new(raw) {
        Some(id) => Some(id),
        None => serde_json::from_str::<Conversation<'_>>(raw.get()).ok()?.id.and_then(JsonStr::new),
    };
    id.map(JsonStr::decode)
}

fn read_input<'a>(view: &mut View<'a>, input: &'a RawValue) -> Option<()> {
    let first = view.message_count;
    if let Some(text) = JsonStr::new(input) {
        view.push_text(first, Role::User, text);
        view.message_count += 1;
        return Some(());
    }
    let items: Vec<&'a RawValue> = serde_json::from_str(input.get()).ok()?;
    view.message_count += items.len();
    for (index, item) in items.into_iter().enumerate() {
        if !item.get().starts_with('{') {
            return None;
        }
        // An item of a shape that we do not know is for the service to judge: it has no text for us to see.
        if let Ok(item) = serde_json::from_str::<Item<'a>>(item.get()) {
            read_item(view, first + index, &item);
        }
    }
    Some(())
}

fn read_item<'a>(view: &mut View<'a>, index: usize, item: &Item<'a>) {
    match item.r#type {
        Kind::Message => {
            view.system_prompt |= matches!(item.role, Role::System | Role::Developer);
            read_content(view, index, item.role, item.content);
        }
        Kind::FunctionCallOutput => read_content(view, index, Role::Tool, item.output),
        Kind::FunctionCall => {
            let length = item.arguments.map_or(0, |arguments| arguments.get().len() as u64);
            view.push_tokens(length.div_ceil(4));
        }
        Kind::InputImage | Kind::InputAudio | Kind::Other => {}
    }
}

fn read_content<'a>(view: &mut View<'a>, index: usize, role: Role, content: Option<&'a RawValue>) {
    let Some(content) = content else { return };
    if let Some(text) = JsonStr::new(content) {
        return view.push_text(index, role, text);
    }
    let parts: Vec<Part<'a>> = serde_json::from_str(content.get()).unwrap_or_default();
    for part in parts {
        if let Some(text) = part.text.and_then(JsonStr::new) {
            view.push_text(index, role, text);
        }
        if part.r#type == Kind::InputImage {
            view.push_image();
        }
        view.audio |= part.r#type == Kind::InputAudio;
    }
}

#[cfg(test)]
mod tests;
