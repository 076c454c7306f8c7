//! Fidelity of streams: what a service sends is what a client gets, and a cut answer never looks whole.

use std::time::{Duration, Instant};

use crate::support::client::{Client, chat, chat_body, post};
use crate::support::scripted::{DONE, ROLE, STOP, Script, Step, chunk, delta, end, good, stream, then};
use crate::support::{Proxy, policy, with_timeouts};

/// A proxy before one service that answers every call with `steps`.
async fn before(steps: Vec<Step>) -> (Proxy, Script) {
    let script = Script::new([steps]);
    let proxy = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    (proxy, script)
}

/// A proxy before two services; the first attempt gets `first`, every other `second`.
async fn before_two(first: Vec<Step>, second: Vec<Step>) -> (Proxy, Script) {
    let script = Script::new([first, second]);
    let backends = [("a", script.listen().await), ("b", script.listen().await)];
    (Proxy::start(&policy(&backends)).await, script)
}

/// The answer of a healthy service.
fn healthy() -> Vec<Step> {
    then(stream([delta("good"), STOP.to_owned(), DONE.to_owned()]), end())
}

#[tokio::test]
async fn a_character_cut_between_reads_arrives_whole_sse_01() {
    let head = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"".to_vec();
    let pieces = [
        [&head[..], &[0xe6, 0xbd]].concat(),
        vec![0xae, 0xf0, 0x9f],
        vec![0x9a],
        vec![0xb2],
        b"\"}}]}\n\n".to_vec(),
        DONE.as_bytes().to_vec(),
    ];
    let sent = pieces.concat();
    let (proxy, _) = before(then(stream(pieces), end())).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole);
    assert_eq!(answer.body, sent);
    assert!(answer.text().contains("潮🚲"));
}

#[tokio::test]
async fn events_end_at_crlf_cr_and_lf_and_arrive_while_the_stream_is_open_sse_02() {
    let a = r#"data:{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let b = r#"data: {"choices":[{"index":0,"delta":{"content":"b"}}]}"#;
    for pieces in [
        [format!("{a}\r\n\r"), format!("\n{b}\r\n\r\n")],
        [format!("{a}\r\r"), format!("{b}\r\r")],
        [format!("{a}\r\n\n"), format!("{b}\n\r\n")],
    ] {
        let (proxy, _) = before(then(stream(&pieces), Step::Silence)).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.post("/v1/chat/completions", &chat_body(true)).await;
        let sent = pieces.concat();
        let answer = client.until(&sent).await;
        assert!(!answer.whole);
        assert_eq!(answer.text(), sent);
    }
}

#[tokio::test]
async fn a_comment_stays_a_comment_and_is_no_token_sse_03() {
    for alive in [": waiting in queue\n\n", "data: : waiting\n\n"] {
        // The comments alone must not commit the stream: the first attempt is tried again elsewhere.
        let waiting = then(stream([alive, alive, alive]), Step::Reset);
        let (proxy, script) = before_two(waiting, healthy()).await;
        let answer = chat(proxy.addr(), true).await;
        assert_eq!(answer.text(), [&delta("good"), STOP, DONE].concat());
        assert_eq!(script.requests().len(), 2);

        let steps = stream([alive, alive, alive, &delta("good"), STOP, DONE]);
        let (proxy, _) = before(then(steps, end())).await;
        let answer = chat(proxy.addr(), true).await;
        assert!(answer.whole && answer.text().ends_with(&[&delta("good"), STOP, DONE].concat()));
        assert!(!answer.text().contains("data: : waiting in queue"));
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_ends_with_an_error_event_sse_04() {
    for ending in [end(), Step::Reset, Step::Close] {
        let (proxy, _) = before(then(stream([ROLE, &delta("half")]), ending)).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.post("/v1/chat/completions", &chat_body(true)).await;
        let answer = client.answer().await;
        assert!(answer.whole, "the client's stream itself ends well");
        let text = answer.text();
        let rest = text.strip_prefix(&[ROLE, &delta("half")].concat()).unwrap();
        let error: serde_json::Value = serde_json::from_str(rest.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(error["error"]["code"], "upstream_truncated");
        assert!(!text.contains("\"stop\"") && !text.contains("[DONE]"));
        let line = &proxy.log(1).await[0];
        assert_eq!(
            (&line["outcome"], &line["error_code"]),
            (&"truncated".into(), &"upstream_truncated".into())
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_within_an_event_ends_with_an_event_of_its_own_sse_04() {
    // What came of an event that was cut is of no use to anyone: the client is not given it.
    for (cut, passed) in
        [("data: {\"choi", false), ("data: {}\n", false), ("data: {}\r\n", false), ("data: {}\n\n", true)]
    {
        let (proxy, _) = before(then(stream([delta("half") + cut]), Step::Close)).await;
        let text = chat(proxy.addr(), true).await.text();
        let rest = text.strip_prefix(&(delta("half") + if passed { cut } else { "" })).unwrap();
        assert!(rest.starts_with("data: {\"error\":") && rest.ends_with("}\n\n"), "{text}");
    }
}

#[tokio::test]
async fn a_stream_with_its_finish_reason_is_whole_without_the_end_mark_sse_04() {
    let (proxy, _) = before(then(stream([&delta("all"), STOP]), end())).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole);
    assert_eq!(answer.text(), [&delta("all"), STOP].concat());
    assert_eq!(proxy.log(1).await[0]["outcome"], "ok");
}

#[tokio::test]
async fn chunks_without_choices_pass_and_their_usage_counts_sse_05() {
    let filter = "data: {\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}\n\n";
    for key in ["\"choices\":[],", ""] {
        let usage = format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",{key}\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}}}}\n\n"
        );
        let pieces = [filter, &delta("a"), STOP, &usage, DONE];
        for asks in [false, true] {
            let (proxy, script) = before(then(stream(pieces), end())).await;
            let options = if asks { r#","stream_options":{"include_usage":true}"# } else { "" };
            let body = chat_body(true);
            let body = format!("{}{options}}}", body.strip_suffix('}').unwrap());
            let answer = post(proxy.addr(), "/v1/chat/completions", &body).await;
            assert!(answer.whole);
            let shown: Vec<&str> = pieces.into_iter().filter(|piece| asks || *piece != usage).collect();
            assert_eq!(answer.text(), shown.concat());
            let sent = String::from_utf8(script.requests()[0].body.clone()).unwrap();
            assert_eq!(sent.matches("\"include_usage\":true").count(), 1, "{sent}");
            let line = &proxy.log(1).await[0];
            assert_eq!((&line["input_tokens"], &line["output_tokens"]), (&9.into(), &1.into()));
            assert_eq!(line["cost_nanos"], 9 * 1_000 + 2_000, "a dollar and two dollars per million tokens");
        }
    }
}

const IN_BAND: &str =
    "data: {\"error\":{\"message\":\"queue full\",\"type\":\"overloaded\",\"code\":503}}\n\n";

#[tokio::test]
async fn an_error_that_opens_a_stream_is_tried_elsewhere_sse_08() {
    let failing = then(stream([IN_BAND, DONE]), end());
    let (proxy, _) = before_two(failing.clone(), healthy()).await;
    let answer = chat(proxy.addr(), true).await;
    assert_eq!(answer.text(), [&delta("good"), STOP, DONE].concat());
    assert_eq!(answer.header("x-penstock-attempts"), Some("2"));

    let (proxy, _) = before(failing).await;
    let answer = chat(proxy.addr(), true).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (503, "upstream_overloaded"));
}

#[tokio::test]
async fn an_error_after_text_ends_the_stream_and_is_not_tried_again_sse_08() {
    let (proxy, script) =
        before_two(then(stream([&delta("a"), &delta("b"), IN_BAND]), end()), healthy()).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole);
    assert_eq!(answer.text(), [&delta("a"), &delta("b"), IN_BAND].concat());
    assert_eq!(script.requests().len(), 1);
    assert_eq!(proxy.log(1).await[0]["outcome"], "overloaded");
}

#[tokio::test]
async fn an_error_that_is_null_is_none_sse_08() {
    let fine = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"error\":null}\n\n";
    let (proxy, _) = before(then(stream([fine, STOP, DONE]), end())).await;
    let answer = chat(proxy.addr(), true).await;
    assert_eq!(answer.text(), [fine, STOP, DONE].concat());
    assert_eq!(proxy.log(1).await[0]["outcome"], "ok");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_token_ends_the_generation_sse_10() {
    for steps in [vec![Step::Silence], then(stream([ROLE]), Step::Silence)] {
        let (proxy, script) = before(steps).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.post("/v1/chat/completions", &chat_body(true)).await;
        crate::support::until(|| script.requests().len() == 1).await;
        let gone = Instant::now();
        drop(client);
        script.left(1).await;
        assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
        let line = &proxy.log(1).await[0];
        assert_eq!(line["outcome"], "client_cancelled");
        assert_eq!(script.requests().len(), 1, "nobody is left to try again for");
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_stream_ends_the_generation_sse_10() {
    let (proxy, script) = before(then(stream([delta("a")]), Step::Silence)).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.post("/v1/chat/completions", &chat_body(true)).await;
    client.until("\"a\"").await;
    drop(client);
    script.left(1).await;
    assert_eq!(proxy.log(1).await[0]["outcome"], "client_cancelled");
}

#[tokio::test]
async fn an_event_of_four_mebibytes_passes_sse_11() {
    let event = delta(&"x".repeat(4 << 20));
    let mut steps = stream::<&[u8]>([]);
    steps.extend(event.as_bytes().chunks(16 << 10).map(chunk));
    steps.extend([chunk(DONE.as_bytes()), end()]);
    let (proxy, _) = before(steps).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole);
    assert!(answer.body == [event.as_bytes(), DONE.as_bytes()].concat(), "{} bytes", answer.body.len());
    assert_eq!(proxy.log(1).await[0]["outcome"], "ok");
}

#[tokio::test]
async fn what_has_reached_the_client_is_never_sent_again_res_03() {
    let tool = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"k\"}}]}}]}\n\n";
    for pieces in [vec![delta("a"), delta("b")], vec![ROLE.to_owned(), tool.to_owned()]] {
        let (proxy, script) = before_two(then(stream(&pieces), Step::Reset), healthy()).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.post("/v1/chat/completions", &chat_body(true)).await;
        let text = client.answer().await.text();
        let rest = text.strip_prefix(&pieces.concat()).unwrap();
        assert!(rest.starts_with("data: {\"error\":"), "{rest}");
        assert_eq!(script.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_role_alone_may_be_tried_again_and_is_seen_once_res_03() {
    let whole = [ROLE, &delta("good"), STOP, DONE].concat();
    let (proxy, script) = before_two(then(stream([ROLE]), Step::Reset), then(stream([&whole]), end())).await;
    let answer = chat(proxy.addr(), true).await;
    assert_eq!(answer.text(), whole);
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn a_stream_may_last_longer_than_each_of_its_limits_res_07() {
    let pieces: Vec<String> = (0..8).map(|_| delta("x")).collect();
    let mut steps = stream::<&str>([]);
    for piece in &pieces {
        steps.extend([Step::Pause(Duration::from_millis(150)), chunk(piece.as_bytes())]);
    }
    steps.extend([chunk(DONE.as_bytes()), end()]);
    let script = Script::new([steps]);
    let limits = serde_json::json!({"first_token": "600ms", "idle": "600ms", "total": "700ms"});
    let proxy = Proxy::start(&with_timeouts(policy(&[("a", script.listen().await)]), limits)).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole);
    assert_eq!(answer.text(), pieces.concat() + DONE);
}

#[tokio::test]
async fn a_stream_that_falls_silent_ends_with_an_error_event_res_07() {
    let script = Script::new([then(stream([delta("a")]), Step::Silence)]);
    let limits = serde_json::json!({"idle": "100ms"});
    let proxy = Proxy::start(&with_timeouts(policy(&[("a", script.listen().await)]), limits)).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole && answer.text().contains("\"code\":\"upstream_timeout\""));
    script.left(1).await;
    assert_eq!(proxy.log(1).await[0]["outcome"], "idle_timeout");
}

#[tokio::test]
async fn a_proxy_that_ends_finishes_the_stream_under_way() {
    let mut steps = stream([delta("a")]);
    steps.extend([
        Step::Pause(Duration::from_millis(300)),
        chunk(STOP.as_bytes()),
        chunk(DONE.as_bytes()),
        end(),
    ]);
    let (proxy, _) = before(steps).await;
    let addr = proxy.addr();
    let mut client = Client::connect(addr).await;
    client.post("/v1/chat/completions", &chat_body(true)).await;
    client.until("\"a\"").await;
    let (answer, ()) = tokio::join!(client.answer(), proxy.shutdown());
    assert!(answer.whole);
    assert_eq!(answer.text(), [&delta("a"), STOP, DONE].concat());
    assert!(tokio::net::TcpStream::connect(addr).await.is_err(), "it takes no new connections");
}

#[tokio::test]
async fn a_stream_answered_as_a_whole_is_passed_on_as_that() {
    let (proxy, _) = before(good()).await;
    let answer = post(proxy.addr(), "/v1/chat/completions", &chat_body(true)).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "good");
}

#[tokio::test]
async fn an_event_without_end_is_stopped_at_the_limit_sse_11() {
    let mut steps = stream([delta("a")]);
    steps.push(chunk(b"data: "));
    steps.extend((0..40).map(|_| chunk(&[b'x'; 1 << 20])));
    steps.push(Step::Silence);
    let (proxy, script) = before(steps).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole && answer.body.len() < 18 << 20, "{}", answer.body.len());
    let end = String::from_utf8(answer.body[answer.body.len() - 200..].to_vec()).unwrap();
    assert!(end.contains("x\n\ndata: {\"error\":") && end.contains("\"code\":\"upstream_invalid\""), "{end}");
    script.ended(1).await;
}

#[tokio::test]
async fn a_stream_is_one_however_its_type_is_written() {
    for kind in ["Text/Event-Stream", "text/event-stream; charset=utf-8"] {
        let mut steps = then(stream([delta("a"), DONE.to_owned()]), end());
        let Step::Send(head) = &mut steps[0] else { unreachable!() };
        *head = String::from_utf8(head.clone()).unwrap().replace("text/event-stream", kind).into_bytes();
        let (proxy, _) = before(steps).await;
        let answer = chat(proxy.addr(), true).await;
        assert_eq!((answer.status, answer.text()), (200, delta("a") + DONE), "{kind}");
        assert_eq!(answer.header("content-type"), Some(kind));
    }
}
