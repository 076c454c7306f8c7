use proptest::prelude::*;

use super::*;

fn watch(reads: &[&[u8]]) -> SseWatch {
    let mut watch = SseWatch::new();
    for read in reads {
        watch.feed(read);
    }
    watch
}

fn ended(reads: &[&[u8]]) -> SseWatch {
    let mut watch = watch(reads);
    watch.end();
    watch
}

const ROLE: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
const TEXT: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
const STOP: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &[u8] = b"data: [DONE]\n\n";

#[test]
fn a_character_cut_between_reads_is_no_obstacle_sse_01() {
    let watch = watch(&[
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe6\xbd",
        b"\xae\xf0\x9f",
        b"\x9a",
        b"\xb2\"}}]}\n\n",
    ]);
    assert!(watch.first_token());
    assert_eq!((watch.events(), watch.strays()), (1, 0));
}

#[test]
fn bytes_that_are_not_utf8_neither_stall_nor_stop_the_watch_sse_01() {
    let watch = ended(&[b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n", TEXT, DONE]);
    assert_eq!((watch.outcome(), watch.events()), (Outcome::Ok, 3));
}

#[test]
fn tokens_and_usage_are_seen_with_every_line_ending_sse_02() {
    for ending in ["\n", "\r\n", "\r"] {
        let stream = "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n";
        let watch = watch(&[stream.replace('\n', ending).as_bytes()]);
        assert!(watch.first_token());
        assert_eq!(watch.usage().unwrap().input_tokens, Some(9));
        assert_eq!(watch.events(), 2);
    }
}

#[test]
fn keep_alives_are_signs_of_life_but_not_tokens_sse_03() {
    let mut watch = watch(&[b": waiting in queue\n\n: waiting\n\n", b"data: : waiting\n\n"]);
    assert!(!watch.first_token());
    assert_eq!((watch.comments(), watch.events(), watch.strays()), (2, 1, 1));
    watch.feed(TEXT);
    watch.feed(DONE);
    watch.end();
    assert!(watch.first_token());
    assert_eq!(watch.outcome(), Outcome::Ok);
}

#[test]
fn a_clean_end_without_an_end_mark_is_truncation_sse_04() {
    assert_eq!(ended(&[ROLE, TEXT]).outcome(), Outcome::Truncated);
    assert_eq!(ended(&[ROLE, TEXT, STOP]).outcome(), Outcome::Ok, "a finish reason will do");
    assert_eq!(ended(&[ROLE, TEXT, DONE]).outcome(), Outcome::Ok);
    assert_eq!(ended(&[ROLE, TEXT, b"data: [DONE]"]).outcome(), Outcome::Ok, "even without its empty line");
    assert_eq!(ended(&[]).outcome(), Outcome::InvalidResponse);
    assert_eq!(ended(&[b"<html>garbage</html>\n\n"]).outcome(), Outcome::InvalidResponse);
}

#[test]
fn chunks_without_choices_do_no_harm_and_their_usage_counts_sse_05() {
    let watch = ended(&[
        b"data: {\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"error\":{\"code\":\"x\"}}}]}\n\n",
        b"data: {\"id\":\"x\"}\n\n",
        TEXT,
        STOP,
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}\n\n",
        DONE,
    ]);
    assert_eq!((watch.outcome(), watch.events(), watch.strays()), (Outcome::Ok, 6, 0));
    assert_eq!(watch.usage().unwrap().output_tokens, Some(1));
}

#[test]
fn an_error_inside_the_stream_is_a_failure_with_its_class_and_words_sse_08() {
    let first = ended(&[
        b"data: {\"error\":{\"message\":\"queue full\",\"type\":\"overloaded\",\"code\":503}}\n\n",
        DONE,
    ]);
    assert!(!first.first_token(), "nothing was shown: it may be retried");
    assert_eq!(first.outcome(), Outcome::Overloaded);
    assert_eq!(first.error().unwrap().message.as_deref(), Some("queue full"));

    let later =
        ended(&[TEXT, TEXT, b"data: {\"error\":{\"message\":\"queue full\",\"code\":503}}\n\n", DONE]);
    assert!(later.first_token());
    assert_eq!(later.outcome(), Outcome::Overloaded);

    let null = ended(&[b"data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", STOP]);
    assert!(null.first_token() && null.error().is_none());
}

#[test]
fn an_error_by_event_name_and_its_overload_twin_are_seen_res_09() {
    let named = ended(&[b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"]);
    assert_eq!(named.outcome(), Outcome::Overloaded);
    let bare = ended(&[b"event: error\ndata: broke down\n\n"]);
    assert_eq!(bare.outcome(), Outcome::ServerError);
    assert_eq!(bare.error().unwrap().message.as_deref(), Some("broke down"));
}

#[test]
fn a_finish_reason_that_means_failure_is_one() {
    let watch = ended(&[
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"insufficient_system_resource\"}]}\n\n",
    ]);
    assert_eq!(watch.outcome(), Outcome::Overloaded);
    assert!(!watch.is_complete());
}

#[test]
fn one_very_large_event_counts_as_content_as_soon_as_it_is_too_long_sse_11() {
    let mut watch = watch(&[b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""]);
    let piece = [b'x'; 16 << 10];
    for _ in 0..256 {
        watch.feed(&piece);
    }
    assert!(watch.first_token());
    assert!(watch.open_event_bytes() > 4 << 20);
    watch.feed(b"\"}}]}\n\n");
    watch.feed(DONE);
    watch.end();
    assert_eq!((watch.outcome(), watch.events()), (Outcome::Ok, 2));
}

#[test]
fn only_what_a_client_would_see_is_the_commit_point_res_03() {
    let commits = |delta: &str| {
        watch(&[format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n").as_bytes()]).first_token()
    };
    for delta in [
        r#"{"role":"assistant"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[]}"#,
        r#"{"content":"","reasoning_content":""}"#,
        "{}",
        "null",
    ] {
        assert!(!commits(delta), "{delta}");
    }
    for delta in [
        r#"{"content":" "}"#,
        r#"{"content":"","reasoning_content":"hm"}"#,
        r#"{"reasoning":"hm"}"#,
        r#"{"refusal":"no"}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#,
        r#"{"function_call":{"name":"f"}}"#,
        r#"{"new_field":1,"content":[{"type":"text","text":"x"}]}"#,
    ] {
        assert!(commits(delta), "{delta}");
    }
    assert!(!watch(&[ROLE, b"data: {\"choices\":[]}\n\n", STOP]).first_token());
}

#[test]
fn text_that_looks_like_marks_is_only_text() {
    let sly = r#"data: {"choices":[{"delta":{"content":"\"finish_reason\":\"stop\" \"error\":{} [DONE] \"usage\":{\"prompt_tokens\":1}"},"finish_reason":null}],"usage":null}"#;
    let watch = ended(&[sly.as_bytes(), b"\n\n"]);
    assert!(!watch.is_complete());
    assert!(watch.error().is_none() && watch.usage().is_none());
}

#[test]
fn cost_stays_linear_when_every_byte_is_a_read_of_its_own() {
    let mut body = Vec::new();
    for _ in 0..2000 {
        body.extend_from_slice(TEXT);
    }
    let mut watch = SseWatch::new();
    for byte in &body {
        watch.feed(std::slice::from_ref(byte));
    }
    assert_eq!(watch.events(), 2000);
}

proptest! {
    #[test]
    fn what_is_seen_does_not_depend_on_how_the_reads_are_cut(
        parts in prop::collection::vec(prop::sample::select(vec![
            ROLE, TEXT, STOP, DONE,
            b": keep-alive\n\n",
            b"data: {\"error\":{\"code\":429}}\r\n\r\n",
            b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n",
            b"data: {\"choices\":\ndata: []}\n\n",
            b"event: error\rdata: no\r\r",
            b"\xff\x00data: {\"error\":",
        ]), 0..12),
        size in 1_usize..40,
    ) {
        let body = parts.concat();
        let (whole, cut) = (ended(&[&body]), ended(&body.chunks(size).collect::<Vec<_>>()));
        prop_assert_eq!(whole.outcome(), cut.outcome());
        prop_assert_eq!(whole.error(), cut.error());
        prop_assert_eq!(whole.usage(), cut.usage());
        prop_assert_eq!((whole.first_token(), whole.is_complete()), (cut.first_token(), cut.is_complete()));
        prop_assert_eq!((whole.events(), whole.strays(), whole.comments()), (cut.events(), cut.strays(), cut.comments()));
    }
}
