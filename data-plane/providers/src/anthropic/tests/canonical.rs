//! This dialect → model → this dialect changes nothing that is written in its usual form.

use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Anthropic, asked, write};
use crate::dialect::{Dialect, Protocol};
use crate::exchange::{Answer, Choice, Part, Reasoning, Signature, Stop, Text, ToolCall};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", any::<String>().prop_filter("not empty", |text| !text.is_empty())]
}

fn cache() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![
        Just(json!({"type": "ephemeral"})),
        Just(json!({"type": "ephemeral", "ttl": "5m"})),
        Just(json!({"type": "ephemeral", "ttl": "1h"})),
    ])
}

fn cached(block: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (block, cache()).prop_map(|(mut block, cache)| {
        if let Some(cache) = cache {
            block["cache_control"] = cache;
        }
        block
    })
}

fn user_block() -> impl Strategy<Value = Value> {
    cached(prop_oneof![
        text().prop_map(|text| json!({"type": "text", "text": text})),
        Just(
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}})
        ),
        Just(
            json!({"type": "image", "source": {"type": "url", "url": "https://x.example/a"}, "transformations": {"a": 1}})
        ),
        Just(json!({"type": "image", "source": {"type": "file", "file_id": "f"}})),
        text().prop_map(
            |text| json!({"type": "document", "title": text, "context": "c", "citations": {"enabled": true},
            "source": {"type": "text", "media_type": "text/plain", "data": text}})
        ),
        Just(
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}})
        ),
        Just(
            json!({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]})
        ),
    ])
}

fn assistant_block() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(|text| json!({"type": "text", "text": text, "citations": [{"type": "page_location", "cited_text": "x"}]})),
        text().prop_map(|text| json!({"type": "text", "text": text})),
        Just(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}})),
        Just(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})),
    ]
}

fn thought() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(|text| json!({"type": "thinking", "thinking": text, "signature": "c2ln"})),
        Just(json!({"type": "redacted_thinking", "data": "ZW5j"})),
    ]
}

/// One text alone is written as a string.
fn content(blocks: Vec<Value>) -> Value {
    match blocks.as_slice() {
        [only] if only["type"] == "text" && only.as_object().is_some_and(|block| block.len() == 2) => {
            only["text"].clone()
        }
        _ => Value::Array(blocks),
    }
}

/// A question, and perhaps an answer with calls and their results.
fn round() -> impl Strategy<Value = Vec<Value>> {
    let result = (any::<bool>(), prop::collection::vec(user_block(), 0..3));
    let calls = prop::collection::vec(result, 0..3);
    (prop::collection::vec(user_block(), 1..3), prop::option::of(thought()), prop::collection::vec(assistant_block(), 1..3), calls)
        .prop_map(|(question, thought, mut answer, results)| {
            answer.splice(0..0, thought);
            let mut results_content = Vec::new();
            for (index, (failed, blocks)) in results.into_iter().enumerate() {
                answer.push(json!({"type": "tool_use", "id": format!("t{index}"), "name": "f", "input": {"n": index}}));
                let mut result = json!({"type": "tool_result", "tool_use_id": format!("t{index}")});
                if failed {
                    result["is_error"] = json!(true);
                }
                if !blocks.is_empty() {
                    result["content"] = content(blocks);
                }
                results_content.push(result);
            }
            let mut turns =
                vec![json!({"role": "user", "content": content(question)}), json!({"role": "assistant", "content": content(answer)})];
            if !results_content.is_empty() {
                turns.push(json!({"role": "user", "content": results_content}));
                turns.push(json!({"role": "assistant", "content": "done"}));
            }
            turns
        })
}

/// Each of these may be there or not.
fn options() -> Vec<(&'static str, Value)> {
    vec![
        ("system", json!("Be brief.")),
        (
            "system",
            json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]),
        ),
        ("temperature", json!(0.7)),
        ("top_p", json!(0.9)),
        ("top_k", json!(40)),
        ("stop_sequences", json!(["END"])),
        ("stream", json!(true)),
        ("metadata", json!({"user_id": "u", "other": "x"})),
        ("service_tier", json!("standard_only")),
        ("thinking", json!({"type": "adaptive", "display": "omitted"})),
        ("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
        ("thinking", json!({"type": "disabled"})),
        ("thinking", json!({"type": "between_tools"})),
        (
            "output_config",
            json!({"effort": "xhigh", "format": {"type": "json_schema", "schema": {"type": "object"}}, "task_budget": 1}),
        ),
        ("container", json!("c1")),
        (
            "tools",
            json!([{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true, "cache_control": {"type": "ephemeral"}},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]),
        ),
    ]
}

proptest! {
    #[test]
    fn requests_come_back_as_they_were(
        rounds in prop::collection::vec(round(), 1..3),
        chosen in prop::collection::vec(any::<bool>(), options().len()),
        choice in prop::option::of(prop_oneof![
            Just(json!({"type": "auto", "disable_parallel_tool_use": true})), Just(json!({"type": "none"})),
            Just(json!({"type": "any"})), Just(json!({"type": "tool", "name": "f"})),
        ]),
    ) {
        let mut body = json!({"model": "claude-sonnet-5", "max_tokens": 100, "messages": rounds.concat()});
        for ((name, value), _) in options().into_iter().zip(chosen).filter(|(_, chosen)| *chosen) {
            body[name] = value;
        }
        if let (Some(choice), Some(_)) = (choice, body.get("tools")) {
            body["tool_choice"] = choice;
        }
        let request = Anthropic.read_request(&serde_json::to_vec(&body).unwrap(), None, false).unwrap();
        let (written, rest) = write(&request, "claude-sonnet-5").unwrap();
        prop_assert_eq!(written, body);
        prop_assert!(rest.dropped.is_empty() && rest.json_tool.is_none(), "{}", rest.dropped);
    }

    #[test]
    fn answers_come_back_as_they_were(
        thoughts in prop::collection::vec(thought(), 0..2),
        blocks in prop::collection::vec(assistant_block(), 0..4),
        stop in prop_oneof![Just("end_turn"), Just("max_tokens"), Just("stop_sequence"), Just("pause_turn"), Just("refusal"), Just("model_context_window_exceeded")],
    ) {
        let sequence = if stop == "stop_sequence" { json!("END") } else { Value::Null };
        let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": [1, 2.5, "x"]}});
        let content = [thoughts, blocks, vec![call]].concat();
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
            "content": content,
            "stop_reason": stop, "stop_sequence": sequence, "container": {"id": "c"},
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5}});
        let bytes = serde_json::to_vec(&body).unwrap();
        let answer = Anthropic.read_answer(&bytes, "req-1").unwrap();
        prop_assert_eq!(answer.choices[0].native_stop.as_deref(), Some(stop));
        let written: Value = serde_json::from_slice(&Anthropic.write_answer(&answer, &asked())).unwrap();
        prop_assert_eq!(written, body);
        prop_assert_eq!(Anthropic.find_usage(&bytes), answer.usage);
    }

    #[test]
    fn arbitrary_json_is_read_or_refused_without_a_panic(text in r#"\{("messages"|"content"|"type"|"error"|"role"|[:,{}\[\]0-9]|"text"|null){0,40}\}"#) {
        let _ = Anthropic.read_request(text.as_bytes(), None, false);
        let _ = Anthropic.read_answer(text.as_bytes(), "req-1");
    }
}

/// What an Anthropic client sends back of an answer whose pieces other vendors signed.
#[test]
fn other_vendors_signatures_survive_a_round_through_a_client_tr_08() {
    let signed = |wire, value: &str| Some(Signature { wire, value: value.to_owned() });
    let parts = vec![
        Part::Reasoning(Reasoning {
            text: String::new(),
            signature: signed(Wire::Anthropic, "c2ln"),
            redacted: false,
        }),
        Part::Reasoning(Reasoning {
            text: "sum".to_owned(),
            signature: signed(Wire::OpenaiResponses, "ZW5j"),
            redacted: true,
        }),
        Part::Reasoning(Reasoning { text: "plain".to_owned(), signature: None, redacted: false }),
        Part::Text(Text {
            text: "hi".to_owned(),
            signature: signed(Wire::Gemini, "dHh0"),
            ..Text::default()
        }),
        Part::ToolCall(ToolCall {
            id: "t".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            signature: signed(Wire::Gemini, "Y2FsbA=="),
            cache: None,
        }),
    ];
    let choice = Choice { parts: parts.clone(), stop: Some(Stop::ToolCalls), ..Choice::default() };
    let answer = Answer { choices: vec![choice], ..Answer::default() };
    let written: Value = serde_json::from_slice(&Anthropic.write_answer(&answer, &asked())).unwrap();
    assert_eq!(
        written["content"][5],
        json!({"type": "thinking", "thinking": "", "signature": "penstock-gemini:Y2FsbA=="})
    );
    assert_eq!((&written["id"], &written["model"]), (&json!("req-1"), &json!("m")));
    let body = json!({"messages": [{"role": "assistant", "content": written["content"]}]});
    let request = Anthropic.read_request(&serde_json::to_vec(&body).unwrap(), None, false).unwrap();
    assert_eq!(request.turns[0].parts, parts);
}

#[test]
fn an_error_in_spite_of_the_status_is_one() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let error = Anthropic.read_answer(body, "req-1").unwrap_err();
    assert_eq!((error.kind.as_deref(), error.message.as_deref()), (Some("overloaded_error"), Some("busy")));
    for other in ["", "[]", "{}", r#"{"choices":[]}"#, "<html>"] {
        assert_eq!(Anthropic.read_answer(other.as_bytes(), "req-1").unwrap_err().message, None, "{other}");
    }
}

#[test]
fn the_answer_to_a_count_is_a_number() {
    assert_eq!(super::super::count_tokens(42), r#"{"input_tokens":42}"#.as_bytes());
}
