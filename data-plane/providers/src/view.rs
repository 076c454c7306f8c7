//! What routing needs to know of a request, whatever its protocol. Borrows from the body; nothing is rebuilt.
//!
//! The body is checked to be JSON to its last byte, but only the fields listed here are typed. All else, the size of its
//! numbers included, is the vendor's business and reaches it untouched. Each client protocol has a function that makes
//! one of these.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{InvalidBody, JsonStr, span_of};
use crate::tokens;

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub struct View<'a> {
    /// The model asked for; `None` when absent or `null`.
    pub model: Option<Cow<'a, str>>,
    /// Where the value of `model` stands in the body, quotes included; `None` when there is no such field.
    pub model_span: Option<Range<usize>>,
    /// Is the answer to be streamed?
    pub stream: bool,
    /// Did the client ask for a usage report at the end of the stream? Always true where the protocol reports it unasked.
    pub include_usage: bool,
    /// Where the value of `stream_options` stands in the body.
    pub stream_options_span: Option<Range<usize>>,
    /// Where the values of `max_tokens` and `max_completion_tokens` stand in the body.
    pub limit_spans: [Option<Range<usize>>; 2],
    /// Number of messages (of inputs, where they are embedded).
    pub message_count: usize,
    /// Are there instructions, by role or by field?
    pub system_prompt: bool,
    /// Number of tools, legacy `functions` included.
    pub tools: usize,
    /// Does any message hold an image?
    pub images: bool,
    /// Is there sound in a message, or wanted in the answer?
    pub audio: bool,
    /// Must the answer follow a JSON Schema?
    pub json_schema: bool,
    /// The limit of the output, in tokens.
    pub max_tokens: Option<u64>,
    /// The sampling temperature, as far as it is a number.
    pub temperature: Option<f64>,
    /// The conversation that the request is part of, where the protocol has a name for it.
    pub session: Option<Cow<'a, str>>,
    /// The end user's id.
    pub user: Option<Cow<'a, str>>,
    pub(crate) texts: Vec<Text<'a>>,
    /// Estimated tokens of all that is not text.
    pub(crate) other_tokens: u64,
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
    #[serde(alias = "model")]
    Assistant,
    /// A tool's result.
    Tool,
    /// Anything else, or no role at all.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    message: usize,
    role: Role,
    text: JsonStr<'a>,
}

impl<'a> View<'a> {
    /// Takes over the `model` field.
    pub(crate) fn read_model(&mut self, body: &[u8], raw: Option<&'a RawValue>) -> Result<(), InvalidBody> {
        let Some(raw) = raw else { return Ok(()) };
        let span = span_of(body, raw.get());
        match JsonStr::new(raw) {
            Some(text) => self.model = Some(text.decode()),
            None if raw.get() == "null" => {}
            None => return Err(InvalidBody::wrong_shape("`model` must be a string", body, span.start)),
        }
        self.model_span = Some(span);
        Ok(())
    }

    /// Adds a text of the message with this number, in the order of the body.
    pub(crate) fn push_text(&mut self, message: usize, role: Role, text: JsonStr<'a>) {
        self.system_prompt |= matches!(role, Role::System | Role::Developer);
        self.texts.push(Text { message, role, text });
    }

    /// Adds an image.
    pub(crate) fn push_image(&mut self) {
        self.images = true;
        self.other_tokens += tokens::PER_IMAGE;
    }

    /// Takes over the `temperature`. Anything but a number is for the vendor to refuse.
    pub(crate) fn read_temperature(&mut self, raw: Option<&RawValue>) {
        self.temperature =
            raw.and_then(|raw| raw.get().parse().ok()).filter(|number: &f64| number.is_finite());
    }

    /// Takes over what the answer must look like: `{"type": "json_schema", …}` is a schema, anything else is none.
    pub(crate) fn read_format(&mut self, format: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Format<'a> {
            #[serde(borrow)]
            r#type: Option<&'a RawValue>,
        }
        let format = format.and_then(|raw| serde_json::from_str::<Format<'_>>(raw.get()).ok());
        let kind = format.and_then(|format| format.r#type).and_then(JsonStr::new);
        self.json_schema |= kind.is_some_and(|kind| kind.decode() == "json_schema");
    }

    /// Takes over the `format` within `options`. Options of another shape are for the vendor to refuse.
    pub(crate) fn read_format_in(&mut self, options: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Options<'a> {
            #[serde(borrow)]
            format: Option<&'a RawValue>,
        }
        let options = options.and_then(|raw| serde_json::from_str::<Options<'_>>(raw.get()).ok());
        self.read_format(options.and_then(|options| options.format));
    }

    /// Adds the tools' declarations, `bytes` of JSON.
    pub(crate) fn push_tools(&mut self, count: usize, bytes: u64) {
        self.tools += count;
        self.other_tokens += bytes.div_ceil(4);
    }

    /// Adds to the estimate of the prompt's tokens.
    pub(crate) fn push_tokens(&mut self, tokens: u64) {
        self.other_tokens += tokens;
    }

    /// The messages' texts: first the last user message's, then the other messages' from the newest to the oldest. The
    /// parts of one message keep their order. Nothing is decoded before the iterator gets there.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let last_user = self.last_user_message();
        let rest = self.texts.chunk_by(|a, b| a.message == b.message).rev().flatten();
        self.last_user_texts()
            .chain(rest.filter(move |text| Some(text.message) != last_user).map(|text| text.text.decode()))
    }

    /// What the capability is read from: the last user message and, when that is another, the first, each as one text.
    /// Of a message of several parts only the ends of each part are copied.
    pub fn telling_turns(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let last = self.last_user_message();
        let first = self.texts.iter().find(|text| text.role == Role::User).map(|text| text.message);
        let turns = [last, first.filter(|_| first != last)];
        turns.into_iter().flatten().map(|message| self.whole_message(message))
    }

    fn whole_message(&self, message: usize) -> Cow<'a, str> {
        let mut parts = self
            .texts
            .iter()
            .filter(|text| text.message == message)
            .map(|text| text.text.decode())
            .peekable();
        let first = parts.next().unwrap_or_default();
        if parts.peek().is_none() {
            return first;
        }
        let mut whole = String::new();
        for part in std::iter::once(first).chain(parts) {
            let [head, tail] = ends(&part);
            whole.extend([head, tail, "\n"]);
        }
        whole.into()
    }

    /// The texts of the last user message alone.
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
        quarters.div_ceil(4) + self.other_tokens
    }
}

/// The beginning and the end of a part of a message, enough to tell what is asked for; the second is empty when the first
/// is all of it.
fn ends(part: &str) -> [&str; 2] {
    const END: usize = 2 << 10;
    if part.len() <= 2 * END {
        return [part, ""];
    }
    [&part[..part.floor_char_boundary(END)], &part[part.ceil_char_boundary(part.len() - END)..]]
}
