//! What the tests need again and again.

use penstock_model::Vendor;
use serde_json::Value;

use crate::dialect::{Asked, Dialect, Protocol, TargetFacts};
use crate::exchange::{Answer, Event, Part, Request, Role, Turn, Unwritable, Written};
use crate::gemini::Gemini;
use penstock_model::vendor::Wire;

/// A vendor with other parameters than Google's.
pub(super) fn vendor(change: impl FnOnce(&mut Vendor)) -> Vendor {
    let mut vendor = Vendor::find("gemini").unwrap().clone();
    change(&mut vendor);
    vendor
}

pub(super) fn write_to(request: &Request, vendor: &Vendor, model: &str) -> Result<Written, Unwritable> {
    let max_tokens_name = vendor.parameters.max_tokens;
    Gemini.write_request(request, &TargetFacts { vendor, model, max_tokens_name, default_max_tokens: 4096 })
}

pub(super) fn write(request: &Request) -> Result<Written, Unwritable> {
    write_to(request, Vendor::find("gemini").unwrap(), "gemini-3-pro")
}

/// The body that is written, and what is dropped.
pub(super) fn written(request: &Request) -> (Value, String) {
    let written = write(request).unwrap();
    (serde_json::from_slice(&written.body).unwrap(), written.dropped.to_string())
}

/// An OpenAI client's conversation.
pub(super) fn chat(turns: Vec<(Role, Vec<Part>)>) -> Request {
    let turns = turns.into_iter().map(|(role, parts)| Turn::new(role, parts)).collect();
    Request { turns, ..Request::new(Wire::Openai) }
}

pub(super) fn asked() -> Asked {
    Asked { id: "req-1".to_owned(), model: "m".to_owned(), created: 1, include_usage: true }
}

pub(super) fn read_request(body: &Value) -> Request {
    Gemini.read_request(body.to_string().as_bytes(), Some("m"), false).unwrap()
}

pub(super) fn read_answer(body: &Value) -> Answer {
    Gemini.read_answer(body.to_string().as_bytes(), "req-1").unwrap()
}

/// A stream of these responses.
pub(super) fn sse(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

/// The events of a stream in these reads, one a line.
pub(super) fn events(reads: &[&[u8]]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = Gemini.stream_reader("req-1");
    let mut sink = |event: Event<'_>| lines.push(format!("{event:?}"));
    reads.iter().for_each(|read| reader.feed(read, &mut sink));
    reader.end(&mut sink);
    lines
}

/// What a client of this dialect gets for these events: the responses.
pub(super) fn rewritten(events: &[Event<'_>]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut writer = Gemini.stream_writer(asked());
    events.iter().for_each(|event| writer.event(event, &mut out));
    writer.finish(&mut out);
    let text = String::from_utf8(out).unwrap();
    let data = text.split("\n\n").filter(|event| !event.is_empty());
    data.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
}
