//! What a request needs: named by the client, or told by the trained model.

use std::net::SocketAddr;

use penstock_data_plane::lkg;
use penstock_decision::classifier::{Examples, Settings, train};
use penstock_proto::fleet::v1::Snapshot;
use serde_json::{Value, json};

use crate::support::client::{Answer, get, post, raw, request};
use crate::support::{Proxy, policy, sim, snapshot};

/// Two services, `talk` and `numbers`, each with a capability of its own and no keyword at all.
fn two(talk: SocketAddr, numbers: SocketAddr) -> Value {
    let mut policy = policy(&[("talk", talk), ("numbers", numbers)]);
    policy["backends"]["numbers"]["capabilities"] = json!(["math"]);
    policy["capabilities"]["chat"]["examples"] = json!([
        "how are you today",
        "tell me about your weekend",
        "what a lovely day it is",
        "do you like cats and dogs",
        "good morning my friend",
        "今天心情怎么样",
        "陪我聊聊天吧",
        "你喜欢猫还是狗",
        "周末过得怎么样",
        "早上好朋友"
    ]);
    policy["capabilities"]["math"] = json!({"examples": [
        "solve the equation x + 3 = 9", "find the integral of x squared", "what is 17 times 12",
        "prove that the sum of two odd numbers is even", "solve 4y - 2 = 10 for y", "解方程 x + 3 = 9",
        "求函数的导数", "计算 17 乘以 12", "证明两个奇数的和是偶数", "解不等式 4y - 2 > 10"
    ]});
    policy
}

fn with_model(policy: &Value) -> Snapshot {
    let loaded = penstock_model::load(&policy.to_string()).policy.unwrap();
    let model = train(&Examples::of(&loaded).unwrap(), &Settings::default());
    Snapshot { capability_model: model.encode(), ..snapshot(policy) }
}

async fn proxy_on(snapshot: &Snapshot) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    lkg::write(folder.path(), snapshot).unwrap();
    Proxy::start_in(folder).await
}

async fn say(proxy: &Proxy, messages: Value) -> Answer {
    post(proxy.addr(), "/v1/chat/completions", &json!({"model": "auto", "messages": messages}).to_string())
        .await
}

async fn who_answers(proxy: &Proxy, prompt: &str) -> String {
    let answer = say(proxy, json!([{"role": "user", "content": prompt}])).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-penstock-backend").unwrap().to_owned()
}

#[tokio::test]
async fn a_model_on_disk_tells_capabilities_apart_without_a_control_plane() {
    let (talk, numbers) = (sim("talk").await, sim("numbers").await);
    let policy = two(talk.addr(), numbers.addr());
    let proxy = proxy_on(&with_model(&policy)).await;
    assert_eq!(who_answers(&proxy, "solve the equation x - 8 = 2").await, "numbers");
    assert_eq!(who_answers(&proxy, "解方程 x - 8 = 2").await, "numbers");
    assert_eq!(who_answers(&proxy, "how was your day my friend").await, "talk");
    let none = proxy_on(&snapshot(&policy)).await;
    assert_eq!(
        who_answers(&none, "solve the equation x - 8 = 2").await,
        "talk",
        "without a model: the default"
    );
}

#[tokio::test]
async fn where_the_last_turn_says_nothing_the_first_one_does() {
    let (talk, numbers) = (sim("talk").await, sim("numbers").await);
    let proxy = proxy_on(&with_model(&two(talk.addr(), numbers.addr()))).await;
    let turns = |last: &str| {
        json!([
            {"role": "user", "content": "solve the equation x - 8 = 2"},
            {"role": "assistant", "content": "x = 10"},
            {"role": "user", "content": last},
        ])
    };
    assert_eq!(say(&proxy, turns("ok")).await.header("x-penstock-backend"), Some("numbers"));
    let changed = say(&proxy, turns("good morning, how are you today")).await;
    assert_eq!(changed.header("x-penstock-backend"), Some("talk"));
}

#[tokio::test]
async fn a_damaged_model_is_refused_and_one_of_a_newer_build_left_aside() {
    let (talk, numbers) = (sim("talk").await, sim("numbers").await);
    let good = with_model(&two(talk.addr(), numbers.addr()));
    let mut damaged = good.clone();
    *damaged.capability_model.last_mut().unwrap() ^= 1;
    let proxy = proxy_on(&damaged).await;
    assert_eq!(get(proxy.admin(), "/ready").await.status, 503);

    let mut newer = good;
    newer.capability_model[8] = 200;
    let proxy = proxy_on(&newer).await;
    assert_eq!(who_answers(&proxy, "solve the equation x - 8 = 2").await, "talk");
}

#[tokio::test]
async fn a_model_of_another_policy_is_refused() {
    let (talk, numbers) = (sim("talk").await, sim("numbers").await);
    let model = with_model(&two(talk.addr(), numbers.addr())).capability_model;
    let other = Snapshot { capability_model: model, ..snapshot(&policy(&[("talk", talk.addr())])) };
    let proxy = proxy_on(&other).await;
    assert_eq!(get(proxy.admin(), "/ready").await.status, 503);
}

#[tokio::test]
async fn a_client_of_any_protocol_may_name_the_capability() {
    let (talk, numbers) = (sim("talk").await, sim("numbers").await);
    let proxy = proxy_on(&with_model(&two(talk.addr(), numbers.addr()))).await;
    let hello = "how are you today";
    let chat = json!({"model": "auto", "messages": [{"role": "user", "content": hello}]});
    let messages =
        json!({"model": "auto", "max_tokens": 9, "messages": [{"role": "user", "content": hello}]});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": hello}]}]});
    for (path, body) in [
        ("/v1/chat/completions", chat),
        ("/v1/messages", messages),
        ("/v1beta/models/auto:generateContent", gemini),
        ("/api/invoke", json!({"prompt": hello})),
    ] {
        let call = |header: &str| request(path, header, &body.to_string());
        let named = raw(proxy.addr(), call("x-penstock-capability: math\r\n").as_bytes()).await;
        assert_eq!((named.status, named.header("x-penstock-backend")), (200, Some("numbers")), "{path}");
        let unknown = raw(proxy.addr(), call("x-penstock-capability: art\r\n").as_bytes()).await;
        assert_eq!(unknown.status, 400, "{path}");
        assert!(unknown.text().contains("unknown_capability"), "{path}: {}", unknown.text());
    }
    let both =
        request("/api/invoke", "x-penstock-capability: math\r\n", r#"{"prompt":"hi","capability":"chat"}"#);
    let both = raw(proxy.addr(), both.as_bytes()).await;
    assert_eq!(both.header("x-penstock-backend"), Some("talk"), "the body is the more specific");
}
