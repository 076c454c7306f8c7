//! The framing of event streams, and every reader of a dialect that is framed like that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_fuzz::{check_stream, cut, dialects};
use penstock_model::vendor::Wire;
use penstock_providers::openai::stream::SseWatch;
use penstock_providers::sse::Framer;

fn frames(chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool, bool)> {
    let mut frames = Vec::new();
    let mut framer = Framer::default();
    let mut seen =
        |event: penstock_providers::sse::Event<'_>| frames.push((event.data.to_vec(), event.is_error, event.oversized));
    for chunk in chunks {
        framer.feed(chunk, &mut seen);
    }
    framer.end(&mut seen);
    frames
}

fn watch(chunks: &[&[u8]]) -> String {
    let mut watch = SseWatch::new();
    chunks.iter().for_each(|chunk| watch.feed(chunk));
    watch.end();
    format!("{:?} {} {:?} {}", watch.outcome(), watch.first_token(), watch.usage(), watch.events())
}

fuzz_target!(|data: &[u8]| {
    let Some((bytes, size)) = cut(data) else { return };
    let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
    assert_eq!(frames(&chunks), frames(&[bytes]), "in chunks of {size}");
    assert_eq!(watch(&chunks), watch(&[bytes]), "in chunks of {size}");
    for (wire, dialect) in dialects() {
        if !matches!(wire, Wire::Bedrock | Wire::Ollama) {
            check_stream(dialect, bytes, size);
        }
    }
});
