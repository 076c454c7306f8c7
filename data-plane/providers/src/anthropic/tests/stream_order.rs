//! What the stream writer guarantees, whatever the order of events (SSE-14).

use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{data, events, shown};
use crate::exchange::{Event, Signature, Stop};

/// The blocks of a stream, each with what its deltas amount to. Panics where a strict client would give up.
fn check(stream: &str) -> Vec<(String, String)> {
    let names: Vec<&str> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let items = data(stream);
    assert_eq!(names, items.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>());
    assert_eq!(names.first(), Some(&"message_start"));
    assert_eq!(names[names.len() - 2..], ["message_delta", "message_stop"]);
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for item in &items[1..items.len() - 2] {
        let kind = item["type"].as_str().unwrap();
        let expected = if kind == "content_block_start" { blocks.len() } else { blocks.len() - 1 };
        assert_eq!(
            item["index"],
            json!(expected),
            "indexes grow by one, and only the open block is spoken of"
        );
        match kind {
            "content_block_start" => {
                assert!(!std::mem::replace(&mut open, true), "one block at a time");
                let block = &item["content_block"];
                let filled = block["data"].as_str().unwrap_or_default();
                blocks.push((block["type"].as_str().unwrap().to_owned(), filled.to_owned()));
            }
            "content_block_delta" => {
                assert!(open, "a delta within its block");
                let (block, content) = blocks.last_mut().unwrap();
                let delta = &item["delta"];
                let (belongs, field) = match delta["type"].as_str().unwrap() {
                    "text_delta" => ("text", "text"),
                    "thinking_delta" => ("thinking", "thinking"),
                    "signature_delta" => ("thinking", "signature"),
                    "input_json_delta" => ("tool_use", "partial_json"),
                    other => panic!("{other}"),
                };
                assert_eq!(block, belongs, "a delta of its block's kind");
                content.push_str(delta[field].as_str().unwrap());
            }
            "content_block_stop" => {
                assert!(std::mem::replace(&mut open, false), "only an open block ends");
                assert!(!blocks.last().unwrap().1.is_empty(), "no block is empty");
            }
            other => panic!("{other} among the blocks"),
        }
    }
    assert!(!open, "every block ends");
    blocks
}

fn text(text: &str) -> Event<'static> {
    Event::Text { choice: 0, text: text.to_owned().into() }
}

fn reasoning(text: &str) -> Event<'static> {
    Event::Reasoning { choice: 0, text: text.to_owned().into() }
}

fn call(call: u32) -> Event<'static> {
    Event::ToolStart { choice: 0, call, id: format!("t{call}").into(), name: "f".into(), signature: None }
}

fn arguments(call: u32, fragment: &str) -> Event<'static> {
    Event::ToolArguments { choice: 0, call, fragment: fragment.to_owned().into() }
}

fn finish(stop: Stop) -> Event<'static> {
    Event::Finish { choice: 0, stop, native: "stop".into(), sequence: None }
}

fn blocks(events: &[Event<'_>]) -> Vec<(String, String)> {
    check(&shown(Wire::Anthropic, events))
}

fn named(blocks: &[(&str, &str)]) -> Vec<(String, String)> {
    blocks.iter().map(|(kind, content)| ((*kind).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn thoughts_text_and_calls_in_turn_are_five_blocks_sse_14() {
    let seen = blocks(&[
        reasoning("r1"),
        text("t1"),
        call(0),
        arguments(0, "{}"),
        reasoning("r2"),
        text("t2"),
        finish(Stop::End),
    ]);
    let expected =
        [("thinking", "r1"), ("text", "t1"), ("tool_use", "{}"), ("thinking", "r2"), ("text", "t2")];
    assert_eq!(seen, named(&expected));
}

#[test]
fn an_openai_shaped_stream_in_this_order_is_five_blocks_sse_14() {
    let deltas = [
        json!({"reasoning_content": "r1", "content": ""}),
        json!({"content": "t1"}),
        json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"reasoning_content": "r2"}),
        json!({"content": "t2"}),
    ];
    let mut stream: String = deltas
        .iter()
        .map(|delta| format!("data: {}\n\n", json!({"id": "x", "choices": [{"index": 0, "delta": delta}]})))
        .collect();
    stream.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    let Some(openai) = crate::dialect::dialect(Wire::Openai) else { panic!("the dialect is registered") };
    let mut reader = openai.stream_reader("req-1");
    let mut seen = Vec::new();
    reader.feed(stream.as_bytes(), &mut |event| seen.push(super::kept(event)));
    reader.end(&mut |event| seen.push(super::kept(event)));
    let kinds: Vec<String> = blocks(&seen).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "thinking", "text"]);
}

#[test]
fn interleaved_arguments_are_put_in_order_sse_06() {
    let seen = blocks(&[
        call(0),
        call(1),
        arguments(1, "{\"b\""),
        arguments(0, "{\"a\":\"}\\\"\""),
        text("after"),
        arguments(1, ":2}"),
        arguments(0, "}"),
        finish(Stop::ToolCalls),
    ]);
    let expected = [("tool_use", "{\"a\":\"}\\\"\"}"), ("tool_use", "{\"b\":2}"), ("text", "after")];
    assert_eq!(seen, named(&expected));
}

#[test]
fn arguments_that_never_end_hold_nothing_back_for_ever_sse_14() {
    let seen = blocks(&[call(0), arguments(0, "{\"a\":"), text("x"), call(1), finish(Stop::Length)]);
    assert_eq!(seen, named(&[("tool_use", "{\"a\":"), ("text", "x"), ("tool_use", "{}")]));
    let long = "y".repeat(5 << 20);
    let seen = blocks(&[call(0), arguments(0, "{"), text(&long), text("z"), finish(Stop::End)]);
    assert_eq!(seen[1].1.len(), long.len() + 1);
}

#[test]
fn an_answer_of_nothing_is_still_a_message() {
    assert_eq!(blocks(&[]), []);
    let stream = shown(Wire::Anthropic, &[finish(Stop::ContentFilter)]);
    assert_eq!(data(&stream)[1]["delta"]["stop_reason"], "refusal");
}

#[test]
fn a_geminis_signature_travels_in_a_thinking_block_before_its_call_tr_08() {
    let signature = Signature { wire: Wire::Gemini, value: "c2ln".to_owned() };
    let signed =
        Event::ToolStart { choice: 0, call: 0, id: "t".into(), name: "f".into(), signature: Some(signature) };
    let seen = blocks(&[reasoning("r"), signed, arguments(0, "{}"), finish(Stop::ToolCalls)]);
    assert_eq!(seen, named(&[("thinking", "r"), ("thinking", "penstock-gemini:c2ln"), ("tool_use", "{}")]));
}

fn any_event() -> impl Strategy<Value = Event<'static>> {
    let signature = |wire| Signature { wire, value: "c2ln".to_owned() };
    prop_oneof![
        "[a-z\"\\\\]{1,4}".prop_map(|it| text(&it)),
        "[a-z]{1,4}".prop_map(|it| reasoning(&it)),
        "[a-z]{1,4}".prop_map(|it| Event::Refusal { choice: 0, text: it.into() }),
        (any::<bool>(), any::<bool>()).prop_map(move |(own, redacted)| {
            let wire = if own { Wire::Anthropic } else { Wire::OpenaiResponses };
            Event::ReasoningSignature { choice: 0, signature: signature(wire), redacted }
        }),
        (0..3_u32).prop_map(call),
        (0..3_u32, prop_oneof![Just("{"), Just("}"), Just("{}"), Just("\"a\":1")])
            .prop_map(|(call, it)| arguments(call, it)),
        Just(Event::Citation { choice: 0, value: json!({"url": "x"}) }),
        Just(Event::Logprobs { choice: 0, value: Value::Null }),
        Just(Event::Text { choice: 1, text: "other".into() }),
    ]
}

proptest! {
    #[test]
    fn any_order_of_events_gives_a_stream_that_strict_clients_take_sse_14(list in prop::collection::vec(any_event(), 0..24)) {
        let said: String = list.iter().filter_map(|event| match event {
            Event::Text { choice: 0, text } | Event::Refusal { choice: 0, text } => Some(text.as_ref()),
            _ => None,
        }).collect();
        let mut list = list;
        list.push(finish(Stop::End));
        let stream = shown(Wire::Anthropic, &list);
        let shown: String = check(&stream).into_iter().filter(|(kind, _)| kind == "text").map(|(_, text)| text).collect();
        prop_assert_eq!(&shown, &said, "no text is lost or moved");
        // Our own reader agrees with the checker.
        let read: String = events([stream.as_bytes()]).iter().filter_map(|event| match event {
            Event::Text { text, .. } => Some(text.to_string()),
            _ => None,
        }).collect();
        prop_assert_eq!(read, said);
    }
}
