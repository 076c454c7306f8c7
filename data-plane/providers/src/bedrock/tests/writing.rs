use penstock_model::Vendor;
use penstock_model::vendor::{MaxTokens, Wire};
use proptest::prelude::*;
use serde_json::{Number, Value, json};

use crate::bedrock::Bedrock;
use crate::dialect::{Dialect as _, TargetFacts};
use crate::exchange::{
    CacheHint, Field, Format, JsonSchema, Media, Part, Reasoning, ReasoningRequest, Request, Role, Signature,
    Source, Text, Tool, ToolCall, ToolChoice, ToolKind, ToolResult, Turn, Unwritable, Written,
};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const LLAMA: &str = "meta.llama3-3-70b-instruct-v1:0";

fn try_write(request: &Request, model: &str) -> Result<Written, Unwritable> {
    let vendor = Vendor::find("bedrock").unwrap();
    let target = TargetFacts { vendor, model, max_tokens_name: MaxTokens::AsGiven, default_max_tokens: 4096 };
    Bedrock.write_request(request, &target)
}

/// The body, and what was dropped.
fn write(request: &Request, model: &str) -> (Value, String) {
    let written = try_write(request, model).unwrap();
    (serde_json::from_slice(&written.body).unwrap(), written.dropped.to_string())
}

fn request(turns: Vec<Turn>) -> Request {
    Request { turns, ..Request::new(Wire::Openai) }
}

fn says(role: Role, text: &str) -> Turn {
    Turn::new(role, vec![Part::text(text)])
}

fn hi() -> Request {
    request(vec![says(Role::User, "Hi")])
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "lookup".to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
        cache: None,
    })
}

fn result(id: &str, text: &str) -> Turn {
    Turn::new(
        Role::User,
        vec![Part::ToolResult(ToolResult {
            call_id: id.to_owned(),
            name: None,
            parts: vec![Part::text(text)],
            is_error: false,
            cache: None,
        })],
    )
}

fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: None,
        kind: ToolKind::Function { parameters: None, strict: None },
        cache: None,
    }
}

fn image(media_type: Option<&str>, data: &str) -> Part {
    Part::Image(Media::new(Source::Base64(data.to_owned()), media_type.map(str::to_owned)))
}

fn thought(text: &str, wire: Wire) -> Part {
    let signature = Some(Signature { wire, value: "c2ln".to_owned() });
    Part::Reasoning(Reasoning { text: text.to_owned(), signature, redacted: false })
}

fn schema() -> Format {
    Format::JsonSchema(JsonSchema {
        name: Some("ans".to_owned()),
        description: None,
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        strict: Some(true),
    })
}

#[test]
fn all_instructions_arrive_in_order_as_blocks_of_their_own_tr_01() {
    let two = Turn::new(Role::System, vec![Part::text("Be brief."), Part::text("Be kind.")]);
    let turns = vec![
        says(Role::System, "Answer in French."),
        two,
        says(Role::User, "Hi"),
        says(Role::Developer, "Now in German."),
    ];
    let (body, dropped) = write(&request(turns), CLAUDE);
    assert_eq!(
        body,
        json!({
            "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
            "system": [
                {"text": "Answer in French."}, {"text": "Be brief."}, {"text": "Be kind."}, {"text": "Now in German."},
            ],
        })
    );
    assert_eq!(dropped, "");
}

#[test]
fn neighbours_of_one_role_become_one_turn_tr_02() {
    let turns = vec![
        says(Role::User, "a"),
        Turn::new(Role::User, vec![Part::text("b"), image(Some("image/png"), "iVBORw0KGgo=")]),
        says(Role::Assistant, "c"),
        Turn::new(Role::Assistant, vec![call("t1", "{}")]),
        result("t1", "ok"),
        says(Role::User, "d"),
    ];
    let (body, _) = write(&request(turns), CLAUDE);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"text": "a"}, {"text": "b"}, {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}},
            ]},
            {"role": "assistant", "content": [
                {"text": "c"}, {"toolUse": {"toolUseId": "t1", "name": "lookup", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "ok"}]}}, {"text": "d"},
            ]},
        ])
    );
}

#[test]
fn all_results_of_a_turn_are_in_the_next_user_turn_and_strays_are_refused_by_id_tr_03() {
    let calls = || Turn::new(Role::Assistant, vec![call("t1", "{}"), call("t2", "{}")]);
    let turns = vec![says(Role::User, "q"), calls(), result("t2", "B"), result("t1", "A")];
    let (body, _) = write(&request(turns), CLAUDE);
    assert_eq!(
        body["messages"][2],
        json!({"role": "user", "content": [
            {"toolResult": {"toolUseId": "t2", "content": [{"text": "B"}]}},
            {"toolResult": {"toolUseId": "t1", "content": [{"text": "A"}]}},
        ]})
    );
    for (turns, id) in [
        (vec![says(Role::User, "q"), calls(), result("t1", "A")], "t2"),
        (vec![says(Role::User, "q"), result("t9", "A")], "t9"),
    ] {
        let error = try_write(&request(turns), CLAUDE).unwrap_err();
        assert!(matches!(&error, Unwritable::Wrong(field) if field.reason.contains(id)), "{error:?}");
    }
}

#[test]
fn an_answer_of_calls_alone_has_no_text_block_tr_04() {
    for parts in [vec![call("t1", "{}")], vec![Part::text(""), call("t1", "{}")]] {
        let turns = vec![says(Role::User, "q"), Turn::new(Role::Assistant, parts), result("t1", "ok")];
        let (body, _) = write(&request(turns), CLAUDE);
        let expected = json!([{"toolUse": {"toolUseId": "t1", "name": "lookup", "input": {}}}]);
        assert_eq!(body["messages"][1]["content"], expected);
    }
}

#[test]
fn images_go_by_their_real_type_and_others_are_refused_by_their_place_tr_07() {
    for (kind, format) in [("image/jpeg", "jpeg"), ("image/png", "png"), ("image/webp", "webp")] {
        let turns = vec![Turn::new(Role::User, vec![image(Some(kind), "AAAA")])];
        let (body, _) = write(&request(turns), CLAUDE);
        let expected = json!({"image": {"format": format, "source": {"bytes": "AAAA"}}});
        assert_eq!(body["messages"][0]["content"][0], expected);
    }
    let svg = image(Some("image/svg+xml"), "PHN2Zy8+");
    let turns = vec![says(Role::System, "s"), Turn::new(Role::User, vec![Part::text("a"), svg])];
    let error = try_write(&request(turns), CLAUDE).unwrap_err();
    assert!(
        matches!(&error, Unwritable::Wrong(field) if field.field == "messages[1].content[1]"),
        "{error:?}"
    );
}

#[test]
fn what_bedrock_would_have_to_fetch_and_sound_are_for_other_targets() {
    let url = || Media::new(Source::Url("https://x.example/a.png".to_owned()), Some("image/png".to_owned()));
    let sound = Media::new(Source::Base64("AAAA".to_owned()), Some("audio/wav".to_owned()));
    for part in [Part::Image(url()), Part::File(url()), Part::Audio(sound)] {
        let error = try_write(&request(vec![Turn::new(Role::User, vec![part])]), CLAUDE).unwrap_err();
        assert!(
            matches!(&error, Unwritable::Unsupported(field) if field.field == "messages[0].content[0]"),
            "{error:?}"
        );
    }
}

#[test]
fn documents_have_a_format_and_names_that_converse_takes_and_that_differ() {
    let named = |name: Option<&str>, kind: Option<&str>, source: Source| {
        Part::File(Media { name: name.map(str::to_owned), ..Media::new(source, kind.map(str::to_owned)) })
    };
    let base64 = || Source::Base64("AAAA".to_owned());
    let parts = vec![
        named(Some("Q3_report  (final).pdf"), Some("application/pdf"), base64()),
        named(Some("Q3_report  (final).pdf"), None, base64()),
        named(None, Some("text/plain"), Source::Text("你".to_owned())),
    ];
    let (body, _) = write(&request(vec![Turn::new(Role::User, parts)]), CLAUDE);
    let document = |name: &str, format: &str, bytes: &str| json!({"document": {"name": name, "format": format, "source": {"bytes": bytes}}});
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            document("Q3 report (final) pdf", "pdf", "AAAA"),
            document("Q3 report (final) pdf (2)", "pdf", "AAAA"),
            document("document 3", "txt", "5L2g"),
        ])
    );
    let zip = named(Some("a.zip"), Some("application/zip"), base64());
    let error = try_write(&request(vec![Turn::new(Role::User, vec![zip])]), CLAUDE).unwrap_err();
    assert!(matches!(error, Unwritable::Unsupported(_)));
}

#[test]
fn thoughts_go_back_with_bedrocks_signature_and_no_other_tr_08() {
    let answer = |first: Part| {
        let turns = vec![
            says(Role::User, "q"),
            Turn::new(Role::Assistant, vec![first, call("t1", "{}")]),
            result("t1", "ok"),
        ];
        write(&request(turns), CLAUDE)
    };
    let (body, dropped) = answer(thought("", Wire::Bedrock));
    let expected = json!({"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}});
    assert_eq!(body["messages"][1]["content"][0], expected);
    assert_eq!(dropped, "");
    let redacted = Part::Reasoning(Reasoning {
        text: String::new(),
        signature: Some(Signature { wire: Wire::Bedrock, value: "cmVk".to_owned() }),
        redacted: true,
    });
    let expected = json!({"reasoningContent": {"redactedContent": "cmVk"}});
    assert_eq!(answer(redacted).0["messages"][1]["content"][0], expected);
    let unsigned = Part::Reasoning(Reasoning { text: "t".to_owned(), ..Reasoning::default() });
    for foreign in [thought("t", Wire::Anthropic), unsigned] {
        let (body, dropped) = answer(foreign);
        assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 1);
        assert_eq!(dropped, "");
    }
}

#[test]
fn a_turn_that_was_all_foreign_thought_leaves_no_gap_between_roles_tr_02() {
    let turns = vec![
        says(Role::User, "a"),
        Turn::new(Role::Assistant, vec![thought("t", Wire::Gemini)]),
        says(Role::User, "b"),
    ];
    let (body, _) = write(&request(turns), CLAUDE);
    assert_eq!(body["messages"], json!([{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]));
}

#[test]
fn one_tool_at_a_time_is_reported_as_dropped_tr_10() {
    let mut asked = hi();
    asked.tools = vec![tool("a"), tool("b")];
    asked.tool_choice = Some(ToolChoice::Required);
    asked.parallel_tool_calls = Some(false);
    let (body, dropped) = write(&asked, CLAUDE);
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"any": {}}));
    assert_eq!(dropped, "parallel_tool_calls");
}

#[test]
fn structured_output_is_a_tool_that_must_be_called_tr_11() {
    let mut asked = hi();
    asked.output.format = Some(schema());
    let written = try_write(&asked, CLAUDE).unwrap();
    let name = written.json_tool.unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let spec = &body["toolConfig"]["tools"][0]["toolSpec"];
    assert_eq!(spec["name"], json!(name));
    assert_eq!(spec["inputSchema"]["json"]["properties"]["a"], json!({"type": "string"}));
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": name}}));

    // Beside the client's own tools, one of which has its name, any may be called.
    asked.tools = vec![tool("get_weather"), tool(&name)];
    let written = try_write(&asked, CLAUDE).unwrap();
    assert_ne!(written.json_tool.as_ref(), Some(&name));
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(body["toolConfig"]["tools"].as_array().unwrap().len(), 3);
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"any": {}}));
}

#[test]
fn more_than_one_answer_is_for_another_target_tr_12() {
    let mut asked = hi();
    asked.output.choices = Some(2);
    let expected = Field::new("n", "Bedrock gives one answer at a time");
    assert_eq!(try_write(&asked, CLAUDE).unwrap_err(), Unwritable::Unsupported(expected));
    asked.output.choices = Some(1);
    assert!(try_write(&asked, CLAUDE).is_ok());
}

#[test]
fn stops_of_whitespace_are_dropped_and_too_many_refused_with_the_limit_tr_13() {
    let stops = |stops: &[&str]| {
        let mut asked = hi();
        asked.output.stop = stops.iter().map(|stop| (*stop).to_owned()).collect();
        asked
    };
    let (body, dropped) = write(&stops(&["\n"]), LLAMA);
    assert_eq!((body.get("inferenceConfig"), dropped.as_str()), (None, "stop"));
    let (body, dropped) = write(&stops(&["\n\n", " \t", "END"]), LLAMA);
    assert_eq!((&body["inferenceConfig"], dropped.as_str()), (&json!({"stopSequences": ["END"]}), "stop"));
    let (body, dropped) = write(&stops(&[]), LLAMA);
    assert_eq!((body.get("inferenceConfig"), dropped.as_str()), (None, ""));
    assert_eq!(
        write(&stops(&["a", "b", "c", "d", "e", "f"]), LLAMA).0["inferenceConfig"]["stopSequences"][5],
        "f"
    );
    let error = try_write(&stops(&["x"; 2501]), LLAMA).unwrap_err();
    assert!(matches!(&error, Unwritable::Unsupported(field) if field.reason.contains("2500")), "{error:?}");
    // Claude is asked which of them it was.
    let (body, _) = write(&stops(&["END"]), CLAUDE);
    assert_eq!(body["additionalModelResponseFieldPaths"], json!(["/stop_sequence"]));
}

#[test]
fn empty_arguments_are_an_object_and_broken_ones_are_refused_by_id_tr_14() {
    let replayed = |arguments: &str| {
        let turns = vec![
            says(Role::User, "q"),
            Turn::new(Role::Assistant, vec![call("t1", arguments)]),
            result("t1", "ok"),
        ];
        try_write(&request(turns), CLAUDE)
    };
    for empty in ["", " ", "{}"] {
        let body: Value = serde_json::from_slice(&replayed(empty).unwrap().body).unwrap();
        assert_eq!(body["messages"][1]["content"][0]["toolUse"]["input"], json!({}));
    }
    let number = "{\"n\": 12345678901234567890.10}";
    let body = replayed(number).unwrap().body;
    assert!(str::from_utf8(&body).unwrap().contains(number));
    for broken in ["{", "[1]", "\"a\"", "null", "{\"a\":1} x"] {
        let error = replayed(broken).unwrap_err();
        assert!(
            matches!(&error, Unwritable::Wrong(field) if field.reason.contains("t1") && field.field == "messages[1].content[0]"),
            "{broken}: {error:?}"
        );
    }
}

#[test]
fn ids_that_converse_refuses_are_replaced_alike_in_calls_and_results() {
    let long = "x".repeat(100);
    for id in ["functions.lookup:0", "", long.as_str(), "你好"] {
        let turns =
            vec![says(Role::User, "q"), Turn::new(Role::Assistant, vec![call(id, "{}")]), result(id, "ok")];
        let (body, _) = write(&request(turns), CLAUDE);
        let written = body["messages"][1]["content"][0]["toolUse"]["toolUseId"].as_str().unwrap().to_owned();
        assert_eq!(body["messages"][2]["content"][0]["toolResult"]["toolUseId"], json!(written));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!((1..=64).contains(&written.len()) && written.chars().all(is_plain), "{written}");
    }
}

#[test]
fn calls_in_the_conversation_have_their_tools_declared_whatever_the_client_declares() {
    let looped = || {
        request(vec![
            says(Role::User, "q"),
            Turn::new(Role::Assistant, vec![call("t1", "{}")]),
            result("t1", "ok"),
        ])
    };
    let empty = json!({"json": {"type": "object", "properties": {}}});
    let (body, dropped) = write(&looped(), CLAUDE);
    let declared = json!({"tools": [{"toolSpec": {"name": "lookup", "inputSchema": empty}}]});
    assert_eq!((&body["toolConfig"], dropped.as_str()), (&declared, ""));
    let mut none = looped();
    none.tools = vec![tool("lookup")];
    none.tool_choice = Some(ToolChoice::None);
    let (body, dropped) = write(&none, CLAUDE);
    assert_eq!((&body["toolConfig"], dropped.as_str()), (&declared, "tool_choice"));
}

#[test]
fn every_tool_choice_has_its_form_and_none_leaves_the_tools_out() {
    let chosen = |choice: ToolChoice| {
        let mut asked = hi();
        asked.tools = vec![tool("a"), tool("b")];
        asked.tool_choice = Some(choice);
        write(&asked, CLAUDE)
    };
    assert_eq!(chosen(ToolChoice::Auto).0["toolConfig"]["toolChoice"], json!({"auto": {}}));
    assert_eq!(chosen(ToolChoice::Required).0["toolConfig"]["toolChoice"], json!({"any": {}}));
    let one = chosen(ToolChoice::Tool("a".to_owned())).0;
    assert_eq!(one["toolConfig"]["toolChoice"], json!({"tool": {"name": "a"}}));
    let (body, dropped) = chosen(ToolChoice::None);
    assert_eq!((body.get("toolConfig"), dropped.as_str()), (None, "tools"));
    let (body, dropped) = chosen(ToolChoice::Allowed { required: true, names: vec!["b".to_owned()] });
    assert_eq!(body["toolConfig"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["name"], "b");
    assert_eq!((&body["toolConfig"]["toolChoice"], dropped.as_str()), (&json!({"any": {}}), ""));
}

#[test]
fn a_vendors_own_tool_is_for_another_target() {
    let mut asked = hi();
    asked.tools = vec![Tool { kind: ToolKind::Other(json!({"type": "web_search"})), ..tool("web_search") }];
    let error = try_write(&asked, CLAUDE).unwrap_err();
    assert!(matches!(&error, Unwritable::Unsupported(field) if field.field == "tools[0]"));
}

#[test]
fn cache_hints_are_points_behind_their_block_where_the_model_knows_them() {
    let cached =
        |text: &str, hint| Part::Text(Text { text: text.to_owned(), cache: Some(hint), ..Text::default() });
    let mut asked = request(vec![
        Turn::new(Role::System, vec![cached("s", CacheHint::Hour)]),
        Turn::new(Role::User, vec![cached("q", CacheHint::FiveMinutes), Part::text("r")]),
    ]);
    asked.tools = vec![Tool { cache: Some(CacheHint::Default), ..tool("a") }];
    let (body, dropped) = write(&asked, CLAUDE);
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(body["system"], json!([{"text": "s"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]));
    assert_eq!(body["messages"][0]["content"], json!([{"text": "q"}, point, {"text": "r"}]));
    assert_eq!(body["toolConfig"]["tools"][1], point);
    assert_eq!(dropped, "");
    let (body, dropped) = write(&asked, LLAMA);
    assert!(!body.to_string().contains("cachePoint"));
    assert_eq!(dropped, "cache_control");
}

#[test]
fn a_failed_tool_says_so_where_the_model_knows_it() {
    let mut turns =
        vec![says(Role::User, "q"), Turn::new(Role::Assistant, vec![call("t1", "{}")]), result("t1", "no")];
    if let Part::ToolResult(result) = &mut turns[2].parts[0] {
        result.is_error = true;
    }
    let (body, _) = write(&request(turns.clone()), CLAUDE);
    assert_eq!(body["messages"][2]["content"][0]["toolResult"]["status"], "error");
    let (body, dropped) = write(&request(turns), LLAMA);
    assert_eq!(body["messages"][2]["content"][0]["toolResult"].get("status"), None);
    assert_eq!(dropped, "is_error");
}

fn thinking(effort: Option<&str>, budget: Option<u64>, max_tokens: Option<u64>) -> Request {
    let mut asked = hi();
    let effort = effort.map(str::to_owned);
    asked.reasoning = Some(ReasoningRequest { effort, budget_tokens: budget, ..ReasoningRequest::default() });
    asked.output.max_tokens = max_tokens;
    asked
}

#[test]
fn claude_is_asked_to_think_as_anthropics_own_service_is() {
    let asked = |request: &Request, model: &str| {
        let (body, dropped) = write(request, model);
        let fields = body.get("additionalModelRequestFields").cloned();
        (fields, body["inferenceConfig"]["maxTokens"].as_u64(), dropped)
    };
    let budget = |tokens: u64| Some(json!({"thinking": {"type": "enabled", "budget_tokens": tokens}}));
    let plain = String::new;
    assert_eq!(
        asked(&thinking(Some("low"), None, Some(10_000)), CLAUDE),
        (budget(2048), Some(10_000), plain())
    );
    assert_eq!(asked(&thinking(Some("high"), None, Some(8000)), CLAUDE), (budget(6000), Some(8000), plain()));
    assert_eq!(asked(&thinking(None, Some(2000), Some(4000)), CLAUDE), (budget(2000), Some(4000), plain()));
    let newer = Some(json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}));
    let request = thinking(Some("high"), None, Some(8000));
    assert_eq!(asked(&request, "global.anthropic.claude-opus-4-6-v1"), (newer, Some(8000), plain()));
    // No room, off, and not said.
    let none = "reasoning_effort".to_owned();
    assert_eq!(asked(&thinking(Some("low"), None, Some(1024)), CLAUDE), (None, Some(1024), none));
    assert_eq!(asked(&thinking(Some("none"), None, Some(4096)), CLAUDE), (None, Some(4096), plain()));
    assert_eq!(asked(&hi(), CLAUDE), (None, None, plain()));
}

#[test]
fn what_claude_refuses_is_dropped_and_reported() {
    let mut asked = thinking(Some("high"), None, Some(4096));
    asked.sampling.temperature = Number::from_f64(0.2);
    asked.sampling.top_p = Number::from_f64(0.5);
    asked.sampling.top_k = Some(Number::from(40));
    let (body, dropped) = write(&asked, CLAUDE);
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 4096}));
    assert_eq!(dropped, "top_p, temperature, top_k");
    asked.reasoning = None;
    let (body, dropped) = write(&asked, CLAUDE);
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 4096, "temperature": 0.2}));
    assert_eq!(dropped, "top_p");
    asked.sampling.temperature = Number::from_f64(1.5);
    let (body, dropped) = write(&asked, CLAUDE);
    assert_eq!(
        (&body["inferenceConfig"], dropped.as_str()),
        (&json!({"maxTokens": 4096}), "top_p, temperature")
    );
    // Other models take them.
    let (body, _) = write(&asked, LLAMA);
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 4096, "temperature": 1.5, "topP": 0.5}));
}

#[test]
fn claude_is_not_told_to_think_where_it_would_refuse() {
    let thinks = |request: &Request| {
        let (body, dropped) = write(request, CLAUDE);
        let thinks = body.pointer("/additionalModelRequestFields/thinking").is_some();
        assert_ne!(thinks, dropped.contains("reasoning_effort"));
        thinks
    };
    let mut forced = thinking(Some("high"), None, Some(4096));
    forced.output.format = Some(schema());
    assert!(!thinks(&forced));
    let looped = |first: Part| {
        let mut asked = thinking(Some("high"), None, Some(4096));
        asked.turns.push(Turn::new(Role::Assistant, vec![first, call("t1", "{}")]));
        asked.turns.push(result("t1", "ok"));
        asked
    };
    assert!(!thinks(&looped(Part::text("a"))));
    assert!(thinks(&looped(thought("t", Wire::Bedrock))));
    let mut prefilled = thinking(Some("high"), None, Some(4096));
    prefilled.turns.push(says(Role::Assistant, "It"));
    assert!(!thinks(&prefilled));
}

#[test]
fn top_k_and_thinking_go_in_the_words_of_each_maker_or_are_reported() {
    let mut asked = thinking(Some("low"), None, None);
    asked.sampling.top_k = Some(Number::from(40));
    let fields = |model: &str| {
        let (body, dropped) = write(&asked, model);
        (body.get("additionalModelRequestFields").cloned(), dropped)
    };
    assert_eq!(
        fields("amazon.nova-pro-v1:0"),
        (Some(json!({"inferenceConfig": {"topK": 40}})), "reasoning_effort".to_owned())
    );
    assert_eq!(
        fields("openai.gpt-oss-120b-1:0"),
        (Some(json!({"reasoning_effort": "low"})), "top_k".to_owned())
    );
    for other in [LLAMA, "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"] {
        assert_eq!(fields(other), (None, "reasoning_effort, top_k".to_owned()));
    }
    asked.reasoning = None;
    let (body, dropped) =
        write(&asked, "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-v1:0");
    assert_eq!((&body["additionalModelRequestFields"], dropped.as_str()), (&json!({"top_k": 40}), ""));
}

#[test]
fn what_converse_has_no_field_for_is_named_as_the_client_named_it() {
    let lossy = |wire: Wire| {
        let mut asked = Request { wire, ..hi() };
        asked.sampling.seed = Some(Number::from(7));
        asked.sampling.logprobs = Some(true);
        asked.user = Some("u".to_owned());
        asked.output.stop = vec!["\n".to_owned()];
        asked.extra.insert("x_new".to_owned(), json!(1));
        asked.include_usage = true;
        write(&asked, CLAUDE).1
    };
    assert_eq!(lossy(Wire::Openai), "stop, seed, logprobs, user, x_new");
    assert_eq!(
        lossy(Wire::Gemini),
        "generationConfig.stopSequences, generationConfig.seed, generationConfig.responseLogprobs, user, x_new"
    );
    assert_eq!(lossy(Wire::Anthropic), "stop_sequences, seed, logprobs, metadata.user_id, x_new");
}

#[test]
fn numbers_are_written_as_the_client_wrote_them() {
    let mut asked = hi();
    asked.output.max_tokens = Some(64);
    asked.sampling.temperature = Some(serde_json::from_str("0.2").unwrap());
    asked.sampling.top_p = Some(serde_json::from_str("1").unwrap());
    let body = try_write(&asked, LLAMA).unwrap().body;
    let expected = r#""inferenceConfig":{"maxTokens":64,"temperature":0.2,"topP":1}"#;
    assert!(str::from_utf8(&body).unwrap().contains(expected));
}

fn part(role: Role) -> BoxedStrategy<Part> {
    let text = "[a-z ]{0,4}".prop_map(Part::text);
    if role == Role::Assistant {
        prop_oneof![
            text,
            "[a-z]{0,3}".prop_map(|t| thought(&t, Wire::Anthropic)),
            Just(thought("", Wire::Bedrock))
        ]
        .boxed()
    } else {
        prop_oneof![text, Just(image(Some("image/png"), "AAAA"))].boxed()
    }
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)].prop_flat_map(|role| {
        let parts = if role == Role::System { "[a-z]{1,3}".prop_map(Part::text).boxed() } else { part(role) };
        prop::collection::vec(parts, 0..4).prop_map(move |parts| Turn::new(role, parts))
    })
}

proptest! {
    #[test]
    fn any_conversation_is_written_alternating_and_without_empty_blocks(turns in prop::collection::vec(turn(), 0..8)) {
        let (body, _) = write(&request(turns), CLAUDE);
        let messages = body["messages"].as_array().unwrap();
        prop_assert!(messages.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"]));
        for message in messages {
            let content = message["content"].as_array().unwrap();
            prop_assert!(!content.is_empty());
            prop_assert!(content.iter().all(|block| block.get("text") != Some(&json!(""))));
        }
    }
}
