use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::json::{InvalidKind, quote};

fn reason(body: &str) -> (InvalidKind, String) {
    let error = chat(body.as_bytes()).unwrap_err();
    (error.kind, error.reason)
}

#[test]
fn a_rich_request_is_seen_as_a_whole() {
    let body = r#" {"messages":[
        {"role":"developer","content":"Be brief."},
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aa"}},{"type":"text","text":"t\u0077o"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"t"}]},
        {"role":"tool","tool_call_id":"t","content":"42"},
        {"role":"user","content":"last"}
      ], "model" : "gpt-x", "stream":true, "stream_options":{"include_usage":true,"other":1},
      "tools":[{"type":"function"},{"type":"function"}], "max_tokens":5, "max_completion_tokens":7, "user":"u-1",
      "unknown":{"deep":[[[1e999]]]} }"#;
    let view = chat(body.as_bytes()).unwrap();
    assert_eq!(view.model.as_deref(), Some("gpt-x"));
    assert_eq!(&body[view.model_span.clone().unwrap()], "\"gpt-x\"");
    assert!(view.stream && view.include_usage && view.system_prompt && view.images);
    assert_eq!((view.message_count, view.tools, view.max_tokens), (5, 2, Some(7)));
    assert_eq!(view.user.as_deref(), Some("u-1"));
    assert_eq!(view.texts().collect::<Vec<_>>(), ["last", "42", "one", "two", "Be brief."]);
    assert_eq!(view.last_user_texts().collect::<Vec<_>>(), ["last"]);
    assert!(matches!(view.texts().next(), Some(Cow::Borrowed("last"))));
}

#[test]
fn sound_and_a_schema_are_noticed() {
    let seen = |body: &str| chat(body.as_bytes()).map(|view| (view.audio, view.json_schema)).unwrap();
    let part = r#"{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aa","format":"wav"}}]}]}"#;
    assert_eq!(seen(part), (true, false));
    assert_eq!(seen(r#"{"messages":[],"modalities":["text","audio"],"audio":{"voice":"x"}}"#), (true, false));
    let format = |kind: &str| format!(r#"{{"messages":[],"response_format":{kind},"audio":null}}"#);
    assert_eq!(seen(&format(r#"{"type":"json_schema","json_schema":{"name":"n"}}"#)), (false, true));
    for other in [r#"{"type":"json_object"}"#, "null", "5", r#"{"type":5}"#, "{}"] {
        assert_eq!(seen(&format(other)), (false, false), "{other}");
    }
}

#[test]
fn the_temperature_is_noticed_where_it_is_a_number() {
    let seen = |value: &str| {
        let body = format!(r#"{{"messages":[],"temperature":{value}}}"#);
        chat(body.as_bytes()).unwrap().temperature
    };
    assert_eq!([seen("0.25"), seen("1"), seen("0")], [Some(0.25), Some(1.0), Some(0.0)]);
    assert_eq!([seen("null"), seen("\"hot\""), seen("1e999"), seen("[1]")], [None; 4]);
}

#[test]
fn a_minimal_request_has_nothing_but_its_message() {
    let view =
        chat(br#"{"messages":[{"role":"user","content":"hi"}],"model":null,"stream":null,"tools":null}"#)
            .unwrap();
    assert_eq!(view.model, None);
    assert!(view.model_span.is_some(), "a null is replaced, not doubled");
    assert!(!view.stream && !view.include_usage && !view.system_prompt && !view.images);
    assert_eq!((view.tools, view.max_tokens, view.user), (0, None, None));
    assert_eq!(chat(br#"{"messages":[]}"#).unwrap().model_span, None);
}

#[test]
fn parts_of_the_last_user_message_come_first_and_in_order() {
    let body = br#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":"c"}]}"#;
    assert_eq!(chat(body).unwrap().texts().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn the_last_turn_and_then_the_first_tell_what_is_asked_for() {
    let turns = |body: &str| -> Vec<String> {
        chat(body.as_bytes()).unwrap().telling_turns().map(Cow::into_owned).collect()
    };
    let user = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    assert_eq!(turns(&format!(r#"{{"messages":[{}]}}"#, user("a"))), ["a"]);
    let long =
        [user("a"), r#"{"role":"assistant","content":"b"}"#.to_owned(), user("c"), user("d")].join(",");
    assert_eq!(turns(&format!(r#"{{"messages":[{{"role":"system","content":"s"}},{long}]}}"#)), ["d", "a"]);
    assert_eq!(turns(r#"{"messages":[{"role":"system","content":"s"}]}"#), [""; 0]);
    let parts = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"the text"},{"type":"text","text":"summarize"}]}]}"#;
    assert_eq!(turns(parts), ["the text\nsummarize\n"]);
}

#[test]
fn of_a_long_part_among_several_only_the_ends_are_read() {
    let long = format!("begin{}end", "长".repeat(5_000));
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"{long}"}},{{"type":"text","text":"sum up"}}]}}]}}"#
    );
    let view = chat(body.as_bytes()).unwrap();
    let turn = view.telling_turns().next().unwrap();
    assert!(turn.len() < 5_000, "{} bytes", turn.len());
    assert!(turn.starts_with("begin长") && turn.contains("长end") && turn.ends_with("sum up\n"));
}

#[test]
fn what_is_not_json_is_refused_with_a_position() {
    for body in [
        "",
        "{",
        r#"{"messages":[}"#,
        r#"{"messages":[]} trailing"#,
        r#"{"messages":[],"x":01}"#,
        "\u{FEFF}{}",
    ] {
        assert_eq!(reason(body).0, InvalidKind::NotJson, "{body}");
    }
    let error = chat(b"{\"messages\":\n  [,]}").unwrap_err();
    assert_eq!((error.line, error.column), (2, 4));
    assert_eq!(error.to_string(), "expected value at line 2 column 4");
}

#[test]
fn a_wrong_shape_is_refused_by_name() {
    use InvalidKind::WrongShape;
    assert_eq!(reason("{}"), (WrongShape, "missing field `messages`".into()));
    assert_eq!(reason(r#"{"messages":"hi"}"#).0, WrongShape);
    assert_eq!(reason(r#"{"messages":["hi"]}"#).0, WrongShape);
    assert_eq!(reason(r#"{"messages":[],"stream":"yes"}"#).0, WrongShape);
    assert_eq!(reason(r#"{"messages":[],"model":5}"#), (WrongShape, "`model` must be a string".into()));
    assert_eq!(reason(r#"{"messages":[],"max_tokens":-1}"#).0, WrongShape);
    assert_eq!(reason(r#"["m",true]"#), (WrongShape, "the body must be a JSON object".into()));
    assert_eq!(reason("null").0, WrongShape);
}

#[test]
fn a_doubled_field_is_refused_because_two_readers_may_take_different_ones() {
    assert_eq!(reason(r#"{"model":"a","model":"b","messages":[]}"#).1, "duplicate field `model`");
    assert_eq!(reason(r#"{"model":"a","mod\u0065l":"b","messages":[]}"#).1, "duplicate field `model`");
    assert_eq!(reason(r#"{"stream":false,"messages":[],"stream":true}"#).1, "duplicate field `stream`");
    assert_eq!(reason(r#"{"messages":[],"messages":[]}"#).1, "duplicate field `messages`");
}

#[test]
fn a_reason_does_not_grow_with_the_body() {
    let body = format!(r#"{{"messages":[],"stream":"{}"}}"#, "x".repeat(1 << 20));
    assert!(reason(&body).1.len() <= 200);
}

#[test]
fn embeddings_inputs_of_all_four_shapes_are_counted() {
    let view = |input: &str| -> (usize, Vec<String>, u64) {
        let body = format!(r#"{{"model":"e","input":{input}}}"#);
        let view = embeddings(body.as_bytes()).unwrap();
        assert_eq!(&body[view.model_span.clone().unwrap()], "\"e\"");
        (view.message_count, view.texts().map(Cow::into_owned).collect(), view.estimated_prompt_tokens())
    };
    assert_eq!(view(r#""four letters""#), (1, vec!["four letters".into()], 3));
    assert_eq!(view(r#"["a","b\n"]"#).1, ["a", "b\n"]);
    assert_eq!(view("[1,2,3]"), (1, vec![], 3));
    assert_eq!(view("[[1,2],[3]]"), (2, vec![], 3));
    for wrong in [
        r#"{"model":"e"}"#,
        r#"{"input":5}"#,
        r#"{"input":{"a":1}}"#,
        r#"{"input":[{"a":1}]}"#,
        r#"{"input":null}"#,
    ] {
        assert_eq!(embeddings(wrong.as_bytes()).unwrap_err().kind, InvalidKind::WrongShape, "{wrong}");
    }
}

#[test]
fn the_token_estimate_counts_text_tools_images_and_messages() {
    let tokens = |body: &str| chat(body.as_bytes()).unwrap().estimated_prompt_tokens();
    assert_eq!(tokens(r#"{"messages":[{"role":"user","content":"four letters"}]}"#), 3 + 4);
    assert_eq!(tokens(r#"{"messages":[{"role":"user","content":"你好世界"}]}"#), 3 + 4);
    assert_eq!(tokens(r#"{"messages":[],"tools":[{"a":1}]}"#), 2);
    assert_eq!(
        tokens(r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}"#),
        765 + 4
    );
}

proptest! {
    #[test]
    fn any_text_comes_out_as_it_went_in(texts in prop::collection::vec(any::<String>(), 1..5), model in any::<String>()) {
        let messages: Vec<String> =
            texts.iter().map(|text| format!(r#"{{"role":"user","content":{}}}"#, quote(text))).collect();
        let body = format!(r#"{{"messages":[{}],"model":{}}}"#, messages.join(" , "), quote(&model));
        let view = chat(body.as_bytes()).unwrap();
        let seen: Vec<_> = view.texts().map(Cow::into_owned).collect();
        prop_assert_eq!(seen, texts.into_iter().rev().collect::<Vec<_>>());
        let quoted = quote(&model);
        prop_assert_eq!(&body[view.model_span.unwrap()], quoted.as_str());
        prop_assert_eq!(view.model.as_deref(), Some(model.as_str()));
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = chat(&body);
        let _ = embeddings(&body);
    }
}
