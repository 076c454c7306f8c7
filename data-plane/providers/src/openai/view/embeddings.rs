//! `POST /v1/embeddings`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::{self, InvalidBody, JsonStr, span_of};
use crate::view::{Role, View};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "json::raw")]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    user: Option<&'a RawValue>,
}

/// Reads an embeddings request. Its inputs are counted as messages, their texts are one. The token estimate is exact where inputs are token numbers.
///
/// # Errors
/// When the body is not JSON, when `input` is missing or neither a string nor an array of strings, of token numbers or of
/// arrays of them, or when a field of [`View`] has the wrong type or occurs twice.
pub fn embeddings(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let mut view = View { message_count: 1, ..View::default() };
    view.read_model(body, parsed.model)?;
    view.user = parsed.user.and_then(JsonStr::new).map(JsonStr::decode);
    if let Some(text) = JsonStr::new(parsed.input) {
        view.push_text(0, Role::User, text);
    } else {
        read_array(&mut view, parsed.input).ok_or_else(|| {
            let reason = "`input` must be a string or an array of strings or of tokens";
            InvalidBody::wrong_shape(reason, body, span_of(body, parsed.input.get()).start)
        })?;
    }
    Ok(view)
}

/// Adds the texts and tokens of an array of strings, of tokens or of arrays of tokens; `None` when it is none.
pub(in crate::openai) fn read_array<'a>(view: &mut View<'a>, input: &'a RawValue) -> Option<()> {
    let items: Vec<&'a RawValue> = serde_json::from_str(input.get()).ok()?;
    view.message_count = items.len();
    for item in items {
        match item.get().as_bytes()[0] {
            b'"' => view.push_text(0, Role::User, JsonStr::new(item)?),
            // One flat array of numbers is a single input.
            b'0'..=b'9' => {
                view.message_count = 1;
                view.push_tokens(1);
            }
            b'[' => view.push_tokens(serde_json::from_str::<Vec<IgnoredAny>>(item.get()).ok()?.len() as u64),
            _ => return None,
        }
    }
    Some(())
}
