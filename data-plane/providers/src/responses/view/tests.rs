use proptest::prelude::*;

use super::*;
use crate::json::{InvalidKind, quote};

#[test]
fn a_rich_request_is_seen_as_a_whole() {
    let body = r#"{"model":"gpt-x","instructions":"Be brief.","stream":true,"max_output_tokens":7,"user":"old","safety_identifier":"u-1",
      "tools":[{"type":"function","name":"f"},{"type":"web_search"}],
      "input":[
        {"role":"user","content":"one"},
        {"type":"reasoning","summary":[],"encrypted_content":"xx"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"tw\u006f"}]},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"42"}]},
        {"type":"message","role":"user","content":[{"type":"input_text","text":"last"},{"type":"input_image","image_url":"data:image/png;base64,aa"}]},
        {"type":"of_tomorrow","content":{"x":[1e999]}}
      ]}"#;
    let seen = view(body.as_bytes()).unwrap();
    assert_eq!(seen.model.as_deref(), Some("gpt-x"));
    assert_eq!(&body[seen.model_span.clone().unwrap()], "\"gpt-x\"");
    assert!(seen.stream && seen.include_usage && seen.system_prompt && seen.images);
    assert_eq!((seen.message_count, seen.tools, seen.max_tokens), (8, 2, Some(7)));
    assert_eq!(seen.user.as_deref(), Some("u-1"));
    assert_eq!(seen.texts().collect::<Vec<_>>(), ["last", "42", "two", "one", "Be brief."]);
}

#[test]
fn a_string_is_one_message_of_the_user() {
    let seen = view(br#"{"input":"hi"}"#).unwrap();
    assert_eq!((seen.message_count, seen.model.as_deref(), seen.stream), (1, None, false));
    assert_eq!(seen.last_user_texts().collect::<Vec<_>>(), ["hi"]);
    assert!(!seen.system_prompt && !seen.images);
}

#[test]
fn a_request_that_lives_at_the_service_needs_no_input() {
    let seen = view(br#"{"model":"m","previous_response_id":"resp_1","input":null}"#).unwrap();
    assert_eq!((seen.message_count, seen.model.as_deref()), (0, Some("m")));
}

#[test]
fn a_wrong_shape_is_refused_with_its_place() {
    for body in [r#"{"input":1}"#, r#"{"input":["a"]}"#, r#"{"input":{"role":"user"}}"#, r#"{"model":1}"#] {
        let error = view(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind, InvalidKind::WrongShape, "{body}");
    }
    assert_eq!(view(b"{\"model\":\"a\",\n\"input\":1}").unwrap_err().line, 2);
    assert_eq!(view(br#"{"model":"a","model":"b"}"#).unwrap_err().kind, InvalidKind::WrongShape);
    assert_eq!(view(b"{").unwrap_err().kind, InvalidKind::NotJson);
}

#[test]
fn temperature_and_conversation_are_noticed() {
    let seen = |body: &str| {
        let seen = view(body.as_bytes()).unwrap();
        (seen.temperature, seen.session.map(Cow::into_owned))
    };
    let conv = Some("conv_1".to_owned());
    assert_eq!(seen(r#"{"temperature":0.5,"conversation":"conv_1"}"#), (Some(0.5), conv.clone()));
    assert_eq!(seen(r#"{"conversation":{"id":"conv_1"}}"#), (None, conv));
    for other in ["null", "5", "{}", r#"{"id":5}"#] {
        assert_eq!(seen(&format!(r#"{{"conversation":{other}}}"#)), (None, None), "{other}");
    }
}

proptest! {
    #[test]
    fn any_model_and_any_text_are_found(model in any::<String>(), text in any::<String>()) {
        let body = format!(r#"{{"input":[{{"role":"user","content":{0}}}],"model":{1}}}"#, quote(&text), quote(&model));
        let seen = view(body.as_bytes()).unwrap();
        prop_assert_eq!(seen.model.as_deref(), Some(model.as_str()));
        let texts: Vec<_> = seen.texts().collect();
        prop_assert_eq!(texts, [text.as_str()]);
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = view(&body);
    }
}
