//! Single calls: what reaches the service, what comes back, and what is refused.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, chat, chat_body, get, post, raw, request};
use crate::support::scripted::{GOOD, Script, Step, good, whole};
use crate::support::{Proxy, policy, sim};

const CHAT: &str = "/v1/chat/completions";

/// A proxy before one service that answers every call with `steps`.
async fn before(steps: Vec<Step>) -> (Proxy, Script) {
    let script = Script::new([steps]);
    let proxy = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    (proxy, script)
}

#[tokio::test]
async fn every_field_but_the_model_reaches_the_service_byte_for_byte_tr_09() {
    let (proxy, script) = before(good()).await;
    let rest = r#" ,"messages":[ {"role":"user", "content":"\u6f6e 潮"}],"enable_thinking":false,"chat_template_kwargs":{"a":1},
        "x_new":{"big":12345678901234567890,"small":1.10e-3}}"#;
    let answer = post(proxy.addr(), CHAT, &format!(r#"{{ "model" : "auto"{rest}"#)).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, GOOD));
    let sent = &script.requests()[0];
    assert_eq!(String::from_utf8(sent.body.clone()).unwrap(), format!(r#"{{ "model" : "m"{rest}"#));
}

#[tokio::test]
async fn only_our_own_credential_and_chosen_headers_reach_the_service_sec_03() {
    let (proxy, script) = before(whole(
        200,
        "set-cookie: a=b\r\nopenai-organization: acme\r\nx-ratelimit-remaining-requests: 3\r\nx-request-id: req_1\r\n",
        GOOD,
    ))
    .await;
    let headers = "authorization: Bearer gw-SENTINEL\r\nx-api-key: gw-SENTINEL\r\napi-key: gw-SENTINEL\r\n\
        x-goog-api-key: gw-SENTINEL\r\ncookie: s=SENTINEL\r\nproxy-authorization: SENTINEL\r\n\
        x-forwarded-for: 10.0.0.9\r\nconnection: x-secret-hop, openai-beta\r\nx-secret-hop: SENTINEL\r\n\
        openai-beta: SENTINEL\r\nte: trailers\r\nupgrade: h2c\r\nanthropic-beta: b1\r\n";
    for (path, body) in [
        (CHAT, chat_body(false)),
        ("/v1/embeddings", r#"{"model":"m","input":"hi"}"#.to_owned()),
        ("/api/invoke", r#"{"prompt":"hi"}"#.to_owned()),
    ] {
        let answer = raw(proxy.addr(), request(path, headers, &body).as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.header("set-cookie").is_none() && answer.header("openai-organization").is_none());
        assert!(!answer.head.contains("x-ratelimit"));
    }
    for sent in script.requests() {
        let mut names: Vec<&str> =
            sent.head.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
        names.sort_unstable();
        let own = ["anthropic-beta", "authorization", "content-length", "content-type", "host"];
        assert_eq!(names, own, "{}", sent.head);
        assert!(sent.head.contains("authorization: bearer sk-ours\r\n"), "{}", sent.head);
    }
    assert_eq!(script.requests().len(), 3);
}

#[tokio::test]
async fn a_request_of_doubtful_length_is_refused_and_hides_nothing_sec_04() {
    let hidden = "0\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: g\r\n\r\n";
    for headers in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "content-length: 4\r\ncontent-length: 5\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding : chunked\r\n",
        "content-length: +4\r\n",
        "x-nul: a\0b\r\ncontent-length: 4\r\n",
    ] {
        let (proxy, script) = before(good()).await;
        let mut client = Client::connect(proxy.addr()).await;
        client.send(format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\n{headers}\r\n{hidden}").as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400, "{headers}");
        assert!(client.is_closed().await, "{headers}: the hidden request was answered");
        assert!(script.requests().is_empty(), "{headers}");
    }
}

#[tokio::test]
async fn after_a_body_of_two_lengths_the_connection_is_not_trusted_sec_04() {
    let body = chat_body(false);
    for (before_it, after_it) in [("content-length: 4\r\n", ""), ("", "content-length: 4\r\n")] {
        let (proxy, script) = before(good()).await;
        let mut client = Client::connect(proxy.addr()).await;
        let head =
            format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\n{before_it}transfer-encoding: chunked\r\n{after_it}");
        let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        client.send(format!("{head}\r\n{chunks}GET /v1/models HTTP/1.1\r\nhost: g\r\n\r\n").as_bytes()).await;
        let answer = client.answer().await;
        assert!([200, 400].contains(&answer.status), "{}", answer.text());
        assert!(client.is_closed().await, "the hidden request was answered");
        assert!(script.requests().iter().all(|sent| sent.body.len() == body.len() - "auto".len() + 1));
    }
}

#[tokio::test]
async fn a_chunk_of_absurd_size_is_refused_sec_04() {
    let (proxy, script) = before(good()).await;
    let mut client = Client::connect(proxy.addr()).await;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(format!("{head}fffffffffffffffff\r\n{{}}\r\n0\r\n\r\n").as_bytes()).await;
    assert_eq!(client.answer().await.status, 400);
    assert!(client.is_closed().await && script.requests().is_empty());
}

#[tokio::test]
async fn the_length_of_an_answer_is_always_that_of_its_body_sec_10() {
    // Larger than what is read whole before it is passed on.
    let large = GOOD.replace("good", &"x".repeat(3 << 20));
    let (proxy, _) = before(whole(200, "etag: \"e\"\r\n", &large)).await;
    let answer = chat(proxy.addr(), false).await;
    assert!(answer.whole && answer.body == large.as_bytes());
    assert!(answer.header("etag").is_none());

    // An error on a call for a stream.
    let error = r#"{"error":{"message":"no"}}"#;
    let (proxy, _) = before(whole(400, "", error)).await;
    let answer = chat(proxy.addr(), true).await;
    assert!(answer.whole && answer.error_code() == "upstream_rejected");
    assert_eq!(answer.header("content-type"), Some("application/json"));

    let head = "HTTP/1.1 200 x\r\ncontent-type: application/json\r\n";
    for bad in [
        // One byte short.
        format!("{head}content-length: {}\r\n\r\n{GOOD}", GOOD.len() + 1),
        // Compressed, although nobody asked for it.
        format!("{head}content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\u{1f}xxx"),
        "HTTP/1.1 204 x\r\n\r\n".to_owned(),
    ] {
        let (proxy, _) = before(vec![Step::Send(bad.clone().into()), Step::Close]).await;
        let answer = chat(proxy.addr(), false).await;
        assert!(answer.whole && answer.status == 502, "{bad}: {}", answer.text());
        answer.error_code();
    }
}

#[tokio::test]
async fn a_large_answer_that_breaks_off_is_cut_and_not_ended_sec_10() {
    let large = "x".repeat(3 << 20);
    let head =
        format!("HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", 4 << 20);
    let (proxy, _) = before(vec![Step::Send((head + &large).into()), Step::Close]).await;
    let answer = chat(proxy.addr(), false).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.whole, "a part was passed off as the whole");
    assert_eq!(proxy.log(1).await[0]["outcome"], "truncated");
}

fn assert_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.error_code().as_str()), (status, code), "{}", answer.text());
    assert!(answer.whole && answer.header("content-type") == Some("application/json"));
}

#[tokio::test]
async fn bad_requests_are_refused_in_the_shape_that_clients_know() {
    let script = Script::new([good()]);
    let mut small = policy(&[("a", script.listen().await)]);
    small["limits"] = json!({"body": "1KiB"});
    let proxy = Proxy::start(&small).await;
    for body in ["", "{", "[]", "\"\"", r#"{"model":"m"}"#, r#"{"model":7,"messages":[]}"#, "{}\u{0}"] {
        assert_refused(&post(proxy.addr(), CHAT, body).await, 400, "invalid_body");
    }
    assert_refused(&post(proxy.addr(), "/v1/embeddings", "{").await, 400, "invalid_body");
    assert_refused(&post(proxy.addr(), "/api/invoke", "{}").await, 400, "invalid_body");
    let stream = post(proxy.addr(), "/api/invoke", r#"{"prompt":"hi","stream":true}"#).await;
    assert_refused(&stream, 400, "stream_unsupported");
    let unknown = post(proxy.addr(), "/api/invoke", r#"{"prompt":"hi","capability":"art"}"#).await;
    assert_refused(&unknown, 400, "unknown_capability");
    assert_refused(&post(proxy.addr(), "/v1/chat", "{}").await, 404, "unknown_path");
    let wrong = get(proxy.addr(), CHAT).await;
    assert_refused(&wrong, 405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), Some("POST"));

    // Announced, and sent in chunks without an announcement.
    let announced = format!("POST {CHAT} HTTP/1.1\r\nhost: g\r\ncontent-length: 2000\r\n\r\n");
    assert_refused(&raw(proxy.addr(), announced.as_bytes()).await, 413, "body_too_large");
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
        "x".repeat(2_000)
    );
    assert_refused(&raw(proxy.addr(), chunked.as_bytes()).await, 413, "body_too_large");
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn an_answer_says_who_gave_it_and_why() {
    let (proxy, _) = before(good()).await;
    let call = request(CHAT, "x-request-id: mine-1\r\n", &chat_body(false));
    let answer = raw(proxy.addr(), call.as_bytes()).await;
    assert_eq!(answer.header("x-penstock-request-id"), Some("mine-1"));
    assert_eq!(answer.header("x-penstock-backend"), Some("a"));
    assert_eq!(answer.header("x-penstock-policy"), Some("7"));
    assert_eq!(answer.header("x-penstock-attempts"), Some("1"));
    let decision = answer.header("x-penstock-decision").unwrap();
    assert!(decision.len() == 16 && decision.bytes().all(|byte| byte.is_ascii_hexdigit()));

    let line = &proxy.log(1).await[0];
    assert_eq!((&line["request_id"], &line["decision"]), (&"mine-1".into(), &decision.into()));
    assert_eq!((&line["backend"], &line["target_model"]), (&"a".into(), &"m".into()));
    assert_eq!((&line["status"], &line["policy"], &line["attempts"]), (&200.into(), &7.into(), &1.into()));

    let unfit = raw(proxy.addr(), request(CHAT, "x-request-id: a b\r\n", "{").as_bytes()).await;
    assert_eq!(unfit.header("x-penstock-request-id"), unfit.header("x-penstock-decision"));
    assert_eq!(unfit.header("x-penstock-attempts"), Some("0"));
}

#[tokio::test]
async fn the_models_of_the_policy_are_listed() {
    let (proxy, _) = before(good()).await;
    let list = get(proxy.addr(), "/v1/models").await.json();
    assert_eq!(list["object"], "list");
    let names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["auto", "m"]);
}

#[tokio::test]
async fn an_invocation_tells_every_candidate_and_its_terms() {
    let (a, b) = (sim("a").await, sim("b").await);
    let proxy = Proxy::start(&policy(&[("a", a.addr()), ("b", b.addr())])).await;
    let answer = post(proxy.addr(), "/api/invoke", r#"{"prompt":"hi","capability":"chat"}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    let backend = answer.header("x-penstock-backend").unwrap();
    assert_eq!(body["backend_id"], backend);
    assert!(body["answer"].as_str().unwrap().starts_with(backend));
    assert_eq!((&body["model"], &body["capability"]), (&"m".into(), &"chat".into()));
    assert_eq!(body["decision_id"], answer.header("x-penstock-decision").unwrap());
    assert!(body["latency_ms"].as_f64().unwrap() > 0.0);
    let detail = body["score_detail"].as_array().unwrap();
    assert_eq!(detail.len(), 2);
    for entry in detail {
        assert_eq!(entry["chosen"], entry["backend"] == backend);
        assert!((entry["weight"].as_f64().unwrap() - 0.5).abs() < 1e-9, "{entry}");
        assert!(!entry["terms"].as_object().unwrap().is_empty() && entry["score"].is_number());
    }
}

#[tokio::test]
async fn embeddings_pass_through() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    let sent = r#"{"model":"auto", "input":["one","two"],"encoding_format":"float"}"#;
    let answer = post(proxy.addr(), "/v1/embeddings", sent).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["data"].as_array().unwrap().len(), 2);
    let last = service.stats().last_request.unwrap();
    assert_eq!((last.path.as_str(), &last.body), ("/v1/embeddings", &sent.replace("auto", "m")));
    assert_eq!(last.header("authorization"), Some("Bearer sk-OURS"));
    let line = &proxy.log(1).await[0];
    assert_eq!(line["protocol"], "openai-embeddings");
    assert!(line["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn http_2_with_prior_knowledge_works_on_the_same_port() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    let socket = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    for stream in [false, true] {
        let call = http::Request::post(format!("http://{}{CHAT}", proxy.addr()))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(chat_body(stream))))
            .unwrap();
        let answer = sender.send_request(call).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-penstock-backend"], "a");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        if stream {
            assert!(body.ends_with(b"data: [DONE]\n\n"));
        } else {
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["choices"][0]["finish_reason"], "stop");
        }
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_call() {
    let (proxy, script) = before(good()).await;
    let mut client = Client::connect(proxy.addr()).await;
    for _ in 0..3 {
        client.post(CHAT, &chat_body(false)).await;
        assert_eq!(client.answer().await.status, 200);
    }
    let connections: Vec<_> = script.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [1, 1, 1]);
}

#[tokio::test]
async fn the_first_route_that_matches_decides() {
    let script = Script::new([good()]);
    let mut two = policy(&[("a", script.listen().await), ("b", script.listen().await)]);
    two["routes"] = json!([
        {"name": "tenant", "match": {"headers": {"x-tenant": "acme"}}, "targets": [{"backend": "b"}]},
        {"name": "model", "match": {"models": ["gpt-*"]}, "targets": [{"backend": "b"}]},
        {"name": "long", "condition": "max_tokens > 1000", "targets": [{"backend": "b"}]},
        {"name": "vectors", "match": {"paths": ["/v1/embeddings"]}, "targets": [{"backend": "a"}]},
        {"name": "streams", "match": {"stream": true}, "targets": [{"backend": "a"}]},
    ]);
    let proxy = Proxy::start(&two).await;
    let plain = chat_body(false);
    for (path, headers, body, backend) in [
        (CHAT, "x-tenant: acme\r\n", plain.clone(), Some("b")),
        (CHAT, "", plain.replace("auto", "gpt-9"), Some("b")),
        (CHAT, "", plain.replace("\"stream\"", "\"max_tokens\":2000,\"stream\""), Some("b")),
        ("/v1/embeddings", "", r#"{"model":"m","input":"hi"}"#.to_owned(), Some("a")),
        (CHAT, "", chat_body(true), Some("a")),
        (CHAT, "x-tenant: other\r\n", plain, None),
    ] {
        let answer = raw(proxy.addr(), request(path, headers, &body).as_bytes()).await;
        assert_eq!(answer.header("x-penstock-backend"), backend, "{headers}{body}");
        if backend.is_none() {
            assert_refused(&answer, 404, "no_route");
        }
    }
}
