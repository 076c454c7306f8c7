use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::fixtures::{events, rewritten, sse};
use crate::dialect::Dialect as _;
use crate::exchange::{Event, Facts, Part, Signature, Stop, Usage};
use crate::gemini::Gemini;

fn text(text: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": text}]}, "index": 0}]})
}

fn stop() -> Value {
    json!({"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7}})
}

fn facts(bytes: &[u8]) -> (Facts, String) {
    let mut facts = Facts::default();
    let mut said = String::new();
    let mut reader = Gemini.stream_reader("r");
    let mut sink = |event: Event<'_>| {
        facts.see(&event);
        if let Event::Text { text, .. } = &event {
            said.push_str(text);
        }
    };
    reader.feed(bytes, &mut sink);
    reader.end(&mut sink);
    (facts, said)
}

#[test]
fn a_character_that_reads_cut_arrives_whole_sse_01() {
    let bytes = sse(&[text("潮🚲"), stop()]);
    let whole = events(&[&bytes]);
    assert!(whole.iter().any(|event| event.contains("潮🚲")), "{whole:?}");
    for cut in 0..bytes.len() {
        assert_eq!(events(&[&bytes[..cut], &bytes[cut..]]), whole);
    }
    let mut broken = sse(&[text("@")]);
    let at = broken.iter().position(|byte| *byte == b'@').unwrap();
    broken[at] = 0xFF;
    assert!(events(&[&broken]).last().unwrap().starts_with("Failed"), "{:?}", events(&[&broken]));
}

#[test]
fn every_line_ending_ends_an_event_at_once_sse_02() {
    for ending in ["\n", "\r\n", "\r"] {
        let mut seen = Vec::new();
        let mut reader = Gemini.stream_reader("r");
        let event = |value: Value| format!("data:{value}{ending}{ending}");
        // A bare CR may be half of an ending, hence the second event.
        for one in [event(text("a")), event(text("b"))] {
            reader.feed(one.as_bytes(), &mut |event| {
                if let Event::Text { text, .. } = event {
                    seen.push(text.into_owned());
                }
            });
        }
        assert_eq!(seen, ["a", "b"], "{ending:?}");
    }
}

#[test]
fn comments_and_strays_are_no_data_sse_03() {
    let mut bytes = b": waiting\n\ndata: : waiting\n\ndata: [DONE]\n\n".to_vec();
    bytes.extend(sse(&[text("a"), stop()]));
    let (facts, said) = facts(&bytes);
    assert_eq!((said.as_str(), facts.complete, facts.error), ("a", true, None));
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let (cut, said) = facts(&sse(&[text("a")]));
    assert_eq!((said.as_str(), cut.complete, cut.first_token), ("a", false, true));
    assert!(!facts(b"").0.complete);
    // One of two candidates has not ended.
    let second = json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}}]});
    assert!(!facts(&sse(&[second.clone(), stop()])).0.complete);
    assert!(!facts(&sse(&[text("a"), second, stop()])).0.complete);
    // Not the dialect's stream at all: one JSON array.
    assert!(!facts(format!("[{},\n{}]", text("a"), stop()).as_bytes()).0.complete);
}

#[test]
fn a_reason_after_the_call_still_asks_for_the_tool_sse_07() {
    let call = json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "get_time", "args": {"tz": "UTC"}}}]}}]});
    let usage = json!({"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12});
    for last in [
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}], "usageMetadata": usage}),
        json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}),
    ] {
        let events = events(&[&sse(&[call.clone(), last])]);
        let finishes: Vec<&String> = events.iter().filter(|event| event.starts_with("Finish")).collect();
        assert_eq!(finishes.len(), 1);
        assert!(finishes[0].contains("ToolCalls") && events[events.len() - 2] == *finishes[0], "{events:?}");
        assert!(!events.iter().any(|event| event.starts_with("Text")), "{events:?}");
    }
    let limit = json!({"candidates": [{"finishReason": "MAX_TOKENS"}]});
    let events = events(&[&sse(&[call, limit])]);
    assert!(events.iter().any(|event| event.starts_with("Finish") && event.contains("Length")), "{events:?}");
}

#[test]
fn a_reason_on_every_event_is_one_end_sse_07() {
    let each = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]});
    let events = events(&[&sse(&[each("a"), each("b")])]);
    assert_eq!(events.iter().filter(|event| event.starts_with("Finish")).count(), 1);
    assert!(events[events.len() - 2].starts_with("Finish"));
}

#[test]
fn an_error_inside_the_stream_is_a_failure_with_its_status_sse_08() {
    let error = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let (facts, said) = facts(&sse(&[text("a"), error, text("b")]));
    let (error, status) = facts.error.unwrap();
    assert_eq!((said.as_str(), status, error.kind.as_deref()), ("a", Some(503), Some("UNAVAILABLE")));
    assert!(!facts.complete);
    let failing = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]});
    let (facts, _) = super::streams::facts(&sse(&[failing]));
    assert_eq!(facts.error.unwrap().0.code.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
}

#[test]
fn one_very_large_event_passes_and_one_without_end_is_measured_sse_11() {
    let long = "x".repeat(4 << 20);
    let bytes = sse(&[text(&long), stop()]);
    let mut length = 0;
    let mut reader = Gemini.stream_reader("r");
    for read in bytes.chunks(16 << 10) {
        reader.feed(read, &mut |event| {
            if let Event::Text { text, .. } = event {
                length += text.len();
            }
        });
    }
    assert_eq!((length, reader.open_bytes()), (long.len(), 0));
    reader.feed(b"data: {", &mut |_| {});
    reader.feed(&[b'x'; 1000], &mut |_| {});
    assert_eq!(reader.open_bytes(), 1007);
}

#[test]
fn a_blocked_prompt_ends_the_only_choice() {
    let (facts, said) = facts(&sse(&[json!({"promptFeedback": {"blockReason": "SAFETY"}})]));
    assert_eq!((said.as_str(), facts.complete, facts.first_token), ("", true, false));
    let events = events(&[&sse(&[json!({"promptFeedback": {"blockReason": "SAFETY"}})])]);
    assert_eq!(events[1], r#"Finish { choice: 0, stop: ContentFilter, native: "SAFETY", sequence: None }"#);
}

#[test]
fn thoughts_signatures_and_data_have_their_events_tr_08() {
    let parts = json!([
        {"text": "hm", "thought": true}, {"text": "", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "a", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"name": "f"}, "thoughtSignature": "Y2FsbA=="},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    ]);
    let frame = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP", "citationMetadata": {"citationSources": [{"uri": "u"}]}}]});
    let events = events(&[&sse(&[frame])]);
    let kinds: Vec<&str> = events.iter().map(|event| event.split([' ', '(']).next().unwrap()).collect();
    let expected = [
        "Start",
        "Reasoning",
        "ReasoningSignature",
        "Text",
        "ReasoningSignature",
        "ToolStart",
        "ToolArguments",
        "Part",
        "Part",
        "Citation",
        "Finish",
        "End",
    ];
    assert_eq!(kinds, expected);
    assert!(events[5].contains("penstock_req-1_0_0") && events[5].contains("Y2FsbA=="), "{}", events[5]);
    assert!(events[6].contains(r#"fragment: "{}""#));
}

fn start() -> Event<'static> {
    Event::Start { id: Some("r9".into()), model: Some("vendor-model".into()), created: None }
}

fn finish(stop: Stop) -> Event<'static> {
    Event::Finish { choice: 0, stop, native: "x".into(), sequence: None }
}

fn tool(call: u32, id: &'static str) -> Event<'static> {
    Event::ToolStart { choice: 0, call, id: id.into(), name: "f".into(), signature: None }
}

fn arguments(call: u32, fragment: &'static str) -> Event<'static> {
    Event::ToolArguments { choice: 0, call, fragment: Cow::Borrowed(fragment) }
}

#[test]
fn clients_get_calls_whole_and_the_usage_last() {
    let usage = Usage {
        input_tokens: Some(5),
        output_tokens: Some(9),
        reasoning_tokens: Some(2),
        ..Usage::default()
    };
    let signature = Signature { wire: Wire::Gemini, value: "c2ln".to_owned() };
    let responses = rewritten(&[
        start(),
        Event::Reasoning { choice: 0, text: "hm".into() },
        Event::ReasoningSignature { choice: 0, signature, redacted: false },
        Event::Text { choice: 0, text: "a\n".into() },
        tool(0, "t1"),
        arguments(0, "{\"k\""),
        tool(1, "t2"),
        arguments(1, "{}"),
        arguments(0, ":1}"),
        finish(Stop::ToolCalls),
        Event::Usage(usage),
        Event::End,
    ]);
    let frame = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "vendor-model", "responseId": "r9"});
    let expected = [
        frame(json!([{"text": "hm", "thought": true}])),
        frame(json!([{"text": "", "thought": true, "thoughtSignature": "c2ln"}])),
        frame(json!([{"text": "a\n"}])),
        frame(
            json!([{"functionCall": {"id": "t1", "name": "f", "args": {"k": 1}}}, {"functionCall": {"id": "t2", "name": "f", "args": {}}}]),
        ),
        json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 14, "thoughtsTokenCount": 2},
            "modelVersion": "vendor-model", "responseId": "r9",
        }),
    ];
    assert_eq!(responses, expected);
}

#[test]
fn text_after_a_call_comes_after_it() {
    let responses = rewritten(&[
        start(),
        tool(0, "t"),
        arguments(0, "{}"),
        Event::Text { choice: 0, text: "a".into() },
        finish(Stop::End),
    ]);
    assert!(responses[0]["candidates"][0]["content"]["parts"][0]["functionCall"].is_object());
    assert_eq!(responses[1]["candidates"][0]["content"]["parts"][0]["text"], "a");
}

#[test]
fn a_call_that_never_became_json_is_not_made_up() {
    let events = [start(), tool(0, "t"), arguments(0, "{\"k\"")];
    let end = |stop: Stop| rewritten(&[&events[..], &[finish(stop)]].concat());
    let broken = end(Stop::ToolCalls);
    assert_eq!(
        (broken.len(), &broken[0]["candidates"][0]["finishReason"]),
        (1, &json!("MALFORMED_FUNCTION_CALL"))
    );
    let cut = end(Stop::Length);
    assert_eq!((cut.len(), &cut[0]["candidates"][0]["finishReason"]), (1, &json!("MAX_TOKENS")));
}

#[test]
fn each_candidate_keeps_its_index_tr_12() {
    let say = |choice: u32| Event::Text { choice, text: "a".into() };
    let end = |choice: u32| Event::Finish { choice, stop: Stop::End, native: "".into(), sequence: None };
    let responses = rewritten(&[start(), say(1), say(0), end(0), end(1)]);
    let indexes = |response: &Value| {
        response["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["index"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(responses.iter().map(indexes).collect::<Vec<_>>(), [vec![1], vec![0], vec![1, 0]]);
}

#[test]
fn pieces_of_this_dialect_and_citations_pass() {
    let value = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let part = Box::new(Part::Other { wire: Wire::Gemini, value: value.clone() });
    let foreign = Box::new(Part::Other { wire: Wire::Anthropic, value: value.clone() });
    let grounding = json!({"groundingMetadata": {"webSearchQueries": ["q"]}});
    let responses = rewritten(&[
        start(),
        Event::Part { choice: 0, part },
        Event::Part { choice: 0, part: foreign },
        Event::Citation { choice: 0, value: grounding.clone() },
        Event::Citation { choice: 0, value: json!({"type": "url_citation"}) },
        finish(Stop::End),
    ]);
    assert_eq!(responses.len(), 3);
    assert_eq!(responses[0]["candidates"][0]["content"]["parts"], json!([value]));
    assert_eq!(responses[1]["candidates"][0]["groundingMetadata"], grounding["groundingMetadata"]);
}
