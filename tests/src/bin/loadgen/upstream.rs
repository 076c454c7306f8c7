//! The service behind the gateway for streams: every call gets the same events at an even pace, one write each.
//!
//! The simulated services draw their times from distributions and queue; a benchmark wants none of that.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::MissedTickBehavior;

/// Serves until it is killed.
pub(crate) async fn run(listen: SocketAddr, tokens_per_second: f64, tokens: u32) -> Result<Value> {
    if tokens_per_second <= 0.0 {
        bail!("a stream without a pace never ends");
    }
    let pace = Duration::from_secs_f64(1.0 / tokens_per_second);
    let events: &'static [Bytes] = events(tokens).leak();
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(serve(connection, pace, events));
    }
}

async fn serve(connection: TcpStream, pace: Duration, events: &'static [Bytes]) {
    // Errors here are clients that went away.
    let _ = connection.set_nodelay(true);
    let service = service_fn(async |request: Request<Incoming>| {
        drop(request);
        Ok::<_, Infallible>(answer(pace, events))
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
}

fn answer(
    pace: Duration,
    events: &'static [Bytes],
) -> Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>> {
    let mut timer = tokio::time::interval(pace);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = stream::unfold((timer, events.iter()), |(mut timer, mut rest)| async {
        let event = rest.next()?;
        timer.tick().await;
        Some((Ok(Frame::data(event.clone())), (timer, rest)))
    });
    let mut response = Response::new(StreamBody::new(Box::pin(body)));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

/// A chat completion in `tokens` pieces, then the reason it ended, the usage, and the end mark.
fn events(tokens: u32) -> Vec<Bytes> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench",
            "choices": choices, "usage": usage,
        });
        Bytes::from(format!("data: {chunk}\n\n"))
    };
    let delta = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let mut events =
        vec![chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), Value::Null)];
    events.extend((0..tokens).map(|_| chunk(delta(json!({"content": " water"}), Value::Null), Value::Null)));
    events.push(chunk(delta(json!({}), json!("stop")), Value::Null));
    let usage = json!({"prompt_tokens": 200, "completion_tokens": tokens, "total_tokens": 200 + tokens});
    events.push(chunk(json!([]), usage));
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}
