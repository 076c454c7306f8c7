//! Answers kept for identical requests.

use serde_json::{Value, json};

use crate::support::client::{Answer, Client, chat, chat_body, post, raw, request};
use crate::support::scripted::{DONE, STOP, Script, Step, delta, end, good, stream, then, whole};
use crate::support::{Proxy, policy, until};

const PATH: &str = "/v1/chat/completions";

/// A proxy whose route keeps answers, before one service.
async fn keeping(answers: impl IntoIterator<Item = Vec<Step>>) -> (Proxy, Script) {
    let script = Script::new(answers);
    let mut policy = policy(&[("a", script.listen().await)]);
    policy["routes"][0]["cache"] = json!({"ttl": "1h"});
    policy["routes"][0]["retry"] = json!({"attempts": 1});
    (Proxy::start(&policy).await, script)
}

fn cache(answer: &Answer) -> Option<&str> {
    answer.header("x-penstock-cache")
}

fn streamed() -> Vec<Step> {
    then(stream([delta("潮"), STOP.to_owned(), DONE.to_owned()]), end())
}

#[tokio::test]
async fn the_second_of_two_identical_requests_costs_nothing() {
    for (is_streamed, answer) in [(false, good()), (true, streamed())] {
        let (proxy, script) = keeping([answer]).await;
        let first = chat(proxy.addr(), is_streamed).await;
        assert_eq!((first.status, cache(&first)), (200, Some("miss")));
        let mut body: Value = serde_json::from_str(&chat_body(is_streamed)).unwrap();
        body.sort_all_objects();
        let second = post(proxy.addr(), PATH, &format!(" {body} ")).await;
        assert_eq!((second.status, cache(&second)), (200, Some("hit")));
        assert_eq!(second.text(), first.text());
        assert_eq!(second.header("content-type"), first.header("content-type"));
        assert_eq!((second.header("age"), second.header("x-penstock-attempts")), (Some("0"), Some("0")));
        assert_eq!(script.requests().len(), 1);
        let log = proxy.log(2).await;
        assert_eq!((&log[0]["cache"], &log[1]["cache"]), (&"miss".into(), &"hit".into()));
        assert!(log[0]["cost_nanos"].is_u64() || is_streamed);
        assert!(log[1]["cost_nanos"].is_null());
        assert!(proxy.metric("penstock_cache_size_bytes", &[]).await > 0.0);
        assert_eq!(proxy.metric("penstock_cache_hits_total", &[]).await, 1.0);
    }
}

#[tokio::test]
async fn what_was_not_good_to_its_end_is_not_kept() {
    let cut = then(stream([delta("x")]), Step::Reset);
    let refused = whole(400, "", r#"{"error":{"message":"no"}}"#);
    for (is_streamed, bad, good) in
        [(true, cut, streamed()), (false, refused, good()), (false, whole(500, "", "{}"), good())]
    {
        let (proxy, script) = keeping([bad, good]).await;
        chat(proxy.addr(), is_streamed).await;
        let second = chat(proxy.addr(), is_streamed).await;
        assert_eq!((second.status, cache(&second)), (200, Some("miss")));
        assert_eq!(cache(&chat(proxy.addr(), is_streamed).await), Some("hit"));
        assert_eq!(script.requests().len(), 2);
    }
}

#[tokio::test]
async fn of_requests_that_arrive_together_one_goes_and_the_others_wait() {
    let (proxy, script) = keeping([[vec![Step::Gate], good()].concat()]).await;
    let addr = proxy.addr();
    let call = || tokio::spawn(async move { chat(addr, false).await });
    let first = call();
    until(|| script.requests().len() == 1).await;
    let others: Vec<_> = (0..8).map(|_| call()).collect();
    while proxy.metric("penstock_requests_in_flight", &[]).await < 9.0 {
        tokio::task::yield_now().await;
    }
    script.open();
    assert_eq!(cache(&first.await.unwrap()), Some("miss"));
    for other in others {
        assert_eq!(cache(&other.await.unwrap()), Some("hit"));
    }
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn when_the_one_that_went_leaves_the_others_go_themselves() {
    let (proxy, script) = keeping([vec![Step::Silence], good()]).await;
    let mut first = Client::connect(proxy.addr()).await;
    first.post(PATH, &chat_body(false)).await;
    until(|| script.requests().len() == 1).await;
    let addr = proxy.addr();
    let other = tokio::spawn(async move { chat(addr, false).await });
    while proxy.metric("penstock_requests_in_flight", &[]).await < 2.0 {
        tokio::task::yield_now().await;
    }
    drop(first);
    assert_eq!(cache(&other.await.unwrap()), Some("miss"));
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn a_client_may_refuse_what_is_kept_and_forbid_keeping() {
    let (proxy, script) = keeping([good()]).await;
    let with = |wish: &str| request(PATH, &format!("cache-control: {wish}\r\n"), &chat_body(false));
    for (wish, result, sent) in [
        ("no-store", "miss", 1),
        ("max-age=0", "miss", 2),
        ("no-store", "hit", 2),
        ("no-cache", "miss", 3),
        ("no-cache, no-store", "miss", 4),
    ] {
        let answer = raw(proxy.addr(), with(wish).as_bytes()).await;
        assert_eq!((answer.status, cache(&answer)), (200, Some(result)), "{wish}");
        assert_eq!(script.requests().len(), sent, "{wish}");
    }
}

#[tokio::test]
async fn other_routes_bodies_and_calls_have_answers_of_their_own() {
    let (proxy, script) = keeping([good()]).await;
    let ask = |text: &str| json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
    for (body, result) in [(ask("a"), "miss"), (ask("b"), "miss"), (ask("a"), "hit")] {
        assert_eq!(cache(&post(proxy.addr(), PATH, &body).await), Some(result));
    }
    let twice = r#"{"model":"m","messages":[{"role":"user","content":"a"}],"n":1,"n":1}"#;
    assert_eq!(cache(&post(proxy.addr(), PATH, twice).await), None);
    assert_eq!(script.requests().len(), 3);

    let plain = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    assert_eq!(cache(&chat(plain.addr(), false).await), None);
}
