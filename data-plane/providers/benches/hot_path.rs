//! What the data plane pays per request and per streamed event.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use penstock_providers::classify::classify_success;
use penstock_providers::openai::{SseWatch, usage, view};
use penstock_providers::splice::{ModelName, replace_model};

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

fn started(event: &str) -> SseWatch {
    let mut watch = SseWatch::new();
    watch.feed(event.as_bytes());
    assert!(watch.first_token());
    watch
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
    let vendor = penstock_model::Vendor::find("openai").expect("it is there");
    group.bench_function("classify", |b| {
        b.iter(|| classify_success(vendor, black_box(answer.as_bytes())));
    });
    group.bench_function("usage", |b| b.iter(|| usage::find(black_box(answer.as_bytes()))));
    group.finish();
}

criterion_group!(benches, streams, bodies);
criterion_main!(benches);
