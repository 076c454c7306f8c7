//! What the fuzz targets check of every stream: any chunking gives the same events, the events keep the rules that their
//! documentation states, and every client protocol can write them.

use penstock_model::vendor::{MaxTokens, Vendor, Wire};
use penstock_providers::dialect::{Asked, Dialect, Protocol, TargetFacts, dialect, protocol};
use penstock_providers::exchange::json_tool::JsonTool;
use penstock_providers::exchange::Event;
use penstock_providers::sse::Framer;
use serde_json::Value;

/// All dialects.
pub fn dialects() -> impl Iterator<Item = (Wire, &'static dyn Dialect)> {
    Wire::ALL.into_iter().filter_map(|wire| Some((wire, dialect(wire)?)))
}

/// All protocols of clients.
pub fn protocols() -> impl Iterator<Item = (Wire, &'static dyn Protocol)> {
    Wire::ALL.into_iter().filter_map(|wire| Some((wire, protocol(wire)?)))
}

/// The target that a dialect's requests are written for.
pub fn target(wire: Wire) -> TargetFacts<'static> {
    let name = if wire == Wire::OpenaiResponses { "openai" } else { wire.as_str() };
    let vendor = Vendor::find(name).expect("every dialect has a vendor of its name");
    let model = if wire == Wire::Bedrock { "anthropic.claude-x" } else { "m" };
    TargetFacts { vendor, model, max_tokens_name: MaxTokens::AsGiven, default_max_tokens: 4096 }
}

/// What a request asked for, as writers know it.
pub fn asked() -> Asked {
    Asked { id: "req-1".to_owned(), model: "m".to_owned(), created: 1, include_usage: true }
}

/// Splits the last byte off: it says how the rest is cut. Whole files serve as seeds that way.
pub fn cut(data: &[u8]) -> Option<(&[u8], usize)> {
    let (knob, bytes) = data.split_last()?;
    Some((bytes, usize::from(*knob) % 61 + 1))
}

/// Reads `bytes` as a stream of a dialect, whole and in chunks of `size`, and writes it for every client.
pub fn check_stream(dialect: &dyn Dialect, bytes: &[u8], size: usize) {
    let whole = events(dialect, &[bytes]);
    let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
    assert_eq!(events(dialect, &chunks), whole, "in chunks of {size}");
    for (wire, protocol) in protocols() {
        write(dialect, protocol, wire, bytes);
    }
}

/// One line an event, after a look at the rules.
fn events(dialect: &dyn Dialect, chunks: &[&[u8]]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rules = Rules::default();
    let mut reader = dialect.stream_reader("req-1");
    let mut sink = |event: Event<'_>| {
        rules.see(&event);
        lines.push(format!("{event:?}"));
    };
    for chunk in chunks {
        reader.feed(chunk, &mut sink);
    }
    reader.end(&mut sink);
    lines
}

/// What readers promise to writers: see the documentation of [`Event`].
#[derive(Default)]
struct Rules {
    begun: bool,
    over: bool,
    finished: Vec<u32>,
}

impl Rules {
    fn see(&mut self, event: &Event<'_>) {
        assert!(!self.over, "{event:?} follows the end");
        let is_start = matches!(event, Event::Start { .. });
        assert!(!(is_start && self.begun), "{event:?} where it may not be");
        self.begun |= is_start || event.is_token();
        match event {
            Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => {
                assert!(!text.is_empty(), "an empty {event:?}");
            }
            Event::ToolArguments { fragment, .. } => assert!(!fragment.is_empty(), "an empty fragment"),
            Event::Finish { choice, .. } => {
                assert!(!self.finished.contains(choice), "choice {choice} ends twice");
                self.finished.push(*choice);
            }
            Event::End | Event::Failed { .. } => self.over = true,
            _ => {}
        }
    }
}

/// Writes a stream for a client, its hidden tool folded. What comes out is a sequence of JSON objects.
fn write(dialect: &dyn Dialect, protocol: &dyn Protocol, wire: Wire, bytes: &[u8]) {
    let mut writer = protocol.stream_writer(asked());
    let mut fold = JsonTool::new("json_answer");
    let mut out = Vec::new();
    let mut reader = dialect.stream_reader("req-1");
    reader.feed(bytes, &mut |event| fold.event(event, &mut |event| writer.event(&event, &mut out)));
    reader.end(&mut |event| fold.event(event, &mut |event| writer.event(&event, &mut out)));
    fold.finish(&mut |event| writer.event(&event, &mut out));
    writer.finish(&mut out);
    check_sse(&out, wire);
}

fn check_sse(out: &[u8], wire: Wire) {
    let mut check = |event: penstock_providers::sse::Event<'_>| {
        let data = event.data.trim_ascii();
        let is_object = || serde_json::from_slice::<Value>(data).is_ok_and(|value| value.is_object());
        let shown = || String::from_utf8_lossy(data).into_owned();
        assert!(event.oversized || data == b"[DONE]" || is_object(), "{wire:?} writes {}", shown());
    };
    let mut framer = Framer::default();
    framer.feed(out, &mut check);
    framer.end(&mut check);
}
