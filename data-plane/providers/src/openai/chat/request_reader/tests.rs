use serde_json::{Value, json};

use super::*;
use crate::exchange::{CacheHint, Part, Reasoning, Role, Signature, Source, ToolChoice, ToolKind};

fn request(body: &Value) -> Request {
    read(body.to_string().as_bytes()).unwrap()
}

fn refused(body: &Value) -> Field {
    read(body.to_string().as_bytes()).unwrap_err()
}

fn parts(message: Value) -> Vec<Part> {
    request(&json!({ "messages": [message] })).turns.remove(0).parts
}

#[test]
fn content_beside_tool_calls_may_be_null_empty_or_absent_tr_04() {
    let call = json!({"id": "t1", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    for message in [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        json!({"role": "assistant", "tool_calls": [call]}),
    ] {
        let parts = parts(message);
        assert!(matches!(parts.as_slice(), [Part::ToolCall(call)] if call.id == "t1"), "{parts:?}");
    }
}

#[test]
fn either_limit_is_the_limit_and_two_that_differ_are_refused_tr_05() {
    for limits in [
        json!({"messages": [], "max_tokens": 64}),
        json!({"messages": [], "max_completion_tokens": 64}),
        json!({"messages": [], "max_tokens": 64, "max_completion_tokens": 64}),
        json!({"messages": [], "max_tokens": null, "max_completion_tokens": 64}),
    ] {
        let request = request(&limits);
        assert_eq!(request.output.max_tokens, Some(64));
        assert!(request.extra.is_empty());
    }
    let error = refused(&json!({"messages": [], "max_tokens": 64, "max_completion_tokens": 65}));
    assert_eq!(error.field, "max_tokens");
}

#[test]
fn data_urls_are_read_whatever_their_case_and_parameters_tr_07() {
    for (url, kind, data) in [
        ("data:image/jpg;base64,/9j/2Q==", "image/jpeg", "/9j/2Q=="),
        ("data:image/svg+xml;base64,PHN2Zy8+", "image/svg+xml", "PHN2Zy8+"),
        ("data:image/png;charset=x;base64,iVBORw0KGgo=", "image/png", "iVBORw0KGgo="),
        ("data:IMAGE/PNG;base64,iVBORw0KGgo=", "image/png", "iVBORw0KGgo="),
        ("DATA:image/png;BASE64,iVBORw0KGgo=", "image/png", "iVBORw0KGgo="),
    ] {
        let image = json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
        let parts = parts(json!({"role": "user", "content": [image]}));
        let [Part::Image(image)] = parts.as_slice() else { panic!("{parts:?}") };
        assert_eq!(image.media_type.as_deref(), Some(kind));
        assert_eq!(image.source, Source::Base64(data.to_owned()));
        assert_eq!(image.detail.as_deref(), Some("low"));
    }
    for url in ["data:image/png", "data:image/svg+xml,<svg/>", "data:base64,x"] {
        let image = json!({"type": "image_url", "image_url": {"url": url}});
        let error = refused(&json!({"messages": [{"role": "user", "content": ["a", image]}]}));
        assert_eq!(error.field, "messages[0].content[1].image_url.url");
    }
}

#[test]
fn unknown_fields_are_kept_with_their_place_tr_09() {
    let request = request(&json!({
        "messages": [{"role": "assistant", "content": "Once", "prefix": true, "refusal": null}],
        "enable_thinking": false,
        "chat_template_kwargs": {"a": 1},
        "x_new": {"big": 12_345_678_901_234_567_890_u64},
        "stream_options": {"include_usage": true, "include_obfuscation": false},
        "tools": [{"type": "function", "function": {"name": "f", "x": 1}}],
        "nothing": null,
    }));
    let expected = json!({
        "messages[0].prefix": true,
        "enable_thinking": false,
        "chat_template_kwargs": {"a": 1},
        "x_new": {"big": 12_345_678_901_234_567_890_u64},
        "stream_options.include_obfuscation": false,
        "tools[0].function.x": 1,
    });
    assert_eq!(Value::Object(request.extra), expected);
    assert!(request.include_usage);
}

#[test]
fn arguments_are_an_object_or_nothing_and_all_else_is_refused_by_the_calls_id_tr_14() {
    let message = |arguments: &Value| {
        json!({"role": "assistant", "tool_calls": [
            {"id": "call_7", "type": "function", "function": {"name": "now", "arguments": arguments}}
        ]})
    };
    for (written, read) in [
        (json!(""), "{}"),
        (json!("  "), "{}"),
        (json!("null"), "{}"),
        (json!(null), "{}"),
        (json!("{}"), "{}"),
        (json!("{\"a\": 1.50}"), "{\"a\": 1.50}"),
        (json!({"a": 1}), "{\"a\":1}"),
    ] {
        let parts = parts(message(&written));
        let [Part::ToolCall(call)] = parts.as_slice() else { panic!("{parts:?}") };
        assert_eq!(call.arguments, read);
    }
    for wrong in ["{\"a\":", "[1]", "text", "{} {}"] {
        let error = refused(&json!({"messages": [message(&json!(wrong))]}));
        assert_eq!(error.field, "messages[0].tool_calls[0].function.arguments");
        assert!(error.reason.contains("call_7"), "{error}");
    }
}

#[test]
fn reasoning_sent_back_comes_first_and_signed_tr_08() {
    let parts = parts(json!({
        "role": "assistant",
        "content": "91 = 7 * 13",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "7", "index": 0},
            {"type": "reasoning.text", "text": "*13", "index": 0},
            {"type": "reasoning.text", "signature": "c2ln", "format": "anthropic", "index": 0},
            {"type": "reasoning.encrypted", "data": "x", "format": "anthropic", "index": 1},
            {"type": "reasoning.text", "text": "", "signature": "c2lu", "format": "anthropic", "index": 2},
            {"type": "reasoning.text", "text": "", "index": 3}
        ],
    }));
    let block = |text: &str, value: &str, redacted| {
        let signature = Some(Signature { wire: Wire::Anthropic, value: value.to_owned() });
        Part::Reasoning(Reasoning { text: text.to_owned(), signature, redacted })
    };
    let expected = [
        block("7*13", "c2ln", false),
        block("", "x", true),
        block("", "c2lu", false),
        Part::text("91 = 7 * 13"),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn text_and_signature_kept_apart_by_the_client_find_each_other_tr_08() {
    let parts = parts(json!({
        "role": "assistant",
        "reasoning_content": "7*13",
        "reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", "format": "anthropic"}],
    }));
    let [Part::Reasoning(block)] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!(block.text, "7*13");
    assert_eq!(block.signature.as_ref().and_then(|s| s.for_wire(Wire::Anthropic)), Some("c2ln"));
}

#[test]
fn every_kind_of_part_has_its_place() {
    let parts = parts(json!({"role": "user", "content": [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "image_url", "image_url": "https://x.example/a.png"},
        {"type": "video_url", "video_url": {"url": "https://x.example/a.mp4"}},
    ]}));
    let [
        Part::Text(text),
        Part::Audio(audio),
        Part::File(pdf),
        Part::File(id),
        Part::Image(image),
        Part::Other { .. },
    ] = parts.as_slice()
    else {
        panic!("{parts:?}")
    };
    assert_eq!(text.cache, Some(CacheHint::Hour));
    assert_eq!(audio.media_type.as_deref(), Some("audio/mpeg"));
    assert_eq!((pdf.name.as_deref(), pdf.media_type.as_deref()), (Some("a.pdf"), Some("application/pdf")));
    assert_eq!(id.source, Source::FileId("file-1".to_owned()));
    assert_eq!(image.source, Source::Url("https://x.example/a.png".to_owned()));
}

#[test]
fn the_old_function_fields_are_calls_and_results_without_an_id() {
    let request = request(&json!({
        "messages": [
            {"role": "user", "content": "Time?"},
            {"role": "assistant", "content": null, "function_call": {"name": "now", "arguments": ""}},
            {"role": "function", "name": "now", "content": "12:00"},
        ],
        "functions": [{"name": "now", "description": "The time", "parameters": {"type": "object"}}],
        "function_call": {"name": "now"},
    }));
    let Part::ToolCall(call) = &request.turns[1].parts[0] else { panic!() };
    let Part::ToolResult(result) = &request.turns[2].parts[0] else { panic!() };
    assert_eq!((call.id.as_str(), call.arguments.as_str()), ("call_1", "{}"));
    assert_eq!((result.call_id.as_str(), result.name.as_deref()), ("call_1", Some("now")));
    assert_eq!(request.turns[2].role, Role::User);
    assert_eq!(request.tools[0].name, "now");
    assert_eq!(request.tool_choice, Some(ToolChoice::Tool("now".to_owned())));
}

#[test]
fn tools_of_other_kinds_and_all_choices_are_read() {
    let choice = |choice: Value| request(&json!({"messages": [], "tool_choice": choice})).tool_choice;
    assert_eq!(choice(json!("auto")), Some(ToolChoice::Auto));
    assert_eq!(choice(json!("none")), Some(ToolChoice::None));
    assert_eq!(choice(json!("required")), Some(ToolChoice::Required));
    let named = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(choice(named.clone()), Some(ToolChoice::Tool("f".to_owned())));
    let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
    let expected = ToolChoice::Allowed { required: true, names: vec!["f".to_owned()] };
    assert_eq!(choice(allowed), Some(expected));
    let custom = json!({"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}});
    let request = request(&json!({"messages": [], "tools": [custom]}));
    assert_eq!((request.tools[0].name.as_str(), &request.tools[0].kind), ("sql", &ToolKind::Other(custom)));
}

#[test]
fn stop_is_a_text_a_list_or_nothing_tr_13() {
    let stops = |stop: Value| request(&json!({"messages": [], "stop": stop})).output.stop;
    assert_eq!(stops(json!("\n")), ["\n"]);
    assert_eq!(stops(json!(["a", " "])), ["a", " "]);
    assert!(stops(json!([])).is_empty() && stops(json!(null)).is_empty());
}

#[test]
fn a_wrong_field_is_named_with_its_place() {
    for (body, field) in [
        (json!({"messages": [{"content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "judge"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user", "content": 7}]}), "messages[0].content"),
        (json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]}), "messages[0].content[0].type"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages[0].tool_call_id"),
        (json!({"messages": [], "temperature": "hot"}), "temperature"),
        (json!({"messages": [], "max_tokens": -1}), "max_tokens"),
        (json!({"messages": [], "tools": [{"type": "function"}]}), "tools[0].function"),
        (json!({"messages": [], "response_format": {"type": "json_schema"}}), "response_format.json_schema"),
    ] {
        assert_eq!(refused(&body).field, field, "{body}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = read(&body);
    }
}
