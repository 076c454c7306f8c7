use proptest::prelude::*;
use serde_json::{Value, json};

use crate::dialect::{Asked, Dialect, Protocol};
use crate::exchange::{Event, Facts, Stop};
use crate::responses::Responses;

/// One line per event.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = Responses.stream_reader("r1");
    for chunk in chunks {
        reader.feed(chunk, &mut |event| lines.push(format!("{event:?}")));
    }
    reader.end(&mut |event| lines.push(format!("{event:?}")));
    lines
}

fn facts(stream: &str) -> Facts {
    let mut facts = Facts::default();
    let mut reader = Responses.stream_reader("r1");
    reader.feed(stream.as_bytes(), &mut |event| facts.see(&event));
    reader.end(&mut |event| facts.see(&event));
    facts
}

fn sse(events: &[Value]) -> String {
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": text})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [],
        "usage": {"input_tokens": 3, "output_tokens": 2}}})
}

/// The text of a stream.
fn text<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut all = String::new();
    let mut reader = Responses.stream_reader("r1");
    let mut sink = |event: Event<'_>| {
        if let Event::Text { text, .. } = event {
            all.push_str(&text);
        }
    };
    for chunk in chunks {
        reader.feed(chunk, &mut sink);
    }
    all
}

#[test]
fn a_character_that_reads_cut_stays_whole_sse_01() {
    let stream = sse(&[delta("潮🚲")]);
    for at in 0..stream.len() {
        let (before, after) = stream.as_bytes().split_at(at);
        assert_eq!(text([before, after]), "潮🚲");
    }
    let broken = b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"\xff\"}\n\n";
    assert!(read([&broken[..]]).last().unwrap().starts_with("Failed"));
}

#[test]
fn every_line_ending_is_understood_while_the_stream_is_open_sse_02() {
    for (first, second) in [("\r\n", "\r\n"), ("\r", "\r"), ("\n", "\r\n")] {
        let stream = format!("data:{}{first}{first}data: {}{second}{second}", delta("a"), delta("b"));
        for at in 0..stream.len() {
            let (before, after) = stream.as_bytes().split_at(at);
            assert_eq!(text([before, after]), "ab", "{stream:?}");
        }
    }
}

#[test]
fn a_stream_that_just_ends_is_not_complete_sse_04() {
    let cut =
        facts(&sse(&[json!({"type": "response.created", "response": {"id": "resp_1"}}), delta("half")]));
    assert!(cut.first_token && !cut.complete && cut.error.is_none());
    let whole = facts(&sse(&[delta("all"), completed()]));
    assert!(whole.complete);
    let end_mark_of_another_dialect = facts(&(sse(&[delta("half")]) + "data: [DONE]\n\n"));
    assert!(!end_mark_of_another_dialect.complete);
}

#[test]
fn a_failure_inside_the_stream_is_told_however_it_is_put_sse_08() {
    for failure in [
        json!({"error": {"message": "queue full", "type": "overloaded", "code": 503}}),
        json!({"type": "error", "code": "503", "message": "queue full", "param": null, "sequence_number": 1}),
        json!({"type": "error", "error": {"type": "x", "code": "503", "message": "queue full"}}),
        json!({"type": "response.failed", "response": {"id": "resp_1", "status": "failed",
            "error": {"code": "503", "message": "queue full"}}}),
    ] {
        for before in [vec![], vec![delta("part")]] {
            let events: Vec<Value> = [before.clone(), vec![failure.clone(), completed()]].concat();
            let facts = facts(&sse(&events));
            let (error, _) = facts.error.unwrap();
            assert_eq!(error.message.as_deref(), Some("queue full"), "{failure}");
            assert_eq!(error.code.as_deref(), Some("503"));
            assert_eq!((facts.first_token, facts.complete), (!before.is_empty(), false));
        }
    }
    let mut harmless = delta("a");
    harmless["error"] = Value::Null;
    assert!(facts(&sse(&[harmless])).error.is_none());
}

#[test]
fn a_failed_responses_code_stands_for_a_status() {
    for (code, status) in [("rate_limit_exceeded", Some(429)), ("server_error", Some(500)), ("new", None)] {
        let failed = json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": code, "message": "m"}, "usage": {"input_tokens": 3, "output_tokens": 0}}});
        let facts = facts(&sse(&[failed]));
        assert_eq!(facts.error.unwrap().1, status);
        assert_eq!(facts.usage.unwrap().input_tokens, Some(3), "what a failure cost is known, too");
    }
}

#[test]
fn an_event_of_megabytes_is_read_whole_sse_11() {
    let long = "x".repeat(4 << 20);
    let stream = sse(&[delta(&long), completed()]);
    assert_eq!(text(stream.as_bytes().chunks(16 << 10)), long);
    let mut reader = Responses.stream_reader("r1");
    reader.feed(&stream.as_bytes()[..1 << 20], &mut |_| {});
    assert_eq!(reader.open_bytes(), 1 << 20, "the caller sets the limit");
}

#[test]
fn what_comes_only_at_the_end_of_an_item_is_not_lost() {
    let done = |index: u32, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let lines = read([sse(&[
        done(0, json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "gA"})),
        done(1, json!({"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]})),
        done(2, json!({"type": "function_call", "call_id": "t1", "name": "now", "arguments": ""})),
        done(3, json!({"type": "web_search_call", "id": "ws_1"})),
        completed(),
    ])
    .as_bytes()]);
    let kinds: Vec<&str> = lines.iter().map(|line| line.split([' ', '(']).next().unwrap()).collect();
    let expected = [
        "Start",
        "Reasoning",
        "ReasoningSignature",
        "Text",
        "Refusal",
        "ToolStart",
        "ToolArguments",
        "Part",
        "Usage",
        "Finish",
        "End",
    ];
    assert_eq!(kinds, expected);
    assert!(lines[6].contains("\"{}\""), "TR-14: {}", lines[6]);
}

#[test]
fn nothing_is_told_twice_or_after_the_end() {
    let item = json!({"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"});
    let stream = sse(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}),
        json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        completed(),
        delta("late"),
    ]);
    let lines = read([stream.as_bytes()]);
    let count = |kind: &str| lines.iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("Start"), count("ToolStart"), count("ToolArguments"), count("Text")), (1, 1, 1, 0));
    assert!(lines.last().unwrap().starts_with("End"));
}

/// Events in the words of another reader, and what they come to after a stream of ours was read.
fn told() -> impl Strategy<Value = Vec<Event<'static>>> {
    let choice = 0;
    let text = || "\\PC{1,6}";
    let piece = prop_oneof![
        text().prop_map(move |text| vec![Event::Text { choice, text: text.into() }]),
        text().prop_map(move |text| vec![Event::Reasoning { choice, text: text.into() }]),
        text().prop_map(move |text| vec![Event::Refusal { choice, text: text.into() }]),
        text().prop_map(move |fragment| {
            let start =
                Event::ToolStart { choice, call: 0, id: "t".into(), name: "f".into(), signature: None };
            vec![start, Event::ToolArguments { choice, call: 0, fragment: fragment.into() }]
        }),
    ];
    prop::collection::vec(piece, 0..8).prop_map(move |pieces| {
        let start = Event::Start { id: Some("resp_1".into()), model: Some("m".into()), created: Some(7) };
        let mut events = vec![start];
        let mut calls = 0;
        for mut event in pieces.into_iter().flatten() {
            match &mut event {
                Event::ToolStart { call, .. } => {
                    *call = calls;
                    calls += 1;
                }
                Event::ToolArguments { call, .. } => *call = calls - 1,
                _ => {}
            }
            events.push(event);
        }
        let stop = if calls > 0 { Stop::ToolCalls } else { Stop::End };
        events.extend([Event::Finish { choice, stop, native: "".into(), sequence: None }, Event::End]);
        events
    })
}

proptest! {
    #[test]
    fn a_stream_that_we_write_is_read_as_it_was_in_any_chunking_sse_01(events in told(), size in 1..200_usize) {
        let mut writer = Responses.stream_writer(Asked { id: "r1".to_owned(), ..Asked::default() });
        let mut stream = Vec::new();
        for event in &events {
            writer.event(event, &mut stream);
        }
        writer.finish(&mut stream);
        let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        prop_assert_eq!(read(stream.chunks(size)), expected);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let mut stream = b"data: {\"type\":\"response.".to_vec();
        stream.extend_from_slice(&bytes);
        read([bytes.as_slice(), b"\n\n", stream.as_slice()]);
    }
}
