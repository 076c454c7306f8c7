//! `POST /v1/messages`, and `/v1/messages/count_tokens`, which is the same without a limit.

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
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    output_config: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    user_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: Role,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads a request. A tool's results are not what the user said, although they stand in user messages.
///
/// # Errors
/// When the body is not JSON, when `messages` is not an array of objects, or when a field of [`View`] has the wrong type
/// or occurs twice.
pub fn view(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let tools = parsed.tools.iter().flatten();
    let limit = match parsed.max_tokens {
        Some(raw) => Some(serde_json::from_str::<u64>(raw.get()).map_err(|_| {
            let reason = "`max_tokens` must be a whole number";
            InvalidBody::wrong_shape(reason, body, span_of(body, raw.get()).start)
        })?),
        None => None,
    };
    let mut view = View {
        stream: parsed.stream.unwrap_or(false),
        include_usage: true,
        limit_spans: [parsed.max_tokens.map(|raw| span_of(body, raw.get())), None],
        message_count: parsed.messages.len(),
        system_prompt: parsed.messages.iter().any(|message| message.role == Role::System),
        max_tokens: limit,
        user: parsed
            .metadata
            .and_then(|metadata| metadata.user_id)
            .and_then(JsonStr::new)
            .map(JsonStr::decode),
        ..View::default()
    };
    view.read_model(body, parsed.model)?;
    view.read_temperature(parsed.temperature);
    view.read_format_in(parsed.output_config);
    view.push_tools(tools.clone().count(), tools.map(|tool| tool.get().len() as u64).sum());
    view.push_tokens(tokens::PER_MESSAGE * parsed.messages.len() as u64);
    if let Some(system) = parsed.system {
        read_content(&mut view, 0, Role::System, system, true);
    }
    for (index, message) in parsed.messages.iter().enumerate() {
        if let Some(content) = message.content {
            read_content(&mut view, index + 1, message.role, content, true);
        }
    }
    Ok(view)
}

/// Reads a string or blocks. Anything else is for the service to refuse: it has no text for us to see. Blocks within a
/// block are read `nested` one level deep, which is all there is.
fn read_content<'a>(view: &mut View<'a>, message: usize, role: Role, content: &'a RawValue, nested: bool) {
    if let Some(text) = JsonStr::new(content) {
        return view.push_text(message, role, text);
    }
    let blocks: Vec<Block<'a>> = serde_json::from_str(content.get()).unwrap_or_default();
    for block in blocks {
        if let Some(text) = block.text.and_then(JsonStr::new) {
            view.push_text(message, role, text);
        }
        if let Some(input) = block.input {
            view.push_tokens((input.get().len() as u64).div_ceil(4));
        }
        match block.r#type.and_then(JsonStr::new).map(JsonStr::escaped) {
            Some("image") => view.push_image(),
            Some("document") => read_document(view, message, role, block.source),
            Some("tool_result") => {
                if let Some(content) = block.content.filter(|_| nested) {
                    read_content(view, message, Role::Tool, content, false);
                }
            }
            _ => {}
        }
    }
}

/// A document's plain text is text. Any other document counts as one picture, for want of its number of pages.
fn read_document<'a>(view: &mut View<'a>, message: usize, role: Role, source: Option<&'a RawValue>) {
    let document: Option<Document<'a>> = source.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let kind = document.as_ref().and_then(|document| document.r#type).map(RawValue::get);
    match document.and_then(|document| document.data).and_then(JsonStr::new) {
        Some(text) if kind == Some("\"text\"") => view.push_text(message, role, text),
        _ => view.push_tokens(tokens::PER_IMAGE),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::json::InvalidKind;

    #[test]
    fn a_rich_request_is_seen_as_a_whole() {
        let body = r#"{"model":"claude-x","max_tokens":100,"stream":true,"metadata":{"user_id":"u-1"},
            "system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
            "messages":[
              {"role":"user","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"url","url":"x"}}]},
              {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]},
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"42"}]}]},
              {"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}}]}
            ],
            "tools":[{"name":"f","input_schema":{}}],"unknown":{"deep":[1e999]}}"#;
        let view = view(body.as_bytes()).unwrap();
        assert_eq!(view.model.as_deref(), Some("claude-x"));
        assert_eq!(&body[view.model_span.clone().unwrap()], "\"claude-x\"");
        assert_eq!(&body[view.limit_spans[0].clone().unwrap()], "100");
        assert!(view.stream && view.include_usage && view.system_prompt && view.images);
        assert_eq!((view.message_count, view.tools, view.max_tokens), (4, 1, Some(100)));
        assert_eq!(view.user.as_deref(), Some("u-1"));
        assert_eq!(view.texts().collect::<Vec<_>>(), ["doc", "42", "one", "Be brief."]);
        assert!(matches!(view.texts().next(), Some(Cow::Borrowed("doc"))));
        assert!(view.estimated_prompt_tokens() > tokens::PER_IMAGE);
    }

    #[test]
    fn the_temperature_is_noticed() {
        assert_eq!(view(br#"{"messages":[],"temperature":0.5}"#).unwrap().temperature, Some(0.5));
        assert_eq!(view(br#"{"messages":[]}"#).unwrap().temperature, None);
    }

    #[test]
    fn a_schema_for_the_answer_is_noticed() {
        let seen = |config: &str| {
            let body = format!(r#"{{"messages":[],"output_config":{config}}}"#);
            view(body.as_bytes()).unwrap().json_schema
        };
        assert!(seen(r#"{"effort":"low","format":{"type":"json_schema","schema":{}}}"#));
        assert!(!seen(r#"{"effort":"low"}"#) && !seen("null") && !seen("5"));
    }

    #[test]
    fn a_tools_result_is_not_what_the_user_said_last() {
        let body = br#"{"messages":[{"role":"user","content":"ask"},{"role":"assistant","content":"x"},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"found"}]}]}"#;
        let view = view(body).unwrap();
        assert_eq!(view.last_user_texts().collect::<Vec<_>>(), ["ask"]);
        assert!(!view.system_prompt && !view.stream && view.include_usage);
    }

    #[test]
    fn a_string_as_system_and_a_request_to_count_tokens_are_understood() {
        let view =
            view(br#"{"model":"m","system":"s","messages":[{"role":"user","content":"four letters"}]}"#)
                .unwrap();
        assert!(view.system_prompt);
        assert_eq!((view.max_tokens, view.estimated_prompt_tokens()), (None, 4 + 4));
    }

    #[test]
    fn a_wrong_shape_is_refused() {
        for body in [
            "{}",
            r#"{"messages":"hi"}"#,
            r#"{"messages":[],"stream":"yes"}"#,
            r#"{"messages":[],"model":5}"#,
            r#"{"messages":[],"max_tokens":-1}"#,
            r#"{"model":"a","model":"b","messages":[]}"#,
        ] {
            assert_eq!(view(body.as_bytes()).unwrap_err().kind, InvalidKind::WrongShape, "{body}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = view(&body);
        }
    }
}
