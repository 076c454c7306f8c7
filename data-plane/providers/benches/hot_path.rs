//! What the data plane pays per request and per streamed event.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use penstock_model::vendor::{Vendor, Wire};
use penstock_providers::classify::classify_success;
use penstock_providers::dialect::{Asked, TargetFacts, dialect, protocol};
use penstock_providers::openai::{SseWatch, pass, usage, view};
use penstock_providers::splice::{ModelName, replace_model};
use penstock_providers::sse::{self, Framer};

/// Events of the usual size, as OpenAI sends them.
fn event(word: &str) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{word}"}},"finish_reason":null}}]}}"#
    ) + "\n\n"
}

fn streams(c: &mut Criterion) {
    let mut group = c.benchmark_group("sse_watch");
    let one = event(" word");
    let many = one.repeat(64);
    let (first, second) = one.as_bytes().split_at(one.len() / 2);
    group.throughput(Throughput::Elements(64));
    group.bench_function("64 events in one read", |b| {
        let mut watch = started(&one);
        b.iter(|| watch.feed(black_box(many.as_bytes())));
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("an event per read", |b| {
        let mut watch = started(&one);
        b.iter(|| watch.feed(black_box(one.as_bytes())));
    });
    group.bench_function("an event in two reads", |b| {
        let mut watch = started(&one);
        b.iter(|| {
            watch.feed(black_box(first));
            watch.feed(black_box(second));
        });
    });
    group.bench_function("first token", |b| {
        b.iter(|| {
            let mut watch = SseWatch::new();
            watch.feed(black_box(one.as_bytes()));
            watch.first_token()
        });
    });
    group.finish();
}

fn seen(event: sse::Event<'_>) {
    black_box(event);
}

/// The parser alone, on an event of 100 bytes.
fn framing(c: &mut Criterion) {
    let mut group = c.benchmark_group("sse_framer");
    let event = format!("data: {}\n\n", "x".repeat(92));
    assert_eq!(event.len(), 100);
    let (first, second) = event.as_bytes().split_at(50);
    group.throughput(Throughput::Elements(1));
    group.bench_function("an event of 100 bytes per read", |b| {
        let mut framer = Framer::default();
        b.iter(|| framer.feed(black_box(event.as_bytes()), seen));
    });
    group.bench_function("an event of 100 bytes in two reads", |b| {
        let mut framer = Framer::default();
        b.iter(|| {
            framer.feed(black_box(first), seen);
            framer.feed(black_box(second), seen);
        });
    });
    group.finish();
}

/// What passes through, with the word on what the client gets.
fn filtering(c: &mut Criterion) {
    let mut group = c.benchmark_group("sse_filter");
    let text = Bytes::from(event(" word"));
    let call = Bytes::from_static(
        b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\"}}]}}]}\n\n",
    );
    for (name, read) in [("text", &text), ("part of a tool call", &call)] {
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{name}, an event per read"), |b| {
            let mut watch = SseWatch::hiding_usage();
            watch.filter(text.clone());
            b.iter(|| watch.filter(black_box(read.clone())));
        });
    }
    let (first, second) = (text.slice(..text.len() / 2), text.slice(text.len() / 2..));
    group.bench_function("text, an event in two reads", |b| {
        let mut watch = SseWatch::hiding_usage();
        watch.filter(text.clone());
        b.iter(|| {
            let waits = watch.filter(black_box(first.clone()));
            (waits, watch.filter(black_box(second.clone())))
        });
    });
    group.finish();
}

/// What a chunk costs that is read in one dialect and written in another.
fn translation(c: &mut Criterion) {
    let chunk = event(" word");
    let mut group = c.benchmark_group("translated chunk");
    group.throughput(Throughput::Elements(1));
    let from = dialect(Wire::Openai).expect("it is registered");
    for to in [Wire::Openai, Wire::Anthropic, Wire::Gemini, Wire::OpenaiResponses] {
        let Some(protocol) = protocol(to) else { continue };
        group.bench_function(format!("openai to {}", to.as_str()), |b| {
            let mut reader = from.stream_reader("r");
            let mut writer = protocol.stream_writer(Asked::default());
            let mut out = Vec::new();
            reader.feed(chunk.as_bytes(), &mut |event| writer.event(&event, &mut out));
            assert!(!out.is_empty());
            b.iter(|| {
                out.clear();
                reader.feed(black_box(chunk.as_bytes()), &mut |event| writer.event(&event, &mut out));
                out.len()
            });
        });
    }
    group.finish();
}

fn started(event: &str) -> SseWatch {
    let mut watch = SseWatch::new();
    watch.feed(event.as_bytes());
    assert!(watch.first_token());
    watch
}

/// A request that is read into the exchange model and written from it, and one that is only spliced.
fn requests(c: &mut Criterion) {
    let text = "Summarise the following text in three points. 请总结这篇文章的核心要点。".repeat(8);
    let body = Bytes::from(format!(
        r#"{{"model":"m","messages":[{{"role":"system","content":"{text}"}},{{"role":"user","content":"{text}"}}],"stream":true,"max_tokens":9}}"#
    ));
    let vendor = Vendor::find("openai").expect("it has a file");
    let max_tokens_name = vendor.parameters.max_tokens;
    let target = TargetFacts { vendor, model: "other", max_tokens_name, default_max_tokens: 1 };
    let (dialect, protocol) = (dialect(Wire::Openai), protocol(Wire::Openai));
    let (dialect, protocol) = (dialect.expect("registered"), protocol.expect("registered"));
    let mut group = c.benchmark_group("streamed request, 1.5 KiB");
    group.bench_function("read and written", |b| {
        b.iter(|| {
            let request = protocol.read_request(black_box(&body), None, true).expect("it is one");
            dialect.write_request(&request, &target).is_ok()
        });
    });
    let spans = pass::Spans::from(&view::chat(&body).expect("it is a chat request"));
    let model = ModelName::new("other");
    group.bench_function("spliced, with usage asked for", |b| {
        b.iter(|| pass::body(black_box(&body), &spans, &target, &model).is_ok());
    });
    group.finish();
}

fn bodies(c: &mut Criterion) {
    let text = "Summarise the following text in three points. 请总结这篇文章的核心要点。".repeat(8);
    let short = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#.to_owned();
    let long = format!(
        r#"{{"model":"m","messages":[{{"role":"system","content":"{text}"}},{{"role":"user","content":"{text}"}}],"stream":true,"temperature":0.7}}"#
    );
    let mut group = c.benchmark_group("request");
    for (name, body) in [("short", short), ("1.5 KiB", long)] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format!("view, {name}"), |b| {
            b.iter(|| view::chat(black_box(body.as_bytes())).is_ok())
        });
        let bytes = Bytes::from(body.clone());
        let span = view::chat(body.as_bytes()).expect("it is a chat request").model_span;
        let model = ModelName::new("other");
        group.bench_function(format!("splice, {name}"), |b| {
            b.iter(|| replace_model(black_box(&bytes), span.clone(), &model).into_segments().count());
        });
    }
    group.finish();

    let answer = format!(
        r#"{{"id":"x","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{{"cached_tokens":0}}}}}}"#
    );
    let mut group = c.benchmark_group("answer");
    group.throughput(Throughput::Bytes(answer.len() as u64));
    let vendor = Vendor::find("openai").expect("it is there");
    group.bench_function("classify", |b| {
        b.iter(|| classify_success(vendor, black_box(answer.as_bytes())));
    });
    group.bench_function("usage", |b| b.iter(|| usage::find(black_box(answer.as_bytes()))));
    group.finish();
}

criterion_group!(benches, framing, streams, filtering, translation, requests, bodies);
criterion_main!(benches);
