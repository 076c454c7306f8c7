//! `POST /v1/chat/completions`.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::read_model;
use crate::json::{self, InvalidBody, JsonStr};
use crate::tokens;

/// What routing needs of a chat request. Borrows from the body.
#[derive(Debug, Clone)]
pub struct ChatView<'a> {
    /// The model asked for; `None` when absent or `null`.
    pub model: Option<Cow<'a, str>>,
    /// Where the value of `model` stands in the body, quotes included; `None` when there is no such field.
    pub model_span: Option<Range<usize>>,
    /// Is the answer to be streamed?
    pub stream: bool,
    /// Did the client ask for a usage chunk at the end of the stream?
    pub include_usage: bool,
    /// Number of messages.
    pub message_count: usize,
    /// Is there a message of role `system` or `developer`?
    pub system_prompt: bool,
    /// Number of tools, legacy `functions` included.
    pub tools: usize,
    /// Does any message hold an image?
    pub images: bool,
    /// The output limit: `max_completion_tokens`, else `max_tokens`.
    pub max_tokens: Option<u64>,
    /// The `user` field.
    pub user: Option<Cow<'a, str>>,
    /// Texts in the order of the body.
    texts: Vec<Text<'a>>,
    image_count: u64,
    tool_bytes: u64,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// Instructions, in OpenAI's newer word.
    Developer,
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
    /// Anything else, or no role at all.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    message: usize,
    role: Role,
    text: JsonStr<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "json::raw")]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    functions: Option<Vec<&'a RawValue>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
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
}

/// Reads a chat request.
///
/// # Errors
/// When the body is not JSON, when `messages` is not an array of objects, or when a field of [`ChatView`] has the wrong
/// type or occurs twice.
pub fn chat(body: &[u8]) -> Result<ChatView<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let (model, model_span) = read_model(body, parsed.model)?;
    let tools = parsed.tools.iter().chain(&parsed.functions).flatten();
    let mut view = ChatView {
        model,
        model_span,
        stream: parsed.stream.unwrap_or(false),
        include_usage: parsed.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
        message_count: parsed.messages.len(),
        system_prompt: parsed.messages.iter().any(|m| matches!(m.role, Role::System | Role::Developer)),
        tools: tools.clone().count(),
        images: false,
        max_tokens: parsed.max_completion_tokens.or(parsed.max_tokens),
        user: parsed.user.and_then(JsonStr::new).map(JsonStr::decode),
        texts: Vec::with_capacity(parsed.messages.len()),
        image_count: 0,
        tool_bytes: tools.map(|tool| tool.get().len() as u64).sum(),
    };
    for (index, message) in parsed.messages.iter().enumerate() {
        view.read_message(index, message);
    }
    view.images = view.image_count > 0;
    Ok(view)
}

impl<'a> ChatView<'a> {
    fn read_message(&mut self, index: usize, message: &Message<'a>) {
        let Some(content) = message.content else { return };
        let mut push = |text| self.texts.push(Text { message: index, role: message.role, text });
        if let Some(text) = JsonStr::new(content) {
            return push(text);
        }
        // Anything but an array of objects is for the vendor to refuse: it has no text for us to see.
        let parts: Vec<Part<'a>> = serde_json::from_str(content.get()).unwrap_or_default();
        for part in parts {
            part.text.and_then(JsonStr::new).map(&mut push);
            self.image_count += u64::from(part.image_url.is_some());
        }
    }

    /// The messages' texts: first the last user message's, then the other messages' from the newest to the oldest. The
    /// parts of one message keep their order. Nothing is decoded before the iterator gets there.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let last_user = self.last_user_message();
        let rest = self.texts.chunk_by(|a, b| a.message == b.message).rev().flatten();
        self.last_user_texts()
            .chain(rest.filter(move |text| Some(text.message) != last_user).map(|text| text.text.decode()))
    }

    /// The texts of the last user message alone: what the capability is read from.
    pub fn last_user_texts(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let last_user = self.last_user_message();
        self.texts.iter().filter(move |text| Some(text.message) == last_user).map(|text| text.text.decode())
    }

    fn last_user_message(&self) -> Option<usize> {
        self.texts.iter().rev().find(|text| text.role == Role::User).map(|text| text.message)
    }

    /// Bytes of all texts, as they stand in the body.
    #[must_use]
    pub fn prompt_bytes(&self) -> u64 {
        self.texts.iter().map(|text| text.text.escaped().len() as u64).sum()
    }

    /// A guess, within a third for English and Chinese prose, at the tokens the vendor will count.
    #[must_use]
    pub fn estimated_prompt_tokens(&self) -> u64 {
        let quarters: u64 = self.texts.iter().map(|text| tokens::quarters(text.text.escaped())).sum();
        (quarters + self.tool_bytes).div_ceil(4)
            + tokens::PER_MESSAGE * self.message_count as u64
            + tokens::PER_IMAGE * self.image_count
    }
}
