use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_model::Usage;
use penstock_model::vendor::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::aws::event_stream::encode;
use crate::bedrock::Bedrock;
use crate::dialect::Dialect as _;
use crate::exchange::{Answer, Event, Facts, Part, Reasoning, Signature, Stop, replay};

/// A delta and an exception, as a service sent them.
const DELTA: &str = "AAAAlwAAAFfzC+A+CzpldmVudC10eXBlBwARY29udGVudEJsb2NrRGVsdGENOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJjb250ZW50QmxvY2tJbmRleCI6MCwiZGVsdGEiOnsidGV4dCI6IkJsdWUgIn19iYQYYw==";
const EXCEPTION: &str = "AAAAiAAAAGHeAXX0DzpleGNlcHRpb24tdHlwZQcAE3Rocm90dGxpbmdFeGNlcHRpb24NOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcACWV4Y2VwdGlvbnsibWVzc2FnZSI6InNsb3cgZG93biJ9gy7gcg==";

/// The frame of an event, given as `{"messageStart":{…}}`.
fn frame(event: &Value) -> Vec<u8> {
    let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
    named_frame(name, payload.to_string().as_bytes())
}

fn named_frame(name: &str, payload: &[u8]) -> Vec<u8> {
    encode(
        &[(":event-type", name), (":content-type", "application/json"), (":message-type", "event")],
        payload,
    )
}

fn frames(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(frame).collect()
}

fn text(text: &str) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": text}}})
}

fn stop(reason: &str) -> Value {
    json!({"messageStop": {"stopReason": reason}})
}

fn metadata() -> Value {
    json!({"metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}})
}

/// One line per event, and what they amount to.
fn read(chunks: &[&[u8]]) -> (Vec<String>, Facts) {
    let mut lines = Vec::new();
    let mut facts = Facts::default();
    let mut reader = Bedrock.stream_reader("req-1");
    let mut sink = |event: Event<'_>| {
        facts.see(&event);
        lines.push(format!("{event:?}"));
    };
    for chunk in chunks {
        reader.feed(chunk, &mut sink);
    }
    reader.end(&mut sink);
    (lines, facts)
}

fn read_events(events: &[Value]) -> (Vec<String>, Facts) {
    read(&[&frames(events)])
}

const START: &str = "Start { id: None, model: None, created: None }";

#[test]
fn the_stream_fixtures_hold_the_frames_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/bedrock");
    for case in ["plain", "tools", "parallel_tools", "images", "structured_output", "reasoning"] {
        let lines = fs::read_to_string(folder.join(format!("{case}.frames.jsonl"))).unwrap();
        let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let encoded = STANDARD.encode(frames(&events));
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(120).map(|line| str::from_utf8(line).unwrap()).collect();
        let file = folder.join(format!("{case}.stream.b64"));
        let expected = lines.join("\n") + "\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{case}: this is what the file must hold");
    }
}

#[test]
fn a_character_cut_anywhere_arrives_whole_sse_01() {
    let bytes = frames(&[text("潮🚲"), stop("end_turn")]);
    let expected = r#"Text { choice: 0, text: "潮🚲" }"#;
    for cut in 0..bytes.len() {
        let (lines, _) = read(&[&bytes[..cut], &bytes[cut..]]);
        assert_eq!(lines[1], expected, "cut at {cut}");
    }
}

#[test]
fn bytes_that_are_no_text_are_an_error_in_band_and_stall_nothing_sse_01() {
    let bytes = named_frame("contentBlockDelta", b"{\"contentBlockIndex\":0,\"delta\":{\"text\":\"a\xff\"}}");
    let (lines, facts) = read(&[&bytes, &frames(&[stop("end_turn")])]);
    assert!(!facts.complete && facts.error.is_some());
    assert!(lines.last().unwrap().starts_with("Failed"), "{lines:?}");
}

#[test]
fn half_a_surrogate_pair_is_one_replacement_and_fails_nothing_sse_01() {
    let bytes = named_frame("contentBlockDelta", br#"{"contentBlockIndex":0,"delta":{"text":"a\ud83d"}}"#);
    let (lines, facts) = read(&[&bytes]);
    assert!(lines[1].contains("a\u{FFFD}") && facts.error.is_none(), "{lines:?}");
}

#[test]
fn a_body_that_ends_before_its_message_stop_is_not_complete_sse_04() {
    let started = json!({"messageStart": {"role": "assistant"}});
    let (lines, facts) = read_events(&[started.clone(), text("a")]);
    assert_eq!(lines, [START, r#"Text { choice: 0, text: "a" }"#]);
    assert!(!facts.complete && facts.first_token && facts.error.is_none());

    // Cut inside the frame that would have ended it.
    let bytes = frames(&[started.clone(), text("a"), stop("end_turn")]);
    assert!(!read(&[&bytes[..bytes.len() - 1]]).1.complete);

    // Complete without its usage.
    let (lines, facts) = read_events(&[started, text("a"), stop("end_turn")]);
    assert!(facts.complete && facts.usage.is_none());
    assert_eq!(lines.last().unwrap(), "End");
}

#[test]
fn usage_comes_behind_the_end_of_the_message_and_nothing_after_it_counts() {
    let (lines, facts) = read_events(&[text("a"), stop("end_turn"), metadata(), text("b"), metadata()]);
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[3].starts_with("Usage") && lines[4] == "End");
    assert_eq!(facts.usage.unwrap().input_tokens, Some(3));
}

#[test]
fn an_exception_frame_is_a_failure_with_its_status_and_message_sse_09() {
    let decode = |frame| STANDARD.decode(frame).unwrap();
    let bytes = [decode(DELTA), decode(EXCEPTION)].concat();
    for cut in 0..bytes.len() {
        let (lines, facts) = read(&[&bytes[..cut], &bytes[cut..]]);
        assert_eq!(lines[..2], [START, r#"Text { choice: 0, text: "Blue " }"#]);
        let (error, status) = facts.error.unwrap();
        assert_eq!(error.code.as_deref(), Some("throttlingException"));
        assert_eq!(error.message.as_deref(), Some("slow down"));
        assert_eq!(status, Some(429));
        assert!(!facts.complete && lines.len() == 3);
    }
    // Alone, before any token: the attempt can be retried.
    let (_, facts) = read(&[&decode(EXCEPTION)]);
    assert!(!facts.first_token && facts.error.is_some());
}

#[test]
fn every_exception_stands_for_its_status_sse_09() {
    for (name, expected) in [
        ("internalServerException", Some(500)),
        ("modelStreamErrorException", Some(424)),
        ("validationException", Some(400)),
        ("throttlingException", Some(429)),
        ("serviceUnavailableException", Some(503)),
        ("somethingNewException", None),
    ] {
        let headers = [(":message-type", "exception"), (":exception-type", name)];
        let (_, facts) = read(&[&encode(&headers, b"{}")]);
        let (error, status) = facts.error.unwrap();
        assert_eq!((error.code.as_deref(), status), (Some(name), expected));
    }
    let headers =
        [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "it broke")];
    let (error, _) = read(&[&encode(&headers, b"")]).1.error.unwrap();
    assert_eq!(
        (error.code.as_deref(), error.message.as_deref()),
        (Some("InternalFailure"), Some("it broke"))
    );
}

#[test]
fn a_wrong_checksum_and_a_length_beyond_the_limit_fail_the_stream_once_sse_09() {
    let mut bytes = frames(&[text("a"), text("b"), stop("end_turn")]);
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    let (lines, facts) = read(&[&bytes, &bytes, &bytes]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("Failed")).count(), 1);
    assert!(facts.error.unwrap().0.message.unwrap().contains("checksum"));
    assert!(!facts.complete);

    let mut long = [u32::MAX.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    long.extend_from_slice(&crc32fast::hash(&long).to_be_bytes());
    let (lines, facts) = read(&[&long]);
    assert!(lines.len() == 1 && facts.error.unwrap().0.message.unwrap().contains("longer"));
}

#[test]
fn an_event_of_four_megabytes_passes_in_small_reads_sse_11() {
    let long = "x".repeat(4 << 20);
    let bytes = frames(&[text(&long), stop("end_turn"), metadata()]);
    let chunks: Vec<&[u8]> = bytes.chunks(16 << 10).collect();
    let mut reader = Bedrock.stream_reader("req-1");
    let mut length = 0;
    let mut complete = false;
    for chunk in chunks {
        reader.feed(chunk, &mut |event| match event {
            Event::Text { text, .. } => length += text.len(),
            Event::End => complete = true,
            _ => {}
        });
    }
    assert!(complete && length == 4 << 20 && reader.open_bytes() == 0);
}

#[test]
fn a_frame_that_never_ends_is_seen_to_grow_sse_11() {
    let bytes = frames(&[text(&"x".repeat(1 << 20))]);
    let mut reader = Bedrock.stream_reader("req-1");
    reader.feed(&bytes[..bytes.len() - 1], &mut |_| {});
    assert_eq!(reader.open_bytes(), bytes.len() as u64 - 1);
}

#[test]
fn a_thought_without_text_keeps_its_signature_tr_08() {
    let thought = |content: Value| json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": content}}});
    let end = json!({"contentBlockStop": {"contentBlockIndex": 0}});
    let signature = r#"ReasoningSignature { choice: 0, signature: Signature { wire: Bedrock, value: "c2ln" }, redacted: false }"#;
    let (lines, _) =
        read_events(&[thought(json!({"text": ""})), thought(json!({"signature": "c2ln"})), end.clone()]);
    assert_eq!(lines, [START, signature]);
    // In two pieces, and without an end of its block.
    let pieces = [thought(json!({"signature": "c2"})), thought(json!({"signature": "ln"})), text("a")];
    assert_eq!(read_events(&pieces).0, [START, signature, r#"Text { choice: 0, text: "a" }"#]);
    // Neither text nor signature: no thought.
    assert_eq!(read_events(&[thought(json!({"text": ""})), end]).0, [START]);

    let content = json!([
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}},
        {"reasoningContent": {"reasoningText": {"text": ""}}},
        {"reasoningContent": {"redactedContent": "cmVk"}},
    ]);
    let signed = |value: &str, redacted| {
        let signature = Some(Signature { wire: Wire::Bedrock, value: value.to_owned() });
        Part::Reasoning(Reasoning { text: String::new(), signature, redacted })
    };
    assert_eq!(whole(content, "end_turn").choices[0].parts, [signed("c2ln", false), signed("cmVk", true)]);
}

#[test]
fn a_call_without_arguments_has_an_empty_object_tr_14() {
    let start = json!({"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "now"}}}});
    let nothing = json!({"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ""}}}});
    let end = json!({"contentBlockStop": {"contentBlockIndex": 1}});
    let expected = [
        START,
        r#"ToolStart { choice: 0, call: 0, id: "t1", name: "now", signature: None }"#,
        r#"ToolArguments { choice: 0, call: 0, fragment: "{}" }"#,
        r#"Finish { choice: 0, stop: ToolCalls, native: "tool_use", sequence: None }"#,
        "End",
    ];
    assert_eq!(read_events(&[start.clone(), nothing, end, stop("tool_use")]).0, expected);
    assert_eq!(read_events(&[start, stop("tool_use")]).0, expected);
    let answer = whole(json!([{"toolUse": {"toolUseId": "t1", "name": "now"}}]), "tool_use");
    assert!(matches!(&answer.choices[0].parts[..], [Part::ToolCall(call)] if call.arguments == "{}"));
}

#[test]
fn arguments_of_a_whole_answer_keep_their_numbers_and_calls_without_an_id_get_one() {
    let body = br#"{"output":{"message":{"content":[{"toolUse":{"name":"f","input":{"n":12345678901234567890.10}}},{"toolUse":{"name":"g","input":{}}}]}},"stopReason":"tool_use"}"#;
    let answer = Bedrock.read_answer(body, "r").unwrap();
    let calls: Vec<_> = answer.choices[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolCall(call) => (call.id.as_str(), call.arguments.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("call_r_0", r#"{"n":12345678901234567890.10}"#), ("call_r_1", "{}")]);
}

fn whole(content: Value, reason: &str) -> Answer {
    let body =
        json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason});
    Bedrock.read_answer(body.to_string().as_bytes(), "r").unwrap()
}

#[test]
fn why_an_answer_ended_is_read_alike_whole_and_streamed() {
    for (reason, expected) in [
        ("end_turn", Stop::End),
        ("stop_sequence", Stop::Sequence),
        ("max_tokens", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("tool_use", Stop::ToolCalls),
        ("guardrail_intervened", Stop::ContentFilter),
        ("content_filtered", Stop::ContentFilter),
        ("of_next_year", Stop::End),
    ] {
        assert_eq!(whole(json!([{"text": "a"}]), reason).choices[0].stop, Some(expected));
        let (lines, facts) = read_events(&[text("a"), stop(reason)]);
        assert!(
            facts.complete && lines[2].contains(&format!("stop: {expected:?}, native: \"{reason}\"")),
            "{lines:?}"
        );
    }
    assert_eq!(
        whole(json!([]), "content_filtered").choices[0].native_stop.as_deref(),
        Some("content_filtered")
    );
}

#[test]
fn a_model_that_broke_is_a_failure_whole_and_streamed() {
    for reason in ["malformed_model_output", "malformed_tool_use"] {
        let body = json!({"output": {"message": {"content": []}}, "stopReason": reason}).to_string();
        let error = Bedrock.read_answer(body.as_bytes(), "r").unwrap_err();
        assert_eq!(error.code.as_deref(), Some(reason));
        let (lines, facts) = read_events(&[text("a"), stop(reason), metadata()]);
        assert_eq!(facts.error.unwrap().0, error);
        assert!(!facts.complete && lines.len() == 3);
    }
}

#[test]
fn the_stop_sequence_is_told_where_the_model_tells_it() {
    let fields = json!({"stop_sequence": "END"});
    let (lines, _) = read_events(&[
        json!({"messageStop": {"stopReason": "stop_sequence", "additionalModelResponseFields": fields}}),
    ]);
    assert!(lines[1].contains(r#"sequence: Some("END")"#), "{lines:?}");
    let body = json!({"output": {"message": {"content": []}}, "stopReason": "stop_sequence", "additionalModelResponseFields": fields});
    let answer = Bedrock.read_answer(body.to_string().as_bytes(), "r").unwrap();
    assert_eq!(answer.choices[0].stop_sequence.as_deref(), Some("END"));
}

#[test]
fn cached_tokens_are_added_to_the_input_and_split_by_how_long_they_are_kept() {
    let usage = json!({"usage": {
        "inputTokens": 10, "outputTokens": 4, "totalTokens": 144, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 30,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 10}, {"ttl": "1h", "inputTokens": 20}],
    }});
    let expected = Usage {
        input_tokens: Some(140),
        cached_input_tokens: Some(100),
        cache_write_tokens: Some(10),
        cache_write_1h_tokens: Some(20),
        output_tokens: Some(4),
        ..Usage::default()
    };
    assert_eq!(Bedrock.find_usage(usage.to_string().as_bytes()), Some(expected));
    assert_eq!(read_events(&[json!({"metadata": usage})]).1.usage, Some(expected));
    for none in ["{}", r#"{"usage":{}}"#, r#"{"usage":null}"#, r#"{"usage":{"inputTokens":-1}}"#, "", "[1]"] {
        assert_eq!(Bedrock.find_usage(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn what_is_no_answer_gives_what_it_says_tr_16() {
    let read = |body: &str| Bedrock.read_answer(body.as_bytes(), "r").unwrap_err();
    assert_eq!(read(r#"{"message":"too long"}"#).message.as_deref(), Some("too long"));
    for body in ["", "<html>", "{}", "[]", r#"{"output":{}}"#] {
        assert_eq!(read(body).message, None, "{body}");
    }
}

#[test]
fn blocks_that_nobody_knows_yet_are_kept_as_they_are() {
    let video = json!({"video": {"format": "mp4", "source": {"bytes": "AA=="}}});
    let answer = whole(json!([{"text": "a"}, video]), "end_turn");
    assert_eq!(answer.choices[0].parts[1], Part::Other { wire: Wire::Bedrock, value: video });
    let (lines, facts) = read_events(&[
        json!({"contentBlockStart": {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}}),
        json!({"eventOfNextYear": {"a": 1}}),
    ]);
    assert!(lines[1].starts_with("Part") && lines.len() == 2 && facts.error.is_none());
}

#[test]
fn cited_text_is_text_with_its_citations() {
    let citation =
        json!({"title": "t", "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 1}}});
    let content =
        json!([{"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [citation]}}]);
    let answer = whole(content, "end_turn");
    assert!(
        matches!(&answer.choices[0].parts[..], [Part::Text(text)] if text.text == "ab" && text.citations == [citation.clone()])
    );
    let (lines, _) = read_events(&[
        json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"citation": citation}}}),
    ]);
    assert!(lines[1].starts_with("Citation"));
    // Told as a stream, it is the same.
    let mut events = Vec::new();
    replay(&answer, &mut |event| events.push(format!("{event:?}")));
    assert!(events.iter().any(|event| event == &lines[1]));
}

fn event() -> impl Strategy<Value = Value> {
    let index = 0..3_u64;
    prop_oneof![
        Just(json!({"messageStart": {"role": "assistant"}})),
        "[a-z😀潮]{0,5}".prop_map(|part| text(&part)),
        index.clone().prop_map(|i| json!({"contentBlockStart": {"contentBlockIndex": i, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}})),
        (index.clone(), "[{}a-z\"]{0,5}").prop_map(|(i, part)| json!({"contentBlockDelta": {"contentBlockIndex": i, "delta": {"toolUse": {"input": part}}}})),
        (index.clone(), "[a-z]{0,3}").prop_map(|(i, part)| json!({"contentBlockDelta": {"contentBlockIndex": i, "delta": {"reasoningContent": {"text": part}}}})),
        (index.clone(), "[a-z]{0,3}").prop_map(|(i, part)| json!({"contentBlockDelta": {"contentBlockIndex": i, "delta": {"reasoningContent": {"signature": part}}}})),
        index.prop_map(|i| json!({"contentBlockStop": {"contentBlockIndex": i}})),
        Just(stop("end_turn")),
        Just(metadata()),
        Just(json!({"contentBlockDelta": 1})),
    ]
}

proptest! {
    #[test]
    fn any_order_of_events_in_any_chunks_keeps_the_rules_of_events(events in prop::collection::vec(event(), 0..20), size in 1_usize..90) {
        let bytes = frames(&events);
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        let (lines, _) = read(&chunks);
        prop_assert_eq!(&lines, &read(&[&bytes]).0);
        let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
        prop_assert!(count("Start") <= 1 && count("Finish") <= 1 && count("End") + count("Failed") <= 1);
        if let Some(first) = lines.first() {
            prop_assert!(first.starts_with("Start") || first.starts_with("Failed"));
        }
        if let Some(end) = lines.iter().position(|line| line == "End" || line.starts_with("Failed")) {
            prop_assert_eq!(end, lines.len() - 1);
        }
        let empty = r#": "" }"#;
        prop_assert!(!lines.iter().any(|line| line.ends_with(empty)), "{:?}", lines);
    }

    #[test]
    fn arbitrary_payloads_never_panic(name in "messageStart|contentBlockStart|contentBlockDelta|contentBlockStop|messageStop|metadata", payload in prop::collection::vec(any::<u8>(), 0..60)) {
        read(&[&named_frame(&name, &payload)]);
        let _ = Bedrock.read_answer(&payload, "r");
        let _ = Bedrock.find_usage(&payload);
    }
}
