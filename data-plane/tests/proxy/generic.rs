//! Generic HTTP services: any path, any bytes, and the adapters that make several formats one.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::{Client, chat, get, post, raw, request};
use crate::support::scripted::{Script, Step, chunk, end, then, whole};
use crate::support::{Proxy, policy, until, with_timeouts};

/// A policy that sends `/risk/*` to these services, in this order of preference.
fn risk(services: &[(&str, SocketAddr)]) -> Value {
    let backend = |(name, addr): &(&str, SocketAddr)| {
        (
            (*name).to_owned(),
            json!({"provider": "http", "base_url": format!("http://{addr}"), "capabilities": ["risk"]}),
        )
    };
    let backends: serde_json::Map<_, _> = services.iter().map(backend).collect();
    json!({
        "version": 1,
        "capabilities": {"chat": {"default": true}, "risk": {}},
        "backends": backends,
        "routes": [{"name": "risk", "match": {"paths": ["/risk/*"]}, "capability": "risk", "retry": {"attempts": 2}}],
    })
}

/// A proxy before one service that answers every call with `steps`.
async fn before(steps: Vec<Step>) -> (Proxy, Script) {
    let script = Script::new([steps]);
    let proxy = Proxy::start(&risk(&[("a", script.listen().await)])).await;
    (proxy, script)
}

/// A proxy before two services with one script.
async fn before_two(answers: [Vec<Step>; 2]) -> (Proxy, Script) {
    let script = Script::new(answers);
    let services = [("a", script.listen().await), ("b", script.listen().await)];
    (Proxy::start(&risk(&services)).await, script)
}

fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

#[tokio::test]
async fn method_path_query_body_and_answer_pass_as_they_are() {
    let answer = "HTTP/1.1 201 x\r\ncontent-type: text/csv\r\netag: \"7\"\r\nset-cookie: a=b\r\ncontent-length: 6\r\n\r\na;b\r\n\0";
    let script = Script::new([vec![send(answer)]]);
    let mut policy = risk(&[("a", script.listen().await)]);
    let base = policy["backends"]["a"]["base_url"].as_str().unwrap().to_owned() + "/base/v1";
    policy["backends"]["a"]["base_url"] = base.into();
    policy["backends"]["a"]["credential"] = "env:KEY".into();
    let proxy = Proxy::start(&policy).await;
    let text = "PUT /risk/score%20it?a=1&b=%2F HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/x-own\r\n\
                authorization: Bearer gw-SENTINEL\r\nx-biz-type: risk_control\r\naccept-encoding: gzip\r\ncontent-length: 4\r\n\r\n";
    let answer = raw(proxy.addr(), &[text.as_bytes(), b"\0\xff\r\n"].concat()).await;
    assert_eq!((answer.status, answer.text().as_str()), (201, "a;b\r\n\0"));
    assert_eq!((answer.header("content-type"), answer.header("etag")), (Some("text/csv"), Some("\"7\"")));
    assert_eq!((answer.header("set-cookie"), answer.header("x-penstock-backend")), (None, Some("a")));
    let sent = &script.requests()[0];
    assert!(sent.head.starts_with("put /base/v1/risk/score%20it?a=1&b=%2f http/1.1\r\n"), "{}", sent.head);
    assert_eq!(sent.body, b"\0\xff\r\n");
    for line in ["content-type: application/x-own", "x-biz-type: risk_control", "accept-encoding: gzip"] {
        assert!(sent.head.contains(&format!("\r\n{line}\r\n")), "{line}: {}", sent.head);
    }
    assert!(sent.head.contains("authorization: bearer sk-ours") && !sent.head.contains("sentinel"));
}

#[tokio::test]
async fn requests_with_the_biz_type_risk_control_go_to_the_risk_model() {
    let script = Script::new([whole(200, "", r#"{"score":0.87}"#)]);
    let other = Script::new([whole(200, "", r#"{"other":true}"#)]);
    let mut policy = risk(&[("model", script.listen().await), ("other", other.listen().await)]);
    policy["routes"] = json!([
        {"name": "risk", "condition": "biz_type == \"risk_control\" && method == \"POST\" && path.startsWith(\"/decide\")",
            "targets": [{"backend": "model"}]},
        {"name": "rest", "targets": [{"backend": "other"}]},
    ]);
    let proxy = Proxy::start(&policy).await;
    let with_header = request("/decide/42", "x-biz-type: risk_control\r\n", r#"{"amount":9}"#);
    let answer = raw(proxy.addr(), with_header.as_bytes()).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"score":0.87}"#));
    assert_eq!(post(proxy.addr(), "/decide/42", "{}").await.text(), r#"{"other":true}"#);
    let log = proxy.log(2).await;
    let line = &log[0];
    assert_eq!(
        (&line["route"], &line["backend"], &line["target_model"]),
        (&json!("risk"), &json!("model"), &json!("default"))
    );
    assert_eq!(
        (&line["protocol"], &line["method"], &line["outcome"]),
        (&json!("http"), &json!("POST"), &json!("ok"))
    );
}

#[tokio::test]
async fn a_path_that_leads_to_no_generic_service_is_unknown() {
    let (proxy, script) = before(whole(200, "", "{}")).await;
    for path in ["/other", "/risk", "/risk/../admin", "/risk/%2e%2e/admin", "/v1/chat"] {
        let answer = get(proxy.addr(), path).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (404, "unknown_path"), "{path}");
    }
    let talks = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    assert_eq!(get(talks.addr(), "/risk/x").await.error_code(), "unknown_path");
    assert!(script.requests().is_empty());

    // A route that takes everything, but to services that speak a protocol.
    let mut mixed = policy(&[("a", script.listen().await)]);
    mixed["backends"]["h"] =
        json!({"provider": "http", "base_url": "http://127.0.0.1:1", "capabilities": [], "weight": 0});
    let mixed = Proxy::start(&mixed).await;
    assert_eq!(get(mixed.addr(), "/anything").await.error_code(), "unknown_path");
    assert_eq!(get(mixed.addr(), "/v1/models").await.text().matches("default").count(), 0);
}

#[tokio::test]
async fn kserves_and_tensorflow_servings_paths_are_generic_ones() {
    let script = Script::new([whole(200, "", r#"{"predictions":[1]}"#)]);
    let mut policy = risk(&[("a", script.listen().await)]);
    policy["routes"][0]["match"] = json!({"paths": ["/v1/models/*", "/v2/models/*"]});
    let proxy = Proxy::start(&policy).await;
    for path in ["/v1/models/iris:predict", "/v2/models/iris/infer"] {
        assert_eq!(
            post(proxy.addr(), path, r#"{"instances":[]}"#).await.text(),
            r#"{"predictions":[1]}"#,
            "{path}"
        );
    }
}

#[tokio::test]
async fn three_services_with_three_formats_look_like_one() {
    let mut answers = Vec::new();
    let adapters = [
        (
            r#"{"SCORE":87,"CODES":["VELOCITY"]}"#,
            json!({"path": "/score", "request": {"MODEL": "${model}", "TXN_AMT": "${request.amount}"},
                "response": {"id": "${request.id}", "score": "${double(response.SCORE) / 100.0}", "reasons": "${response.CODES}"}}),
            "post /score http/1.1",
            r#"{"MODEL":"default","TXN_AMT":129.5}"#,
        ),
        (
            r#"{"outputs":[{"data":[0.87]}]}"#,
            json!({"path": "/v2/models/${model}/infer", "request": {"inputs": [{"data": ["${request.amount}"]}]},
                "response": {"id": "${request.id}", "score": "${response.outputs[0].data[0]}", "reasons": ["VELOCITY"]}}),
            "post /v2/models/fraud%2f2/infer http/1.1",
            r#"{"inputs":[{"data":[129.5]}]}"#,
        ),
        (
            r#"{"result":{"value":0.87,"findings":[{"code":"VELOCITY"}]}}"#,
            json!({"method": "PUT", "path": "/check?order=${request.id}", "request": "order of ${request.amount}",
                "response": {"id": "${request.id}", "score": "${response.result.value}", "reasons": "${response.result.findings.map(f, f.code)}"}}),
            "put /check?order=o%201 http/1.1",
            r#""order of 129.5""#,
        ),
    ];
    for (answer, adapter, line, body) in adapters {
        let script = Script::new([whole(200, "", answer)]);
        let mut policy = risk(&[("a", script.listen().await)]);
        if line.contains("fraud") {
            policy["backends"]["a"]["models"] = json!([{"name": "fraud/2"}]);
        }
        policy["backends"]["a"]["adapter"] = adapter;
        let proxy = Proxy::start(&policy).await;
        let answer = post(proxy.addr(), "/risk/score", r#"{"id":"o 1","amount":129.50}"#).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        answers.push(answer.text());
        let sent = &script.requests()[0];
        assert!(
            sent.head.starts_with(line) && sent.head.contains("content-type: application/json"),
            "{}",
            sent.head
        );
        assert!(!sent.head.contains("accept-encoding"), "{}", sent.head);
        assert_eq!(String::from_utf8_lossy(&sent.body), body);
    }
    assert_eq!(answers, [r#"{"id":"o 1","score":0.87,"reasons":["VELOCITY"]}"#; 3]);
}

#[tokio::test]
async fn the_guides_example_does_what_the_guide_says() {
    let guide = include_str!("../../../docs/guide/generic-services.md");
    let block = |kind: &str| guide.split(kind).nth(1).unwrap().split("```").next().unwrap();
    let order = block("-d '").split('\'').next().unwrap().to_owned();
    let expected = block("```json\n").trim_end();
    for (port, answer, sent) in [
        (9001, r#"{"SCORE":87}"#, r#"{"TXN_AMT":129.5,"CUST":"u7"}"#),
        (
            9002,
            r#"{"outputs":[{"data":[0.87]}]}"#,
            r#"{"inputs":[{"name":"amount","shape":[1],"datatype":"FP64","data":[129.5]}]}"#,
        ),
        (9003, r#"{"result":{"risk":{"level":"HIGH","value":0.87}}}"#, r#"{"text":"order of 129.5 by u7"}"#),
    ] {
        // The other two are not there.
        let script = Script::new([whole(200, "", answer)]);
        let address = script.listen().await.to_string();
        let document = block("```yaml\n").replace(&format!("127.0.0.1:{port}"), &address);
        let proxy = Proxy::start_document(&document.replace("BUREAU_KEY", "KEY")).await;
        let call = request("/risk/score", "x-biz-type: risk_control\r\n", &order);
        let answer = raw(proxy.addr(), call.as_bytes()).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, expected));
        assert_eq!(String::from_utf8_lossy(&script.requests()[0].body), sent);
    }
}

#[tokio::test]
async fn what_an_adapter_cannot_make_anything_of_is_tried_at_the_next() {
    let script = Script::new([whole(200, "", r#"{"unexpected":1}"#), whole(200, "", r#"{"s":1}"#)]);
    let mut policy = risk(&[("a", script.listen().await), ("b", script.listen().await)]);
    for name in ["a", "b"] {
        policy["backends"][name]["adapter"] = json!({"response": {"score": "${response.s}"}});
    }
    let proxy = Proxy::start(&policy).await;
    let answer = post(proxy.addr(), "/risk/x", "{}").await;
    assert_eq!((answer.text().as_str(), answer.header("x-penstock-attempts")), (r#"{"score":1}"#, Some("2")));

    // The client's body lacks what one of them needs: only the other can take it.
    policy["backends"]["a"]["adapter"]["request"] = json!({"n": "${request.n}"});
    let proxy = Proxy::start(&policy).await;
    for _ in 0..8 {
        let answer = post(proxy.addr(), "/risk/x", "{}").await;
        assert_eq!((answer.status, answer.header("x-penstock-backend")), (200, Some("b")));
    }
    policy["backends"]["b"]["adapter"]["request"] = json!({"n": "${request.n}"});
    let proxy = Proxy::start(&policy).await;
    let answer = post(proxy.addr(), "/risk/x", "{}").await;
    assert_eq!((answer.status, answer.error_code().as_str()), (400, "unsupported"));
    assert_eq!(answer.json()["error"]["param"], "/request/n");
    let answer = post(proxy.addr(), "/risk/x", "<xml/>").await;
    assert_eq!((answer.status, answer.error_code().as_str()), (400, "invalid_body"));
}

#[tokio::test]
async fn an_adapter_makes_a_home_grown_model_server_answer_chat_and_invoke() {
    let script = Script::new([whole(200, "", r#"{"text":"hello"}"#)]);
    let mut policy = risk(&[("own", script.listen().await)]);
    policy["backends"]["own"]["capabilities"] = json!(["chat"]);
    policy["backends"]["own"]["adapter"] = json!({
        "path": "/generate",
        "request": {"prompt": "${request.messages.map(m, m.content)}"},
        "response": {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "${response.text}"}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}},
    });
    policy["routes"] = json!([{"name": "all"}]);
    let proxy = Proxy::start(&policy).await;
    let answer = chat(proxy.addr(), false).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
    assert!(script.requests()[0].head.starts_with("post /generate "));
    assert_eq!(String::from_utf8_lossy(&script.requests()[0].body), r#"{"prompt":["hi"]}"#);
    let answer = post(proxy.addr(), "/api/invoke", r#"{"prompt":"hi"}"#).await;
    assert_eq!((&answer.json()["answer"], &answer.json()["backend_id"]), (&json!("hello"), &json!("own")));
    let line = &proxy.log(2).await[0];
    assert_eq!((&line["output_tokens"], &line["protocol"]), (&json!(1), &json!("openai-chat")));
    // Its answers are reshaped as a whole: there is no stream of them.
    let answer = chat(proxy.addr(), true).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (400, "unsupported"));
}

#[tokio::test]
async fn a_known_path_passes_to_a_generic_service_untouched() {
    let script = Script::new([whole(200, "", r#"{"anything":1}"#)]);
    let mut policy = risk(&[("own", script.listen().await)]);
    policy["backends"]["own"]["capabilities"] = json!(["chat"]);
    policy["routes"] = json!([{"name": "all"}]);
    let proxy = Proxy::start(&policy).await;
    let body = r#"{"model" : "mine","messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(post(proxy.addr(), "/v1/chat/completions?x=1", body).await.text(), r#"{"anything":1}"#);
    let sent = &script.requests()[0];
    assert!(sent.head.starts_with("post /v1/chat/completions?x=1 "), "{}", sent.head);
    assert_eq!(String::from_utf8_lossy(&sent.body), body);
}

#[tokio::test]
async fn what_passes_is_not_kept_for_others_and_what_an_adapter_writes_may_be() {
    for (adapter, calls) in [(json!(null), 2), (json!({"response": {"choices": "${response.c}"}}), 1)] {
        let script = Script::new([whole(200, "content-encoding: identity\r\n", r#"{"c":[]}"#)]);
        let mut policy = risk(&[("own", script.listen().await)]);
        policy["backends"]["own"]["capabilities"] = json!(["chat"]);
        policy["backends"]["own"]["adapter"] = adapter;
        policy["routes"] = json!([{"name": "all", "cache": {"ttl": "1h"}}]);
        let proxy = Proxy::start(&policy).await;
        let body = r#"{"model":"auto","temperature":0,"seed":1,"messages":[{"role":"user","content":"hi"}]}"#;
        for _ in 0..2 {
            assert_eq!(post(proxy.addr(), "/v1/chat/completions", body).await.status, 200);
        }
        assert_eq!(script.requests().len(), calls);
    }
}

#[tokio::test]
async fn an_answer_too_large_to_be_reshaped_is_refused() {
    let huge = format!(r#"{{"s":"{}"}}"#, "x".repeat(33 << 20));
    let script = Script::new([whole(200, "", &huge)]);
    let mut policy = risk(&[("a", script.listen().await)]);
    policy["backends"]["a"]["adapter"] = json!({"response": {"s": "${response.s}"}});
    policy["routes"][0]["retry"]["attempts"] = 1.into();
    let proxy = Proxy::start(&policy).await;
    let answer = post(proxy.addr(), "/risk/x", "{}").await;
    assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_invalid"));
}

#[tokio::test]
async fn the_services_own_4xx_passes_unchanged_and_is_no_failure() {
    let (proxy, script) = before(whole(422, "x-reason: amount\r\n", "{\"why\": \"amount < 0\"}\n")).await;
    for _ in 0..8 {
        let answer = post(proxy.addr(), "/risk/x", "{}").await;
        assert_eq!((answer.status, answer.text().as_str()), (422, "{\"why\": \"amount < 0\"}\n"));
        assert_eq!(
            (answer.header("x-reason"), answer.header("x-penstock-attempts")),
            (Some("amount"), Some("1"))
        );
    }
    assert_eq!(script.requests().len(), 8, "no breaker opened, nothing was retried");
    let line = &proxy.log(8).await[7];
    assert_eq!(
        (&line["outcome"], &line["error_code"]),
        (&json!("client_error"), &json!("upstream_rejected"))
    );
    let (proxy, _) = before(whole(401, "", "who are you?")).await;
    assert_eq!(
        post(proxy.addr(), "/risk/x", "{}").await.text(),
        "who are you?",
        "without a key of ours it is theirs"
    );
}

#[tokio::test]
async fn what_is_the_services_fault_is_tried_at_the_next_res_01() {
    let torn = vec![send("HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n1234"), Step::Close];
    let garbage = vec![send("\x00\x01garbage\r\n\r\n"), Step::Close];
    let torn_chunks = vec![send("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n"), Step::Reset];
    for bad in [
        whole(500, "", "Traceback at 10.0.0.3"),
        whole(503, "", ""),
        whole(429, "", ""),
        whole(302, "location: http://10.0.0.3/\r\n", ""),
        vec![Step::Reset],
        vec![Step::Close],
        torn,
        garbage,
        torn_chunks,
    ] {
        let (proxy, _) = before_two([bad.clone(), whole(200, "", "good")]).await;
        let answer = post(proxy.addr(), "/risk/x", "{}").await;
        let seen = (answer.status, answer.text(), answer.header("x-penstock-attempts").map(str::to_owned));
        assert_eq!(seen, (200, "good".to_owned(), Some("2".to_owned())), "{bad:?}");
    }
    let (proxy, _) = before(whole(500, "", "Traceback at 10.0.0.3")).await;
    let answer = post(proxy.addr(), "/risk/x", "{}").await;
    assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_error"));
    assert!(!answer.text().contains("10.0.0.3"), "{}", answer.text());
}

#[tokio::test]
async fn a_method_that_may_do_harm_twice_is_sent_once() {
    let patch = b"PATCH /risk/x HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{}";
    let (proxy, script) = before_two([vec![Step::Reset], whole(200, "", "good")]).await;
    let answer = raw(proxy.addr(), patch).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_truncated"));
    assert_eq!(script.requests().len(), 1);
    // Nothing was sent where there was no connection.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = nobody.local_addr().unwrap();
    drop(nobody);
    let script = Script::new([whole(200, "", "good")]);
    let proxy = Proxy::start(&risk(&[("a", closed), ("b", script.listen().await)])).await;
    for _ in 0..6 {
        assert_eq!(raw(proxy.addr(), patch).await.text(), "good");
    }
}

#[tokio::test]
async fn a_hung_service_is_left_for_another_res_07() {
    let script = Script::new([vec![Step::Silence], whole(200, "", "good")]);
    let services = [("a", script.listen().await), ("b", script.listen().await)];
    let proxy = Proxy::start(&with_timeouts(risk(&services), json!({"first_token": "100ms"}))).await;
    assert_eq!(post(proxy.addr(), "/risk/x", "{}").await.text(), "good");
    script.left(1).await;
}

#[tokio::test]
async fn events_flow_at_once_and_a_client_that_leaves_closes_the_service_sse_10() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let (proxy, script) = before(vec![send(head), chunk(b"event: a\ndata: 1\n\n"), Step::Silence]).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.post("/risk/watch", "{}").await;
    let answer = client.until("data: 1\n\n").await;
    assert_eq!((answer.header("content-type"), answer.whole), (Some("text/event-stream"), false));
    drop(client);
    script.left(1).await;
    let line = &proxy.log(1).await[0];
    assert_eq!(line["outcome"], "client_cancelled");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_closes_the_service_sse_10() {
    let (proxy, script) = before(vec![Step::Silence]).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.post("/risk/x", "{}").await;
    until(|| script.requests().len() == 1).await;
    drop(client);
    script.left(1).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_whole_sse_04() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    // Time for the client to get its half.
    let pause = Step::Pause(Duration::from_millis(50));
    let (proxy, _) = before(vec![send(head), chunk(b"half"), pause, Step::Close]).await;
    let answer = post(proxy.addr(), "/risk/x", "{}").await;
    assert_eq!((answer.status, answer.text().as_str(), answer.whole), (200, "half", false));
    let line = &proxy.log(1).await[0];
    assert_eq!((&line["outcome"], &line["error_code"]), (&json!("truncated"), &json!("upstream_truncated")));
}

#[tokio::test]
async fn a_service_that_falls_silent_in_the_middle_is_cut_off() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let script = Script::new([vec![send(head), chunk(b"half"), Step::Silence]]);
    let risk = risk(&[("a", script.listen().await)]);
    let proxy = Proxy::start(&with_timeouts(risk, json!({"idle": "100ms"}))).await;
    assert!(!post(proxy.addr(), "/risk/x", "{}").await.whole);
    script.left(1).await;
    assert_eq!(proxy.log(1).await[0]["outcome"], "idle_timeout");
}

#[tokio::test]
async fn a_large_answer_keeps_its_length_and_its_connection() {
    let body = "x".repeat(3 << 20);
    let (proxy, script) = before(whole(200, "", &body)).await;
    for _ in 0..2 {
        let answer = post(proxy.addr(), "/risk/x", "{}").await;
        assert_eq!((answer.header("content-length"), answer.body.len()), (Some("3145728"), 3 << 20));
    }
    let log = proxy.log(2).await;
    assert!(log.iter().all(|line| line["outcome"] == "ok" && line["bytes_out"] == 3 << 20), "{log:?}");
    assert_eq!(script.requests()[1].connection, 1, "the second came over the first's connection");
}

#[tokio::test]
async fn a_slow_client_slows_the_service_sse_13() {
    let piece = vec![b'x'; 64 << 10];
    let mut steps = vec![send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")];
    steps.extend((0..1024).map(|_| chunk(&piece)));
    let (proxy, script) = before(then(steps, end())).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.post("/risk/x", "{}").await;
    client.until("x").await;
    let mut last = 0;
    // Nothing is read; sending comes to a standstill.
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let sent = script.sent();
        if sent == last {
            break;
        }
        last = sent;
    }
    assert!(last < 32 << 20, "{last} bytes went to nobody");
    client.drain().await;
    until(|| script.sent() > 64 << 20).await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let script = Script::new([whole(200, "", "{}")]);
    let mut policy = risk(&[("a", script.listen().await)]);
    policy["limits"] = json!({"body": "1KiB"});
    let proxy = Proxy::start(&policy).await;
    let answer = post(proxy.addr(), "/risk/x", &"x".repeat(1025)).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (413, "body_too_large"));
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn the_answer_to_head_has_a_length_and_no_body() {
    let (proxy, _) = before(vec![send("HTTP/1.1 200 x\r\ncontent-length: 77\r\n\r\n")]).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.send(b"HEAD /risk/x HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n").await;
    let answer = client.answer_head().await;
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("77")));
}

#[tokio::test]
async fn breakers_and_records_apply_alike() {
    let script = Script::new([whole(500, "", ""), whole(500, "", ""), whole(200, "", "good")]);
    let mut policy = risk(&[("a", script.listen().await), ("b", script.listen().await)]);
    policy["breaker"] = json!({"consecutive_failures": 1, "open": "60s"});
    policy["routes"][0]["retry"]["attempts"] = 1.into();
    let proxy = Proxy::start(&policy).await;
    assert_eq!(post(proxy.addr(), "/risk/x", "{}").await.status, 502);
    let failed = proxy.log(1).await[0]["backend"].as_str().unwrap().to_owned();
    assert_eq!(post(proxy.addr(), "/risk/x", "{}").await.status, 502);
    let second = proxy.log(2).await[1]["backend"].as_str().unwrap().to_owned();
    assert_ne!(failed, second, "the first is out");
    assert!(proxy.log(2).await.iter().all(|line| line["outcome"] == "server_error"));
}
