//! The dialect as a whole: requests, answers and streams, both ways.

mod canonical;
mod request;
mod stream;
mod stream_order;

use penstock_model::Vendor;
use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::Anthropic;
use crate::dialect::{Asked, Dialect, TargetFacts, protocol};
use crate::exchange::{Event, Field, Request, Unwritable, Written};

fn target(model: &str) -> TargetFacts<'_> {
    let vendor = Vendor::find("anthropic").unwrap();
    let max_tokens_name = vendor.parameters.max_tokens;
    TargetFacts { vendor, model, max_tokens_name, default_max_tokens: 4096 }
}

/// A chat request of one user message, with more fields.
fn chat(more: &Value) -> Request {
    read_chat(more).unwrap()
}

fn read_chat(more: &Value) -> Result<Request, Field> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = serde_json::to_vec(&body).unwrap();
    protocol(Wire::Openai).unwrap().read_request(&body, None, false)
}

fn write(request: &Request, model: &str) -> Result<(Value, Written), Unwritable> {
    let written = Anthropic.write_request(request, &target(model))?;
    Ok((serde_json::from_slice(&written.body).unwrap(), written))
}

/// What a chat request becomes, and what it loses.
fn translated(more: &Value) -> (Value, String) {
    let (body, written) = write(&chat(more), "claude-sonnet-5").unwrap();
    (body, written.dropped.to_string())
}

fn asked() -> Asked {
    Asked { id: "req-1".to_owned(), model: "m".to_owned(), created: 1, include_usage: true }
}

/// The events of a stream in these reads.
fn events<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let mut reader = Anthropic.stream_reader("req-1");
    let mut sink = |event: Event<'_>| events.push(kept(event));
    for read in reads {
        reader.feed(read, &mut sink);
    }
    reader.end(&mut sink);
    events
}

/// An event that outlives its read.
fn kept(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Start { id, model, created } => Event::Start {
            id: id.map(|id| id.into_owned().into()),
            model: model.map(|model| model.into_owned().into()),
            created,
        },
        Event::Finish { choice, stop, native, sequence } => Event::Finish {
            choice,
            stop,
            native: native.into_owned().into(),
            sequence: sequence.map(|sequence| sequence.into_owned().into()),
        },
        Event::Usage(usage) => Event::Usage(usage),
        Event::End => Event::End,
        Event::Failed { error, status } => Event::Failed { error, status },
        Event::Logprobs { choice, value } => Event::Logprobs { choice, value },
        content => super::stream_writer::owned(&content).unwrap(),
    }
}

/// What a client of `wire` gets of these events.
fn shown(wire: Wire, events: &[Event<'_>]) -> String {
    let mut writer = protocol(wire).unwrap().stream_writer(asked());
    let mut out = Vec::new();
    for event in events {
        writer.event(event, &mut out);
    }
    writer.finish(&mut out);
    String::from_utf8(out).unwrap()
}

/// The data of the events of a stream.
fn data(stream: &str) -> Vec<Value> {
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}
