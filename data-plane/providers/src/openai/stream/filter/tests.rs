use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What the client gets of reads.
fn filtered(mut watch: SseWatch, reads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for read in reads {
        for piece in watch.filter(Bytes::copy_from_slice(read)) {
            assert!(!piece.is_empty());
            out.extend_from_slice(&piece);
        }
    }
    out.extend(watch.finish().into_iter().flatten());
    out
}

const TEXT: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\n\n";
const STOP: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n";
const USAGE: &[u8] =
    b"data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n";
const AZURE: &[u8] =
    b"data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n";
const COMMENT: &[u8] = b": keep-alive\n\n";
const STRAY: &[u8] = b"data: : waiting\n\n";
const CR: &[u8] = b"data: {\"choices\":[]}\r\r";
const DONE: &[u8] = b"data: [DONE]\n\n";

#[test]
fn the_usage_report_reaches_only_clients_that_asked_sse_05() {
    let reads = [AZURE, TEXT, STOP, USAGE, DONE];
    assert_eq!(filtered(SseWatch::new(), &reads), reads.concat());
    assert_eq!(filtered(SseWatch::hiding_usage(), &reads), [AZURE, TEXT, STOP, DONE].concat());
    let bare = b"data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n";
    assert_eq!(filtered(SseWatch::hiding_usage(), &[TEXT, bare, DONE]), [TEXT, DONE].concat());

    let mut watch = SseWatch::hiding_usage();
    for read in reads {
        watch.filter(Bytes::from_static(read));
    }
    assert_eq!(watch.usage().unwrap().input_tokens, Some(9), "it is known all the same");
}

#[test]
fn a_choice_that_also_tells_the_usage_is_passed_sse_05() {
    let last: &[u8] =
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9}}\n\n";
    assert_eq!(filtered(SseWatch::hiding_usage(), &[TEXT, last, DONE]), [TEXT, last, DONE].concat());
}

#[test]
fn a_keep_alive_as_data_is_dropped_and_counted_and_a_comment_passes_sse_03() {
    let mut watch = SseWatch::new();
    let mut out = Vec::new();
    for read in [COMMENT, STRAY, TEXT, b"data: : wai", b"ting\n\n", DONE] {
        out.extend(watch.filter(Bytes::from_static(read)).into_iter().flatten());
    }
    assert_eq!(out, [COMMENT, TEXT, DONE].concat());
    assert_eq!((watch.strays(), watch.comments()), (2, 1));
}

/// The calls that a client puts together: index, id, arguments.
fn calls(body: &[u8]) -> Vec<(u64, String, String)> {
    let mut calls: Vec<(u64, String, String)> = Vec::new();
    for event in str::from_utf8(body).unwrap().split_terminator("\n\n") {
        let Ok(chunk) = serde_json::from_str::<Value>(event.strip_prefix("data: ").unwrap()) else {
            continue;
        };
        for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap();
            let at = calls.iter().position(|known| known.0 == index).unwrap_or_else(|| {
                calls.push((index, String::new(), String::new()));
                calls.len() - 1
            });
            calls[at].1.push_str(call["id"].as_str().unwrap_or_default());
            calls[at].2.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
    calls
}

fn tool_event(call: &str) -> Vec<u8> {
    format!(
        "data: {{\"x\":1.50e+3,\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{{call}}}]}}}}]}}\n\n"
    )
    .into_bytes()
}

#[test]
fn two_calls_of_one_index_or_of_none_can_be_told_apart_sse_06() {
    for index in ["\"index\":0,", "", "\"index\":null,"] {
        let events = [
            tool_event(&format!(
                r#"{index}"id":"t1","type":"function","function":{{"name":"f","arguments":"{{\"k\":1}}"}}"#
            )),
            tool_event(&format!(
                r#"{index}"id":"t2","type":"function","function":{{"name":"f","arguments":"{{\"k\":"}}"#
            )),
            tool_event(&format!(r#"{index}"id":"","function":{{"arguments":"2}}"}}"#)),
        ];
        let body = events.concat();
        for size in [1, 7, body.len()] {
            let reads: Vec<&[u8]> = body.chunks(size).collect();
            let out = filtered(SseWatch::new(), &reads);
            let expected = [(0, "t1".into(), "{\"k\":1}".into()), (1, "t2".into(), "{\"k\":2}".into())];
            assert_eq!(calls(&out), expected, "{index} {size}");
            let unnumbered =
                |body: &[u8]| String::from_utf8_lossy(body).replace("\"index\":1,", "").replace(index, "");
            if index == "\"index\":0," {
                assert_eq!(out.len(), body.len(), "nothing but the numbers is another");
                assert!(unnumbered(&out).contains("1.50e+3"));
            }
        }
    }
}

#[test]
fn a_well_formed_stream_keeps_its_indexes_sse_06() {
    let events = [
        tool_event(r#""index":1,"id":"t1","function":{"name":"f","arguments":""}"#),
        tool_event(r#""index":1,"function":{"arguments":"{}"}"#),
        tool_event(r#""index":3,"id":"t2","function":{"name":"f","arguments":""}"#),
        tool_event(r#""index":3,"function":{"arguments":"{}"}"#),
        tool_event(r#""index":1,"function":{"arguments":" "}"#),
    ];
    let body = events.concat();
    assert_eq!(filtered(SseWatch::new(), &[&body]), body);
}

#[test]
fn a_read_of_whole_events_is_passed_as_the_read_itself() {
    let mut watch = SseWatch::hiding_usage();
    let read = Bytes::from([TEXT, STOP].concat());
    let pieces = watch.filter(read.clone());
    assert_eq!(pieces.len(), 1);
    assert_eq!((pieces[0].as_ptr(), pieces[0].len()), (read.as_ptr(), read.len()));
}

#[test]
fn a_cut_event_waits_for_its_end_but_not_without_limit_sse_11() {
    let mut watch = SseWatch::new();
    assert!(watch.filter(Bytes::from_static(&TEXT[..20])).is_empty());
    assert!(!watch.is_inside_event());
    let pieces = watch.filter(Bytes::from_static(&TEXT[20..]));
    assert_eq!(pieces.concat(), TEXT);
    let mut out = 0;
    out += watch.filter(Bytes::from_static(b"data: {\"choices\":[{\"delta\":{\"content\":\"")).concat().len();
    assert_eq!(out, 0);
    for _ in 0..256 {
        out += watch.filter(Bytes::from(vec![b'x'; 16 << 10])).concat().len();
        assert!(watch.open.held.len() <= MAX_HELD);
    }
    assert!(out >= 4 << 20 && watch.is_inside_event());
    let end = b"\"}}]}\n\n";
    assert_eq!(watch.filter(Bytes::from_static(end)).concat(), end);
    assert!(!watch.is_inside_event());
    assert!(watch.finish().is_none());
}

#[test]
fn what_comes_without_an_empty_line_behind_it_is_passed_at_the_end() {
    let body = [TEXT, b"data: [DONE]"].concat();
    assert_eq!(filtered(SseWatch::new(), &[&body]), body);
    assert_eq!(filtered(SseWatch::hiding_usage(), &[TEXT, &USAGE[..USAGE.len() - 2]]), TEXT);
}

proptest! {
    #[test]
    fn where_nothing_is_to_be_filtered_the_bytes_are_the_same_for_any_chunking(
        parts in prop::collection::vec(prop::sample::select(vec![
            AZURE, TEXT, STOP, USAGE, COMMENT, CR, DONE,
            b"id: 7\nevent: x\ndata: {\"choices\":\ndata: []}\n\n",
            b"event: error\rdata: no\r\r",
            b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[]}}]}\n\n",
            b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}}]}\n\n",
            b"\n", b"\r\n", b"retry: 1\n",
        ]), 0..12),
        tail in prop::sample::select(vec!["", "data: {\"choices\":[]}", "data: {", ": x", "\n"]),
        size in 1_usize..60,
    ) {
        let body = [parts.concat(), tail.into()].concat();
        prop_assert_eq!(filtered(SseWatch::new(), &body.chunks(size).collect::<Vec<_>>()), body);
    }

    #[test]
    fn what_is_filtered_does_not_depend_on_how_the_reads_are_cut(
        parts in prop::collection::vec(prop::sample::select(vec![
            TEXT.to_vec(), STOP.to_vec(), USAGE.to_vec(), COMMENT.to_vec(), STRAY.to_vec(), CR.to_vec(), DONE.to_vec(),
            tool_event(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#),
            tool_event(r#""index":0,"id":"b","function":{"name":"f","arguments":"{}"}"#),
            tool_event(r#""function":{"name":"f","arguments":"{}"}"#),
        ]), 0..12),
        size in 1_usize..60,
    ) {
        let body = parts.concat();
        let cut = filtered(SseWatch::hiding_usage(), &body.chunks(size).collect::<Vec<_>>());
        prop_assert_eq!(cut, filtered(SseWatch::hiding_usage(), &[&body]));
    }

    #[test]
    fn no_bytes_make_the_filter_panic_or_grow(noise in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..60) {
        let out = filtered(SseWatch::hiding_usage(), &noise.chunks(size).collect::<Vec<_>>());
        prop_assert!(out.len() <= noise.len());
    }
}

#[test]
fn numbers_are_inserted_into_a_call_as_json() {
    let event = tool_event(r#""function":{"name":"f","arguments":"{}"}"#);
    let out = filtered(SseWatch::new(), &[&event]);
    let chunk: Value = serde_json::from_slice(out.strip_prefix(b"data: ").unwrap()).unwrap();
    let expected = json!([{"index": 0, "function": {"name": "f", "arguments": "{}"}}]);
    assert_eq!(chunk["choices"][0]["delta"]["tool_calls"], expected);
}
