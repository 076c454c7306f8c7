use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat_shaped::testing::{Bench, assistant, call, function, request, result, user};
use crate::exchange::{
    CacheHint, Choice, Event, Format, JsonSchema, Media, Part, Reasoning, ReasoningRequest, Role, Signature,
    Source, Stop, Text, ToolChoice, Turn,
};

const TR_15: &str = concat!(
    r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"add","arguments":{"a":1}}}]},"done":false}"#,
    "\n",
    r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":8,"eval_count":3}"#,
    "\n",
);

const OLLAMA: Bench = Bench(&Ollama, "ollama");

#[test]
fn a_native_stream_gives_calls_with_ids_and_arguments_as_text_tr_15() {
    for cut in 0..TR_15.len() {
        let (head, tail) = TR_15.as_bytes().split_at(cut);
        let (lines, facts) = OLLAMA.events(&[head, tail]);
        assert_eq!(
            lines,
            [
                r#"Start { id: None, model: Some("m"), created: None }"#,
                r#"ToolStart { choice: 0, call: 0, id: "call_req-1_0", name: "add", signature: None }"#,
                r#"ToolArguments { choice: 0, call: 0, fragment: "{\"a\":1}" }"#,
                r#"Finish { choice: 0, stop: ToolCalls, native: "stop", sequence: None }"#,
                &format!("{:?}", Event::Usage(facts.usage.unwrap())),
                "End",
            ]
        );
        assert_eq!(
            (facts.usage.unwrap().input_tokens, facts.usage.unwrap().output_tokens),
            (Some(8), Some(3))
        );
        assert!(facts.complete);
    }
}

#[test]
fn a_whole_answer_says_the_same_tr_15_tr_04() {
    let body = br#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[
        {"function":{"name":"add","arguments":{"a":12345678901234567890}}},{"function":{"name":"now","arguments":{}}}]},
        "done":true,"done_reason":"stop","prompt_eval_count":8,"eval_count":3}"#;
    let answer = Ollama.read_answer(body, "r").unwrap();
    let [Choice { parts, stop, .. }] = answer.choices.as_slice() else { panic!("one choice") };
    let calls: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Part::ToolCall(call) => (call.id.as_str(), call.arguments.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("call_r_0", r#"{"a":12345678901234567890}"#), ("call_r_1", "{}")]);
    assert_eq!(*stop, Some(Stop::ToolCalls));
    assert_eq!(Ollama.find_usage(body), answer.usage);
}

#[test]
fn on_replay_arguments_go_back_as_an_object_tr_15_tr_14() {
    let turns = vec![
        assistant(vec![call("a", r#"{"n":12345678901234567890}"#), call("b", "")]),
        user(result("b", "B")),
        user(result("a", "A")),
    ];
    let (body, _) = OLLAMA.written(&request(turns));
    let text = body["messages"][0].to_string();
    assert!(text.contains(r#""arguments":{"n":12345678901234567890}"#), "{text}");
    assert_eq!(body["messages"][0]["tool_calls"][1]["function"]["arguments"], json!({}));
    assert_eq!(
        body["messages"][1],
        json!({"role": "tool", "content": "B", "tool_name": "tool_b", "tool_call_id": "b"})
    );
    assert_eq!(body["messages"][2]["tool_name"], "tool_a");
}

#[test]
fn arguments_that_are_no_object_are_refused_by_the_calls_id_tr_14() {
    for bad in ["{", "[1]", "\"x\"", "{} {}"] {
        let error = OLLAMA.refused(&request(vec![assistant(vec![call("c9", bad)])]));
        let Unwritable::Wrong(field) = error else { panic!("{error:?}") };
        assert!(field.reason.contains("`c9`"), "{field}");
    }
}

#[test]
fn a_result_without_its_call_is_refused_by_its_id_tr_03() {
    let turns = vec![assistant(vec![call("t1", "{}")]), user(result("t2", "B"))];
    let error = OLLAMA.refused(&request(turns));
    assert_eq!(
        error,
        Unwritable::Wrong(crate::exchange::Field::new("messages[1]", "no call before it has the id `t2`"))
    );
}

#[test]
fn instructions_stay_where_they_are_and_keep_their_order_tr_01_tr_02() {
    let turns = vec![
        Turn::new(Role::System, vec![Part::text("Answer in French.")]),
        Turn::new(Role::Developer, vec![Part::text("Be"), Part::text("brief.")]),
        user(Part::text("a")),
        user(Part::text("b")),
    ];
    let (body, dropped) = OLLAMA.written(&request(turns));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Answer in French."},
            {"role": "system", "content": "Be\nbrief."},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
        ])
    );
    assert_eq!((body["stream"].clone(), dropped.as_str()), (json!(false), ""));
}

#[test]
fn parameters_go_where_ollama_looks_for_them_tr_05_tr_13() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.stream = true;
    request.output.max_tokens = Some(64);
    request.output.stop = vec!["\n".to_owned(), "END".to_owned()];
    request.output.format = Some(Format::JsonObject);
    request.sampling.temperature = serde_json::from_str("0.2").ok();
    request.sampling.top_k = serde_json::from_str("40").ok();
    request.sampling.seed = serde_json::from_str("7").ok();
    request.extra.insert("keep_alive".to_owned(), json!("5m"));
    let (body, dropped) = OLLAMA.written(&request);
    assert_eq!(
        body["options"],
        json!({"num_predict": 64, "temperature": 0.2, "top_k": 40, "seed": 7, "stop": ["\n", "END"]})
    );
    assert_eq!(
        (&body["format"], &body["stream"], &body["keep_alive"]),
        (&json!("json"), &json!(true), &json!("5m"))
    );
    assert_eq!(dropped, "");
    let schema = json!({"type": "object"});
    request.output.format = Some(Format::JsonSchema(JsonSchema {
        name: Some("x".to_owned()),
        description: None,
        schema: schema.clone(),
        strict: None,
    }));
    assert_eq!(OLLAMA.written(&request).0["format"], schema);
}

#[test]
fn what_has_no_place_is_named_tr_09_tr_10() {
    let mut request = request(vec![user(Part::Text(Text {
        text: "a".to_owned(),
        cache: Some(CacheHint::Default),
        ..Text::default()
    }))]);
    request.tools = vec![function("f")];
    request.tool_choice = Some(ToolChoice::Required);
    request.parallel_tool_calls = Some(false);
    request.user = Some("u".to_owned());
    request.sampling.logit_bias = Some(json!({}));
    request.extra.insert("x_new".to_owned(), json!(1));
    let (body, dropped) = OLLAMA.written(&request);
    assert_eq!(dropped, "logit_bias, parallel_tool_calls, user, cache_control, x_new, tool_choice");
    assert!(body.get("x_new").is_none() && body.get("tool_choice").is_none());
}

#[test]
fn a_tool_choice_is_kept_by_leaving_tools_out() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.tools = vec![function("f"), function("g")];
    request.tool_choice = Some(ToolChoice::None);
    assert!(OLLAMA.written(&request).0.get("tools").is_none());
    request.tool_choice = Some(ToolChoice::Tool("g".to_owned()));
    let (body, dropped) = OLLAMA.written(&request);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!((&body["tools"][0]["function"]["name"], dropped.as_str()), (&json!("g"), "tool_choice"));
    request.tool_choice = Some(ToolChoice::Tool("h".to_owned()));
    assert!(matches!(OLLAMA.refused(&request), Unwritable::Wrong(_)));
}

#[test]
fn several_answers_are_refused_tr_12() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.output.choices = Some(1);
    OLLAMA.written(&request);
    request.output.choices = Some(2);
    assert!(matches!(OLLAMA.refused(&request), Unwritable::Unsupported(field) if field.field == "n"));
}

#[test]
fn images_go_beside_the_text_and_only_known_ones_tr_07() {
    let image = |source, kind: &str| Part::Image(Media::new(source, Some(kind.to_owned())));
    let inline = || Source::Base64("/9j/2Q==".to_owned());
    let turn = Turn::new(Role::User, vec![Part::text("a"), image(inline(), "image/jpeg"), Part::text("b")]);
    let (body, _) = OLLAMA.written(&request(vec![turn]));
    assert_eq!(body["messages"][0], json!({"role": "user", "content": "a\nb", "images": ["/9j/2Q=="]}));

    let svg = OLLAMA.refused(&request(vec![user(image(inline(), "image/svg+xml"))]));
    assert!(matches!(svg, Unwritable::Wrong(field) if field.field == "messages[0].content[0]"));
    let url = Source::Url("https://x.example/a.png".to_owned());
    assert!(matches!(
        OLLAMA.refused(&request(vec![user(image(url, "image/png"))])),
        Unwritable::Unsupported(_)
    ));
    let audio = Part::Audio(Media::new(inline(), None));
    assert!(matches!(OLLAMA.refused(&request(vec![user(audio)])), Unwritable::Unsupported(_)));
}

#[test]
fn thoughts_go_back_but_not_those_of_another_vendor_tr_08() {
    let signed = Reasoning {
        text: "secret".to_owned(),
        signature: Some(Signature { wire: Wire::Anthropic, value: "c2ln".to_owned() }),
        redacted: false,
    };
    let own = Reasoning { text: "hm".to_owned(), ..Reasoning::default() };
    let parts = vec![Part::Reasoning(signed), Part::Reasoning(own), Part::text("No.")];
    let (body, _) = OLLAMA.written(&request(vec![assistant(parts)]));
    assert_eq!(body["messages"][0], json!({"role": "assistant", "content": "No.", "thinking": "hm"}));
}

#[test]
fn thinking_is_switched_by_effort_by_budget_or_outright() {
    let think_of = |model: &str, reasoning: ReasoningRequest| {
        let mut request = request(vec![user(Part::text("a"))]);
        request.reasoning = Some(reasoning);
        let target = TargetFacts { model, ..OLLAMA.target() };
        let written = Ollama.write_request(&request, &target).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
        (body.get("think").cloned(), written.dropped.to_string())
    };
    let think = |reasoning| think_of("gpt-oss:20b", reasoning);
    let effort = |effort: &str| ReasoningRequest { effort: Some(effort.to_owned()), ..Default::default() };
    assert_eq!(think(effort("minimal")), (Some(json!("low")), String::new()));
    assert_eq!(think(effort("medium")), (Some(json!("medium")), String::new()));
    assert_eq!(think(effort("none")), (Some(json!(false)), String::new()));
    assert_eq!(think(effort("wild")), (Some(json!(true)), "reasoning_effort".to_owned()));
    let others = think_of("qwen3", effort("medium"));
    assert_eq!(others, (Some(json!(true)), "reasoning_effort".to_owned()));
    let budget = ReasoningRequest { budget_tokens: Some(1024), ..Default::default() };
    assert_eq!(think(budget), (Some(json!(true)), "thinking.budget_tokens".to_owned()));
    assert_eq!(think(ReasoningRequest { enabled: Some(false), ..Default::default() }).0, Some(json!(false)));
    assert_eq!(think(ReasoningRequest::default()).0, None);
}

#[test]
fn an_error_line_is_a_failure_at_once_and_after_text_tr_15_sse_08() {
    let (lines, facts) =
        OLLAMA.events(&[b"{\"error\":\"model runner has stopped\"}\n{\"message\":{\"content\":\"x\"}}\n"]);
    assert_eq!(lines.len(), 1);
    assert!(!facts.first_token && !facts.complete);
    assert_eq!(facts.error.unwrap().0.message.as_deref(), Some("model runner has stopped"));
    let (lines, facts) =
        OLLAMA.events(&[b"{\"message\":{\"content\":\"x\"},\"error\":null}\n{\"error\":\"boom\"}\n"]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(facts.first_token && facts.error.is_some());
    assert_eq!(Ollama.read_answer(br#"{"error":"boom"}"#, "r").unwrap_err().message.as_deref(), Some("boom"));
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let (_, facts) = OLLAMA.events(&[b"{\"message\":{\"content\":\"x\"},\"done\":false}\n"]);
    assert!(facts.first_token && !facts.complete && facts.error.is_none());
    let cut = TR_15.trim_end();
    assert!(OLLAMA.events(&[cut.as_bytes()]).1.complete, "the last line needs no line ending");
    let half = &TR_15.as_bytes()[..TR_15.len() - 10];
    let (_, facts) = OLLAMA.events(&[half]);
    assert!(!facts.complete && facts.error.is_some(), "half an object is broken");
}

#[test]
fn characters_survive_any_cut_and_false_ones_are_replaced_sse_01() {
    let line = "{\"message\":{\"content\":\"潮🚲\"}}\n".as_bytes();
    for cut in 0..line.len() {
        let (lines, _) = OLLAMA.events(&[&line[..cut], &line[cut..]]);
        assert_eq!(lines[1], "Text { choice: 0, text: \"潮🚲\" }");
    }
    let (lines, facts) = OLLAMA.events(&[b"{\"message\":{\"content\":\"a\xff\"}}\n", TR_15.as_bytes()]);
    assert_eq!(lines[1], "Text { choice: 0, text: \"a\u{fffd}\" }");
    assert!(facts.complete);
}

#[test]
fn lines_may_end_with_crlf_and_signs_of_life_are_passed_over_sse_02_sse_03() {
    let (lines, _) = OLLAMA.events(&[b"\r\n: waiting\r\n{\"message\":{\"content\":\"a\"}}\r\n"]);
    assert_eq!(lines[1..], ["Text { choice: 0, text: \"a\" }"]);
}

#[test]
fn a_line_of_four_megabytes_passes_and_one_without_end_is_bounded_sse_11() {
    let text = "x".repeat(4 << 20);
    let line = format!("{{\"message\":{{\"content\":\"{text}\"}}}}\n");
    let chunks: Vec<&[u8]> = line.as_bytes().chunks(16 << 10).collect();
    assert!(OLLAMA.events(&chunks).0[1].contains(&text));
    let endless = vec![b'x'; 1 << 20];
    let (lines, facts) = OLLAMA.events(&vec![endless.as_slice(); 33]);
    assert_eq!(lines.len(), 1);
    assert!(facts.error.unwrap().0.message.unwrap().contains("too long"));
}

#[test]
fn a_cached_prompt_has_an_unknown_count_and_not_zero() {
    for counts in [r#""prompt_eval_count":0,"eval_count":3"#, r#""eval_count":3"#] {
        let body = format!(r#"{{"message":{{"content":"a"}},"done":true,{counts}}}"#);
        let usage = Ollama.find_usage(body.as_bytes()).unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(3)));
    }
    assert_eq!(Ollama.find_usage(br#"{"message":{},"done":true}"#), None);
}

#[test]
fn loading_a_model_is_no_answer_and_length_wins_over_calls() {
    let body = |reason: &str| {
        format!(
            r#"{{"message":{{"tool_calls":[{{"function":{{"name":"f"}}}}]}},"done":true,"done_reason":"{reason}"}}"#
        )
    };
    assert!(Ollama.read_answer(body("load").as_bytes(), "r").is_err());
    assert!(OLLAMA.events(&[body("load").as_bytes()]).1.error.is_some());
    let answer = Ollama.read_answer(body("length").as_bytes(), "r").unwrap();
    assert_eq!(answer.choices[0].stop, Some(Stop::Length));
    for none in ["", "{}", "[]", "null", "{\"message\":{\"content\":\"a\"},\"done\":false}"] {
        assert_eq!(Ollama.read_answer(none.as_bytes(), "r"), Err(VendorError::default()), "{none}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_read_without_panic_and_alike_in_any_chunks(
        noise in prop::collection::vec(any::<u8>(), 0..60),
        at in 0..TR_15.len(),
        size in 1_usize..40,
    ) {
        let mut bytes = TR_15.as_bytes().to_vec();
        bytes.splice(at..at, noise);
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(OLLAMA.events(&chunks).0, OLLAMA.events(&[&bytes]).0);
        let _ = Ollama.read_answer(&bytes, "r");
    }

    #[test]
    fn any_text_reaches_the_service_as_it_is(text in any::<String>()) {
        let (body, _) = OLLAMA.written(&request(vec![user(Part::text(text.clone()))]));
        prop_assert_eq!(body["messages"][0]["content"].as_str(), Some(text.as_str()));
    }
}
