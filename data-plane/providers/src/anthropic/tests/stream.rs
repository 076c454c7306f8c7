//! Streams of a service of this dialect.

use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Anthropic, data, events, shown};
use crate::dialect::{ClientError, Dialect, Protocol};
use crate::exchange::{Event, Facts, Part, Stop};

/// A stream of these events' data.
fn sse(items: &[Value]) -> String {
    items.iter().map(|item| format!("event: {}\ndata: {item}\n\n", item["type"].as_str().unwrap())).collect()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}})
}

fn block(index: u64, block: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut items = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    items.extend(
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
    );
    items.push(json!({"type": "content_block_stop", "index": index}));
    items
}

fn end(stop: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

fn text_block(text: &str) -> Vec<Value> {
    block(0, &json!({"type": "text", "text": ""}), &[json!({"type": "text_delta", "text": text})])
}

fn whole(blocks: &[Vec<Value>], stop: &str) -> String {
    sse(&[vec![start()], blocks.concat(), end(stop)].concat())
}

fn read(stream: &str) -> Vec<Event<'static>> {
    events([stream.as_bytes()])
}

fn text_of(events: &[Event<'_>]) -> String {
    events
        .iter()
        .filter_map(|event| if let Event::Text { text, .. } = event { Some(text.as_ref()) } else { None })
        .collect()
}

fn facts(events: &[Event<'_>]) -> Facts {
    let mut facts = Facts::default();
    events.iter().for_each(|event| facts.see(event));
    facts
}

#[test]
fn characters_cut_anywhere_arrive_whole_sse_01() {
    let stream = whole(&[text_block("潮🚲")], "end_turn");
    for size in 1..8 {
        let cut = events(stream.as_bytes().chunks(size));
        assert_eq!(text_of(&cut), "潮🚲");
        assert_eq!(cut, read(&stream));
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_do_not_end_the_stream_sse_01() {
    let stream = whole(&[text_block("a@b")], "end_turn");
    let bytes: Vec<u8> = stream.bytes().map(|byte| if byte == b'@' { 0xff } else { byte }).collect();
    let events = events([bytes.as_slice()]);
    assert_eq!(text_of(&events), "a\u{FFFD}b");
    assert!(facts(&events).complete);
}

#[test]
fn every_line_ending_is_understood_as_soon_as_it_is_known_sse_02() {
    let stream = whole(&[text_block("a")], "end_turn");
    let expected = read(&stream);
    for ending in ["\r\n", "\r"] {
        let other = stream.replace('\n', ending).replace("data: ", "data:");
        assert_eq!(events(other.as_bytes().chunks(3)), expected);
    }
    let mut reader = Anthropic.stream_reader("req-1");
    let mut seen = 0;
    reader.feed(sse(&[start()]).replace('\n', "\r\n").as_bytes(), &mut |_| seen += 1);
    assert_eq!(seen, 2, "start and usage are seen while the stream is open");
}

#[test]
fn comments_pings_and_stray_data_are_no_events_sse_03() {
    let noise = ": waiting\n\ndata: : waiting\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"new_thing\"}\n\n";
    let stream = whole(&[text_block("a")], "end_turn");
    assert_eq!(read(&format!("{noise}{stream}")), read(&stream));
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let cut = sse(&[vec![start()], text_block("half")].concat());
    let events = read(&cut);
    assert_eq!(text_of(&events), "half");
    assert!(!facts(&events).complete && facts(&events).first_token);
    assert!(facts(&read(&whole(&[text_block("x")], "end_turn"))).complete);
}

#[test]
fn two_calls_on_one_index_are_two_calls_sse_06() {
    let call = |id: &str, k: u64| {
        let deltas = [json!({"type": "input_json_delta", "partial_json": format!("{{\"k\":{k}}}")})];
        block(0, &json!({"type": "tool_use", "id": id, "name": "lookup", "input": {}}), &deltas)
    };
    let events = read(&whole(&[call("t1", 1), call("t2", 2)], "tool_use"));
    let shown = shown(Wire::Anthropic, &events);
    let starts: Vec<Value> =
        data(&shown).into_iter().filter(|item| item["type"] == "content_block_start").collect();
    assert_eq!((&starts[0]["content_block"]["id"], &starts[0]["index"]), (&json!("t1"), &json!(0)));
    assert_eq!((&starts[1]["content_block"]["id"], &starts[1]["index"]), (&json!("t2"), &json!(1)));
    let chunks = data(&super::shown(Wire::Openai, &events));
    let arguments = |call: u64| -> String {
        let calls = chunks.iter().flat_map(|chunk| chunk["choices"].as_array().into_iter().flatten());
        let calls = calls.flat_map(|choice| choice["delta"]["tool_calls"].as_array().into_iter().flatten());
        calls
            .filter(|part| part["index"] == call)
            .filter_map(|part| part["function"]["arguments"].as_str())
            .collect()
    };
    assert_eq!((arguments(0).as_str(), arguments(1).as_str()), (r#"{"k":1}"#, r#"{"k":2}"#));
}

#[test]
fn an_error_within_the_stream_is_a_failure_and_nothing_follows_sse_08() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "queue full"}, "request_id": "r"});
    let stream = sse(&[vec![start()], text_block("part"), vec![error.clone()], end("end_turn")].concat());
    for stream in [stream.clone(), stream.replace("event: error\n", "")] {
        let events = read(&stream);
        let (failure, status) = facts(&events).error.unwrap();
        assert_eq!((failure.message.as_deref(), status), (Some("queue full"), Some(529)));
        assert!(matches!(events.last(), Some(Event::Failed { .. })));
        assert_eq!(text_of(&events), "part");
    }
    for stream in [
        sse(&[error]),
        "data: {\"error\":{\"message\":\"queue full\",\"code\":503}}\n\n".to_owned(),
        "event: error\ndata: queue full\n\n".to_owned(),
    ] {
        let facts = facts(&read(&stream));
        assert!(!facts.first_token && !facts.complete, "it can still be tried elsewhere");
        assert_eq!(facts.error.unwrap().0.message.as_deref(), Some("queue full"));
    }
    let mut fine = text_block("x");
    fine[1]["error"] = Value::Null;
    assert!(facts(&read(&whole(&[fine], "end_turn"))).error.is_none());
}

#[test]
fn our_own_error_is_an_event_of_the_protocol_sse_08() {
    let error =
        ClientError { status: 529, code: "overloaded", message: "queue full", field: None, request_id: "r" };
    let event = String::from_utf8(Anthropic.error_event(&error).to_vec()).unwrap();
    let facts = facts(&read(&event));
    let (seen, status) = facts.error.unwrap();
    assert_eq!(
        (seen.kind.as_deref(), seen.code.as_deref(), status),
        (Some("overloaded_error"), Some("overloaded"), Some(529))
    );
}

#[test]
fn an_event_of_four_mebibytes_is_translated_sse_11() {
    let text = "x".repeat(4 << 20);
    let stream = whole(&[text_block(&text)], "end_turn");
    let events = events(stream.as_bytes().chunks(16 << 10));
    assert_eq!(text_of(&events).len(), text.len());
    assert!(shown(Wire::Anthropic, &events).len() > text.len());
}

#[test]
fn an_endless_event_is_counted_for_its_limit_and_then_fails_sse_11() {
    let mut reader = Anthropic.stream_reader("req-1");
    let piece = vec![b'x'; 1 << 20];
    reader.feed(b"data: ", &mut |_| {});
    for _ in 0..40 {
        reader.feed(&piece, &mut |event| panic!("{event:?}"));
    }
    assert_eq!(reader.open_bytes(), (40 << 20) + 6);
    let mut failed = false;
    reader.feed(b"\n\n", &mut |event| failed = matches!(event, Event::Failed { .. }));
    assert!(failed);
}

#[test]
fn a_signed_thought_without_text_is_passed_on_tr_08() {
    let thought = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thought = block(0, &thought, &[json!({"type": "signature_delta", "signature": "c2ln"})]);
    let call = block(1, &json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}}), &[]);
    let redacted = block(2, &json!({"type": "redacted_thinking", "data": "ZW5j"}), &[]);
    let unsigned = block(3, &json!({"type": "thinking", "thinking": "", "signature": ""}), &[]);
    let events = read(&whole(&[thought, call, redacted, unsigned], "tool_use"));
    let seen = data(&shown(Wire::Anthropic, &events));
    let blocks: Vec<_> = seen.iter().filter(|item| item["type"] == "content_block_start").collect();
    assert_eq!(blocks.len(), 3, "one that is empty and unsigned is dropped");
    assert_eq!(blocks[0]["content_block"]["type"], "thinking");
    assert_eq!(seen[2]["delta"], json!({"type": "signature_delta", "signature": "c2ln"}));
    assert_eq!(blocks[2]["content_block"], json!({"type": "redacted_thinking", "data": "ZW5j"}));

    // A chat client sees the signature in the extension, and its replay restores the block.
    let chunks = data(&shown(Wire::Openai, &events));
    let details: Vec<Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["reasoning_details"].as_array())
        .flatten()
        .cloned()
        .collect();
    assert_eq!(details[0]["signature"], "c2ln");
    let request = super::chat(&json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "reasoning_details": details,
         "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "r"}]}));
    let (body, _) = super::write(&request, "claude-x").unwrap();
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "", "signature": "c2ln"})
    );
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().last().unwrap()["input"], json!({}));
}

#[test]
fn a_call_without_arguments_gets_an_empty_object_tr_14() {
    let empty = [json!({"type": "input_json_delta", "partial_json": ""})];
    let now = json!({"type": "tool_use", "id": "t1", "name": "now", "input": {}});
    for deltas in [&empty[..], &[]] {
        let events = read(&whole(&[block(0, &now, deltas)], "tool_use"));
        let arguments: Vec<_> =
            events.iter().filter(|event| matches!(event, Event::ToolArguments { .. })).collect();
        assert_eq!(arguments, [&Event::ToolArguments { choice: 0, call: 0, fragment: "{}".into() }]);
    }
    let given = json!({"type": "tool_use", "id": "t1", "name": "now", "input": {"tz": "UTC"}});
    let events = read(&whole(&[block(0, &given, &[])], "tool_use"));
    assert!(events.contains(&Event::ToolArguments {
        choice: 0,
        call: 0,
        fragment: r#"{"tz":"UTC"}"#.into()
    }));
}

#[test]
fn server_tools_come_as_whole_pieces_with_their_input() {
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let deltas =
        [r#"{"que"#, r#"ry":"q"}"#].map(|part| json!({"type": "input_json_delta", "partial_json": part}));
    let events = read(&whole(&[block(0, &search, &deltas)], "pause_turn"));
    let value = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}});
    assert!(
        events.contains(&Event::Part {
            choice: 0,
            part: Box::new(Part::Other { wire: Wire::Anthropic, value })
        })
    );
    assert!(events.iter().any(
        |event| matches!(event, Event::Finish { stop: Stop::End, native, .. } if native == "pause_turn")
    ));
    let seen = data(&shown(Wire::Anthropic, &events));
    assert_eq!(seen[1]["content_block"]["input"], json!({"query": "q"}));
    assert_eq!(seen[3]["delta"]["stop_reason"], "pause_turn");
}

#[test]
fn prompt_tokens_are_told_at_the_start_and_totals_at_the_end() {
    let seen = data(&shown(Wire::Anthropic, &read(&whole(&[text_block("a")], "max_tokens"))));
    assert_eq!(seen[0]["message"]["usage"]["input_tokens"], 5);
    let last = &seen[seen.len() - 2];
    assert_eq!(last["usage"], json!({"input_tokens": 5, "output_tokens": 9}));
    assert_eq!(last["delta"], json!({"stop_reason": "max_tokens", "stop_sequence": null}));
}

proptest! {
    #[test]
    fn a_damaged_stream_does_no_harm_and_reads_the_same_however_it_is_cut(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), size in 1..40_usize,
    ) {
        let call = block(1, &json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
            &[json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})]);
        let mut bytes = whole(&[text_block("some text"), call], "tool_use").into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let all = events([bytes.as_slice()]);
        prop_assert_eq!(&events(bytes.chunks(size)), &all);
        let _ = shown(Wire::Anthropic, &all);
    }
}
