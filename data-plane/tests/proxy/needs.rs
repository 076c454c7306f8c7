//! Requests that need more than a chat model: whom they reach, and what is said when nobody will do.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::client::post;
use crate::support::scripted::{Script, good, whole};
use crate::support::{Proxy, policy};

/// A chat request with these fields besides.
fn asking(fields: &Value) -> String {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

/// A request for each feature that a policy can deny.
fn requests() -> Vec<(&'static str, String)> {
    let part = |part: Value| asking(&json!({"messages": [{"role": "user", "content": [part]}]}));
    vec![
        ("tools", asking(&json!({"tools": [{"type": "function", "function": {"name": "f"}}]}))),
        ("vision", part(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}))),
        ("audio", part(json!({"type": "input_audio", "input_audio": {"data": "aaaa", "format": "wav"}}))),
        (
            "json_schema",
            asking(
                &json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}),
            ),
        ),
        ("streaming", asking(&json!({"stream": true}))),
    ]
}

/// Two services: `able` can do everything, `poor` lacks one thing.
fn two(able: SocketAddr, poor: SocketAddr, lacks: &str) -> Value {
    let mut policy = policy(&[("able", able), ("poor", poor)]);
    policy["backends"]["poor"]["models"][0]["supports"] = json!({lacks: false});
    policy
}

#[tokio::test]
async fn a_request_goes_only_where_it_can_be_answered_whatever_else_fails() {
    let failing = || whole(503, "", "{}");
    for (feature, body) in requests() {
        let (able, poor) = (Script::new([failing()]), Script::new([good()]));
        let policy = two(able.listen().await, poor.listen().await, feature);
        let proxy = Proxy::start(&policy).await;
        // Enough to open the breaker: not even then is the other one called.
        for _ in 0..8 {
            let answer = post(proxy.addr(), "/v1/chat/completions", &body).await;
            assert_eq!(answer.status, 503, "{feature}: {}", answer.text());
        }
        assert!(poor.requests().is_empty() && able.requests().len() >= 8, "{feature}");
    }
}

#[tokio::test]
async fn when_nobody_can_do_it_the_refusal_says_what() {
    for (feature, body) in requests() {
        let script = Script::new([good()]);
        let mut policy = two(script.listen().await, script.listen().await, feature);
        policy["backends"]["able"]["models"][0]["supports"] = json!({feature: false});
        let proxy = Proxy::start(&policy).await;
        let answer = post(proxy.addr(), "/v1/chat/completions", &body).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (400, "unsupported"), "{feature}");
        assert!(answer.text().contains("no model of its route"), "{feature}: {}", answer.text());
        assert!(script.requests().is_empty(), "{feature}");
    }
}

/// SEC-09, the restriction on where data may go: a fallback does not lift it.
#[tokio::test]
async fn data_stays_where_the_route_keeps_it_even_as_a_fallback_sec_09() {
    let (eu, us) = (Script::new([whole(500, "", "{}")]), Script::new([good()]));
    let mut policy = policy(&[("eu", eu.listen().await), ("us", us.listen().await)]);
    policy["backends"]["eu"]["residency"] = json!("eu-west-1");
    policy["backends"]["us"]["residency"] = json!("us-east-1");
    policy["routes"][0]["residency"] = json!(["eu-*"]);
    let proxy = Proxy::start(&policy).await;
    for _ in 0..8 {
        let answer = post(proxy.addr(), "/v1/chat/completions", &asking(&json!({}))).await;
        assert_eq!(answer.status, 502, "the client gets the failure of the one that it may use");
    }
    assert!(us.requests().is_empty());
}

/// `/api/invoke` shows why the others were not chosen.
#[tokio::test]
async fn the_reason_of_every_exclusion_is_told() {
    let script = Script::new([good()]);
    let mut policy = policy(&[("eu", script.listen().await), ("small", script.listen().await)]);
    policy["backends"]["eu"]["residency"] = json!("eu");
    policy["backends"]["small"]["models"][0]["context_window"] = json!(1);
    policy["routes"][0]["residency"] = json!(["eu"]);
    let proxy = Proxy::start(&policy).await;
    let answer = post(proxy.addr(), "/api/invoke", r#"{"prompt": "hello there"}"#).await;
    let answer: Value = serde_json::from_str(&answer.text()).unwrap();
    let excluded: Vec<&Value> =
        answer["score_detail"].as_array().unwrap().iter().map(|candidate| &candidate["excluded"]).collect();
    assert_eq!(excluded, ["", "context_window"], "{answer}");
}
