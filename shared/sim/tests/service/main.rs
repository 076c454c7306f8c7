//! A simulated service over real sockets.

#![expect(clippy::unwrap_used, reason = "a test may fail at once")]

mod client;
mod dialects;
mod faults;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use penstock_sim::{Capacity, Latency, Running, ServiceConfig, digest, start};
use serde_json::{Value, json};

use client::{call, chat, chat_body, post, raw};

/// A service `code-a` with the model `m`, changed by `change`.
async fn service(change: impl FnOnce(&mut ServiceConfig)) -> Running {
    let mut config = ServiceConfig { models: vec!["m".to_owned()], ..ServiceConfig::new("code-a") };
    change(&mut config);
    start(config).await.unwrap()
}

/// Waits until `condition` holds, which something already under way brings about.
async fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "it never came true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn an_answer_names_the_service_and_the_digest_of_the_messages() {
    let service = service(|_| {}).await;
    let answer = chat(&service, false).await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json"));
    let body = answer.json();
    let digest = digest(r#"[{"role":"user","content":"hi"}]"#);
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with(&format!("code-a: [{:08x}]", digest)), "{text} {digest:08x}");
    assert_eq!(body["model"], "m");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["completion_tokens"], 16);
    service.shutdown().await;
}

#[tokio::test]
async fn a_stream_ends_with_usage_when_asked_and_with_done() {
    let service = service(|config| config.answer_tokens = 3).await;
    let plain = chat(&service, true).await;
    assert!(plain.head.contains("text/event-stream") && plain.is_whole());
    let events = plain.events();
    assert_eq!((events.len(), events.last().unwrap().as_str()), (1 + 3 + 1 + 1, "[DONE]"));
    assert!(events.iter().all(|event| !event.contains("usage")));

    let mut body = chat_body(true);
    body["stream_options"] = json!({"include_usage": true});
    body["max_tokens"] = json!(2);
    let events = post(&service, "/v1/chat/completions", &body).await.events();
    let usage: Value = serde_json::from_str(&events[events.len() - 2]).unwrap();
    assert_eq!(
        (usage["choices"].clone(), usage["usage"]["completion_tokens"].clone()),
        (json!([]), json!(2))
    );
    assert!(events[events.len() - 3].contains(r#""finish_reason":"length""#));
}

#[tokio::test]
async fn wrong_requests_are_refused_in_openais_shape() {
    let service = service(|config| {
        config.api_key = Some("sk-right".to_owned());
        config.max_body = 1000;
    })
    .await;
    const JSON: &str = "content-type: application/json\r\nauthorization: Bearer sk-right\r\n";
    let path = "/v1/chat/completions";
    let good = chat_body(false).to_string();
    let model = good.replace("\"m\"", "\"x\"");
    let large = good.replace("hi", &"x".repeat(2000));
    let wrong_key = JSON.replace("right", "wrong");
    for (method, path, headers, body, status, code) in [
        ("POST", path, JSON, good.as_str(), 200, Value::Null),
        ("POST", path, "content-type: application/json\r\n", &good, 401, Value::Null),
        ("POST", path, &wrong_key, &good, 401, json!("invalid_api_key")),
        ("POST", path, JSON, "{", 400, Value::Null),
        ("POST", path, JSON, &model, 404, json!("model_not_found")),
        ("POST", path, JSON, &large, 413, json!("request_too_large")),
        (
            "POST",
            path,
            &JSON["content-type: application/json\r\n".len()..],
            &good,
            415,
            json!("unsupported_content_type"),
        ),
        ("POST", "/v1/other", JSON, "{}", 404, Value::Null),
        ("GET", path, JSON, "", 404, Value::Null),
        ("GET", "/v1/models", "", "", 401, Value::Null),
    ] {
        let answer = call(&service, method, path, headers, body).await;
        assert_eq!(answer.status, status, "{method} {path} {}", answer.text());
        if status != 200 {
            let error = &answer.json()["error"];
            assert!(error["message"].is_string() && error["type"] == "invalid_request_error");
            assert_eq!(error["code"], code, "{method} {path} {status}");
        }
    }
    assert_eq!((service.stats().ok, service.stats().client_error), (1, 6));
}

#[tokio::test]
async fn models_embeddings_and_health_are_served() {
    let service = service(|_| {}).await;
    let models = call(&service, "GET", "/v1/models", "", "").await.json();
    assert_eq!((models["object"].clone(), models["data"][0]["id"].clone()), (json!("list"), json!("m")));
    assert_eq!(call(&service, "GET", "/health", "", "").await.status, 200);
    let body = json!({"model": "m", "input": ["a", "b"], "encoding_format": "base64"});
    let embeddings = post(&service, "/v1/embeddings", &body).await.json();
    assert!(embeddings["data"][1]["embedding"].is_string());
}

#[tokio::test]
async fn the_same_seed_gives_the_same_failures_in_the_same_order() {
    let run = async |seed: u64| {
        let service = service(|config| {
            config.seed = seed;
            config.error_rate = 0.5;
        })
        .await;
        let mut statuses = Vec::new();
        for _ in 0..32 {
            statuses.push(chat(&service, false).await.status);
        }
        statuses
    };
    let first = run(1).await;
    assert!(first.contains(&200) && first.contains(&500));
    assert_eq!(first, run(1).await);
    assert_ne!(first, run(2).await);
}

#[tokio::test]
async fn a_full_service_queues_and_then_refuses() {
    let service = Arc::new(
        service(|config| {
            config.capacity = Some(Capacity { concurrent: 1, queue: 1 });
            config.tokens_per_second = 1.0;
            config.answer_tokens = 1000;
        })
        .await,
    );
    let mut short = chat_body(false);
    short["max_tokens"] = json!(1);
    let spawn = |body: Value| {
        let service = Arc::clone(&service);
        tokio::spawn(async move { post(&service, "/v1/chat/completions", &body).await.status })
    };
    let long = spawn(chat_body(true));
    until(|| service.stats().in_flight == 1).await;
    let queued = spawn(short.clone());
    until(|| service.stats().in_flight == 2).await;
    assert_eq!(spawn(short).await.unwrap(), 503);
    assert!(!queued.is_finished());
    long.abort();
    assert_eq!(queued.await.unwrap(), 200, "it got the slot of the one that left");
    let stats = service.stats();
    assert_eq!((stats.ok, stats.overloaded, stats.cancelled, stats.max_in_flight), (1, 1, 1, 3));
}

#[tokio::test]
async fn tokens_come_at_the_pace_that_was_set() {
    let service = service(|config| {
        config.first_token = Duration::from_millis(100);
        config.tokens_per_second = 50.0;
        config.answer_tokens = 6;
    })
    .await;
    for stream in [false, true] {
        let start = Instant::now();
        assert_eq!(chat(&service, stream).await.status, 200);
        assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn many_requests_share_one_connection_in_both_versions_of_http() {
    let service = service(|_| {}).await;
    for http2 in [false, true] {
        let client: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).http2_only(http2).build_http();
        let before = service.stats().connections;
        for _ in 0..20 {
            let request = http::Request::post(format!("{}/chat/completions", service.base_url()))
                .header("content-type", "application/json")
                .body(Full::from(chat_body(true).to_string()))
                .unwrap();
            let answer = client.request(request).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(body.ends_with(b"data: [DONE]\n\n"));
        }
        assert_eq!(service.stats().connections, before + 1, "http2: {http2}");
    }
}

#[tokio::test]
async fn the_last_request_is_kept_when_asked_for() {
    let service = service(|config| config.capture = true).await;
    let headers = "content-type: application/json\r\nx-a: 1\r\n";
    call(&service, "POST", "/v1/chat/completions?q=1", headers, &chat_body(false).to_string()).await;
    let stats: penstock_sim::Stats =
        serde_json::from_value(call(&service, "GET", "/sim/stats", "", "").await.json()).unwrap();
    assert_eq!(stats, service.stats());
    let last = stats.last_request.unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("POST", "/v1/chat/completions?q=1"));
    assert_eq!((last.header("x-a"), last.body.as_str()), (Some("1"), chat_body(false).to_string().as_str()));
}

#[tokio::test]
async fn a_caller_who_leaves_is_counted_and_frees_its_slot() {
    let service = service(|config| {
        config.capacity = Some(Capacity { concurrent: 1, queue: 0 });
        config.tokens_per_second = 1.0;
        config.answer_tokens = 1000;
    })
    .await;
    for stream in [true, false] {
        let call = tokio::time::timeout(Duration::from_millis(200), chat(&service, stream)).await;
        assert!(call.is_err(), "it would take a quarter of an hour");
        until(|| service.stats().in_flight == 0).await;
    }
    assert_eq!((service.stats().cancelled, service.stats().overloaded), (2, 0));
}

#[tokio::test]
async fn shutdown_closes_what_is_open_and_frees_the_port() {
    let service = service(|config| config.latency = Latency::Fixed(Duration::from_secs(3600))).await;
    let addr = service.addr();
    let (request, handle) = (chat_body(false).to_string(), service.handle());
    let pending = tokio::spawn(async move {
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\ncontent-type: application/json\r\ncontent-length";
        raw(addr, &format!("{head}: {}\r\n\r\n{request}", request.len())).await
    });
    until(|| handle.stats().in_flight == 1).await;
    service.shutdown().await;
    assert_eq!(pending.await.unwrap().status, 0);
    assert_eq!(handle.stats().in_flight, 0);
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}
