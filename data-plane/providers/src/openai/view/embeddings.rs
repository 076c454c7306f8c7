//! `POST /v1/embeddings`.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::read_model;
use crate::json::{self, InvalidBody, JsonStr, span_of};
use crate::tokens;

/// What routing needs of an embeddings request. Borrows from the body.
#[derive(Debug, Clone)]
pub struct EmbeddingsView<'a> {
    /// The model asked for; `None` when absent or `null`.
    pub model: Option<Cow<'a, str>>,
    /// Where the value of `model` stands in the body, quotes included; `None` when there is no such field.
    pub model_span: Option<Range<usize>>,
    /// How many inputs are to be embedded.
    pub inputs: usize,
    /// The `user` field.
    pub user: Option<Cow<'a, str>>,
    texts: Vec<JsonStr<'a>>,
    /// Inputs given as token numbers need no estimate.
    tokens: u64,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "json::raw")]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    user: Option<&'a RawValue>,
}

/// Reads an embeddings request.
///
/// # Errors
/// When the body is not JSON, when `input` is missing or neither a string nor an array of strings, of token numbers or of
/// arrays of them, or when a field of [`EmbeddingsView`] has the wrong type or occurs twice.
pub fn embeddings(body: &[u8]) -> Result<EmbeddingsView<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let (model, model_span) = read_model(body, parsed.model)?;
    let user = parsed.user.and_then(JsonStr::new).map(JsonStr::decode);
    let mut view = EmbeddingsView { model, model_span, inputs: 1, user, texts: Vec::new(), tokens: 0 };
    if let Some(text) = JsonStr::new(parsed.input) {
        view.texts.push(text);
    } else {
        view.read_array(parsed.input).ok_or_else(|| {
            let reason = "`input` must be a string or an array of strings or of tokens";
            InvalidBody::wrong_shape(reason, body, span_of(body, parsed.input.get()).start)
        })?;
    }
    Ok(view)
}

impl<'a> EmbeddingsView<'a> {
    fn read_array(&mut self, input: &'a RawValue) -> Option<()> {
        let items: Vec<&'a RawValue> = serde_json::from_str(input.get()).ok()?;
        self.inputs = items.len();
        for item in items {
            match item.get().as_bytes()[0] {
                b'"' => self.texts.extend(JsonStr::new(item)),
                // One flat array of numbers is a single input.
                b'0'..=b'9' => {
                    self.inputs = 1;
                    self.tokens += 1;
                }
                b'[' => self.tokens += serde_json::from_str::<Vec<IgnoredAny>>(item.get()).ok()?.len() as u64,
                _ => return None,
            }
        }
        Some(())
    }

    /// The inputs that are text, in order.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'a, str>> {
        self.texts.iter().map(|text| text.decode())
    }

    /// A guess at the tokens the vendor will count; exact where the input is token numbers.
    #[must_use]
    pub fn estimated_prompt_tokens(&self) -> u64 {
        self.texts.iter().map(|text| tokens::quarters(text.escaped())).sum::<u64>().div_ceil(4) + self.tokens
    }
}
