use serde_json::json;

use super::*;
use crate::exchange::{CacheHint, Reasoning, Signature, Source};

fn request(body: Value) -> Request {
    read(body.to_string().as_bytes()).unwrap()
}

fn refused(body: Value) -> Field {
    read(body.to_string().as_bytes()).unwrap_err()
}

#[test]
fn instructions_come_first_and_messages_keep_their_roles_tr_01() {
    let read = request(json!({"instructions": "Answer in French.", "input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "system", "content": "No lists."},
        {"role": "user", "content": "Hi"}
    ]}));
    let said: Vec<(Role, &Part)> = read.turns.iter().map(|turn| (turn.role, &turn.parts[0])).collect();
    let expected = [
        (Role::System, Part::text("Answer in French.")),
        (Role::Developer, Part::text("Be brief.")),
        (Role::System, Part::text("No lists.")),
        (Role::User, Part::text("Hi")),
    ];
    assert_eq!(said, expected.each_ref().map(|(role, part)| (*role, part)));
}

#[test]
fn a_string_is_a_turn_of_the_user() {
    let read = request(json!({"input": "Hi", "stream": true}));
    assert_eq!(read.turns, [Turn::new(Role::User, vec![Part::text("Hi")])]);
    assert!(read.stream && read.include_usage);
}

#[test]
fn thoughts_message_and_calls_are_one_turn_and_each_result_another_tr_03() {
    let read = request(json!({"input": [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking.", "annotations": []}]},
        {"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{\"k\":1}"},
        {"type": "function_call", "call_id": "t2", "name": "f", "arguments": ""},
        {"type": "function_call_output", "call_id": "t2", "output": "B"},
        {"type": "function_call_output", "call_id": "t1", "output": [
            {"type": "input_text", "text": "A"}, {"type": "input_image", "image_url": "https://a.example/i.png"}]},
        {"role": "assistant", "content": "Sunny."},
        {"role": "assistant", "content": "And warm."}
    ]}));
    let shape: Vec<(Role, usize)> = read.turns.iter().map(|turn| (turn.role, turn.parts.len())).collect();
    use Role::{Assistant, User};
    assert_eq!(shape, [(User, 1), (Assistant, 4), (User, 1), (User, 1), (Assistant, 1), (Assistant, 1)]);
    let Part::ToolCall(call) = &read.turns[1].parts[3] else { panic!() };
    assert_eq!((call.id.as_str(), call.arguments.as_str()), ("t2", "{}"), "TR-14");
    let Part::ToolResult(result) = &read.turns[3].parts[0] else { panic!() };
    assert_eq!((result.call_id.as_str(), result.parts.len()), ("t1", 2));
}

#[test]
fn arguments_that_are_no_json_object_are_refused_by_the_calls_id_tr_14() {
    for arguments in ["{", "nonsense", "[1]", "{} {}"] {
        let field = refused(json!({"input": [
            {"type": "function_call", "call_id": "t7", "name": "f", "arguments": arguments}]}));
        assert_eq!(field.field, "input[0].arguments");
        assert!(field.reason.contains("t7"), "{field}");
    }
}

#[test]
fn thoughts_come_back_with_their_signature_and_their_kind_tr_08() {
    let own = Wire::OpenaiResponses;
    let cases = [
        (json!([]), "gAAA", "", own, "gAAA", true),
        (json!([{"type": "summary_text", "text": "so"}]), "gAAA", "so", own, "gAAA", true),
        // Anthropic's: signed without text, signed with text, encrypted.
        (
            json!([{"type": "summary_text", "text": ""}]),
            "penstock-anthropic:c2ln",
            "",
            Wire::Anthropic,
            "c2ln",
            false,
        ),
        (
            json!([{"type": "summary_text", "text": "so"}]),
            "penstock-anthropic:c2ln",
            "so",
            Wire::Anthropic,
            "c2ln",
            false,
        ),
        (json!([]), "penstock-anthropic:c2ln", "", Wire::Anthropic, "c2ln", true),
    ];
    for (summary, encrypted, text, wire, value, redacted) in cases {
        let read = request(json!({"input": [
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": encrypted}]}));
        let signature = Some(Signature { wire, value: value.to_owned() });
        let expected = Reasoning { text: text.to_owned(), signature, redacted };
        assert_eq!(read.turns[0].parts, [Part::Reasoning(expected)]);
    }
    let nothing = request(json!({"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}));
    assert!(nothing.turns.is_empty(), "neither text nor signature");
}

#[test]
fn pictures_files_and_sounds_are_read_in_every_form() {
    let read = request(json!({"input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": "data:IMAGE/JPG;charset=x;base64,/9j/2Q==", "detail": "low"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        {"type": "input_file", "file_url": "https://a.example/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "input_of_tomorrow", "x": 1}
    ]}]}));
    let parts = &read.turns[0].parts;
    let Part::Image(image) = &parts[0] else { panic!() };
    assert_eq!(image.source, Source::Base64("/9j/2Q==".to_owned()));
    assert_eq!((image.media_type.as_deref(), image.detail.as_deref()), (Some("image/jpeg"), Some("low")));
    assert!(matches!(&parts[1], Part::Image(media) if media.source == Source::FileId("file-1".to_owned())));
    assert!(matches!(&parts[2], Part::File(media) if media.name.as_deref() == Some("a.pdf")
        && media.media_type.as_deref() == Some("application/pdf")));
    assert!(matches!(&parts[3], Part::File(media) if matches!(media.source, Source::Url(_))));
    assert!(matches!(&parts[4], Part::Audio(media) if media.media_type.as_deref() == Some("audio/mpeg")));
    assert!(matches!(&parts[5], Part::Text(text) if text.cache == Some(CacheHint::Default)));
    assert!(matches!(&parts[6], Part::Other { wire: Wire::OpenaiResponses, .. }));
}

#[test]
fn what_is_stored_at_the_vendor_is_refused_with_what_to_do_instead() {
    for (name, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!({"id": "conv_1"})),
        ("prompt", json!({"id": "pmpt_1"})),
        ("background", json!(true)),
    ] {
        let field = refused(json!({"input": "Hi", name: value}));
        assert_eq!(field.field, name);
        let nothing = request(json!({"input": "Hi", name: null}));
        assert!(nothing.extra.is_empty());
    }
    let field = refused(json!({"input": [{"type": "item_reference", "id": "rs_1"}]}));
    assert_eq!(field.field, "input[0]");
}

#[test]
fn tools_choices_and_parameters_find_their_place_tr_10() {
    let read = request(json!({
        "model": "m", "input": "Hi",
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true, "defer_loading": true},
            {"type": "web_search", "search_context_size": "low"}
        ],
        "tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": false,
        "temperature": 0.2, "top_p": 1, "top_logprobs": 3, "max_output_tokens": 64,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "detailed", "context": "auto"},
        "metadata": {"a": "b"}, "safety_identifier": "u", "prompt_cache_key": "k", "service_tier": "flex",
        "store": false, "truncation": "disabled", "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "stream_options": {"include_obfuscation": false}, "x_new": {"big": 12345678901234567890_u64}
    }));
    assert_eq!(
        read.tools[0].kind,
        ToolKind::Function { parameters: Some(json!({"type": "object"})), strict: Some(true) }
    );
    assert!(matches!(&read.tools[1], Tool { name, kind: ToolKind::Other(_), .. } if name == "web_search"));
    assert_eq!(read.tool_choice, Some(ToolChoice::Tool("f".to_owned())));
    assert_eq!(read.parallel_tool_calls, Some(false));
    assert_eq!(read.output.max_tokens, Some(64));
    assert_eq!((read.sampling.logprobs, read.sampling.top_logprobs), (Some(true), Some(3)));
    assert!(matches!(read.output.format, Some(Format::JsonSchema(_))));
    let reasoning = read.reasoning.unwrap();
    assert_eq!((reasoning.effort.as_deref(), reasoning.visible), (Some("low"), Some(true)));
    assert_eq!((read.user.as_deref(), read.cache_key.as_deref()), (Some("u"), Some("k")));
    let extra = json!({
        "tools[0].defer_loading": true, "reasoning.summary": "detailed", "reasoning.context": "auto",
        "x_new": {"big": 12345678901234567890_u64}
    });
    assert_eq!(Value::Object(read.extra), extra);
}

#[test]
fn choices_among_tools_are_read_in_every_form() {
    let choice = |value: Value| request(json!({"input": "Hi", "tool_choice": value}));
    let allowed =
        json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]});
    let expected = ToolChoice::Allowed { required: true, names: vec!["f".to_owned()] };
    assert_eq!(choice(allowed).tool_choice, Some(expected));
    for (word, expected) in
        [("auto", ToolChoice::Auto), ("none", ToolChoice::None), ("required", ToolChoice::Required)]
    {
        assert_eq!(choice(json!(word)).tool_choice, Some(expected));
    }
    let hosted = choice(json!({"type": "web_search"}));
    assert_eq!(hosted.tool_choice, None);
    assert_eq!(hosted.extra["tool_choice"], json!({"type": "web_search"}));
}

#[test]
fn a_wrong_form_is_refused_by_its_place() {
    for (body, place) in [
        (json!({"input": 1}), "input"),
        (json!({"input": [{"role": "robot", "content": "x"}]}), "input[0].role"),
        (json!({"input": [{"role": "user"}]}), "input[0].content"),
        (json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}), "input[0].content[0]"),
        (json!({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]}), "input[0].name"),
        (json!({"input": "x", "tools": {}}), "tools"),
        (json!({"input": "x", "max_output_tokens": "many"}), "max_output_tokens"),
        (json!({"input": "x", "text": {"format": {"type": "yaml"}}}), "text.format.type"),
    ] {
        assert_eq!(refused(body).field, place);
    }
}
