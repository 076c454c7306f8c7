//! Faults, switched on and off while the service runs.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use penstock_sim::{Fault, Running};
use serde_json::json;

use crate::client::{Answer, call, chat, chat_body, post};
use crate::{service, until};

async fn with(text: &str) -> Running {
    let service = service(|_| {}).await;
    service.set_fault(Fault::parse(text).unwrap());
    service
}

#[tokio::test]
async fn a_fault_is_set_and_cleared_over_http() {
    let service = service(|_| {}).await;
    let set = post(&service, "/sim/fault", &json!({"errors": 1.0, "status": 429, "retry_after": 7})).await;
    assert_eq!((set.status, set.json()["status"].as_u64()), (200, Some(429)));
    let refused = chat(&service, false).await;
    assert_eq!(refused.status, 429);
    assert!(refused.head.contains("retry-after: 7"));
    assert_eq!(refused.json()["error"]["code"], "rate_limit_exceeded");
    assert_eq!(post(&service, "/sim/fault", &json!({"errors": 2})).await.status, 400);
    assert_eq!(post(&service, "/sim/fault", &json!({"slow": true})).await.status, 400);
    assert_eq!(service.fault().status, Some(429), "a bad fault changes nothing");
    assert_eq!(post(&service, "/sim/fault", &json!({})).await.status, 200);
    assert_eq!(chat(&service, false).await.status, 200);
    assert_eq!(call(&service, "GET", "/sim/fault", "", "").await.text(), "{}");
    let stats = service.stats();
    assert_eq!((stats.ok, stats.rate_limited, stats.failed), (1, 1, 1));
}

#[tokio::test]
async fn errors_hit_about_the_share_of_calls_that_was_asked_for() {
    let service = with("errors=0.9").await;
    for _ in 0..100 {
        chat(&service, false).await;
    }
    assert!((80..=98).contains(&service.stats().server_error), "{:?}", service.stats());
}

#[tokio::test]
async fn overload_comes_with_the_status_that_was_asked_for() {
    for (status, text) in [(503, "errors=1,status=503"), (529, "errors=1,status=529"), (500, "errors=1")] {
        assert_eq!(chat(&with(text).await, true).await.status, status);
    }
}

#[tokio::test]
async fn latency_is_added_to_every_answer() {
    let service = with("latency=200ms").await;
    let start = Instant::now();
    assert_eq!(chat(&service, true).await.status, 200);
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn hang_takes_the_request_and_says_nothing() {
    let service = with("hang").await;
    assert!(tokio::time::timeout(Duration::from_millis(200), chat(&service, false)).await.is_err());
    until(|| service.stats().cancelled == 1).await;
    service.set_fault(Fault::default());
    assert_eq!(chat(&service, false).await.status, 200);
}

#[tokio::test]
async fn reset_resets_the_connection() {
    let service = with("reset").await;
    let answer = chat(&service, false).await;
    assert_eq!((answer.status, answer.error), (0, Some(ErrorKind::ConnectionReset)));
    assert_eq!(service.stats().reset, 1);
}

#[tokio::test]
async fn garbage_is_no_json_or_no_http() {
    for stream in [false, true] {
        let service = with("garbage").await;
        let answer = chat(&service, stream).await;
        assert_eq!(answer.status, 200);
        assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    }
    let service = with("garbage=http").await;
    let answer: Answer = chat(&service, false).await;
    assert!(answer.head.contains("this is not HTTP"), "{}", answer.head);
    assert_eq!(service.stats().garbage, 1);
}

#[tokio::test]
async fn truncated_answers_stop_half_way() {
    let service = with("truncate").await;
    let stream = chat(&service, true).await;
    assert!(stream.is_whole(), "HTTP is content");
    let events = stream.events();
    assert_eq!(events.len(), 1 + 8, "the role and half of the tokens");
    assert!(events.iter().all(|event| event.contains(r#""finish_reason":null"#)));

    let whole = chat(&service, false).await;
    assert_eq!(whole.status, 200);
    let length: usize =
        whole.head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert_eq!(whole.body.len(), length / 2);

    let service = with("truncate=abort").await;
    let stream = chat(&service, true).await;
    assert!(!stream.is_whole(), "HTTP breaks off");
    assert_eq!(stream.events().len(), 1 + 8);
    assert_eq!(service.stats().truncated, 1);
}

#[tokio::test]
async fn stall_sends_half_a_stream_and_then_nothing() {
    let service = with("stall").await;
    assert!(tokio::time::timeout(Duration::from_millis(200), chat(&service, true)).await.is_err());
    assert_eq!(service.stats().requests, 1);
    until(|| service.stats().cancelled == 1).await;
}

#[tokio::test]
async fn a_stream_error_comes_inside_a_200() {
    let service = with("stream_error").await;
    let answer = post(&service, "/v1/chat/completions", &chat_body(true)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with(r#"data: {"error":{"#), "{}", answer.text());
    assert_eq!(service.stats().server_error, 1);
    assert_eq!(chat(&service, false).await.status, 200, "only streams can fail like that");
}
