//! Connections on both sides: what is kept, what is not, and whose bytes are whose.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::client::{Client, chat, chat_body, raw, request};
use crate::support::scripted::{DONE, GOOD, Script, Step, chunk, delta, end, good, stream, whole};
use crate::support::{Proxy, policy, until};

const CHAT: &str = "/v1/chat/completions";

async fn before(answers: impl IntoIterator<Item = Vec<Step>>) -> (Proxy, Script) {
    let script = Script::new(answers);
    let proxy = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    (proxy, script)
}

#[tokio::test]
async fn what_follows_an_answer_is_not_the_answer_to_the_next_request() {
    let evil = GOOD.replace("good", "evil");
    let Step::Send(first) = good().remove(0) else { unreachable!() };
    let Step::Send(second) = whole(200, "", &evil).remove(0) else { unreachable!() };
    let together = vec![Step::Send([first.clone(), second.clone()].concat())];
    let later = vec![Step::Send(first), Step::Pause(Duration::from_millis(20)), Step::Send(second)];
    for answer in [together, later] {
        let (proxy, _) = before([answer, good()]).await;
        for _ in 0..3 {
            let answer = chat(proxy.addr(), false).await;
            assert_eq!((answer.status, answer.text().as_str()), (200, GOOD));
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }
}

#[tokio::test]
async fn a_service_that_says_why_it_closes_an_idle_connection_harms_nobody() {
    let farewell = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    let mut answer = good();
    answer.extend([Step::Pause(Duration::from_millis(20)), Step::Send(farewell), Step::Close]);
    let (proxy, script) = before([answer]).await;
    for call in 1..=5 {
        let answer = chat(proxy.addr(), false).await;
        assert_eq!((answer.status, answer.header("x-penstock-attempts")), (200, Some("1")));
        script.ended(call).await;
    }
}

#[tokio::test]
async fn garbage_on_a_kept_connection_is_an_answer_and_not_asked_for_again_res_10() {
    let garbage = vec![Step::Send(b"garbage\r\n\r\n".to_vec()), Step::Close];
    let script = Script::new([good(), garbage, good()]);
    let mut once = policy(&[("a", script.listen().await)]);
    once["routes"][0]["retry"]["attempts"] = 1.into();
    let proxy = Proxy::start(&once).await;
    assert_eq!(chat(proxy.addr(), false).await.status, 200);
    let answer = chat(proxy.addr(), false).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_invalid"));
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn older_and_wordier_services_are_understood() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let Step::Send(plain) = good().remove(0) else { unreachable!() };
    let closing = format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{GOOD}");
    for steps in [
        vec![Step::Send([hints.as_bytes(), &plain].concat())],
        vec![Step::Send(closing.into_bytes()), Step::Close],
    ] {
        let (proxy, _) = before([steps]).await;
        let answer = chat(proxy.addr(), false).await;
        assert_eq!((answer.status, answer.text().as_str(), answer.whole), (200, GOOD, true));
    }
}

#[tokio::test]
async fn a_stream_that_ends_with_its_connection_needs_its_end_mark_all_the_same() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    for (last, outcome) in [(DONE, "ok"), ("", "truncated")] {
        let text = format!("{head}{}{last}", delta("a"));
        let (proxy, _) = before([vec![Step::Send(text.into_bytes()), Step::Close]]).await;
        let answer = chat(proxy.addr(), true).await;
        assert!(answer.whole && answer.text().starts_with(&delta("a")));
        assert_eq!(answer.text().contains("upstream_truncated"), last.is_empty());
        assert_eq!(proxy.log(1).await[0]["outcome"], outcome);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Script::new([good()]);
    let location = format!("location: http://{}/v1/chat/completions\r\n", elsewhere.listen().await);
    for status in [301, 302, 307, 308] {
        let (proxy, _) = before([whole(status, &location, "")]).await;
        let answer = chat(proxy.addr(), false).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_invalid"));
        assert!(answer.header("location").is_none());
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_in_their_order() {
    let answers = ["one", "two", "three"].map(|text| whole(200, "", &GOOD.replace("good", text)));
    let (proxy, _) = before(answers).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.send(request(CHAT, "", &chat_body(false)).repeat(3).as_bytes()).await;
    for text in ["one", "two", "three"] {
        assert_eq!(client.answer().await.json()["choices"][0]["message"]["content"], text);
    }
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked() {
    let (proxy, script) = before([good()]).await;
    let mut socket = TcpStream::connect(proxy.addr()).await.unwrap();
    let body = chat_body(false);
    let call = request(CHAT, "expect: 100-continue\r\n", &body);
    let (head, body) = call.split_at(call.len() - body.len());
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    socket.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert!(!script.requests()[0].head.contains("expect"));
}

#[tokio::test]
async fn a_head_request_is_answered_without_a_body_sec_10() {
    let (proxy, _) = before([good()]).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.send(b"HEAD /v1/models HTTP/1.1\r\nhost: g\r\n\r\nGET /health HTTP/1.1\r\nhost: g\r\n\r\n").await;
    // The head is followed by the next answer at once: by its own length it would have swallowed that.
    let answer = client.until("HTTP/1.1 200 OK").await;
    assert!(answer.header("content-length").unwrap().parse::<usize>().unwrap() > 0);
    assert!(answer.text().starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_cancelled_http_2_stream_ends_the_generation_and_nothing_else_sse_10() {
    let (proxy, script) = before([vec![Step::Silence], good()]).await;
    let socket = TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    let call = || {
        let uri = format!("http://{}{CHAT}", proxy.addr());
        http::Request::post(uri).body(Full::new(Bytes::from(chat_body(false)))).unwrap()
    };
    let cancelled = tokio::spawn(sender.send_request(call()));
    until(|| script.requests().len() == 1).await;
    let gone = Instant::now();
    cancelled.abort();
    script.left(1).await;
    assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    let answer = sender.send_request(call()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), GOOD);
    assert_eq!(proxy.log(2).await[0]["outcome"], "client_cancelled");
}

#[tokio::test]
async fn nothing_is_in_flight_when_the_clients_have_left_sse_10() {
    let (proxy, script) = before([vec![Step::Silence]]).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(proxy.addr()).await;
        client.post(CHAT, &chat_body(true)).await;
        clients.push(client);
    }
    until(|| script.requests().len() == 8).await;
    for metric in ["penstock_requests_in_flight", "penstock_attempts_in_flight", "penstock_connections"] {
        assert_eq!(proxy.metric(metric, &[]).await, 8.0, "{metric}");
    }
    drop(clients);
    script.left(8).await;
    proxy.log(8).await;
    for metric in ["penstock_requests_in_flight", "penstock_attempts_in_flight", "penstock_connections"] {
        assert_eq!(proxy.metric(metric, &[]).await, 0.0, "{metric}");
    }
    assert_eq!(proxy.metric("penstock_breaker_state", &[]).await, 0.0, "it was not the service's fault");
}

#[tokio::test]
async fn a_slow_reader_slows_the_service_down_sse_13() {
    const PIECES: usize = 1_024;
    let event = delta(&"x".repeat(64 << 10));
    let mut steps = stream::<&str>([]);
    steps.extend((0..PIECES).map(|_| chunk(event.as_bytes())));
    steps.extend([chunk(DONE.as_bytes()), end()]);
    let (proxy, script) = before([steps]).await;
    let mut client = Client::connect(proxy.addr()).await;
    client.post(CHAT, &chat_body(true)).await;
    // What the sockets of both hops hold fits many times into what is sent.
    let (mut sent, mut still) = (0, 0);
    while still < 10 {
        tokio::time::sleep(Duration::from_millis(30)).await;
        still = if script.sent() == sent && sent > 0 { still + 1 } else { 0 };
        sent = script.sent();
    }
    assert!(sent < 32 << 20, "{sent} bytes were taken for a client that reads nothing");
    let length = client.drain().await;
    assert!(length > PIECES * event.len(), "{length}");
    assert_eq!(proxy.log(1).await[0]["outcome"], "ok");
}

#[tokio::test]
async fn a_body_that_breaks_off_reaches_no_service() {
    let (proxy, script) = before([good()]).await;
    let mut client = Client::connect(proxy.addr()).await;
    let call = request(CHAT, "", &chat_body(false));
    client.send(&call.as_bytes()[..call.len() - 1]).await;
    drop(client);
    let line = &proxy.log(1).await[0];
    assert_eq!(line["attempts"], 0);
    assert!(script.requests().is_empty());
    // The same over a connection of its own, whole, to see that the proxy is well.
    assert_eq!(raw(proxy.addr(), call.as_bytes()).await.status, 200);
}
