//! The calls whose bodies are JSON.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, InvalidBody, JsonStr, span_of};
use crate::openai::view::{read_array, typed};
use crate::view::{Role, View};

/// The fields that any of the calls may have.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "json::raw")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "json::raw")]
    user: Option<&'a RawValue>,
    #[serde(borrow)]
    stream: Option<&'a RawValue>,
    #[serde(borrow)]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow)]
    stream_format: Option<&'a RawValue>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    documents: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// A part of a moderation's input, or a document to rank.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
}

/// What all of them have.
fn open(body: &[u8]) -> Result<(Body<'_>, View<'_>), InvalidBody> {
    let parsed: Body<'_> = json::parse_object(body)?;
    let mut view = View {
        stream: typed(body, "stream", parsed.stream)?.unwrap_or(false),
        user: parsed.user.and_then(JsonStr::new).map(JsonStr::decode),
        message_count: 1,
        // Where these calls are streamed at all, usage comes unasked.
        include_usage: true,
        ..View::default()
    };
    view.read_model(body, parsed.model)?;
    Ok((parsed, view))
}

fn wrong(body: &[u8], raw: &RawValue, reason: &str) -> InvalidBody {
    InvalidBody::wrong_shape(reason, body, span_of(body, raw.get()).start)
}

/// Reads `POST /v1/completions`. A prompt may be absent, and may be text or tokens, one or several.
///
/// # Errors
/// When the body is not JSON, or `prompt` or a field of [`View`] has the wrong type or occurs twice.
pub fn completions(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let (parsed, mut view) = open(body)?;
    let options: Option<StreamOptions> = typed(body, "stream_options", parsed.stream_options)?;
    view.include_usage = options.and_then(|options| options.include_usage).unwrap_or(false);
    view.stream_options_span = parsed.stream_options.map(|raw| span_of(body, raw.get()));
    view.max_tokens = typed(body, "max_tokens", parsed.max_tokens)?;
    view.read_temperature(parsed.temperature);
    view.limit_spans[0] = parsed.max_tokens.map(|raw| span_of(body, raw.get()));
    if let Some(prompt) = parsed.prompt {
        match JsonStr::new(prompt) {
            Some(text) => view.push_text(0, Role::User, text),
            None => read_array(&mut view, prompt).ok_or_else(|| {
                wrong(body, prompt, "`prompt` must be a string or an array of strings or of tokens")
            })?,
        }
    }
    Ok(view)
}

/// Reads `POST /v1/rerank`. The query is what the user says; the documents, strings or objects with a `text`, are counted
/// as messages.
///
/// # Errors
/// When the body is not JSON, `documents` is no array, or a field of [`View`] has the wrong type or occurs twice.
pub fn rerank(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let (parsed, mut view) = open(body)?;
    if let Some(query) = parsed.query.and_then(JsonStr::new) {
        view.push_text(0, Role::User, query);
    }
    let documents: Vec<&RawValue> = typed(body, "documents", parsed.documents)?.unwrap_or_default();
    view.message_count = documents.len();
    for (index, document) in documents.into_iter().enumerate() {
        read_piece(&mut view, index + 1, Role::Other, document);
    }
    Ok(view)
}

/// Reads `POST /v1/moderations`, whose input is a text, or several, or parts as in chat.
///
/// # Errors
/// When the body is not JSON, `input` is missing or has another form, or a field of [`View`] has the wrong type or occurs
/// twice.
pub fn moderations(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let (parsed, mut view) = open(body)?;
    let input = parsed.input.ok_or_else(|| missing(body, "input"))?;
    if let Some(text) = JsonStr::new(input) {
        view.push_text(0, Role::User, text);
        return Ok(view);
    }
    let pieces: Vec<&RawValue> = serde_json::from_str(input.get())
        .map_err(|_| wrong(body, input, "`input` must be a string or an array of strings or of parts"))?;
    for piece in pieces {
        read_piece(&mut view, 0, Role::User, piece);
    }
    Ok(view)
}

/// Reads `POST /v1/images/generations`.
///
/// # Errors
/// When the body is not JSON, `prompt` is no string, or a field of [`View`] has the wrong type or occurs twice.
pub fn images_generations(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let (parsed, mut view) = open(body)?;
    let prompt = parsed.prompt.ok_or_else(|| missing(body, "prompt"))?;
    let text = JsonStr::new(prompt).ok_or_else(|| wrong(body, prompt, "`prompt` must be a string"))?;
    view.push_text(0, Role::User, text);
    Ok(view)
}

/// Reads `POST /v1/audio/speech`. It is streamed when `stream_format` is `sse`.
///
/// # Errors
/// When the body is not JSON, `input` is no string, or a field of [`View`] has the wrong type or occurs twice.
pub fn audio_speech(body: &[u8]) -> Result<View<'_>, InvalidBody> {
    let (parsed, mut view) = open(body)?;
    let input = parsed.input.ok_or_else(|| missing(body, "input"))?;
    let text = JsonStr::new(input).ok_or_else(|| wrong(body, input, "`input` must be a string"))?;
    if let Some(instructions) = parsed.instructions.and_then(JsonStr::new) {
        view.push_text(0, Role::System, instructions);
    }
    view.push_text(1, Role::User, text);
    view.stream |= parsed.stream_format.is_some_and(|format| format.get() == "\"sse\"");
    Ok(view)
}

fn missing(body: &[u8], name: &str) -> InvalidBody {
    InvalidBody::wrong_shape(&format!("missing field `{name}`"), body, body.len())
}

/// A text, or an object with one. Anything else is for the vendor to refuse: it has no text for us to see.
fn read_piece<'a>(view: &mut View<'a>, message: usize, role: Role, raw: &'a RawValue) {
    if let Some(text) = JsonStr::new(raw) {
        return view.push_text(message, role, text);
    }
    let Ok(part) = serde_json::from_str::<Part<'a>>(raw.get()) else { return };
    if let Some(text) = part.text.and_then(JsonStr::new) {
        view.push_text(message, role, text);
    }
    if part.image_url.is_some() {
        view.push_image();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::InvalidKind;

    fn texts(view: &View<'_>) -> Vec<String> {
        view.texts().map(std::borrow::Cow::into_owned).collect()
    }

    #[test]
    fn a_completion_is_seen_like_a_chat() {
        let body = br#"{"model":"m","prompt":"Once","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"user":"u"}"#;
        let view = completions(body).unwrap();
        assert_eq!(&body[view.model_span.clone().unwrap()], b"\"m\"");
        assert_eq!((view.stream, view.include_usage, view.max_tokens), (true, true, Some(9)));
        assert_eq!(&body[view.stream_options_span.clone().unwrap()], br#"{"include_usage":true}"#);
        assert_eq!((texts(&view), view.user.as_deref()), (vec!["Once".to_owned()], Some("u")));
        let several = completions(br#"{"prompt":["a","b"]}"#).unwrap();
        assert_eq!((texts(&several).len(), several.message_count, several.include_usage), (2, 2, false));
        assert_eq!(completions(br#"{"prompt":[1,2,3]}"#).unwrap().estimated_prompt_tokens(), 3);
        assert_eq!(completions(br#"{"prompt":[[1,2],[3]]}"#).unwrap().message_count, 2);
        assert!(completions(b"{}").is_ok());
    }

    #[test]
    fn a_ranking_shows_its_query_first_and_counts_its_documents() {
        let view =
            rerank(br#"{"model":"r","query":"q","documents":["a",{"text":"b"},{"image":"x"}]}"#).unwrap();
        assert_eq!(view.message_count, 3);
        assert_eq!(texts(&view), ["q", "b", "a"]);
        assert_eq!(view.last_user_texts().collect::<Vec<_>>(), ["q"]);
    }

    #[test]
    fn a_moderation_takes_texts_and_parts() {
        assert_eq!(texts(&moderations(br#"{"input":"a"}"#).unwrap()), ["a"]);
        let body =
            br#"{"input":["a",{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"u"}}]}"#;
        let view = moderations(body).unwrap();
        assert_eq!((texts(&view), view.images), (vec!["a".to_owned(), "b".to_owned()], true));
    }

    #[test]
    fn pictures_and_speech_show_their_text() {
        let view = images_generations(br#"{"prompt":"a cat","stream":true,"user":"u"}"#).unwrap();
        assert_eq!(
            (texts(&view), view.stream, view.model.as_deref()),
            (vec!["a cat".to_owned()], true, None)
        );
        let view = audio_speech(
            br#"{"model":"tts","input":"hello","voice":"x","instructions":"slowly","stream_format":"sse"}"#,
        )
        .unwrap();
        assert_eq!(
            (texts(&view), view.stream, view.system_prompt),
            (vec!["hello".to_owned(), "slowly".to_owned()], true, true)
        );
    }

    #[test]
    fn a_wrong_shape_is_refused_by_name() {
        type Read = fn(&[u8]) -> Result<View<'_>, InvalidBody>;
        let cases: [(Read, &str, &str); 7] = [
            (completions, r#"{"prompt":{}}"#, "`prompt`"),
            (completions, r#"{"stream":"yes"}"#, "`stream`"),
            (rerank, r#"{"documents":"a"}"#, "`documents`"),
            (moderations, "{}", "`input`"),
            (images_generations, r#"{"prompt":["a"]}"#, "`prompt`"),
            (audio_speech, r#"{"input":1}"#, "`input`"),
            (audio_speech, r#"{"input":"a","model":"b","model":"c"}"#, "`model`"),
        ];
        for (read, body, name) in cases {
            let error = read(body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, InvalidKind::WrongShape, "{body}");
            assert!(error.reason.contains(name), "{error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..128)) {
            for read in [completions, rerank, moderations, images_generations, audio_speech] {
                let _ = read(&body);
            }
        }
    }
}
