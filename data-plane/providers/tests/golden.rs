//! Golden fixtures: what each dialect makes of the same six requests, and what becomes of its answers and streams.
//!
//! `fixtures/cases/CASE.json` is a chat request. For each dialect, `fixtures/DIALECT/` holds what its service answers,
//! written by hand: `CASE.answer.json`, and `CASE.stream.sse` (or `.ndjson`, or `.b64`: base64 of a binary stream). The
//! expected files beside them are `CASE.request.json`, `CASE.answer.openai.json`, `CASE.stream.events.txt` and
//! `CASE.stream.openai.sse`. After a change that is meant, run with `BLESS=1` and read the difference.

#![expect(clippy::unwrap_used, reason = "a test may fail at once")]

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_model::Vendor;
use penstock_model::vendor::Wire;
use penstock_providers::dialect::{Asked, Dialect, TargetFacts, dialect, protocol};
use serde_json::{Value, json};

const CASES: [&str; 6] = ["plain", "tools", "parallel_tools", "images", "structured_output", "reasoning"];

/// The vendor whose parameters a dialect's requests are written for.
fn vendor(wire: Wire) -> &'static Vendor {
    let name = if wire == Wire::OpenaiResponses { "openai" } else { wire.as_str() };
    Vendor::find(name).unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

#[expect(clippy::disallowed_methods, reason = "a switch for developers, not for the product")]
fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares with the expected file, or writes it.
fn expect(file: &Path, actual: &str) {
    if blessing() {
        return fs::write(file, actual).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_else(|_| panic!("{} is missing", file.display()));
    assert_eq!(actual, expected, "{}", file.display());
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

fn dialects() -> Vec<(Wire, &'static dyn Dialect, PathBuf)> {
    let registered = |wire: Wire| Some((wire, dialect(wire)?, fixtures().join(wire.as_str())));
    Wire::ALL.into_iter().filter_map(registered).collect()
}

fn asked() -> Asked {
    Asked { id: "req-1".to_owned(), model: "m".to_owned(), created: 1_760_000_000, include_usage: true }
}

#[test]
fn every_dialect_writes_each_request_as_its_fixture_says() {
    let Some(openai) = protocol(Wire::Openai) else { return };
    for (wire, dialect, folder) in dialects() {
        for case in CASES {
            let body = fs::read(fixtures().join(format!("cases/{case}.json"))).unwrap();
            let mut request = openai.read_request(&body, None, false).unwrap();
            request.stream = false;
            let vendor = vendor(wire);
            let target = TargetFacts {
                vendor,
                model: "target-model",
                max_tokens_name: vendor.parameters.max_tokens,
                default_max_tokens: 4096,
            };
            let written = match dialect.write_request(&request, &target) {
                Ok(written) => json!({
                    "dropped": written.dropped.to_string(),
                    "json_tool": written.json_tool,
                    "body": serde_json::from_slice::<Value>(&written.body).unwrap(),
                }),
                Err(error) => json!({ "unwritable": format!("{error:?}") }),
            };
            expect(&folder.join(format!("{case}.request.json")), &pretty(&written));
        }
    }
}

#[test]
fn every_dialects_answers_are_read_as_their_fixtures_say() {
    let Some(openai) = protocol(Wire::Openai) else { return };
    for (_, dialect, folder) in dialects() {
        for case in CASES {
            let file = folder.join(format!("{case}.answer.json"));
            let body = fs::read(&file).unwrap_or_else(|_| panic!("{} is missing", file.display()));
            let answer = dialect.read_answer(&body, "req-1").unwrap();
            assert_eq!(dialect.find_usage(&body), answer.usage, "{}", file.display());
            let written = openai.write_answer(&answer, &asked());
            let written: Value = serde_json::from_slice(&written).unwrap();
            expect(&folder.join(format!("{case}.answer.openai.json")), &pretty(&written));
        }
    }
}

/// The bytes of a stream fixture.
fn stream(folder: &Path, case: &str) -> Vec<u8> {
    for extension in ["sse", "ndjson"] {
        if let Ok(bytes) = fs::read(folder.join(format!("{case}.stream.{extension}"))) {
            return bytes;
        }
    }
    let file = folder.join(format!("{case}.stream.b64"));
    let text = fs::read_to_string(&file)
        .unwrap_or_else(|_| panic!("no stream {} or .sse or .ndjson", file.display()));
    STANDARD.decode(text.split_whitespace().collect::<String>()).unwrap()
}

/// One line per event, whatever the chunking.
fn events(dialect: &dyn Dialect, chunks: &[&[u8]]) -> String {
    let mut lines = String::new();
    let mut reader = dialect.stream_reader("req-1");
    let mut sink = |event: penstock_providers::exchange::Event<'_>| lines.push_str(&format!("{event:?}\n"));
    for chunk in chunks {
        reader.feed(chunk, &mut sink);
    }
    reader.end(&mut sink);
    lines
}

#[test]
fn every_dialects_streams_are_read_and_rewritten_as_their_fixtures_say() {
    let Some(openai) = protocol(Wire::Openai) else { return };
    for (_, dialect, folder) in dialects() {
        for case in CASES {
            let bytes = stream(&folder, case);
            expect(&folder.join(format!("{case}.stream.events.txt")), &events(dialect, &[&bytes]));
            let mut writer = openai.stream_writer(asked());
            let mut out = Vec::new();
            let mut reader = dialect.stream_reader("req-1");
            reader.feed(&bytes, &mut |event| writer.event(&event, &mut out));
            reader.end(&mut |event| writer.event(&event, &mut out));
            writer.finish(&mut out);
            expect(&folder.join(format!("{case}.stream.openai.sse")), &String::from_utf8(out).unwrap());
        }
    }
}

#[test]
fn any_chunking_of_any_stream_gives_the_same_events_sse_01() {
    for (wire, dialect, folder) in dialects() {
        for case in CASES {
            let bytes = stream(&folder, case);
            let whole = events(dialect, &[&bytes]);
            for size in [1, 2, 3, 7, 64, 1000] {
                let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                assert_eq!(events(dialect, &chunks), whole, "{wire:?} {case} in chunks of {size}");
            }
        }
    }
}
