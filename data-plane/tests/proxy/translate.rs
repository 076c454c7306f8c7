//! Clients and services that do not speak the same: what each of them gets to see.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, post, raw, request};
use crate::support::scripted::{
    DONE, ROLE, STOP, Script, Step, chunk, delta, end, good, stream, then, whole,
};
use crate::support::{Proxy, policy, until};

/// A policy over services of these vendors, each with one model, `m`.
fn policy_of(backends: &[(&str, &str, SocketAddr)]) -> Value {
    let plain: Vec<(&str, SocketAddr)> = backends.iter().map(|(name, _, addr)| (*name, *addr)).collect();
    let mut policy = policy(&plain);
    for (name, vendor, addr) in backends {
        let backend = &mut policy["backends"][*name];
        backend["provider"] = json!(vendor);
        if *vendor != "openai" {
            backend["base_url"] = json!(format!("http://{addr}"));
        }
        if *vendor == "bedrock" {
            backend["region"] = json!("us-east-1");
        }
    }
    policy
}

/// A proxy before one service of `vendor` that answers every call with `steps`.
async fn before(vendor: &str, steps: Vec<Step>) -> (Proxy, Script) {
    let script = Script::new([steps]);
    let addr = script.listen().await;
    (Proxy::start(&policy_of(&[("a", vendor, addr)])).await, script)
}

/// What the service was sent last.
fn sent(script: &Script) -> Value {
    let requests = script.requests();
    serde_json::from_slice(&requests.last().expect("a request came").body).unwrap()
}

async fn message(proxy: &Proxy, stream: bool) -> Answer {
    let body = json!({
        "model": "auto", "max_tokens": 64, "stream": stream, "system": "Be brief.",
        "messages": [{"role": "user", "content": "hi"}],
    });
    post(proxy.addr(), "/v1/messages", &body.to_string()).await
}

async fn chat(proxy: &Proxy, more: Value) -> Answer {
    let mut body = json!({"model": "auto", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    post(proxy.addr(), "/v1/chat/completions", &body.to_string()).await
}

/// Events of Anthropic's stream that begin an answer.
const MESSAGE_START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n";
const BLOCK_START: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
const BLOCK_STOP: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
const MESSAGE_END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":3}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn text_delta(text: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

fn anthropic_stream(texts: &[&str]) -> Vec<Step> {
    let mut pieces = vec![MESSAGE_START.to_owned(), BLOCK_START.to_owned()];
    pieces.extend(texts.iter().map(|text| text_delta(text)));
    pieces.extend([BLOCK_STOP.to_owned(), MESSAGE_END.to_owned()]);
    then(stream(pieces), end())
}

/// The texts of the content deltas of a chat stream.
fn chat_text(answer: &Answer) -> String {
    chunks(answer)
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

/// The data of a stream's events that are JSON.
fn chunks(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

#[tokio::test]
async fn an_anthropic_client_gets_an_answer_of_an_openai_service() {
    let (proxy, script) = before("openai", good()).await;
    let answer = message(&proxy, false).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!((&body["type"], &body["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(body["content"], json!([{"type": "text", "text": "good"}]));
    assert_eq!((&body["stop_reason"], &body["usage"]["input_tokens"]), (&json!("end_turn"), &json!(9)));

    let seen = sent(&script);
    assert_eq!(seen["model"], "m");
    assert_eq!(seen["messages"][0], json!({"role": "system", "content": "Be brief."}));
    let head = &script.requests()[0].head;
    assert!(head.starts_with("post /v1/chat/completions ") && head.contains("authorization: bearer sk-ours"));
    assert!(!head.contains("anthropic-version"));
    let line = &proxy.log(1).await[0];
    assert_eq!((&line["protocol"], &line["input_tokens"]), (&json!("anthropic-messages"), &json!(9)));
}

#[tokio::test]
async fn an_anthropic_client_gets_its_own_events_of_an_openai_stream() {
    let steps = then(stream([ROLE, &delta("a"), &delta("b"), STOP, DONE]), end());
    let (proxy, script) = before("openai", steps).await;
    let answer = message(&proxy, true).await;
    assert!(answer.whole && answer.header("content-type").unwrap().starts_with("text/event-stream"));
    let names: Vec<Value> = chunks(&answer).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(sent(&script)["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn an_openai_client_gets_an_answer_of_an_anthropic_service() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "good"}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3},
    });
    let (proxy, script) = before("anthropic", whole(200, "", &body.to_string())).await;
    let answer = chat(&proxy, json!({"seed": 7, "enable_thinking": false, "user": "u"})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "good");
    assert_eq!(answer.json()["usage"]["prompt_tokens"], 9);
    assert_eq!(answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"], 4);

    let seen = sent(&script);
    assert_eq!((&seen["model"], &seen["max_tokens"]), (&json!("m"), &json!(4096)));
    let head = &script.requests()[0].head;
    assert!(head.starts_with("post /messages ") && head.contains("x-api-key: sk-ours"));
    assert!(head.contains("anthropic-version: 2023-06-01") && !head.contains("authorization"));
    let line = &proxy.log(1).await[0];
    assert_eq!((&line["input_tokens"], &line["output_tokens"]), (&json!(9), &json!(3)));
}

#[tokio::test]
async fn what_a_service_will_not_see_is_named_tr_09() {
    let (proxy, script) = before("anthropic", anthropic_stream(&["good"])).await;
    let more = json!({
        "stream": true, "seed": 7, "enable_thinking": false, "chat_template_kwargs": {"a": 1},
        "x_new": {"big": 12_345_678_901_234_567_890_u64},
    });
    let answer = chat(&proxy, more.clone()).await;
    assert_eq!(chat_text(&answer), "good");
    let dropped = answer.header("x-penstock-dropped").unwrap();
    for name in ["seed", "enable_thinking", "chat_template_kwargs", "x_new"] {
        assert!(dropped.contains(name), "{dropped}");
        assert!(sent(&script).get(name).is_none());
    }

    let script = Script::new([anthropic_stream(&["good"])]);
    let mut policy = policy_of(&[("a", "anthropic", script.listen().await)]);
    policy["routes"][0]["translation"] = json!({"strict": true});
    let proxy = Proxy::start(&policy).await;
    let answer = chat(&proxy, more).await;
    assert_eq!((answer.status, answer.error_code()), (400, "unsupported".to_owned()));
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn a_cut_answer_is_told_in_the_clients_own_protocol_sse_04() {
    let cut = then(stream([MESSAGE_START, BLOCK_START, &text_delta("part")]), end());
    let (proxy, _) = before("anthropic", cut).await;
    let answer = chat(&proxy, json!({"stream": true})).await;
    assert_eq!(chat_text(&answer), "part");
    assert_eq!(chunks(&answer).last().unwrap()["error"]["code"], "upstream_truncated");
    assert!(!answer.text().contains("\"stop\"") && !answer.text().contains("[DONE]"));

    for last in [end(), Step::Reset] {
        let (proxy, _) = before("openai", then(stream([ROLE, &delta("part")]), last)).await;
        let answer = message(&proxy, true).await;
        assert!(answer.text().contains("part") && !answer.text().contains("message_stop"));
        let last = chunks(&answer).pop().unwrap();
        assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("upstream_truncated")));
        assert!(answer.text().contains("event: error\n"));
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_retried_before_the_first_token_and_told_after_it_sse_08() {
    let error = "data: {\"error\":{\"message\":\"queue full\",\"type\":\"overloaded\",\"code\":503}}\n\n";
    let healthy = then(stream([&delta("good"), STOP, DONE]), end());
    let script = Script::new([then(stream([ROLE, error, DONE]), end()), healthy]);
    let backends = [("a", "openai", script.listen().await), ("b", "openai", script.listen().await)];
    let proxy = Proxy::start(&policy_of(&backends)).await;
    let answer = message(&proxy, true).await;
    assert!(answer.text().contains("good") && answer.text().contains("message_stop"));
    assert_eq!(script.requests().len(), 2);

    let (proxy, script) =
        before("openai", then(stream([&delta("a"), &delta("b"), error, DONE]), end())).await;
    let answer = message(&proxy, true).await;
    let last = chunks(&answer).pop().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["error"]["message"].as_str().unwrap().contains("queue full"));
    assert_eq!(script.requests().len(), 1);

    let (proxy, _) = before("openai", then(stream([error, DONE]), end())).await;
    let answer = message(&proxy, true).await;
    assert_eq!((answer.status, &answer.json()["type"]), (503, &json!("error")));
}

/// The two frames of the case.
const FRAMES: [&str; 2] = [
    "AAAAlwAAAFfzC+A+CzpldmVudC10eXBlBwARY29udGVudEJsb2NrRGVsdGENOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJjb250ZW50QmxvY2tJbmRleCI6MCwiZGVsdGEiOnsidGV4dCI6IkJsdWUgIn19iYQYYw==",
    "AAAAiAAAAGHeAXX0DzpleGNlcHRpb24tdHlwZQcAE3Rocm90dGxpbmdFeGNlcHRpb24NOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcACWV4Y2VwdGlvbnsibWVzc2FnZSI6InNsb3cgZG93biJ9gy7gcg==",
];

fn event_stream(bytes: &[u8]) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\ntransfer-encoding: chunked\r\n\r\n";
    let (first, second) = bytes.split_at(bytes.len() / 3);
    vec![Step::Send(head.into()), chunk(first), Step::Pause(Duration::from_millis(10)), chunk(second), end()]
}

#[tokio::test]
async fn an_exception_in_a_binary_stream_is_an_error_with_its_meaning_sse_09() {
    let frames = FRAMES.map(|frame| STANDARD.decode(frame).unwrap());
    let (proxy, script) = before("bedrock", event_stream(&frames.concat())).await;
    let answer = chat(&proxy, json!({"stream": true})).await;
    assert_eq!(chat_text(&answer), "Blue ");
    let last = chunks(&answer).pop().unwrap();
    assert_eq!(last["error"]["code"], "upstream_rate_limited");
    assert!(last["error"]["message"].as_str().unwrap().contains("slow down"));
    assert!(script.requests()[0].head.starts_with("post /model/m/converse-stream "));
    assert_eq!(proxy.log(1).await[0]["outcome"], "rate_limited");

    // The exception alone is tried elsewhere.
    let script = Script::new([event_stream(&frames[1])]);
    let other = Script::new([good()]);
    let backends = [("a", "bedrock", script.listen().await), ("b", "openai", other.listen().await)];
    let proxy = Proxy::start(&policy_of(&backends)).await;
    for _ in 0..8 {
        assert_eq!(chat(&proxy, json!({})).await.status, 200);
    }

    let mut broken = frames[0].clone();
    let at = broken.len() - 6;
    broken[at] ^= 1;
    let (proxy, _) = before("bedrock", event_stream(&[frames[0].clone(), broken].concat())).await;
    let answer = chat(&proxy, json!({"stream": true})).await;
    assert!(chunks(&answer).pop().unwrap()["error"].is_object());
}

/// The four writes of the case: a delta, the end of the answer, the end mark, the end of the compressed stream.
const ZIPPED: [&str; 4] = [
    "H4sIAAAAAAAAA0pJLEm0UqhWSs7Iz0xOLVayiq5WysxLSa1QsjLQUUpJzSlJVLICSufnlaTmlShZKTkq1dbG1nJxAQAAAP//",
    "SiFKY62OUlpmXmZxRnxRamJxfh7QgOKS/AIlsBEAAAAA//8=",
    "ghgR7eLv5xrLxQUAAAD//w==",
    "AwDNeHiYigAAAA==",
];

#[tokio::test]
async fn a_compressed_stream_is_read_as_it_comes_and_never_mislabelled_sse_12() {
    let writes = ZIPPED.map(|write| STANDARD.decode(write).unwrap());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
    for (path, accepts, enough) in [
        ("/v1/chat/completions", "", "\"A\""),
        ("/v1/chat/completions", "accept-encoding: gzip\r\n", "\"A\""),
        ("/v1/messages", "accept-encoding: gzip\r\n", "\"A\""),
    ] {
        // The service stays silent after its first write: what came of it must not wait for more.
        let held = vec![Step::Send(head.into()), chunk(&writes[0]), Step::Silence];
        let (proxy, _) = before("openai", held).await;
        let body =
            r#"{"model":"auto","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        let mut client = Client::connect(proxy.addr()).await;
        client.send(request(path, accepts, body).as_bytes()).await;
        let answer = client.until(enough).await;
        assert_eq!(answer.header("content-encoding"), None);

        let mut steps = vec![Step::Send(head.into())];
        steps.extend(writes.iter().map(|write| chunk(write)));
        let (proxy, _) = before("openai", then(steps, end())).await;
        let answer = raw(proxy.addr(), request(path, accepts, body).as_bytes()).await;
        assert!(answer.whole && answer.header("content-encoding").is_none());
        let last = if path.ends_with("messages") { "message_stop" } else { "[DONE]" };
        assert!(answer.text().contains(last), "{}", answer.text());
    }
}

#[tokio::test]
async fn an_encoding_that_nobody_knows_is_an_error_where_the_answer_is_translated_sse_12() {
    let (proxy, _) = before("anthropic", whole(200, "content-encoding: zip42\r\n", "??")).await;
    assert_eq!(chat(&proxy, json!({})).await.error_code(), "upstream_invalid");
}

#[tokio::test]
async fn a_client_that_leaves_ends_a_translated_generation_too_sse_10() {
    let silent = vec![Step::Silence];
    let mid = then(stream([MESSAGE_START, BLOCK_START, &text_delta("x")]), Step::Silence);
    for (steps, wait_for) in [(silent, ""), (mid, "x")] {
        let (proxy, script) = before("anthropic", steps).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.post("/v1/chat/completions", &crate::support::client::chat_body(true)).await;
        if wait_for.is_empty() {
            until(|| !script.requests().is_empty()).await;
        } else {
            client.until(wait_for).await;
        }
        drop(client);
        script.left(1).await;
        assert_eq!(proxy.log(1).await[0]["outcome"], "client_cancelled");
    }
}

#[tokio::test]
async fn a_very_large_event_is_translated_and_an_endless_one_stopped_sse_11() {
    let large = "x".repeat(4 << 20);
    let (proxy, _) = before("anthropic", anthropic_stream(&[&large])).await;
    let answer = chat(&proxy, json!({"stream": true})).await;
    assert!(answer.whole);
    assert_eq!(chat_text(&answer).len(), large.len());

    let mut steps = stream([MESSAGE_START, BLOCK_START, &text_delta("a"), "data: "]);
    steps.extend((0..20).map(|_| chunk(&vec![b'x'; 1 << 20])));
    let (proxy, _) = before("anthropic", then(steps, Step::Silence)).await;
    let answer = chat(&proxy, json!({"stream": true})).await;
    assert_eq!(chunks(&answer).last().unwrap()["error"]["code"], "upstream_invalid");
}

#[tokio::test]
async fn kinds_of_content_take_turns_in_blocks_of_their_own_sse_14() {
    let part = |delta: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let events = [
        part(r#"{"role":"assistant","content":"","reasoning_content":"r1"}"#),
        part(r#"{"content":"t1"}"#),
        part(
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        ),
        part(r#"{"reasoning_content":"r2"}"#),
        part(r#"{"content":"t2"}"#),
        STOP.to_owned(),
        DONE.to_owned(),
    ];
    let (proxy, _) = before("openai", then(stream(&events), end())).await;
    let answer = message(&proxy, true).await;
    let blocks: Vec<Value> = chunks(&answer)
        .into_iter()
        .filter(|event| event["type"] == "content_block_start")
        .map(|event| event["content_block"]["type"].clone())
        .collect();
    assert_eq!(blocks, ["thinking", "text", "tool_use", "thinking", "text"]);
}

#[tokio::test]
async fn what_no_service_can_take_is_refused_before_it_is_sent() {
    let (proxy, script) = before("anthropic", anthropic_stream(&["no"])).await;
    let image = |url: &str| json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]});
    let call = json!({"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let cases = [
        // TR-07
        (image("data:image/svg+xml;base64,PHN2Zy8+"), "messages[0].content[0]"),
        // TR-12
        (json!({"n": 2}), "n"),
        // TR-03
        (
            json!({"messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "t9", "content": "x"},
            ]}),
            "t9",
        ),
        // TR-14
        (
            json!({"messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "tool_calls": [
                    {"id": "t7", "type": "function", "function": {"name": "f", "arguments": "{broken"}}]},
                {"role": "tool", "tool_call_id": "t7", "content": "x"},
            ]}),
            "t7",
        ),
    ];
    for (more, names) in cases {
        let answer = chat(&proxy, more).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(names), "{}", answer.text());
    }
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn a_request_goes_to_the_service_that_can_take_it_tr_12() {
    let (one, other) = (Script::new([anthropic_stream(&["no"])]), Script::new([good()]));
    let backends = [("a", "anthropic", one.listen().await), ("b", "openai", other.listen().await)];
    let proxy = Proxy::start(&policy_of(&backends)).await;
    for _ in 0..6 {
        let answer = chat(&proxy, json!({"n": 2})).await;
        assert_eq!((answer.status, answer.header("x-penstock-backend")), (200, Some("b")));
        assert_eq!(answer.header("x-penstock-attempts"), Some("1"));
    }
    assert!(one.requests().is_empty());
}

#[tokio::test]
async fn the_services_own_words_reach_every_client_tr_16() {
    let page = format!("<html>{}</html>", "x".repeat(2 << 20));
    for (body, says) in [
        (r#"{"error":{"message":"prompt too long","code":"ctx"}}"#, true),
        (r#"{"error":"prompt too long"}"#, true),
        (r#"{"detail":"prompt too long"}"#, true),
        (r#"{"detail":[{"msg":"prompt too long"}]}"#, true),
        (r#"{"message":"prompt too long"}"#, true),
        ("prompt too long", true),
        (page.as_str(), false),
        ("", false),
    ] {
        let (proxy, _) = before("openai", whole(400, "", body)).await;
        for answer in [chat(&proxy, json!({})).await, message(&proxy, false).await] {
            assert_eq!(answer.status, 400);
            let error = answer.json()["error"].clone();
            assert_eq!(error["code"], "upstream_rejected");
            assert_eq!(error["message"].as_str().unwrap().contains("prompt too long"), says, "{body:.80}");
            assert!(answer.body.len() < 4 << 10);
        }
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_goes_to_a_larger_window_alone() {
    let refusal =
        r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    let (small, large) = (Script::new([whole(400, "", refusal)]), Script::new([good()]));
    let backends = [("a", "openai", small.listen().await), ("b", "openai", large.listen().await)];
    let mut policy = policy_of(&backends);
    policy["backends"]["a"]["models"][0]["context_window"] = json!(1000);
    policy["backends"]["b"]["models"][0]["context_window"] = json!(2000);
    let proxy = Proxy::start(&policy).await;
    for _ in 0..24 {
        assert_eq!(chat(&proxy, json!({})).await.status, 200);
    }
    assert!(!small.requests().is_empty());

    policy["backends"]["b"]["models"][0]["context_window"] = json!(500);
    let proxy = Proxy::start(&policy).await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(chat(&proxy, json!({})).await.status);
    }
    assert!(statuses.contains(&400), "a smaller window is no help: {statuses:?}");
}

#[tokio::test]
async fn tokens_are_counted_by_the_service_or_else_estimated() {
    let body = r#"{"model":"auto","messages":[{"role":"user","content":"four letters"}]}"#;
    let (proxy, script) = before("openai", good()).await;
    let answer = post(proxy.addr(), "/v1/messages/count_tokens", body).await;
    assert_eq!((answer.status, answer.header("x-penstock-estimated")), (200, Some("true")));
    assert!(answer.json()["input_tokens"].as_u64().unwrap() >= 3);
    assert!(script.requests().is_empty());
    let gemini = r#"{"contents":[{"parts":[{"text":"four letters"}]}]}"#;
    let answer = post(proxy.addr(), "/v1beta/models/auto:countTokens", gemini).await;
    assert!(answer.json()["totalTokens"].as_u64().unwrap() >= 3);

    let (proxy, script) = before("anthropic", whole(200, "", r#"{"input_tokens":42}"#)).await;
    let answer = post(proxy.addr(), "/v1/messages/count_tokens", body).await;
    assert_eq!((answer.json(), answer.header("x-penstock-estimated")), (json!({"input_tokens": 42}), None));
    assert!(script.requests()[0].head.starts_with("post /messages/count_tokens "));
}

#[tokio::test]
async fn an_anthropic_stream_passes_byte_for_byte_and_its_usage_counts() {
    let odd = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"new\":1e400,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n";
    let pieces = [
        MESSAGE_START,
        BLOCK_START,
        odd,
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        BLOCK_STOP,
        MESSAGE_END,
    ];
    let (proxy, script) = before("anthropic", then(stream(pieces), end())).await;
    let body = r#"{"messages" : [{"role":"user","content":"hi"}],"x":1e400,"max_tokens":9,"model":"auto","stream":true}"#;
    let answer = post(proxy.addr(), "/v1/messages", body).await;
    assert!(answer.whole);
    assert_eq!(answer.text(), pieces.concat());
    assert_eq!(script.requests()[0].body, body.replace("\"auto\"", "\"m\"").into_bytes());
    let line = &proxy.log(1).await[0];
    assert_eq!((&line["input_tokens"], &line["output_tokens"]), (&json!(13), &json!(3)));
}

#[tokio::test]
async fn a_gemini_client_gets_its_own_shape_whoever_answers() {
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    for prefix in ["/v1beta", "/v1"] {
        let (proxy, script) = before("openai", good()).await;
        let answer = post(proxy.addr(), &format!("{prefix}/models/auto:generateContent"), body).await;
        assert_eq!(answer.json()["candidates"][0]["content"]["parts"][0]["text"], "good");
        assert_eq!(answer.json()["usageMetadata"]["promptTokenCount"], 9);
        assert_eq!(sent(&script)["model"], "m");
    }
    let (proxy, _) = before("openai", then(stream([&delta("a"), STOP, DONE]), end())).await;
    let answer = post(proxy.addr(), "/v1beta/models/auto:streamGenerateContent?alt=sse", body).await;
    assert_eq!(chunks(&answer)[0]["candidates"][0]["content"]["parts"][0]["text"], "a");

    let (proxy, script) = before("gemini", whole(200, "", r#"{"candidates":[],"x":1.0}"#)).await;
    let answer = post(proxy.addr(), "/v1beta/models/auto:generateContent", body).await;
    assert_eq!(answer.text(), r#"{"candidates":[],"x":1.0}"#);
    let request = &script.requests()[0];
    assert!(request.head.starts_with("post /models/m:generatecontent "), "{}", request.head);
    assert!(request.head.contains("x-goog-api-key: sk-ours"));
    assert_eq!(request.body, body.as_bytes());

    let answer = post(proxy.addr(), "/v1beta/models/auto:generateContent", "{").await;
    assert_eq!((answer.status, &answer.json()["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
}

#[tokio::test]
async fn a_responses_call_is_answered_by_a_service_that_has_only_chat() {
    let body = r#"{"model":"auto","instructions":"Be brief.","input":"hi","stream":false}"#;
    let (proxy, script) = before("zhipu", good()).await;
    let answer = post(proxy.addr(), "/v1/responses", body).await;
    assert_eq!((answer.status, &answer.json()["object"]), (200, &json!("response")));
    assert_eq!(answer.json()["output"][0]["content"][0]["text"], "good");
    assert_eq!(sent(&script)["messages"][1], json!({"role": "user", "content": "hi"}));

    let (proxy, _) = before("zhipu", then(stream([&delta("a"), STOP, DONE]), end())).await;
    let answer = post(proxy.addr(), "/v1/responses", &body.replace("false", "true")).await;
    let names: Vec<Value> = chunks(&answer).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(names.first().unwrap(), "response.created");
    assert_eq!(names.last().unwrap(), "response.completed");
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_each_client() {
    let (proxy, _) = before("openai", good()).await;
    let get = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n{headers}\r\n");
    let anthropic =
        raw(proxy.addr(), get("/v1/models", "anthropic-version: 2023-06-01\r\n").as_bytes()).await;
    assert_eq!(anthropic.json()["data"][1]["display_name"], "m");
    let gemini = raw(proxy.addr(), get("/v1beta/models", "").as_bytes()).await;
    assert_eq!(gemini.json()["models"][1]["name"], "models/m");
    let one = raw(proxy.addr(), get("/v1/models/m", "").as_bytes()).await;
    assert_eq!(one.json()["id"], "m");
    let none = raw(proxy.addr(), get("/v1/models/nobody", "").as_bytes()).await;
    assert_eq!((none.status, none.error_code()), (404, "unknown_model".to_owned()));
}

#[tokio::test]
async fn a_google_service_account_is_shown_as_a_token_that_is_got_for_it() {
    let token =
        Script::new([whole(200, "", r#"{"access_token":"ya29.T","expires_in":3600,"token_type":"Bearer"}"#)]);
    let account = json!({
        "type": "service_account",
        "client_email": "penstock@example.iam.gserviceaccount.com",
        "private_key": include_str!("../../providers/fixtures/gemini/test_key.pem"),
        "token_uri": format!("http://{}/token", token.listen().await),
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), account.to_string()).unwrap();
    let answer =
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"good"}]},"finishReason":"STOP"}]}"#;
    let script = Script::new([whole(200, "", answer)]);
    let mut policy = policy_of(&[("a", "vertex", script.listen().await)]);
    let backend = &mut policy["backends"]["a"];
    backend["region"] = json!("us-central1");
    backend["project"] = json!("p");
    backend["credential"] = json!(format!("file:{}", file.path().display()));
    let proxy = Proxy::start(&policy).await;

    let early = chat(&proxy, json!({})).await;
    assert_eq!((early.status, early.error_code()), (503, "no_target".to_owned()));
    let answer = loop {
        let answer = chat(&proxy, json!({})).await;
        if answer.status == 200 {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "good");
    let asked = String::from_utf8(token.requests()[0].body.clone()).unwrap();
    assert!(asked.starts_with("grant_type=") && token.requests().len() == 1);
    let head = &script.requests()[0].head;
    assert!(head.contains("authorization: bearer ya29.t"), "{head}");
    assert!(
        head.starts_with(
            "post /v1/projects/p/locations/us-central1/publishers/google/models/m:generatecontent"
        )
    );
}
