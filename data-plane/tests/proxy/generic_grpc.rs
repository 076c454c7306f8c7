//! Generic gRPC services: all kinds of calls, and every way in which one can end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::Response;
use http::uri::PathAndQuery;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::support::client;
use crate::support::grpc::{
    Codec, answer, call, connect, echo, framed, head, raw, read, request, reset_of, tonic_client, trailers,
    unary,
};
use crate::support::{PATIENCE, Proxy, until, with_timeouts};

const UNARY: &str = "/test.Echo/Unary";

/// A policy that sends `/test.*` to these services.
fn policy(services: &[(&str, SocketAddr)]) -> Value {
    let backend = |(name, addr): &(&str, SocketAddr)| {
        (
            (*name).to_owned(),
            json!({"provider": "grpc", "base_url": format!("http://{addr}"), "capabilities": ["chat"]}),
        )
    };
    json!({
        "version": 1,
        "capabilities": {"chat": {"default": true}},
        "backends": services.iter().map(backend).collect::<serde_json::Map<_, _>>(),
        "routes": [{"name": "grpc", "match": {"paths": ["/test.*"]}, "retry": {"attempts": 2}}],
    })
}

/// A proxy before a service of tonic's whose `Fail` methods end with this code.
async fn before_echo(code: Code) -> (Proxy, Arc<crate::support::grpc::Seen>) {
    let (addr, seen) = echo(Status::new(code, "why: 100 %潮")).await;
    (Proxy::start(&policy(&[("a", addr)])).await, seen)
}

/// A proxy before a service of its own for each of two handlers' names, which share `addr`: whichever is asked first.
async fn before_two(addr: SocketAddr) -> Proxy {
    let other = addr;
    // The same service under two names: a second attempt goes to the name that was not tried.
    Proxy::start(&policy(&[("a", addr), ("b", other)])).await
}

#[tokio::test]
async fn calls_of_all_four_kinds_pass_with_their_metadata() {
    let (addr, seen) = echo(Status::ok("")).await;
    let mut policy = policy(&[("a", addr)]);
    policy["backends"]["a"]["credential"] = "env:KEY".into();
    let proxy = Proxy::start(&policy).await;
    let mut client = tonic_client(proxy.addr()).await;
    let path = PathAndQuery::from_static;

    let mut asked = tonic::Request::new("hi".to_owned());
    asked.metadata_mut().insert("x-own", "1".parse().unwrap());
    asked.metadata_mut().insert("authorization", "Bearer gw-SENTINEL".parse().unwrap());
    asked.metadata_mut().insert_bin("own-bin", tonic::metadata::MetadataValue::from_bytes(b"\0\xff"));
    let answer = client.unary(asked, path(UNARY), Codec::default()).await.unwrap();
    assert_eq!(answer.get_ref(), "echo hi");
    assert_eq!(answer.metadata().get("x-initial").unwrap(), "yes");
    assert_eq!(answer.metadata().get("x-penstock-backend").unwrap(), "a");
    assert_eq!(answer.metadata().get("grpc-status").unwrap(), "0", "tonic shows trailers here too");
    let (called, metadata) = seen.calls.lock().unwrap()[0].clone();
    assert_eq!((called.as_str(), metadata.get("x-own").unwrap().to_str().unwrap()), (UNARY, "1"));
    assert_eq!(metadata.get_bin("own-bin").unwrap().to_bytes().unwrap(), &b"\0\xff"[..]);
    assert_eq!(metadata.get("authorization").unwrap(), "Bearer sk-OURS");

    client.ready().await.unwrap();
    let many = client.server_streaming(
        tonic::Request::new("n".to_owned()),
        path("/test.Echo/Many"),
        Codec::default(),
    );
    let many: Vec<String> = many.await.unwrap().into_inner().collect::<Result<_, _>>().await.unwrap();
    assert_eq!(many, ["n 0", "n 1", "n 2"]);

    client.ready().await.unwrap();
    let words = tokio_stream::iter(["a", "b", "c"].map(str::to_owned));
    let collected =
        client.client_streaming(tonic::Request::new(words), path("/test.Echo/Collect"), Codec::default());
    assert_eq!(collected.await.unwrap().into_inner(), "a+b+c");

    client.ready().await.unwrap();
    let (say, said) = mpsc::channel(1);
    let chat = client.streaming(
        tonic::Request::new(ReceiverStream::new(said)),
        path("/test.Echo/Chat"),
        Codec::default(),
    );
    // The first message goes out before anything comes back, the second only after the answer to the first.
    say.send("one".to_owned()).await.unwrap();
    let mut chat = chat.await.unwrap().into_inner();
    assert_eq!(chat.message().await.unwrap().unwrap(), "re: one");
    say.send("two".to_owned()).await.unwrap();
    assert_eq!(chat.message().await.unwrap().unwrap(), "re: two");
    drop(say);
    assert_eq!(chat.message().await.unwrap(), None);
    assert_eq!(seen.connections.load(Relaxed), 1, "all over one connection");
    let log = proxy.log(4).await;
    assert!(log.iter().all(|line| line["outcome"] == "ok" && line["protocol"] == "grpc"), "{log:?}");
    assert_eq!((&log[0]["path"], &log[0]["bytes_in"]), (&json!("grpc"), &json!(9)));
}

#[tokio::test]
async fn rules_see_the_method_that_is_called_and_its_metadata() {
    let (addr, _) = echo(Status::ok("")).await;
    let mut policy = policy(&[("a", addr)]);
    policy["routes"] = json!([{
        "name": "risk",
        "condition": "protocol == \"grpc\" && path == \"/test.Echo/Unary\" && biz_type == \"risk_control\"",
    }]);
    let proxy = Proxy::start(&policy).await;
    let taken = call(proxy.addr(), UNARY, &[("x-biz-type", "risk_control")], b"").await;
    assert_eq!(taken.status(), Some(0));
    for (method, biz_type) in [(UNARY, "other"), ("/test.Echo/Many", "risk_control")] {
        let refused = call(proxy.addr(), method, &[("x-biz-type", biz_type)], b"").await;
        assert_eq!(
            (refused.status(), refused.says("penstock-code")),
            (Some(12), Some("unknown_path")),
            "{method}"
        );
        assert!(
            refused.trailers.is_none() && refused.body.is_empty(),
            "its status is all there is: {refused:?}"
        );
        assert_eq!(refused.head["content-type"], "application/grpc");
        assert!(refused.head.contains_key("x-penstock-decision"));
    }
}

#[tokio::test]
async fn the_callers_own_mistakes_pass_unchanged_and_count_for_nothing() {
    for code in [
        Code::InvalidArgument,
        Code::NotFound,
        Code::FailedPrecondition,
        Code::Unimplemented,
        Code::PermissionDenied,
    ] {
        let (proxy, seen) = before_echo(code).await;
        let mut client = tonic_client(proxy.addr()).await;
        for method in ["/test.Echo/Fail", "/test.Echo/FailFirst"] {
            for _ in 0..6 {
                let status = unary(&mut client, method, "").await.unwrap_err();
                assert_eq!((status.code(), status.message()), (code, "why: 100 %潮"));
                assert_eq!(status.metadata().get("x-penstock-attempts").unwrap(), "1");
            }
        }
        assert_eq!(seen.count(), 12, "no breaker opened");
        let line = &proxy.log(12).await[11];
        assert_eq!(
            (&line["outcome"], &line["error_code"]),
            (&json!("client_error"), &json!("upstream_rejected"))
        );
    }
}

#[tokio::test]
async fn a_service_that_fails_before_its_first_message_is_left_for_another_res_01() {
    for method in ["/test.Echo/Fail", "/test.Echo/FailFirst"] {
        for code in [
            Code::Unavailable,
            Code::ResourceExhausted,
            Code::DeadlineExceeded,
            Code::Internal,
            Code::Unknown,
            Code::Aborted,
        ] {
            let (bad, _) = echo(Status::new(code, "")).await;
            let (good, _) = echo(Status::invalid_argument("the good one")).await;
            // Only the first answer matters: the one that fails must not be the answer.
            let proxy = Proxy::start(&policy(&[("bad", bad), ("good", good)])).await;
            let mut client = tonic_client(proxy.addr()).await;
            for _ in 0..4 {
                let status = unary(&mut client, method, "hi").await.unwrap_err();
                assert_eq!(status.message(), "the good one", "{code:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_the_client_said_is_said_again_to_the_next_service() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let addr = raw(move |number, request, mut respond| {
        let heard = Arc::clone(&hearing);
        async move {
            let mut body = request.into_body();
            let mut said = Vec::new();
            while said.len() < 14 {
                said.extend_from_slice(&body.data().await.unwrap().unwrap());
            }
            heard.lock().unwrap().push(said);
            if number == 0 {
                return respond.send_reset(Reason::INTERNAL_ERROR);
            }
            // The second hears the rest as well.
            let rest = body.data().await.unwrap().unwrap();
            assert_eq!(rest, framed(b"three"));
            answer(respond, b"all");
        }
    })
    .await;
    let proxy = before_two(addr).await;
    let mut client = connect(proxy.addr()).await;
    let (response, mut stream) = client.send_request(request(UNARY, &[]), false).unwrap();
    stream.send_data(framed(b"one"), false).unwrap();
    stream.send_data(framed(b"2"), false).unwrap();
    until(|| heard.lock().unwrap().len() == 2).await;
    stream.send_data(framed(b"three"), true).unwrap();
    let answer = read(response).await;
    assert_eq!((answer.status(), &answer.body[5..]), (Some(0), &b"all"[..]));
    assert_eq!(answer.head["x-penstock-attempts"], "2");
    let heard = heard.lock().unwrap();
    assert_eq!((&heard[0], &heard[0]), (&heard[1], &[framed(b"one"), framed(b"2")].concat()));
}

#[tokio::test]
async fn what_is_too_much_to_be_kept_is_said_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let asking = Arc::clone(&asked);
    let addr = raw(move |_, request, mut respond| {
        let asked = Arc::clone(&asking);
        async move {
            asked.fetch_add(1, Relaxed);
            let mut body = request.into_body();
            let mut length = 0;
            while length < 1_500 {
                length += body.data().await.unwrap().unwrap().len();
            }
            respond.send_reset(Reason::INTERNAL_ERROR);
        }
    })
    .await;
    let mut policy = policy(&[("a", addr), ("b", addr)]);
    policy["limits"] = json!({"body": "1KiB"});
    let proxy = Proxy::start(&policy).await;
    let mut client = connect(proxy.addr()).await;
    let (response, mut stream) = client.send_request(request(UNARY, &[]), false).unwrap();
    for _ in 0..3 {
        stream.send_data(framed(&[b'x'; 600]), false).unwrap();
    }
    let answer = read(response).await;
    assert_eq!((answer.status(), answer.says("penstock-code")), (Some(14), Some("upstream_truncated")));
    assert_eq!(asked.load(Relaxed), 1);
}

#[tokio::test]
async fn after_the_first_message_the_services_own_status_ends_the_call() {
    let (proxy, seen) = before_echo(Code::Unavailable).await;
    let mut client = tonic_client(proxy.addr()).await;
    let asked = tonic::Request::new(String::new());
    let many =
        client.server_streaming(asked, PathAndQuery::from_static("/test.Echo/FailLate"), Codec::default());
    let mut many = many.await.unwrap().into_inner();
    assert_eq!(many.message().await.unwrap().unwrap(), "one");
    let status = many.message().await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "why: 100 %潮"));
    assert_eq!(seen.count(), 1);
    let line = &proxy.log(1).await[0];
    assert_eq!(
        (&line["outcome"], &line["error_code"]),
        (&json!("overloaded"), &json!("upstream_overloaded"))
    );
}

#[tokio::test]
async fn a_call_that_breaks_off_is_told_as_a_status_sse_04() {
    // Reset in the middle; the end of the body without a status.
    for reset in [true, false] {
        let (seen, wait) = oneshot::channel::<()>();
        let wait = Mutex::new(Some(wait));
        let addr = raw(move |_, _, mut respond| {
            let wait = wait.lock().unwrap().take().unwrap();
            async move {
                let mut stream = respond.send_response(head(), false).unwrap();
                stream.send_data(framed(b"half"), false).unwrap();
                wait.await.unwrap();
                if reset {
                    stream.send_reset(Reason::INTERNAL_ERROR);
                } else {
                    stream.send_data(Bytes::new(), true).unwrap();
                }
            }
        })
        .await;
        let proxy = Proxy::start(&policy(&[("a", addr)])).await;
        let mut client = connect(proxy.addr()).await;
        let (response, mut stream) = client.send_request(request(UNARY, &[]), false).unwrap();
        stream.send_data(framed(b""), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), framed(b"half"));
        seen.send(()).unwrap();
        assert!(body.data().await.is_none());
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(
            (&trailers["grpc-status"], &trailers["penstock-code"]),
            (&"14".parse().unwrap(), &"upstream_truncated".parse().unwrap()),
            "{reset}"
        );
        assert_eq!(proxy.log(1).await[0]["outcome"], "truncated");
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_left_for_another() {
    let html = || Response::builder().header("content-type", "text/html").body(()).unwrap();
    let unavailable = || Response::builder().status(503).body(()).unwrap();
    for kind in 0..4 {
        let addr = raw(move |number, _, mut respond| async move {
            if number > 0 {
                return answer(respond, b"good");
            }
            let data = |mut stream: h2::SendStream<Bytes>, bytes: &'static [u8]| {
                stream.send_data(bytes.into(), true).unwrap();
            };
            match kind {
                0 => data(respond.send_response(html(), false).unwrap(), b"<html>"),
                1 => data(respond.send_response(unavailable(), false).unwrap(), b""),
                2 => data(respond.send_response(head(), false).unwrap(), b"garbage"),
                _ => drop(respond.send_response(head(), true).unwrap()),
            }
        })
        .await;
        let proxy = before_two(addr).await;
        let answer = call(proxy.addr(), UNARY, &[], b"").await;
        assert_eq!((answer.status(), &answer.body[..]), (Some(0), &framed(b"good")[..]), "{kind}");
        assert_eq!(answer.head["x-penstock-attempts"], "2");
    }
}

#[tokio::test]
async fn a_client_that_cancels_resets_the_call_and_nothing_else_sse_10() {
    let (told, mut reasons) = mpsc::channel(2);
    let heard = Arc::new(AtomicUsize::new(0));
    let hearing = Arc::clone(&heard);
    let addr = raw(move |number, request, mut respond| {
        let (told, heard) = (told.clone(), Arc::clone(&hearing));
        async move {
            let mut body = request.into_body();
            body.data().await.unwrap().unwrap();
            heard.fetch_add(1, Relaxed);
            match number {
                // One call is under way, one has not been answered.
                0 => {
                    let mut stream = respond.send_response(head(), false).unwrap();
                    stream.send_data(framed(b"one"), false).unwrap();
                    let reason = std::future::poll_fn(|context| stream.poll_reset(context)).await.unwrap();
                    told.send(reason).await.unwrap();
                }
                1 => told.send(reset_of(respond).await).await.unwrap(),
                _ => answer(respond, b"good"),
            }
        }
    })
    .await;
    let proxy = Proxy::start(&policy(&[("a", addr)])).await;
    let mut client = connect(proxy.addr()).await;
    for answered in [true, false] {
        // The client has not said everything yet: the service must not take what it said for the whole.
        let (response, mut stream) = client.send_request(request("/test.Echo/Chat", &[]), false).unwrap();
        stream.send_data(framed(b"hi"), false).unwrap();
        if answered {
            let mut body = response.await.unwrap().into_body();
            assert_eq!(body.data().await.unwrap().unwrap(), framed(b"one"));
            stream.send_reset(Reason::CANCEL);
        } else {
            until(|| heard.load(Relaxed) == 2).await;
            stream.send_reset(Reason::CANCEL);
        }
        assert_eq!(timeout(PATIENCE, reasons.recv()).await.unwrap().unwrap(), Reason::CANCEL, "{answered}");
    }
    assert_eq!(call(proxy.addr(), UNARY, &[], b"").await.status(), Some(0));
    let log = proxy.log(3).await;
    let outcomes: Vec<_> = log.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["client_cancelled", "client_cancelled", "ok"]);
}

#[tokio::test]
async fn a_hung_service_is_left_for_another_and_reset_res_07() {
    let (told, reason) = oneshot::channel();
    let told = Mutex::new(Some(told));
    let addr = raw(move |number, _, respond| {
        let told = (number == 0).then(|| told.lock().unwrap().take().unwrap());
        async move {
            match told {
                Some(told) => told.send(reset_of(respond).await).unwrap(),
                None => answer(respond, b"good"),
            }
        }
    })
    .await;
    let hung = with_timeouts(policy(&[("a", addr), ("b", addr)]), json!({"first_token": "100ms"}));
    let proxy = Proxy::start(&hung).await;
    let answer = call(proxy.addr(), UNARY, &[], b"").await;
    assert_eq!((answer.status(), &answer.head["x-penstock-attempts"]), (Some(0), &"2".parse().unwrap()));
    assert_eq!(reason.await.unwrap(), Reason::CANCEL);
}

#[tokio::test]
async fn while_the_client_talks_the_service_may_listen() {
    let (addr, _) = echo(Status::ok("")).await;
    let proxy = Proxy::start(&with_timeouts(
        policy(&[("a", addr)]),
        json!({"first_token": "150ms", "idle": "150ms"}),
    ))
    .await;
    let mut client = connect(proxy.addr()).await;
    let (response, mut stream) = client.send_request(request("/test.Echo/Collect", &[]), false).unwrap();
    for word in ["a", "b", "c", "d"] {
        let message = [&[0x0a, 1][..], word.as_bytes()].concat();
        stream.send_data(framed(&message), word == "d").unwrap();
        // All of them take longer than the service may take to answer.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let answer = read(response).await;
    assert_eq!((answer.status(), &answer.body[7..]), (Some(0), &b"a+b+c+d"[..]));
    assert_eq!(answer.head["x-penstock-attempts"], "1");
}

#[tokio::test]
async fn the_clients_deadline_is_the_calls_and_the_service_is_told_what_is_left_of_it() {
    let (told, mut timeouts) = mpsc::channel(8);
    let addr = raw(move |_, request, respond| {
        let told = told.clone();
        async move {
            told.send(request.headers().get("grpc-timeout").cloned()).await.unwrap();
            reset_of(respond).await;
        }
    })
    .await;
    let proxy = Proxy::start(&policy(&[("a", addr)])).await;
    let answer = call(proxy.addr(), UNARY, &[("grpc-timeout", "200m")], b"").await;
    assert_eq!((answer.status(), answer.says("penstock-code")), (Some(4), Some("deadline_exceeded")));
    let told = timeouts.recv().await.unwrap().unwrap();
    let micros: u64 = told.to_str().unwrap().strip_suffix('u').unwrap().parse().unwrap();
    assert!((1..=200_000).contains(&micros), "{told:?}");
    assert_eq!(proxy.log(1).await[0]["status"], 504);

    let wrong = call(proxy.addr(), UNARY, &[("grpc-timeout", "soon")], b"").await;
    assert_eq!((wrong.status(), wrong.says("penstock-code")), (Some(3), Some("invalid_body")));
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_and_is_no_fault_of_the_service() {
    let (addr, _) = echo(Status::ok("")).await;
    let mut policy = policy(&[("a", addr)]);
    policy["limits"] = json!({"body": "1KiB"});
    policy["breaker"] = json!({"consecutive_failures": 1, "open": "60s"});
    let proxy = Proxy::start(&policy).await;
    let refused = call(proxy.addr(), UNARY, &[], &[b'x'; 1_025]).await;
    assert_eq!((refused.status(), refused.says("penstock-code")), (Some(8), Some("body_too_large")));
    let mut client = connect(proxy.addr()).await;
    let (response, mut stream) = client.send_request(request(UNARY, &[]), false).unwrap();
    stream.send_data(Bytes::from_static(b"GET / HTTP/1.1"), true).unwrap();
    let refused = read(response).await;
    assert_eq!((refused.status(), refused.says("penstock-code")), (Some(3), Some("invalid_body")));
    assert_eq!(call(proxy.addr(), UNARY, &[], b"").await.status(), Some(0), "its breaker is closed");
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_ours_alone() {
    let (bad, _) = echo(Status::unauthenticated("bad key sk-OURS")).await;
    let mut policy = policy(&[("a", bad)]);
    policy["backends"]["a"]["credential"] = "env:KEY".into();
    let proxy = Proxy::start(&policy).await;
    let refused = call(proxy.addr(), "/test.Echo/Fail", &[], b"").await;
    assert_eq!((refused.status(), refused.says("penstock-code")), (Some(14), Some("upstream_credential")));
    assert!(!refused.says("grpc-message").unwrap().contains("sk-OURS"));
}

#[tokio::test]
async fn a_connection_that_the_service_ends_is_opened_anew_res_10() {
    let served = Arc::new(AtomicUsize::new(0));
    let serving = Arc::clone(&served);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let served = Arc::clone(&serving);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(socket).await.unwrap();
                // One call for each connection.
                while let Some(Ok((_, respond))) = connection.accept().await {
                    served.fetch_add(1, Relaxed);
                    answer(respond, b"good");
                    connection.graceful_shutdown();
                }
            });
        }
    });
    let mut policy = policy(&[("a", addr)]);
    policy["routes"][0]["retry"]["attempts"] = 1.into();
    let proxy = Proxy::start(&policy).await;
    for number in 1..=5 {
        let answer = call(proxy.addr(), UNARY, &[], b"").await;
        assert_eq!((answer.status(), served.load(Relaxed)), (Some(0), number));
    }
}

#[tokio::test]
async fn many_calls_share_a_connection_and_a_slow_one_holds_up_none() {
    let addr = raw(|_, request, mut respond| async move {
        if request.uri().path() != "/test.Echo/Flood" {
            return answer(respond, b"quick");
        }
        let mut stream = respond.send_response(head(), false).unwrap();
        let flood = framed(&vec![b'x'; 8 << 20]);
        stream.send_data(flood, false).unwrap();
        stream.send_trailers(trailers(0)).unwrap();
        let _ = std::future::poll_fn(|context| stream.poll_reset(context)).await;
    })
    .await;
    let proxy = Proxy::start(&policy(&[("a", addr)])).await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        // Its client takes nothing of it.
        let mut client = connect(proxy.addr()).await;
        let (response, mut stream) = client.send_request(request("/test.Echo/Flood", &[]), false).unwrap();
        stream.send_data(framed(b""), true).unwrap();
        slow.push((client, response.await.unwrap()));
    }
    let calls = (0..50).map(|_| call(proxy.addr(), UNARY, &[], b""));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!((answer.status(), &answer.body[5..]), (Some(0), &b"quick"[..]));
    }
    // Taken up again, a slow one comes whole.
    let (_client, response) = slow.pop().unwrap();
    let mut body = response.into_body();
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        length += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    assert_eq!(length, (8 << 20) + 5);
    assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn nobody_there_is_said_in_grpcs_words_and_in_https_to_others() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = closed.local_addr().unwrap();
    drop(closed);
    let proxy = Proxy::start(&policy(&[("a", addr)])).await;
    let answer = call(proxy.addr(), UNARY, &[], b"").await;
    assert_eq!((answer.status(), answer.says("penstock-code")), (Some(14), Some("upstream_unreachable")));
    assert_eq!(answer.says("grpc-message"), Some("The service cannot be reached."));
    // Over HTTP/1.1 there is no gRPC, whatever it is called.
    let text = format!(
        "POST {UNARY} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n"
    );
    let answer = client::raw(proxy.addr(), text.as_bytes()).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (400, "unsupported"));
}
