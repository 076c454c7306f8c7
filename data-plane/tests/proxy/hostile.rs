//! What clients and services may send and nobody should.

use serde_json::json;

use crate::support::client::{Client, chat, chat_body, get, post};
use crate::support::scripted::{DONE, STOP, Script, Step, delta, good, stream, then};
use crate::support::{Proxy, policy, sim, with_timeouts};

#[tokio::test]
async fn a_token_limit_beyond_counting_is_the_services_to_judge() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    for field in ["max_tokens", "max_completion_tokens"] {
        let field = format!(r#"{{"{field}":{},"#, u64::MAX);
        let answer =
            post(proxy.addr(), "/v1/chat/completions", &chat_body(false).replacen('{', &field, 1)).await;
        assert_eq!(answer.header("x-penstock-attempts"), Some("1"), "{}", answer.text());
    }
}

#[tokio::test]
async fn what_is_too_long_for_every_service_is_the_clients_to_shorten() {
    let script = Script::new([good()]);
    let mut policy = policy(&[("a", script.listen().await), ("b", script.listen().await)]);
    for backend in ["a", "b"] {
        policy["backends"][backend]["models"][0]["context_window"] = json!(1_000);
    }
    let proxy = Proxy::start(&policy).await;
    let limit = format!(r#"{{"max_tokens":{},"#, u64::MAX);
    for body in
        [chat_body(false).replace("hi", &"word ".repeat(5_000)), chat_body(false).replacen('{', &limit, 1)]
    {
        let answer = post(proxy.addr(), "/v1/chat/completions", &body).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (400, "context_too_long"));
    }
    assert!(script.requests().is_empty());
    assert_eq!(chat(proxy.addr(), false).await.status, 200);
}

#[tokio::test]
async fn a_model_name_of_a_megabyte_does_not_fill_the_log() {
    let proxy = Proxy::start(&policy(&[("a", Script::new([good()]).listen().await)])).await;
    let name = "模".repeat(400_000);
    let answer = post(proxy.addr(), "/v1/chat/completions", &chat_body(false).replace("auto", &name)).await;
    assert_eq!(answer.status, 200);
    let logged = proxy.log(1).await[0]["model"].as_str().unwrap().to_owned();
    assert!((100..=128).contains(&logged.len()) && name.starts_with(&logged), "{logged}");
}

#[tokio::test]
async fn a_stream_that_stays_open_or_breaks_behind_its_end_mark_is_whole_sse_04() {
    let said = [delta("all"), STOP.to_owned(), DONE.to_owned()];
    for ending in [Step::Silence, Step::Reset, Step::Close] {
        let script = Script::new([then(stream(&said), ending)]);
        let limits = json!({"idle": "100ms"});
        let proxy = Proxy::start(&with_timeouts(policy(&[("a", script.listen().await)]), limits)).await;
        let answer = chat(proxy.addr(), true).await;
        assert!(answer.whole);
        assert_eq!(answer.text(), said.concat());
        let line = &proxy.log(1).await[0];
        assert_eq!((&line["outcome"], &line["error_code"]), (&"ok".into(), &"".into()));
    }
}

#[tokio::test]
async fn who_has_connected_before_the_end_is_served() {
    let proxy = Proxy::start(&policy(&[("a", Script::new([good()]).listen().await)])).await;
    let (addr, admin) = (proxy.addr(), proxy.admin());
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(Client::connect(addr).await);
    }
    let ending = tokio::spawn(proxy.shutdown());
    while get(admin, "/ready").await.status == 200 {}
    for client in &mut clients {
        client.send(b"GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n").await;
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    ending.await.unwrap();
}
