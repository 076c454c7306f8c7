//! Penstock's own simple call, `POST /api/invoke`, on top of a chat completion.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use crate::json::{self, InvalidBody, quote};

/// An `/api/invoke` request: `{"prompt": …, "capability"?: …, "model"?: …, "stream"?: …}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InvokeView<'a> {
    /// What the user says.
    #[serde(borrow)]
    pub prompt: Cow<'a, str>,
    /// The capability to use instead of the one read from the prompt.
    #[serde(borrow)]
    pub capability: Option<Cow<'a, str>>,
    /// The model to use instead of the policy's choice.
    #[serde(borrow)]
    pub model: Option<Cow<'a, str>>,
    /// Is the answer to be streamed?
    #[serde(default)]
    pub stream: bool,
}

/// Reads an `/api/invoke` request.
///
/// # Errors
/// When the body is not a JSON object, when `prompt` is not a string, or when a field has the wrong type or occurs twice.
pub fn view(body: &[u8]) -> Result<InvokeView<'_>, InvalidBody> {
    json::parse_object(body)
}

/// The chat request that asks `model` the prompt as one user message.
#[must_use]
pub fn chat_body(prompt: &str, model: &str, stream: bool) -> Bytes {
    let (model, prompt) = (quote(model), quote(prompt));
    let stream = if stream { r#","stream":true,"stream_options":{"include_usage":true}"# } else { "" };
    format!(r#"{{"model":{model},"messages":[{{"role":"user","content":{prompt}}}]{stream}}}"#).into()
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    reasoning_content: Option<String>,
    refusal: Option<String>,
}

/// The answer's text in a chat completion: the first choice's content, else what it says in its place. `None` when this
/// is no chat completion with text in it.
#[must_use]
pub fn answer(body: &[u8]) -> Option<String> {
    let completion: Completion = serde_json::from_slice(body).ok()?;
    let message = completion.choices.into_iter().next()?.message;
    let texts = [message.content, message.refusal, message.reasoning_content];
    texts.into_iter().flatten().find(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::view::chat;

    #[test]
    fn a_prompt_becomes_one_user_message_for_the_chosen_model() {
        let body = chat_body("say \"hi\"\n你好", "m\"1", true);
        let view = chat(&body).unwrap();
        assert_eq!(view.model.as_deref(), Some("m\"1"));
        assert_eq!(view.texts().collect::<Vec<_>>(), ["say \"hi\"\n你好"]);
        assert!(view.stream && view.include_usage);
        assert!(!chat(&chat_body("a", "m", false)).unwrap().stream);
    }

    #[test]
    fn the_answer_is_the_first_choices_text() {
        let body =
            br#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello \u4f60"}}]}"#;
        assert_eq!(answer(body).as_deref(), Some("hello 你"));
        let refused = br#"{"choices":[{"message":{"content":null,"refusal":"no"}}]}"#;
        assert_eq!(answer(refused).as_deref(), Some("no"));
        assert_eq!(answer(br#"{"choices":[]}"#), None);
        assert_eq!(answer(b"<html>"), None);
    }

    #[test]
    fn a_request_without_a_prompt_is_refused() {
        let view = view(br#"{"prompt":"hi","capability":"code","more":1}"#).unwrap();
        assert_eq!(
            (view.prompt.as_ref(), view.capability.as_deref(), view.stream),
            ("hi", Some("code"), false)
        );
        let error = super::view(br#"{"capability":"code"}"#).unwrap_err();
        assert_eq!(error.reason, "missing field `prompt`");
        assert!(super::view(br#"{"prompt":1}"#).is_err());
    }
}
