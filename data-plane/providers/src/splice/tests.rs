use proptest::prelude::*;

use super::*;
use crate::openai::view::chat;

fn joined(body: SplicedBody) -> Vec<u8> {
    let length = body.len();
    let bytes: Vec<u8> = body.into_segments().flatten().collect();
    assert_eq!(bytes.len(), length);
    bytes
}

fn replaced(body: &str, model: &str) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let span = chat(&body).unwrap().model_span;
    String::from_utf8(joined(replace_model(&body, span, &ModelName::new(model)))).unwrap()
}

#[test]
fn only_the_value_of_model_changes() {
    let body = "{ \"x\":{\"model\":\"inner\"} ,\"model\"\t:\n\"old\" , \"messages\":[],\"n\":1e400 }";
    assert_eq!(replaced(body, "new"), body.replace("\"old\"", "\"new\""));
    assert_eq!(replaced(r#"{"messages":[],"model":null}"#, "new"), r#"{"messages":[],"model":"new"}"#);
    assert_eq!(
        replaced(r#"{"mod\u0065l":"a\"b","messages":[]}"#, "n\"1"),
        r#"{"mod\u0065l":"n\"1","messages":[]}"#
    );
}

#[test]
fn a_body_without_a_model_gets_one_in_front() {
    assert_eq!(replaced(" { \"messages\":[]}", "m"), " {\"model\":\"m\", \"messages\":[]}");
    let empty = joined(replace_model(&Bytes::from_static(b"{ }"), None, &ModelName::new("m")));
    assert_eq!(empty, b"{\"model\":\"m\" }");
}

#[test]
fn unknown_fields_and_large_numbers_arrive_unchanged_tr_09() {
    let rest = r#""enable_thinking":false,"chat_template_kwargs":{"a":1},"x_new":{"big":12345678901234567890,"e":1.50e+3}"#;
    let body = format!(r#"{{"model":"alias","messages":[],{rest}}}"#);
    assert_eq!(
        replaced(&body, "deepseek-chat"),
        format!(r#"{{"model":"deepseek-chat","messages":[],{rest}}}"#)
    );
}

#[test]
fn the_body_is_neither_copied_nor_cut_up_when_the_model_stays() {
    let body = Bytes::from_static(br#"{"model":"same","messages":[]}"#);
    let span = chat(&body).unwrap().model_span;
    let segments: Vec<Bytes> =
        replace_model(&body, span.clone(), &ModelName::new("same")).into_segments().collect();
    assert_eq!(segments, std::slice::from_ref(&body));
    let segments: Vec<Bytes> = replace_model(&body, span, &ModelName::new("other")).into_segments().collect();
    assert_eq!(segments[0].as_ptr(), body.as_ptr());
    assert_eq!(segments[2].as_ptr(), body[15..].as_ptr());
}

/// JSON text with arbitrary white space, escapes and nesting.
fn json_text() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        any::<String>().prop_map(|text| quote(&text)),
        Just(r#""\u006dodel""#.to_owned()),
        Just(r#""\"model\":\"x\"""#.to_owned()),
        Just(r#""half \ud83d""#.to_owned()),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-12345678901234567890.5e+99".to_owned()),
        Just("true".to_owned()),
        string,
    ];
    let space = || "[ \t\r\n]{0,3}";
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let item =
            (space(), inner, space()).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
        let member = (
            prop_oneof![Just("\"model\"".to_owned()), any::<String>().prop_map(|s| quote(&s))],
            item.clone(),
        )
            .prop_map(|(key, value)| format!("{key}:{value}"));
        prop_oneof![
            proptest::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn everything_outside_the_model_is_the_same_bytes_in_any_object(
        before in proptest::collection::vec(json_text(), 0..3),
        after in proptest::collection::vec(json_text(), 0..3),
        space in "[ \t\r\n]{0,4}",
        old in any::<String>(),
        new in any::<String>(),
    ) {
        let field = |(index, value): (usize, &String)| format!("{space}\"f{index}\"{space}:{space}{value}{space}");
        let mut head: Vec<String> = before.iter().enumerate().map(field).collect();
        head.push(format!("{space}\"messages\":[]{space}"));
        let tail: String = after.iter().enumerate().map(|(i, value)| format!(",\"g{i}\":{value}{space}")).collect();
        let with = |model: &str| format!("{space}{{{},\"model\"{space}:{space}{model}{space}{tail}}}{space}", head.join(","));

        let result = replaced(&with(&quote(&old)), &new);
        prop_assert_eq!(&result, &with(&quote(&new)));

        let without = format!("{space}{{{}{tail}}}", head.join(","));
        let result = replaced(&without, &new);
        prop_assert_eq!(result.replacen(&format!("\"model\":{},", quote(&new)), "", 1), without);
prop_assert_eq!(&replaced(&with("null"), &new), &with(&quote(&new)));
        prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&result).is_ok());
        let view = chat(result.as_bytes()).unwrap();
        prop_assert_eq!(view.model.as_deref(), Some(new.as_str()));
    }
}
