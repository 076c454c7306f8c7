use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat_shaped::testing::{Bench, assistant, call, function, request, result, user};
use crate::exchange::{
    Choice, Format, JsonSchema, Media, Part, Reasoning, ReasoningRequest, Role, Signature, Source, Stop,
    ToolChoice, ToolKind, Turn,
};

const COHERE: Bench = Bench(&Cohere, "cohere");

const STREAM: &str = concat!(
    "event: message-start\ndata: {\"id\":\"m1\",\"type\":\"message-start\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[]}}}\n\n",
    "data: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"thinking\",\"thinking\":\"\"}}}}\n\n",
    "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"thinking\":\"hm\"}}}}\n\n",
    "data: {\"type\":\"content-end\",\"index\":0}\n\n",
    "data: {\"type\":\"tool-plan-delta\",\"delta\":{\"message\":{\"tool_plan\":\"潮🚲\"}}}\n\n",
    "data: {\"type\":\"tool-call-start\",\"index\":0,\"delta\":{\"message\":{\"tool_calls\":{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}}}}\n\n",
    "data: {\"type\":\"tool-call-delta\",\"index\":0,\"delta\":{\"message\":{\"tool_calls\":{\"function\":{\"arguments\":\"{\\\"k\\\":1}\"}}}}}\n\n",
    "data: {\"type\":\"tool-call-end\",\"index\":0}\n\n",
    "data: {\"type\":\"tool-call-start\",\"index\":0,\"delta\":{\"message\":{\"tool_calls\":{\"function\":{\"name\":\"now\"}}}}}\n\n",
    "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"TOOL_CALL\",\"usage\":{\"billed_units\":{\"input_tokens\":1,\"output_tokens\":2},\"tokens\":{\"input_tokens\":90.0,\"output_tokens\":12},\"cached_tokens\":64}}}\n\n",
    "data: [DONE]\n\n",
);

const STREAM_EVENTS: [&str; 9] = [
    r#"Start { id: Some("m1"), model: None, created: None }"#,
    r#"Reasoning { choice: 0, text: "hm" }"#,
    r#"Text { choice: 0, text: "潮🚲" }"#,
    r#"ToolStart { choice: 0, call: 0, id: "a", name: "f", signature: None }"#,
    r#"ToolArguments { choice: 0, call: 0, fragment: "{\"k\":1}" }"#,
    r#"ToolStart { choice: 0, call: 1, id: "call_req-1_1", name: "now", signature: None }"#,
    r#"ToolArguments { choice: 0, call: 1, fragment: "{}" }"#,
    r#"Finish { choice: 0, stop: ToolCalls, native: "TOOL_CALL", sequence: None }"#,
    "End",
];

fn without_usage(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).filter(|line| !line.starts_with("Usage")).collect()
}

#[test]
fn a_stream_is_read_alike_wherever_it_is_cut_sse_01_sse_06_tr_14() {
    for cut in 0..STREAM.len() {
        let (head, tail) = STREAM.as_bytes().split_at(cut);
        let (lines, facts) = COHERE.events(&[head, tail]);
        assert_eq!(without_usage(&lines), STREAM_EVENTS);
        let usage = facts.usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
            (Some(90), Some(64), Some(12)),
            "tokens are counted as read, not as billed"
        );
    }
}

#[test]
fn all_line_ends_are_understood_sse_02() {
    for end in ["\r\n", "\r"] {
        let (lines, _) = COHERE.events(&[STREAM.replace('\n', end).as_bytes()]);
        assert_eq!(without_usage(&lines), STREAM_EVENTS);
    }
    let start =
        "data:{\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}\r\n\r";
    let mut seen = 0;
    Cohere.stream_reader("r").feed(start.as_bytes(), &mut |_| seen += 1);
    assert_eq!(seen, 2, "reported while the stream is open");
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let (end, _) = STREAM.match_indices("data: {\"type\":\"message-end\"").next().unwrap();
    let (lines, facts) = COHERE.events(&[&STREAM.as_bytes()[..end]]);
    assert!(facts.first_token && !facts.complete && facts.error.is_none(), "{lines:?}");
    let undone = STREAM.replace("data: [DONE]\n\n", "");
    assert!(COHERE.events(&[undone.as_bytes()]).1.complete, "message-end is the end mark");
}

#[test]
fn failures_within_a_stream_are_reported_in_every_form_sse_08() {
    let text =
        "data: {\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"a\"}}}}\n\n";
    for (bad, message, status) in [
        ("data: {\"message\":\"too many tokens\",\"id\":\"x\"}\n\n", "too many tokens", None),
        ("data: {\"error\":{\"message\":\"queue full\"}}\n\n", "queue full", None),
        ("event: error\ndata: out of memory\n\n", "out of memory", None),
        (
            "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"ERROR\",\"error\":\"boom\"}}\n\n",
            "boom",
            Some(500),
        ),
        (
            "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"TIMEOUT\"}}\n\n",
            "the service stopped with finish_reason \"TIMEOUT\"",
            Some(504),
        ),
        ("data: {\"type\":\"content-delta\",\n\n", "an event of the stream is broken", Some(502)),
    ] {
        for before in ["", text] {
            let (lines, facts) = COHERE.events(&[before.as_bytes(), bad.as_bytes(), STREAM.as_bytes()]);
            let (error, at) = facts.error.unwrap_or_else(|| panic!("{lines:?}"));
            assert_eq!((error.message.as_deref(), at), (Some(message), status));
            assert_eq!((facts.first_token, facts.complete), (!before.is_empty(), false));
            assert!(lines.last().unwrap().starts_with("Failed"), "nothing follows: {lines:?}");
        }
    }
}

#[test]
fn keep_alives_in_any_form_are_passed_over_sse_03() {
    let (lines, _) = COHERE.events(&[b": waiting\n\ndata: : waiting\n\n", STREAM.as_bytes()]);
    assert_eq!(without_usage(&lines), STREAM_EVENTS);
}

#[test]
fn an_event_of_four_megabytes_passes_and_one_without_end_is_bounded_sse_11() {
    let text = "x".repeat(4 << 20);
    let event = format!(
        "data: {{\"type\":\"content-delta\",\"delta\":{{\"message\":{{\"content\":{{\"text\":\"{text}\"}}}}}}}}\n\n"
    );
    let chunks: Vec<&[u8]> = event.as_bytes().chunks(16 << 10).collect();
    assert!(COHERE.events(&chunks).0[1].contains(&text));
    let mut chunks = vec![b"data: ".as_slice()];
    let endless = vec![b'x'; 1 << 20];
    chunks.extend(vec![endless.as_slice(); 33]);
    assert!(COHERE.events(&chunks).1.error.unwrap().0.message.unwrap().contains("too long"));
}

#[test]
fn a_whole_answer_has_thoughts_plan_calls_and_citations() {
    let body =
        br#"{"id":"m1","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"I look.",
        "content":[{"type":"thinking","thinking":"hm"}],"citations":[{"start":0,"end":1}],
        "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},
        "usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":90,"output_tokens":12}}}"#;
    let answer = Cohere.read_answer(body, "r").unwrap();
    let [Choice { parts, stop, .. }] = answer.choices.as_slice() else { panic!("one choice") };
    let [Part::Reasoning(thought), Part::Text(text), Part::ToolCall(call)] = parts.as_slice() else {
        panic!("{parts:?}")
    };
    assert_eq!((thought.text.as_str(), text.text.as_str(), text.citations.len()), ("hm", "I look.", 1));
    assert_eq!((call.id.as_str(), call.arguments.as_str(), *stop), ("a", "{}", Some(Stop::ToolCalls)));
    assert_eq!(answer.usage.unwrap().input_tokens, Some(90));
    assert_eq!(Cohere.find_usage(body), answer.usage);
}

#[test]
fn reasons_to_stop_keep_their_meaning_and_failures_are_no_answers() {
    let body = |reason: &str| {
        format!(r#"{{"finish_reason":"{reason}","message":{{"content":[{{"type":"text","text":"a"}}]}}}}"#)
    };
    for (reason, stop) in [
        ("COMPLETE", Stop::End),
        ("STOP_SEQUENCE", Stop::Sequence),
        ("MAX_TOKENS", Stop::Length),
        ("NEW_ONE", Stop::End),
    ] {
        let answer = Cohere.read_answer(body(reason).as_bytes(), "r").unwrap();
        assert_eq!((answer.choices[0].stop, answer.usage), (Some(stop), None));
    }
    for reason in ["ERROR", "TIMEOUT"] {
        assert_eq!(
            Cohere.read_answer(body(reason).as_bytes(), "r").unwrap_err().code.as_deref(),
            Some(reason)
        );
    }
    let error = Cohere.read_answer(br#"{"message":"invalid api token","id":"x"}"#, "r").unwrap_err();
    assert_eq!(error.message.as_deref(), Some("invalid api token"));
    assert_eq!(Cohere.read_answer(b"{}", "r"), Err(VendorError::default()));
}

#[test]
fn messages_have_coheres_shape_tr_01_tr_02_tr_03_tr_04() {
    let turns = vec![
        Turn::new(Role::System, vec![Part::text("Answer in French.")]),
        Turn::new(Role::Developer, vec![Part::text("Be brief.")]),
        user(Part::text("a")),
        user(Part::text("b")),
        assistant(vec![Part::text("I look."), call("x", "{}"), call("y", r#"{"n":12345678901234567890}"#)]),
        Turn::new(Role::User, vec![result("y", "Y"), result("x", "X"), Part::text("d")]),
        assistant(vec![Part::text(""), call("z", "")]),
        user(result("z", "")),
        assistant(vec![]),
    ];
    let (body, dropped) = COHERE.written(&request(turns));
    let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": format!("tool_{id}"), "arguments": arguments}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Answer in French."},
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "tool_plan": "I look.",
                "tool_calls": [called("x", "{}"), called("y", r#"{"n":12345678901234567890}"#)]},
            {"role": "tool", "tool_call_id": "y", "content": "Y"},
            {"role": "tool", "tool_call_id": "x", "content": "X"},
            {"role": "user", "content": "d"},
            {"role": "assistant", "tool_calls": [called("z", "{}")]},
            {"role": "tool", "tool_call_id": "z", "content": ""},
        ])
    );
    assert_eq!(dropped, "");
}

#[test]
fn wrong_calls_and_results_are_refused_by_their_id_tr_03_tr_14() {
    let unknown = COHERE.refused(&request(vec![user(result("t9", "x"))]));
    assert!(matches!(unknown, Unwritable::Wrong(field) if field.reason.contains("`t9`")));
    let broken = COHERE.refused(&request(vec![assistant(vec![call("c9", "{\"a\":")])]));
    assert!(matches!(broken, Unwritable::Wrong(field) if field.reason.contains("`c9`")));
}

#[test]
fn parameters_bear_coheres_names_tr_05_tr_09_tr_10() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.output.max_tokens = Some(64);
    request.output.stop = vec!["\n".to_owned()];
    let number = |text: &str| serde_json::from_str(text).ok();
    request.sampling.top_p = number("0.90");
    request.sampling.top_k = number("40");
    request.sampling.seed = number("7");
    request.sampling.presence_penalty = number("0.1");
    request.sampling.logprobs = Some(true);
    request.parallel_tool_calls = Some(false);
    request.tools = vec![function("f")];
    request.extra.insert("safety_mode".to_owned(), json!("OFF"));
    request.extra.insert("x_new".to_owned(), json!(1));
    let (body, dropped) = COHERE.written(&request);
    assert_eq!(
        body,
        json!({
            "model": "target-model", "messages": [{"role": "user", "content": "a"}], "stream": false,
            "max_tokens": 64, "p": 0.9, "k": 40, "seed": 7, "presence_penalty": 0.1, "stop_sequences": ["\n"],
            "tools": [{"type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
            "safety_mode": "OFF",
        })
    );
    assert_eq!(dropped, "logprobs, parallel_tool_calls, x_new");
}

#[test]
fn more_stops_than_five_and_several_answers_are_refused_tr_12_tr_13() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.output.stop = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
    COHERE.written(&request);
    request.output.stop.push("f".to_owned());
    let error = COHERE.refused(&request);
    assert!(matches!(error, Unwritable::Unsupported(field) if field.reason.contains("at most 5")));
    request.output.stop.clear();
    request.output.choices = Some(2);
    assert!(matches!(COHERE.refused(&request), Unwritable::Unsupported(field) if field.field == "n"));
}

#[test]
fn tool_choices_become_required_and_none_and_fewer_tools() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.tools = vec![function("f"), function("g")];
    let mut choose = |choice: ToolChoice| {
        request.tool_choice = Some(choice);
        let (body, dropped) = COHERE.written(&request);
        assert_eq!(dropped, "");
        (body["tools"].as_array().unwrap().len(), body.get("tool_choice").cloned())
    };
    let g = || vec!["g".to_owned()];
    assert_eq!(choose(ToolChoice::Auto), (2, None));
    assert_eq!(choose(ToolChoice::None), (2, Some(json!("NONE"))));
    assert_eq!(choose(ToolChoice::Required), (2, Some(json!("REQUIRED"))));
    assert_eq!(choose(ToolChoice::Tool("g".to_owned())), (1, Some(json!("REQUIRED"))));
    assert_eq!(choose(ToolChoice::Allowed { required: false, names: g() }), (1, None));
    assert_eq!(choose(ToolChoice::Allowed { required: true, names: g() }), (1, Some(json!("REQUIRED"))));
}

#[test]
fn a_vendors_own_tool_is_refused_and_strictness_dropped() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.tools = vec![function("f")];
    request.tools[0].kind = ToolKind::Function { parameters: Some(json!({})), strict: Some(true) };
    assert_eq!(COHERE.written(&request).1, "tools[0].strict");
    request.tools[0].kind = ToolKind::Other(json!({"type": "web_search"}));
    assert!(matches!(COHERE.refused(&request), Unwritable::Unsupported(_)));
}

#[test]
fn json_output_is_a_format_alone_and_a_hidden_tool_beside_tools_tr_11() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut request = request(vec![user(Part::text("a"))]);
    request.output.format = Some(Format::JsonSchema(JsonSchema {
        name: Some("ans".to_owned()),
        description: None,
        schema: schema.clone(),
        strict: None,
    }));
    let (body, _) = COHERE.written(&request);
    assert_eq!(body["response_format"], json!({"type": "json_object", "json_schema": schema}));

    request.tools = vec![function("json_answer")];
    let target = COHERE.target();
    let written = Cohere.write_request(&request, &target).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(written.json_tool.as_deref(), Some("json_answer_"), "no collision");
    assert_eq!((&body["tool_choice"], body.get("response_format")), (&json!("REQUIRED"), None));
    assert_eq!(body["tools"][1]["function"]["name"], "json_answer_");
    assert_eq!(body["tools"][1]["function"]["parameters"], schema);

    request.tool_choice = Some(ToolChoice::None);
    let (body, _) = COHERE.written(&request);
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
    assert!(body.get("response_format").is_some());

    request.tool_choice = Some(ToolChoice::Tool("json_answer".to_owned()));
    let (body, _) = COHERE.written(&request);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert!(body.get("response_format").is_none());
}

#[test]
fn images_keep_their_place_and_only_known_ones_pass_tr_07() {
    let image = |kind: &str| {
        Part::Image(Media {
            detail: Some("low".to_owned()),
            ..Media::new(Source::Base64("AAAA".to_owned()), Some(kind.to_owned()))
        })
    };
    let turn = Turn::new(Role::User, vec![Part::text("a"), image("image/jpeg"), Part::text("b")]);
    assert_eq!(
        COHERE.written(&request(vec![turn])).0["messages"][0]["content"],
        json!([
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA", "detail": "low"}},
            {"type": "text", "text": "b"},
        ])
    );
    let svg = COHERE.refused(&request(vec![user(image("image/svg+xml"))]));
    assert!(matches!(svg, Unwritable::Wrong(field) if field.field == "messages[0].content[0]"));
    let file = Part::File(Media::new(Source::FileId("f".to_owned()), None));
    assert!(matches!(COHERE.refused(&request(vec![user(file)])), Unwritable::Unsupported(_)));
}

#[test]
fn thoughts_go_back_but_not_those_of_another_vendor_tr_08() {
    let signed = Reasoning {
        text: "secret".to_owned(),
        signature: Some(Signature { wire: Wire::Gemini, value: "c2ln".to_owned() }),
        redacted: false,
    };
    let own = Reasoning { text: "hm".to_owned(), ..Reasoning::default() };
    let turn = assistant(vec![Part::Reasoning(signed), Part::Reasoning(own), Part::text("No.")]);
    assert_eq!(
        COHERE.written(&request(vec![turn])).0["messages"][0]["content"],
        json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "No."}])
    );
}

#[test]
fn thinking_has_a_switch_and_a_budget_but_no_levels() {
    let think = |reasoning: ReasoningRequest| {
        let mut request = request(vec![user(Part::text("a"))]);
        request.reasoning = Some(reasoning);
        let (body, dropped) = COHERE.written(&request);
        (body.get("thinking").cloned(), dropped)
    };
    let effort = |effort: &str| ReasoningRequest { effort: Some(effort.to_owned()), ..Default::default() };
    let budget = ReasoningRequest { budget_tokens: Some(512), ..Default::default() };
    assert_eq!(think(budget), (Some(json!({"type": "enabled", "token_budget": 512})), String::new()));
    assert_eq!(think(effort("none")), (Some(json!({"type": "disabled"})), String::new()));
    assert_eq!(think(effort("high")), (Some(json!({"type": "enabled"})), "reasoning_effort".to_owned()));
    assert_eq!(think(ReasoningRequest::default()).0, None);
}

proptest! {
    #[test]
    fn whatever_comes_is_read_without_panic_and_alike_in_any_chunks(
        noise in prop::collection::vec(any::<u8>(), 0..60),
        at in 0..STREAM.len(),
        size in 1_usize..40,
    ) {
        let mut bytes = STREAM.as_bytes().to_vec();
        bytes.splice(at..at, noise);
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(COHERE.events(&chunks).0, COHERE.events(&[&bytes]).0);
        let _ = Cohere.read_answer(&bytes, "r");
    }
}
