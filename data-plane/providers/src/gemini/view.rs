//! What routing needs of `generateContent` and of `countTokens`.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::{self, InvalidBody, JsonStr};
use crate::tokens;
use crate::view::{Role, View};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    contents: Option<Vec<Content<'a>>>,
    #[serde(borrow, alias = "system_instruction")]
    system_instruction: Option<Content<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, alias = "generation_config")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
    #[serde(alias = "response_schema")]
    response_schema: Option<IgnoredAny>,
    #[serde(alias = "response_json_schema")]
    response_json_schema: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Content<'a> {
    role: Option<Role>,
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow, alias = "inline_data")]
    inline_data: Option<Data<'a>>,
    #[serde(borrow, alias = "file_data")]
    file_data: Option<Data<'a>>,
    #[serde(borrow, alias = "function_call")]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, alias = "function_response")]
    function_response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    #[serde(alias = "function_declarations")]
    function_declarations: Option<Vec<IgnoredAny>>,
}

/// Reads a request. The model, and whether the answer is streamed, are what the path says.
///
/// # Errors
/// When the body is not JSON, when `contents` is not an array of objects, or when a field of [`View`] has the wrong type
/// or occurs twice.
pub fn view<'a>(body: &'a [u8], model: &'a str, stream: bool) -> Result<View<'a>, InvalidBody> {
    let body: Body<'a> = json::parse_object(body)?;
    Ok(view_of(&body, model, stream))
}

/// Reads a `countTokens` request: `contents` alone, or a whole request in `generateContentRequest`.
///
/// # Errors
/// As [`view`].
pub fn count_tokens_view<'a>(body: &'a [u8], model: &'a str) -> Result<View<'a>, InvalidBody> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Count<'a> {
        #[serde(borrow, alias = "generate_content_request")]
        generate_content_request: Option<Body<'a>>,
    }
    let count: Count<'a> = json::parse_object(body)?;
    match count.generate_content_request {
        Some(request) => Ok(view_of(&request, model, false)),
        None => view(body, model, false),
    }
}

fn view_of<'a>(body: &Body<'a>, model: &'a str, stream: bool) -> View<'a> {
    let contents = body.contents.as_deref().unwrap_or_default();
    let config = body.generation_config.as_ref();
    let mut view = View {
        model: Some(Cow::Borrowed(model)),
        stream,
        include_usage: true,
        message_count: contents.len(),
        system_prompt: body.system_instruction.is_some(),
        max_tokens: config.and_then(|config| config.max_output_tokens),
        json_schema: config
            .is_some_and(|config| config.response_schema.is_some() || config.response_json_schema.is_some()),
        ..View::default()
    };
    view.read_temperature(config.and_then(|config| config.temperature));
    view.push_tokens(tokens::PER_MESSAGE * contents.len() as u64);
    for tool in body.tools.iter().flatten() {
        let declared =
            serde_json::from_str::<Tool>(tool.get()).ok().and_then(|tool| tool.function_declarations);
        view.push_tools(declared.map_or(1, |all| all.len()), tool.get().len() as u64);
    }
    if let Some(instruction) = &body.system_instruction {
        // A message of its own, before the others.
        read_parts(&mut view, contents.len(), Role::System, instruction);
    }
    for (index, content) in contents.iter().enumerate() {
        read_parts(&mut view, index, content.role.unwrap_or(Role::User), content);
    }
    view
}

fn read_parts<'a>(view: &mut View<'a>, message: usize, role: Role, content: &Content<'a>) {
    for raw in content.parts.iter().flatten() {
        // Of another shape: for the vendor to refuse.
        let Ok(part) = serde_json::from_str::<Part<'a>>(raw.get()) else { continue };
        if let Some(text) = part.text.and_then(JsonStr::new) {
            view.push_text(message, role, text);
        }
        let data = [part.inline_data, part.file_data];
        for data in data.into_iter().flatten() {
            let kind = data.mime_type.and_then(JsonStr::new).map(JsonStr::decode);
            let kind = kind.unwrap_or_default().to_ascii_lowercase();
            if kind.starts_with("image/") {
                view.push_image();
            }
            view.audio |= kind.starts_with("audio/");
        }
        for call in [part.function_call, part.function_response].into_iter().flatten() {
            view.push_tokens((call.get().len() as u64).div_ceil(4));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::InvalidKind;

    #[test]
    fn a_rich_request_is_seen_as_a_whole() {
        let body = r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
            {"role":"user","parts":[{"text":"one"},{"inlineData":{"mimeType":"image/png","data":"aa"}},{"text":"t\u0077o"}]},
            {"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"x":1}}}]},
            {"parts":[{"text":"last"}]}],
            "tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]},{"googleSearch":{}}],
            "generationConfig":{"maxOutputTokens":7,"temperature":1e999},"unknown":[[1e999]]}"#;
        let view = view(body.as_bytes(), "gemini-x", true).unwrap();
        assert_eq!(view.model.as_deref(), Some("gemini-x"));
        assert!(
            view.model_span.is_none()
                && view.stream
                && view.include_usage
                && view.system_prompt
                && view.images
        );
        assert_eq!((view.message_count, view.tools, view.max_tokens), (4, 3, Some(7)));
        assert_eq!(view.last_user_texts().collect::<Vec<_>>(), ["last"]);
        assert_eq!(view.texts().collect::<Vec<_>>(), ["last", "one", "two", "Be brief."]);
    }

    #[test]
    fn snake_case_is_understood_as_the_real_service_does() {
        let body = br#"{"system_instruction":{"parts":[{"text":"s"}]},"contents":[{"parts":[{"inline_data":{"mime_type":"IMAGE/PNG","data":"aa"}}]}],
            "tools":[{"function_declarations":[{},{}]}],"generation_config":{"max_output_tokens":9}}"#;
        let view = view(body, "m", false).unwrap();
        assert!(view.system_prompt && view.images && !view.stream);
        assert_eq!((view.tools, view.max_tokens), (2, Some(9)));
    }

    #[test]
    fn the_temperature_is_noticed() {
        let seen = |body: &str| view(body.as_bytes(), "m", false).unwrap().temperature;
        assert_eq!(seen(r#"{"generationConfig":{"temperature":0.5}}"#), Some(0.5));
        assert_eq!(seen(r#"{"generationConfig":{}}"#), None);
    }

    #[test]
    fn sound_and_a_schema_are_noticed() {
        let seen = |body: &str| view(body.as_bytes(), "m", false).map(|v| (v.audio, v.json_schema)).unwrap();
        let sound = r#"{"contents":[{"parts":[{"fileData":{"mimeType":"Audio/wav","fileUri":"x"}}]}]}"#;
        assert_eq!(seen(sound), (true, false));
        assert_eq!(seen(r#"{"generationConfig":{"responseSchema":{}}}"#), (false, true));
        assert_eq!(seen(r#"{"generation_config":{"response_json_schema":{}}}"#), (false, true));
        assert_eq!(seen(r#"{"generationConfig":{"responseMimeType":"application/json"}}"#), (false, false));
    }

    #[test]
    fn a_wrong_shape_is_refused_by_name() {
        let refused = |body: &str| view(body.as_bytes(), "m", false).unwrap_err();
        assert_eq!(refused("[]").kind, InvalidKind::WrongShape);
        assert_eq!(refused(r#"{"contents":"hi"}"#).kind, InvalidKind::WrongShape);
        assert_eq!(refused(r#"{"contents":[],"contents":[]}"#).reason, "duplicate field `contents`");
        let both = refused(r#"{"generationConfig":{},"generation_config":{}}"#);
        assert_eq!(both.reason, "duplicate field `generationConfig`");
        assert_eq!(refused("{").kind, InvalidKind::NotJson);
    }

    #[test]
    fn tokens_are_counted_of_contents_alone_and_of_a_whole_request() {
        let contents = r#""contents":[{"parts":[{"text":"four letters"}]}]"#;
        let alone = format!("{{{contents}}}");
        assert_eq!(count_tokens_view(alone.as_bytes(), "m").unwrap().estimated_prompt_tokens(), 7);
        let whole = format!(r#"{{"generateContentRequest":{{"model":"models/m",{contents}}}}}"#);
        assert_eq!(count_tokens_view(whole.as_bytes(), "m").unwrap().estimated_prompt_tokens(), 7);
        assert_eq!(crate::gemini::count_tokens_answer(7), r#"{"totalTokens":7}"#);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = view(&body, "m", true);
            let _ = count_tokens_view(&body, "m");
        }
    }
}
