//! Requests: chat clients' to a service of this dialect, and what is refused.

use serde_json::{Value, json};

use super::{chat, read_chat, target, translated, write};
use crate::anthropic::Anthropic;
use crate::dialect::{Dialect, Protocol};
use crate::exchange::{
    CacheHint, Media, Part, Reasoning, Request, Role, Signature, Source, ToolCall, Turn, Unwritable,
};
use penstock_model::Vendor;
use penstock_model::vendor::{JsonOutput, Wire};

fn refused(more: &Value) -> Unwritable {
    write(&chat(more), "claude-sonnet-5").unwrap_err()
}

fn two_tools() -> Value {
    json!([{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "b"}}])
}

/// A user's question, an assistant's calls of these ids and arguments, and their results.
fn tool_loop(content: Option<Value>, calls: &[(&str, &str)], results: &[&str]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, arguments)| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}))
        .collect();
    let mut assistant = json!({"role": "assistant", "tool_calls": calls});
    if let Some(content) = content {
        assistant["content"] = content;
    }
    let mut messages = vec![json!({"role": "user", "content": "q"}), assistant];
    messages.extend(
        results.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": format!("r-{id}")})),
    );
    json!({ "messages": messages })
}

#[test]
fn all_instructions_arrive_as_blocks_in_order_tr_01() {
    let (body, _) = translated(&json!({"messages": [
        {"role": "system", "content": "Answer in French."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi"}]}));
    let blocks =
        json!([{"type": "text", "text": "Answer in French."}, {"type": "text", "text": "Be brief."}]);
    assert_eq!(body["system"], blocks);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Hi"}]));
}

#[test]
fn neighbours_of_one_role_are_one_message_tr_02() {
    let (body, _) = translated(&json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "https://x.example/i.png"}}]},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "ok"},
        {"role": "user", "content": "d"}]}));
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "image", "source": {"type": "url", "url": "https://x.example/i.png"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "d"}]},
    ]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn parallel_results_come_in_one_message_and_ids_must_match_tr_03() {
    let calls = [("t1", "{}"), ("t2", "{}")];
    let (body, _) = translated(&tool_loop(None, &calls, &["t2", "t1"]));
    let results = json!([{"type": "tool_result", "tool_use_id": "t2", "content": "r-t2"},
        {"type": "tool_result", "tool_use_id": "t1", "content": "r-t1"}]);
    assert_eq!(body["messages"][2], json!({"role": "user", "content": results}));
    for (results, id) in [(vec!["t1"], "t2"), (vec!["t1", "t2", "t9"], "t9")] {
        let Unwritable::Wrong(field) = refused(&tool_loop(None, &calls, &results)) else { panic!() };
        assert!(field.reason.contains(id), "{field}");
    }
}

#[test]
fn other_vendors_ids_are_written_with_letters_that_the_service_takes_tr_03() {
    let ids = ["functions.f:0", "functions.f.0"];
    let (body, _) = translated(&tool_loop(None, &ids.map(|id| (id, "{}")), &ids));
    let id =
        |message: usize, block: usize, name: &str| body["messages"][message]["content"][block][name].clone();
    assert_eq!(id(1, 0, "id"), "functions_2ef_3a0");
    assert_eq!(id(1, 0, "id"), id(2, 0, "tool_use_id"));
    assert_eq!(id(1, 1, "id"), id(2, 1, "tool_use_id"));
    assert_ne!(id(1, 0, "id"), id(1, 1, "id"));
}

#[test]
fn a_call_without_text_is_one_block_tr_04() {
    for content in [Some(Value::Null), Some(json!("")), None] {
        let (body, _) = translated(&tool_loop(content, &[("t1", "{}")], &["t1"]));
        let calls = json!([{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]);
        assert_eq!(body["messages"][1]["content"], calls);
    }
}

#[test]
fn the_limit_always_arrives_tr_05() {
    for (more, expected) in
        [(json!({"max_tokens": 7}), 7), (json!({"max_completion_tokens": 8}), 8), (json!({}), 4096)]
    {
        let (body, dropped) = translated(&more);
        assert_eq!((&body["max_tokens"], dropped.as_str()), (&json!(expected), ""));
        assert_eq!(body.get("max_completion_tokens"), None);
    }
}

#[test]
fn image_types_are_normalised_or_refused_by_name_tr_07() {
    let image = |url: &str| {
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"},
            {"type": "image_url", "image_url": {"url": url}}]}]})
    };
    for (url, kind, data) in [
        ("data:image/jpg;base64,/9j/2Q==", "image/jpeg", "/9j/2Q=="),
        ("data:image/png;charset=x;base64,iVBORw0KGgo=", "image/png", "iVBORw0KGgo="),
        ("data:IMAGE/PNG;base64,iVBORw0KGgo=", "image/png", "iVBORw0KGgo="),
    ] {
        let (body, _) = translated(&image(url));
        let expected = json!({"type": "base64", "media_type": kind, "data": data});
        assert_eq!(body["messages"][0]["content"][1]["source"], expected);
    }
    match refused(&image("data:image/svg+xml;base64,PHN2Zy8+")) {
        Unwritable::Wrong(field) => assert!(field.field.contains("messages[0].content[1]"), "{field}"),
        Unwritable::Unsupported(field) => panic!("{field}"),
    }
}

#[test]
fn a_signed_thought_without_text_goes_back_first_tr_08() {
    let wire = Wire::Anthropic;
    let own = Signature { wire, value: "c2ln".to_owned() };
    let foreign = Signature { wire: Wire::Gemini, value: "x".to_owned() };
    let thought = |signature| Part::Reasoning(Reasoning { text: String::new(), signature, redacted: false });
    let call = |id: &str| {
        let (id, name, arguments) = (id.to_owned(), "f".to_owned(), "{}".to_owned());
        Part::ToolCall(ToolCall { id, name, arguments, signature: None, cache: None })
    };
    let mut request = chat(&tool_loop(None, &[("t1", "{}")], &["t1"]));
    request.turns[1].parts =
        vec![Part::text("x"), call("t1"), thought(Some(foreign)), thought(None), thought(Some(own))];
    let (body, written) = write(&request, "claude-sonnet-5").unwrap();
    let expected = json!([{"type": "thinking", "thinking": "", "signature": "c2ln"}, {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]);
    assert_eq!(body["messages"][1]["content"], expected);
    assert!(written.dropped.is_empty(), "{}", written.dropped);
}

#[test]
fn one_tool_at_a_time_is_said_with_the_choice_tr_10() {
    let choice = |more: Value| {
        let mut body = json!({"tools": two_tools(), "parallel_tool_calls": false});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        translated(&body).0["tool_choice"].clone()
    };
    let one = |kind: &str| json!({"type": kind, "disable_parallel_tool_use": true});
    assert_eq!(choice(json!({"tool_choice": "required"})), one("any"));
    assert_eq!(choice(json!({})), one("auto"));
    assert_eq!(choice(json!({"tool_choice": "none"})), json!({"type": "none"}));
    assert_eq!(choice(json!({"parallel_tool_calls": true})), Value::Null);
    let body = br#"{"messages":[],"tool_choice":{"type":"any","disable_parallel_tool_use":true}}"#;
    assert_eq!(Anthropic.read_request(body, None, false).unwrap().parallel_tool_calls, Some(false));
}

#[test]
fn a_form_that_the_service_cannot_hold_becomes_a_hidden_tool_tr_11() {
    let form =
        |schema: Value| json!({"type": "json_schema", "json_schema": {"name": "ans", "schema": schema}});
    let closed = form(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    let (body, written) = write(&chat(&json!({"response_format": closed})), "claude-sonnet-5").unwrap();
    assert_eq!(body["output_config"]["format"]["schema"]["additionalProperties"], false);
    assert_eq!(written.json_tool, None);

    let hidden = |more: Value, model: &str| {
        let (body, written) = write(&chat(&more), model).unwrap();
        assert_eq!(written.json_tool.as_deref(), Some("json_answer"));
        assert_eq!(body.get("output_config"), None);
        body
    };
    let body = hidden(json!({"response_format": closed, "tools": two_tools()}), "claude-3-5-haiku-latest");
    assert_eq!(
        (body["tools"][2]["name"].clone(), body["tool_choice"].clone()),
        (json!("json_answer"), json!({"type": "any"}))
    );
    assert_eq!(body["tools"][2]["input_schema"]["properties"], json!({"a": {"type": "integer"}}));
    let open = form(json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}));
    for format in [open, json!({"type": "json_object"})] {
        let body = hidden(json!({"response_format": format}), "claude-sonnet-5");
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "json_answer"}));
    }

    let mut vendor = Vendor::find("anthropic").unwrap().clone();
    vendor.parameters.json = vec![JsonOutput::Object];
    let facts = crate::dialect::TargetFacts { vendor: &vendor, ..target("claude-sonnet-5") };
    let written = Anthropic.write_request(&chat(&json!({"response_format": closed})), &facts).unwrap();
    assert!(written.json_tool.is_some(), "a vendor without schemas gets the tool");
}

#[test]
fn several_answers_are_refused_tr_12() {
    let Unwritable::Unsupported(field) = refused(&json!({"n": 2})) else { panic!() };
    assert_eq!(field.field, "n");
    assert_eq!(translated(&json!({"n": 1})).1, "");
}

#[test]
fn stops_of_whitespace_are_left_out_and_named_tr_13() {
    for (stop, expected, dropped) in [
        (json!("\n"), Value::Null, "stop"),
        (json!(["\n\n", " \t", "END"]), json!(["END"]), "stop"),
        (json!([]), Value::Null, ""),
        (json!(null), Value::Null, ""),
        (json!("END"), json!(["END"]), ""),
    ] {
        let (body, lost) = translated(&json!({ "stop": stop }));
        assert_eq!((&body["stop_sequences"], lost.as_str()), (&expected, dropped), "{stop}");
    }
    let mut vendor = Vendor::find("anthropic").unwrap().clone();
    vendor.parameters.max_stops = Some(4);
    let facts = crate::dialect::TargetFacts { vendor: &vendor, ..target("m") };
    let error =
        Anthropic.write_request(&chat(&json!({"stop": ["a", "b", "c", "d", "e"]})), &facts).unwrap_err();
    assert!(matches!(&error, Unwritable::Unsupported(field) if field.reason.contains('4')), "{error}");
}

#[test]
fn arguments_are_an_object_or_refused_by_id_tr_14() {
    let (body, _) = translated(&tool_loop(
        None,
        &[("t1", ""), ("t2", r#"{"n":12345678901234567890123}"#)],
        &["t1", "t2"],
    ));
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({}));
    let written = Anthropic
        .write_request(
            &chat(&tool_loop(None, &[("t2", r#"{"n":12345678901234567890123}"#)], &["t2"])),
            &target("m"),
        )
        .unwrap();
    let text = str::from_utf8(&written.body).unwrap();
    assert!(text.contains(r#""input":{"n":12345678901234567890123}"#), "numbers stay as they were: {text}");
    for arguments in ["{", "[1]", "\"x\""] {
        let field = read_chat(&tool_loop(None, &[("t7", arguments)], &["t7"])).unwrap_err();
        assert!(field.to_string().contains("t7"), "{field}");
    }
}

#[test]
fn unknown_fields_and_all_that_has_no_twin_are_named_tr_09() {
    let (body, dropped) = translated(
        &json!({"enable_thinking": false, "x_new": {"big": 1}, "seed": 7, "user": "u-1",
        "frequency_penalty": 0.5, "logit_bias": {"1": 1}, "temperature": 1.5, "top_p": 0.5, "service_tier": "flex"}),
    );
    for name in [
        "enable_thinking",
        "x_new",
        "seed",
        "frequency_penalty",
        "logit_bias",
        "temperature",
        "top_p",
        "service_tier",
    ] {
        assert!(dropped.split(", ").any(|lost| lost == name), "{name} is not in {dropped}");
        assert_eq!(body.get(name), None);
    }
    assert_eq!(body["metadata"], json!({"user_id": "u-1"}));
}

#[test]
fn effort_becomes_adaptive_thinking_or_a_budget_below_the_limit() {
    let ask = |more: Value, model: &str| {
        let (body, written) = write(&chat(&more), model).unwrap();
        (
            body["thinking"].clone(),
            body["output_config"]["effort"].clone(),
            body["max_tokens"].clone(),
            written.dropped.to_string(),
        )
    };
    let adaptive = json!({"type": "adaptive"});
    let none = String::new;
    assert_eq!(
        ask(json!({"reasoning_effort": "minimal", "max_tokens": 50}), "claude-opus-4-6"),
        (adaptive.clone(), json!("low"), json!(50), none())
    );
    assert_eq!(ask(json!({"reasoning_effort": "high"}), "alias").2, json!(4096 + 16_384));
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    let old = "claude-sonnet-4-5-20250929";
    assert_eq!(
        ask(json!({"reasoning_effort": "medium"}), old),
        (budget(8192), Value::Null, json!(4096 + 8192), none())
    );
    assert_eq!(
        ask(json!({"reasoning_effort": "high", "max_tokens": 4000}), old),
        (budget(3000), Value::Null, json!(4000), none())
    );
    let lost = (Value::Null, Value::Null, json!(500), "reasoning_effort".to_owned());
    assert_eq!(ask(json!({"reasoning_effort": "high", "max_tokens": 500}), old), lost);
    assert_eq!(ask(json!({"reasoning_effort": "none"}), old).0, json!({"type": "disabled"}));
    let hot = ask(json!({"reasoning_effort": "low", "temperature": 0.5}), "claude-opus-4-6");
    assert_eq!((hot.0, hot.3), (adaptive, "temperature".to_owned()));
    let forced = ask(
        json!({"reasoning_effort": "low", "tools": two_tools(), "tool_choice": "required"}),
        "claude-opus-4-6",
    );
    assert_eq!((forced.0, forced.3), (Value::Null, "reasoning_effort".to_owned()));
}

#[test]
fn thinking_by_budget_does_not_begin_within_a_tool_loop() {
    let mut body = tool_loop(None, &[("t1", "{}")], &["t1"]);
    body["reasoning_effort"] = json!("low");
    let (written, losses) = write(&chat(&body), "claude-opus-4-1").unwrap();
    assert_eq!((written.get("thinking"), losses.dropped.to_string().as_str()), (None, "reasoning_effort"));
    let (written, _) = write(&chat(&body), "claude-opus-4-6").unwrap();
    assert_eq!(written["thinking"], json!({"type": "adaptive"}));
}

#[test]
fn the_vendors_own_fields_and_a_model_in_the_path_are_honoured() {
    let mut vendor = Vendor::find("anthropic").unwrap().clone();
    vendor.model_in_path = true;
    vendor.body.insert("anthropic_version".to_owned(), json!("vertex-2023-10-16"));
    vendor.parameters.drop.push("temperature".to_owned());
    let facts = crate::dialect::TargetFacts { vendor: &vendor, ..target("claude-sonnet-5") };
    let mut request = chat(&json!({"temperature": 0.5}));
    request.stream = true;
    let written = Anthropic.write_request(&request, &facts).unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let expected = json!({"max_tokens": 4096, "stream": true, "messages": [{"role": "user", "content": "hi"}],
        "anthropic_version": "vertex-2023-10-16"});
    assert_eq!((body, written.dropped.to_string().as_str()), (expected, "temperature"));
}

#[test]
fn cache_hints_are_written_where_they_were() {
    let mut request = Request::new(Wire::Openai);
    let mut media = Media::new(Source::Base64("JVBERi0x".to_owned()), None);
    media.cache = Some(CacheHint::Hour);
    request.turns.push(Turn::new(Role::User, vec![Part::File(media)]));
    let (body, _) = write(&request, "m").unwrap();
    let expected = json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"},
        "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
    assert_eq!(body["messages"][0]["content"], expected);
}

#[test]
fn sound_and_files_of_other_vendors_are_refused_with_their_place() {
    for part in [
        Part::Audio(Media::new(Source::Base64("AA==".to_owned()), Some("audio/wav".to_owned()))),
        Part::File(Media::new(Source::FileId("file-1".to_owned()), None)),
        Part::File(Media::new(Source::Base64("AA==".to_owned()), Some("application/zip".to_owned()))),
        Part::Other { wire: Wire::Gemini, value: json!({"executableCode": {}}) },
    ] {
        let mut request = chat(&json!({}));
        request.turns[0].parts.push(part);
        match write(&request, "m").unwrap_err() {
            Unwritable::Unsupported(field) => assert_eq!(field.field, "messages[0].content[1]"),
            Unwritable::Wrong(field) => panic!("{field}"),
        }
    }
}

#[test]
fn a_wrong_request_is_refused_by_the_fields_name() {
    let reason = |body: Value| {
        let body = serde_json::to_vec(&body).unwrap();
        Anthropic.read_request(&body, None, false).unwrap_err().field
    };
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    assert_eq!(reason(json!({})), "messages");
    assert_eq!(reason(json!({"messages": [{"role": "robot", "content": "x"}]})), "messages[0].role");
    assert_eq!(reason(user(json!([{"type": "text", "text": 5}]))), "messages[0].content[0]");
    assert_eq!(
        reason(user(json!([{"type": "image", "source": {"type": "base64"}}]))),
        "messages[0].content[0].source"
    );
    assert_eq!(
        reason(user(json!([{"type": "tool_use", "id": "t", "name": "f", "input": []}]))),
        "messages[0].content[0].input"
    );
    let nested = json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}]);
    assert_eq!(reason(user(nested)), "messages[0].content[0].content[0].source");
    assert_eq!(reason(json!({"messages": [], "tool_choice": {"type": "tool"}})), "tool_choice.name");
    assert_eq!(reason(json!({"messages": [], "max_tokens": -1})), "max_tokens");
}
