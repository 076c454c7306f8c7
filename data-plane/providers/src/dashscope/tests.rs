use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat_shaped::testing::{Bench, assistant, call, function, request, result, user};
use crate::exchange::{
    Choice, Format, JsonSchema, Media, Reasoning, ReasoningRequest, Role, Signature, Source, Stop,
    ToolChoice, Turn,
};

const DASHSCOPE: Bench = Bench(&Dashscope, "dashscope");

/// An event with one choice.
fn event(message: &str, reason: &str) -> String {
    format!(
        "id:1\nevent:result\n:HTTP_STATUS/200\ndata:{{\"output\":{{\"choices\":[{{\"message\":{message},\"finish_reason\":\"{reason}\"}}]}},\"request_id\":\"q\"}}\n\n"
    )
}

fn stream() -> String {
    let call = |index: &str, id: &str, function: &str| {
        let calls =
            format!(r#"{{"content":"","tool_calls":[{{{index}"id":"{id}","function":{function}}}]}}"#);
        event(&calls, "null")
    };
    [
        event(r#"{"content":"","reasoning_content":"hm"}"#, "null"),
        event(r#"{"content":"潮🚲","reasoning_content":""}"#, "null"),
        call(r#""index":0,"#, "t1", r#"{"name":"f","arguments":"{\"k\":"}"#),
        call(r#""index":0,"#, "", r#"{"arguments":"1}"}"#),
        call(r#""index":0,"#, "t2", r#"{"name":"g"}"#),
        event(r#"{"content":""}"#, "tool_calls"),
    ]
    .concat()
}

const STREAM_EVENTS: [&str; 9] = [
    r#"Start { id: Some("q"), model: None, created: None }"#,
    r#"Reasoning { choice: 0, text: "hm" }"#,
    r#"Text { choice: 0, text: "潮🚲" }"#,
    r#"ToolStart { choice: 0, call: 0, id: "t1", name: "f", signature: None }"#,
    r#"ToolArguments { choice: 0, call: 0, fragment: "{\"k\":" }"#,
    r#"ToolArguments { choice: 0, call: 0, fragment: "1}" }"#,
    r#"ToolStart { choice: 0, call: 1, id: "t2", name: "g", signature: None }"#,
    r#"ToolArguments { choice: 0, call: 1, fragment: "{}" }"#,
    r#"Finish { choice: 0, stop: ToolCalls, native: "tool_calls", sequence: None }"#,
];

#[test]
fn a_stream_is_read_alike_wherever_it_is_cut_sse_01_sse_06_tr_14() {
    let stream = stream();
    for cut in 0..stream.len() {
        let (head, tail) = stream.as_bytes().split_at(cut);
        let (lines, facts) = DASHSCOPE.events(&[head, tail]);
        assert_eq!(lines[..9], STREAM_EVENTS);
        assert_eq!((lines[9..].concat().as_str(), facts.complete), ("End", true));
    }
}

#[test]
fn all_line_ends_are_understood_sse_02() {
    for end in ["\r\n", "\r"] {
        let (lines, _) = DASHSCOPE.events(&[stream().replace('\n', end).as_bytes()]);
        assert_eq!(lines[..9], STREAM_EVENTS);
    }
}

#[test]
fn calls_without_an_index_are_told_apart_by_their_ids_sse_06() {
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        event(&json!({"tool_calls": [{"id": id, "function": function}]}).to_string(), "null")
    };
    let stream = [call("a", "{"), call("", "}"), call("b", "{}"), event("{}", "stop")].concat();
    let (lines, _) = DASHSCOPE.events(&[stream.as_bytes()]);
    let starts: Vec<_> = lines.iter().filter(|line| line.starts_with("ToolStart")).collect();
    assert_eq!(starts.len(), 2, "{lines:?}");
    assert!(lines.contains(&r#"ToolArguments { choice: 0, call: 0, fragment: "}" }"#.to_owned()));
    assert!(lines.iter().any(|line| line.starts_with("Finish") && line.contains("ToolCalls")));
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let stream = event(r#"{"content":"a"}"#, "null");
    let (lines, facts) = DASHSCOPE.events(&[stream.as_bytes()]);
    assert!(facts.first_token && !facts.complete && facts.error.is_none(), "{lines:?}");
    assert!(!DASHSCOPE.events(&[b""]).1.complete);
}

#[test]
fn a_choice_that_has_not_ended_leaves_the_answer_open_sse_04_tr_12() {
    let two = r#"{"output":{"choices":[{"index":1,"message":{"content":"b"},"finish_reason":"stop"},{"index":0,"message":{"content":"a"},"finish_reason":"null"}]}}"#;
    let (lines, _) = DASHSCOPE.events(&[format!("data:{two}\n\n").as_bytes()]);
    assert!(lines.contains(&r#"Text { choice: 1, text: "b" }"#.to_owned()), "{lines:?}");
    assert!(!lines.contains(&"End".to_owned()));
}

#[test]
fn failures_within_a_stream_are_reported_with_their_status_sse_08() {
    for (data, code, status) in [
        (r#"event:error"#, "InvalidParameter", Some(400)),
        ("", "Throttling.RateQuota", Some(429)),
        ("", "DataInspectionFailed", Some(400)),
        ("", "Throttled", None),
    ] {
        let bad = format!(
            "id:2\n{data}\n:HTTP_STATUS/400\ndata:{{\"code\":\"{code}\",\"message\":\"no\",\"request_id\":\"q\"}}\n\n"
        );
        // Without a field of its own, the empty line would end the event.
        let bad = bad.replace("\n\n:", "\n:");
        for before in [String::new(), event(r#"{"content":"a"}"#, "null")] {
            let (lines, facts) = DASHSCOPE.events(&[before.as_bytes(), bad.as_bytes(), stream().as_bytes()]);
            let (error, at) = facts.error.unwrap_or_else(|| panic!("{lines:?}"));
            assert_eq!(
                (error.code.as_deref(), error.message.as_deref(), at),
                (Some(code), Some("no"), status)
            );
            assert_eq!((facts.first_token, facts.complete), (!before.is_empty(), false));
        }
    }
    let (lines, _) = DASHSCOPE.events(&[b"data:{\"output\":\n\n"]);
    assert!(lines[0].contains("broken"), "{lines:?}");
}

#[test]
fn keep_alives_and_events_without_an_answer_are_passed_over_sse_03_sse_05() {
    let usage = "data:{\"output\":null,\"usage\":{\"input_tokens\":5}}\n\n";
    let (lines, facts) =
        DASHSCOPE.events(&[b": waiting\n\ndata: : waiting\n\n", stream().as_bytes(), usage.as_bytes()]);
    assert_eq!(lines[..9], STREAM_EVENTS);
    assert_eq!(facts.usage.unwrap().input_tokens, Some(5));
    assert_eq!(lines.last().unwrap(), "End");
}

#[test]
fn an_event_of_four_megabytes_passes_and_one_without_end_is_bounded_sse_11() {
    let text = "x".repeat(4 << 20);
    let long = event(&json!({ "content": text }).to_string(), "null");
    let chunks: Vec<&[u8]> = long.as_bytes().chunks(16 << 10).collect();
    assert!(DASHSCOPE.events(&chunks).0[1].contains(&text));
    let mut chunks = vec![b"data:".as_slice()];
    let endless = vec![b'x'; 1 << 20];
    chunks.extend(vec![endless.as_slice(); 33]);
    assert!(DASHSCOPE.events(&chunks).1.error.unwrap().0.message.unwrap().contains("too long"));
}

#[test]
fn a_whole_answer_has_every_choice_and_all_counts() {
    let body = br#"{"code":"","message":"","request_id":"q","output":{"text":null,"finish_reason":null,"choices":[
        {"finish_reason":"length","message":{"role":"assistant","content":"a","reasoning_content":"hm",
          "tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":""}}]},"logprobs":null},
        {"finish_reason":"stop","message":{"content":[{"text":"b"},{"image":"x"},{"text":"c"}]},"logprobs":{"content":[]}}]},
        "usage":{"input_tokens":30,"output_tokens":9,"total_tokens":39,"image_tokens":null,
          "prompt_tokens_details":{"cached_tokens":20,"cache_creation_input_tokens":4},
          "output_tokens_details":{"reasoning_tokens":3},"plugins":{"search":{"count":1}}}}"#;
    let answer = Dashscope.read_answer(body, "r").unwrap();
    let [first, second] = answer.choices.as_slice() else { panic!("two choices") };
    let [Part::Reasoning(_), Part::Text(_), Part::ToolCall(call)] = first.parts.as_slice() else {
        panic!("{:?}", first.parts)
    };
    assert_eq!((call.id.as_str(), call.arguments.as_str()), ("call_r_0_0", "{}"));
    assert_eq!((first.stop, first.logprobs.as_ref()), (Some(Stop::Length), None));
    let expected = Choice {
        index: 1,
        parts: vec![Part::text("bc")],
        stop: Some(Stop::End),
        native_stop: Some("stop".to_owned()),
        stop_sequence: None,
        logprobs: Some(json!({"content": []})),
    };
    assert_eq!(*second, expected);
    let usage = Usage {
        input_tokens: Some(30),
        cached_input_tokens: Some(20),
        cache_write_tokens: Some(4),
        output_tokens: Some(9),
        reasoning_tokens: Some(3),
        searches: Some(1),
        ..Usage::default()
    };
    assert_eq!((answer.usage, Dashscope.find_usage(body)), (Some(usage), Some(usage)));
}

#[test]
fn an_error_in_a_success_is_no_answer() {
    let body = br#"{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content.","request_id":"q"}"#;
    let error = Dashscope.read_answer(body, "r").unwrap_err();
    assert_eq!(error.code.as_deref(), Some("DataInspectionFailed"));
    for none in
        ["", "{}", "[]", r#"{"output":{"choices":[{"message":{"content":"a"},"finish_reason":"null"}]}}"#]
    {
        assert_eq!(Dashscope.read_answer(none.as_bytes(), "r"), Err(VendorError::default()), "{none}");
    }
}

#[test]
fn messages_are_texts_one_by_one_tr_01_tr_02_tr_03_tr_04() {
    let turns = vec![
        Turn::new(Role::System, vec![Part::text("Answer in French.")]),
        Turn::new(Role::Developer, vec![Part::text("Be"), Part::text("brief.")]),
        user(Part::text("a")),
        user(Part::text("b")),
        assistant(vec![call("x", "{}"), call("y", r#"{"n":12345678901234567890}"#)]),
        Turn::new(Role::User, vec![result("y", "Y"), result("x", "X"), Part::text("d")]),
    ];
    let (body, dropped) = DASHSCOPE.written(&request(turns));
    let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": format!("tool_{id}"), "arguments": arguments}});
    assert_eq!(
        body["input"]["messages"],
        json!([
            {"role": "system", "content": "Answer in French."},
            {"role": "system", "content": "Be\nbrief."},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "",
                "tool_calls": [called("x", "{}"), called("y", r#"{"n":12345678901234567890}"#)]},
            {"role": "tool", "tool_call_id": "y", "content": "Y"},
            {"role": "tool", "tool_call_id": "x", "content": "X"},
            {"role": "user", "content": "d"},
        ])
    );
    assert_eq!(dropped, "");
}

#[test]
fn wrong_calls_and_results_are_refused_by_their_id_tr_03_tr_14() {
    let unknown = DASHSCOPE.refused(&request(vec![user(result("t9", "x"))]));
    assert!(matches!(unknown, Unwritable::Wrong(field) if field.reason.contains("`t9`")));
    let broken = DASHSCOPE.refused(&request(vec![assistant(vec![call("c9", "{\"a\":")])]));
    assert!(matches!(broken, Unwritable::Wrong(field) if field.reason.contains("`c9`")));
}

#[test]
fn pictures_turn_all_contents_into_lists_and_choose_the_call_tr_07() {
    let image = |source, kind: &str| Part::Image(Media::new(source, Some(kind.to_owned())));
    let inline = || Source::Base64("AAAA".to_owned());
    let with_image = request(vec![
        Turn::new(Role::System, vec![Part::text("s")]),
        Turn::new(Role::User, vec![image(inline(), "image/jpeg"), Part::text("b")]),
    ]);
    assert_eq!(
        DASHSCOPE.written(&with_image).0["input"]["messages"],
        json!([
            {"role": "system", "content": [{"text": "s"}]},
            {"role": "user", "content": [{"image": "data:image/jpeg;base64,AAAA"}, {"text": "b"}]},
        ])
    );
    assert_eq!(Dashscope.call(&with_image, &DASHSCOPE.target()), Call::DashscopeMultimodal);
    let svg = DASHSCOPE.refused(&request(vec![user(image(inline(), "image/svg+xml"))]));
    assert!(matches!(svg, Unwritable::Wrong(field) if field.field == "messages[0].content[0]"));
    let audio = Part::Audio(Media::new(inline(), None));
    assert!(matches!(DASHSCOPE.refused(&request(vec![user(audio)])), Unwritable::Unsupported(_)));
}

#[test]
fn the_models_name_tells_which_call_it_is_behind() {
    let text = request(vec![user(Part::text("a"))]);
    let call = |model| Dashscope.call(&text, &TargetFacts { model, ..DASHSCOPE.target() });
    for model in
        ["qwen3-vl-plus", "qwen-vl-max", "qvq-max", "qwen3.6-plus", "qwen-vl-ocr", "qwen3-omni-flash"]
    {
        assert_eq!(call(model), Call::DashscopeMultimodal, "{model}");
    }
    for model in ["qwen-plus", "qwen3-max", "qwen3.7-max", "qwen3-coder-plus", "deepseek-v3.1", "qwen3.1"] {
        assert_eq!(call(model), Call::DashscopeGeneration, "{model}");
    }
}

#[test]
fn parameters_stand_in_their_own_object_tr_05_tr_09_tr_10_tr_12_tr_13() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.stream = true;
    request.output.max_tokens = Some(64);
    request.output.stop = vec!["END".to_owned()];
    request.output.choices = Some(2);
    request.output.format = Some(Format::JsonObject);
    request.sampling.top_k = serde_json::from_str("40").ok();
    request.sampling.frequency_penalty = serde_json::from_str("0.5").ok();
    request.sampling.logprobs = Some(true);
    request.sampling.top_logprobs = Some(2);
    request.tools = vec![function("f")];
    request.parallel_tool_calls = Some(false);
    request.extra.insert("enable_search".to_owned(), json!(true));
    request.extra.insert("x_new".to_owned(), json!(1));
    let (body, dropped) = DASHSCOPE.written(&request);
    assert_eq!(
        body["parameters"],
        json!({
            "result_format": "message", "incremental_output": true, "max_tokens": 64, "top_k": 40,
            "logprobs": true, "top_logprobs": 2, "stop": ["END"], "n": 2,
            "tools": [{"type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
            "parallel_tool_calls": false, "response_format": {"type": "json_object"}, "enable_search": true,
        })
    );
    assert_eq!(dropped, "frequency_penalty, x_new");
}

#[test]
fn structured_output_keeps_name_and_strictness_tr_11() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.output.format = Some(Format::JsonSchema(JsonSchema {
        name: Some("ans".to_owned()),
        description: None,
        schema: json!({"type": "object"}),
        strict: Some(true),
    }));
    assert_eq!(
        DASHSCOPE.written(&request).0["parameters"]["response_format"],
        json!({"type": "json_schema",
            "json_schema": {"name": "ans", "schema": {"type": "object"}, "strict": true}})
    );
}

#[test]
fn a_tool_choice_is_carried_where_there_is_a_way() {
    let mut request = request(vec![user(Part::text("a"))]);
    request.tools = vec![function("f"), function("g")];
    let named = json!({"type": "function", "function": {"name": "g"}});
    let mut choose = |choice: ToolChoice| {
        request.tool_choice = Some(choice);
        let (body, dropped) = DASHSCOPE.written(&request);
        let parameters = &body["parameters"];
        (parameters["tools"].as_array().unwrap().len(), parameters.get("tool_choice").cloned(), dropped)
    };
    let allowed = |required| ToolChoice::Allowed { required, names: vec!["g".to_owned()] };
    assert_eq!(choose(ToolChoice::Auto), (2, None, String::new()));
    assert_eq!(choose(ToolChoice::None), (2, Some(json!("none")), String::new()));
    assert_eq!(choose(ToolChoice::Required), (2, None, "tool_choice".to_owned()));
    assert_eq!(choose(ToolChoice::Tool("g".to_owned())), (1, Some(named.clone()), String::new()));
    assert_eq!(choose(allowed(true)), (1, Some(named), String::new()));
    assert_eq!(choose(allowed(false)), (1, None, String::new()));
}

#[test]
fn thinking_has_a_switch_and_a_budget_and_the_clients_own_word_wins() {
    let think = |reasoning: ReasoningRequest, own: Option<bool>| {
        let mut request = request(vec![user(Part::text("a"))]);
        request.reasoning = Some(reasoning);
        request.extra.extend(own.map(|own| ("enable_thinking".to_owned(), json!(own))));
        let (mut body, dropped) = DASHSCOPE.written(&request);
        body["parameters"].as_object_mut().unwrap().remove("result_format");
        (body["parameters"].clone(), dropped)
    };
    let effort = |effort: &str| ReasoningRequest { effort: Some(effort.to_owned()), ..Default::default() };
    let budget = || ReasoningRequest { budget_tokens: Some(512), ..Default::default() };
    assert_eq!(
        think(budget(), None),
        (json!({"enable_thinking": true, "thinking_budget": 512}), String::new())
    );
    assert_eq!(think(budget(), Some(false)).0["enable_thinking"], false);
    assert_eq!(think(effort("none"), None), (json!({"enable_thinking": false}), String::new()));
    assert_eq!(think(effort("low"), None), (json!({"enable_thinking": true}), "reasoning_effort".to_owned()));
    assert_eq!(think(ReasoningRequest::default(), None).0, json!({}));
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
        DASHSCOPE.written(&request(vec![turn])).0["input"]["messages"][0],
        json!({"role": "assistant", "content": "No.", "reasoning_content": "hm"})
    );
}

proptest! {
    #[test]
    fn whatever_comes_is_read_without_panic_and_alike_in_any_chunks(
        noise in prop::collection::vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(),
        size in 1_usize..40,
    ) {
        let mut bytes = stream().into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..at, noise);
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(DASHSCOPE.events(&chunks).0, DASHSCOPE.events(&[&bytes]).0);
        let _ = Dashscope.read_answer(&bytes, "r");
    }
}
