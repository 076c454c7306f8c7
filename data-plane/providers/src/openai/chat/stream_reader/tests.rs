use proptest::prelude::*;

use super::*;
use crate::exchange::{Facts, Signature};
use penstock_model::vendor::Wire;

/// Every event of the reads, as text: events borrow.
fn events(reads: &[&[u8]]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = Reader::new("r");
    let mut sink = |event: Event<'_>| lines.push(format!("{event:?}"));
    for read in reads {
        reader.feed(read, &mut sink);
    }
    reader.end(&mut sink);
    lines
}

fn debug(events: &[Event<'_>]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

/// A stream of chunks with one choice each, whose start is not looked at.
fn told(choices: &[&str]) -> Vec<String> {
    let body: String =
        choices.iter().map(|choice| format!("data: {{\"id\":\"c\",\"choices\":[{choice}]}}\n\n")).collect();
    let mut events = events(&[body.as_bytes()]);
    assert!(events.remove(0).starts_with("Start"));
    events
}

fn text(text: &str) -> Event<'_> {
    Event::Text { choice: 0, text: text.into() }
}

fn call(call: u32, id: &'static str, name: &'static str) -> Event<'static> {
    Event::ToolStart { choice: 0, call, id: id.into(), name: name.into(), signature: None }
}

fn arguments(call: u32, fragment: &'static str) -> Event<'static> {
    Event::ToolArguments { choice: 0, call, fragment: fragment.into() }
}

fn finish(stop: Stop, native: &'static str) -> Event<'static> {
    Event::Finish { choice: 0, stop, native: native.into(), sequence: None }
}

#[test]
fn a_character_cut_between_reads_arrives_whole_sse_01() {
    let events = events(&[
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe6\xbd",
        b"\xae\xf0\x9f",
        b"\x9a",
        b"\xb2\"}}]}\n\n",
    ]);
    assert_eq!(events[1..], debug(&[text("潮🚲")]));
}

#[test]
fn bytes_that_are_not_utf8_cost_one_replacement_sse_01() {
    let events = events(&[
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xffb\"}}]}\n\n",
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"c\"}}]}\n\n",
    ]);
    assert_eq!(events[1..], debug(&[text("a\u{fffd}b"), text("c")]));
}

#[test]
fn every_line_ending_ends_an_event_at_once_sse_02() {
    for end in ["\n", "\r\n", "\r"] {
        let mut reader = Reader::new("r");
        let mut texts = Vec::new();
        for content in ["a", "b"] {
            let chunk = format!(
                "data:{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}}}}]}}{end}{end}"
            );
            reader.feed(chunk.as_bytes(), &mut |event| {
                if let Event::Text { text, .. } = event {
                    texts.push(text.into_owned());
                }
            });
            assert_eq!(texts.last().map(String::as_str), Some(content), "{end:?}");
        }
    }
}

#[test]
fn keep_alives_of_both_kinds_are_passed_over_sse_03() {
    let events = events(&[
        b": waiting in queue\n\n: waiting in queue\n\ndata: : waiting\n\n",
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
    ]);
    assert_eq!(events[1..], debug(&[text("a"), Event::End]));
}

#[test]
fn an_end_without_an_end_mark_is_no_end_sse_04() {
    let body =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\n\n";
    let mut facts = Facts::default();
    let mut reader = Reader::new("r");
    reader.feed(body, &mut |event| facts.see(&event));
    reader.end(&mut |event| facts.see(&event));
    assert!(facts.first_token && !facts.complete && facts.error.is_none());
}

#[test]
fn chunks_without_choices_do_no_harm_and_their_usage_is_told_sse_05() {
    let events = events(&[
        b"data: {\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}\n\n",
        b"data: {\"id\":\"c1\",\"created\":7,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
        b"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        b"data: {\"id\":\"c1\"}\n\n",
        b"data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}\n\n",
        b"data: [DONE]\n\n",
    ]);
    let usage = penstock_model::Usage { input_tokens: Some(9), output_tokens: Some(1), ..Default::default() };
    let expected = [
        Event::Start { id: Some("c1".into()), model: Some("m".into()), created: Some(7) },
        text("a"),
        finish(Stop::End, "stop"),
        Event::Usage(usage),
        Event::End,
    ];
    assert_eq!(events, debug(&expected));
}

#[test]
fn two_calls_of_one_index_or_of_none_are_told_apart_sse_06() {
    let expected = debug(&[
        call(0, "t1", "lookup"),
        arguments(0, "{\"k\":1}"),
        call(1, "t2", "lookup"),
        arguments(1, "{\"k\":"),
        arguments(1, "2}"),
        finish(Stop::ToolCalls, "tool_calls"),
    ]);
    let end = r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}"#;
    for index in ["\"index\":0,", "", "\"index\":null,"] {
        let start = |id: &str, arguments: &str| {
            format!(
                r#"{{"index":0,"delta":{{"tool_calls":[{{{index}"id":"{id}","type":"function","function":{{"name":"lookup","arguments":"{arguments}"}}}}]}}}}"#
            )
        };
        let more = format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{{index}"id":"","function":{{"arguments":"2}}"}}}}]}}}}"#
        );
        let told = told(&[&start("t1", "{\\\"k\\\":1}"), &start("t2", "{\\\"k\\\":"), &more, end]);
        assert_eq!(told, expected, "{index}");
    }
}

#[test]
fn an_id_that_is_repeated_goes_on_and_calls_without_any_get_one_sse_06() {
    let delta = |call: &str| format!(r#"{{"index":0,"delta":{{"tool_calls":[{call}]}}}}"#);
    let repeated = told(&[
        &delta(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":"{\"a\""}}"#),
        &delta(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":":1}"}}"#),
    ]);
    assert_eq!(repeated, debug(&[call(0, "t1", "f"), arguments(0, "{\"a\""), arguments(0, ":1}")]));
    let nameless = told(&[
        &delta(r#"{"function":{"name":"f","arguments":{"a":"}"}}}"#),
        &delta(r#"{"function":{"name":"g","arguments":"{"}}"#),
        &delta(r#"{"function":{"arguments":"}"}}"#),
    ]);
    let expected = [
        call(0, "call_r_0_0", "f"),
        arguments(0, "{\"a\":\"}\"}"),
        call(1, "call_r_0_1", "g"),
        arguments(1, "{"),
        arguments(1, "}"),
    ];
    assert_eq!(nameless, debug(&expected));
}

#[test]
fn calls_without_arguments_get_an_empty_object_tr_14() {
    let told = told(&[
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"now","arguments":""}}]}}"#,
        r#"{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"now"}}]}}"#,
        r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}"#,
    ]);
    let expected = [
        call(0, "a", "now"),
        arguments(0, "{}"),
        call(1, "b", "now"),
        arguments(1, "{}"),
        finish(Stop::ToolCalls, "tool_calls"),
    ];
    assert_eq!(told, debug(&expected));
}

#[test]
fn an_error_inside_the_stream_is_a_failure_and_the_end_sse_08() {
    let body = b"data: {\"error\":{\"message\":\"queue full\",\"type\":\"overloaded\",\"code\":503}}\n\ndata: [DONE]\n\n";
    let error = VendorError {
        code: Some("503".to_owned()),
        kind: Some("overloaded".to_owned()),
        message: Some("queue full".to_owned()),
        ..VendorError::default()
    };
    assert_eq!(events(&[body]), debug(&[Event::Failed { error, status: Some(503) }]));
    let null = b"data: {\"error\":null,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(events(&[null])[1..], debug(&[text("a")]));
}

#[test]
fn finish_reasons_that_mean_failure_are_failures() {
    for (word, status) in [("insufficient_system_resource", 503), ("network_error", 500), ("error", 500)] {
        let told = told(&[&format!(r#"{{"index":0,"delta":{{"content":"a"}},"finish_reason":"{word}"}}"#)]);
        let failed = Event::Failed { error: finish::failure(word), status: Some(status) };
        assert_eq!(told, debug(&[text("a"), failed]));
    }
}

#[test]
fn an_event_of_megabytes_is_read_whole_sse_11() {
    let long = "x".repeat(4 << 20);
    let body = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{long}\"}}}}]}}\n\n");
    let mut length = 0;
    let mut reader = Reader::new("r");
    for piece in body.as_bytes().chunks(16 << 10) {
        reader.feed(piece, &mut |event| {
            if let Event::Text { text, .. } = event {
                length = text.len();
            }
        });
    }
    assert_eq!(length, 4 << 20);
}

#[test]
fn an_event_without_end_fails_and_its_memory_is_bounded_sse_11() {
    let mut reader = Reader::new("r");
    reader.feed(b"data: ", &mut |_| {});
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        reader.feed(&piece, &mut |_| {});
    }
    assert!(reader.open_bytes() > 40 << 20);
    let mut failed = false;
    reader.feed(b"\n\n", &mut |event| failed |= matches!(event, Event::Failed { .. }));
    assert!(failed);
}

#[test]
fn interleaved_choices_keep_their_numbers_tr_12() {
    let told = told(&[
        r#"{"index":1,"delta":{"content":"b"}}"#,
        r#"{"index":0,"delta":{"content":"a"}}"#,
        r#"{"index":1,"delta":{},"finish_reason":"length"}"#,
        r#"{"index":0,"delta":{},"finish_reason":"stop"}"#,
    ]);
    let ended = |choice, stop, native: &'static str| Event::Finish {
        choice,
        stop,
        native: native.into(),
        sequence: None,
    };
    let expected = [
        Event::Text { choice: 1, text: "b".into() },
        text("a"),
        ended(1, Stop::Length, "length"),
        ended(0, Stop::End, "stop"),
    ];
    assert_eq!(told, debug(&expected));
}

#[test]
fn reasoning_comes_by_any_of_its_names_and_once() {
    let signature = Signature { wire: Wire::Anthropic, value: "c2ln".to_owned() };
    let told = told(&[
        r#"{"index":0,"delta":{"content":"","reasoning_content":"a"}}"#,
        r#"{"index":0,"delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b"}]}}"#,
        r#"{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"c","signature":"c2ln","format":"anthropic"}]}}"#,
        r#"{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"d"}]},{"type":"text","text":"e"}]}}"#,
    ]);
    let reasoning = |text: &'static str| Event::Reasoning { choice: 0, text: text.into() };
    let expected = [
        reasoning("a"),
        reasoning("b"),
        reasoning("c"),
        Event::ReasoningSignature { choice: 0, signature, redacted: false },
        reasoning("d"),
        text("e"),
    ];
    assert_eq!(told, debug(&expected));
}

#[test]
fn a_stop_that_calls_tools_is_a_tool_call_and_a_named_sequence_a_sequence() {
    let calls = told(&[
        r#"{"index":0,"delta":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"stop"}"#,
        r#"{"index":0,"delta":{},"finish_reason":"stop"}"#,
    ]);
    assert_eq!(
        calls,
        debug(&[call(0, "call_r_0_0", "f"), arguments(0, "{}"), finish(Stop::ToolCalls, "stop")])
    );
    let sequence = told(&[r#"{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"END"}"#]);
    let expected = Event::Finish {
        choice: 0,
        stop: Stop::Sequence,
        native: "stop".into(),
        sequence: Some("END".into()),
    };
    assert_eq!(sequence, debug(&[expected]));
}

/// Pieces of streams, good and bad.
fn pieces() -> Vec<&'static [u8]> {
    vec![
        b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe6\xbd\xae\"}}]}\n\n",
        b"data: {\"choices\":[{\"index\":1,\"delta\":{\"reasoning\":\"\\ud83d\\udeb2\"}}]}\r\n\r\n",
        b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\r\r",
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}\n\n",
        b"data: {\"error\":{\"code\":429}}\n\n",
        b"data: {\"choices\":\ndata: []}\n\n",
        b": hello\n\n",
        b"\xff\x00data: {\"error\":",
        b"event: error\rdata: no\r\r",
        b"data: [DONE]\n\n",
    ]
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events_sse_01(
        parts in prop::collection::vec(prop::sample::select(pieces()), 0..12),
        size in 1_usize..40,
    ) {
        let body = parts.concat();
        prop_assert_eq!(events(&[&body]), events(&body.chunks(size).collect::<Vec<_>>()));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        json in "data: [\\[\\]{}\",:a-z0-9]{0,60}\n\n",
    ) {
        let _ = events(&[&noise, json.as_bytes(), b"\n\ndata: ", &noise, b"\n\n"]);
    }
}
