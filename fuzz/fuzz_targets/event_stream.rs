//! AWS's event streams: the bytes as they are, and as lines `{"EVENT":PAYLOAD}` of which frames are made, so that
//! checksums do not keep everything else out of reach.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_fuzz::{check_stream, cut};
use penstock_providers::aws::event_stream::{Decoder, encode};
use penstock_providers::bedrock::Bedrock;

fn decode(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = Decoder::default();
    let mut payloads = Vec::new();
    let is_sound = chunks.iter().all(|chunk| {
        let fed = decoder.feed(chunk, |frame| {
            let _ = frame.header(":message-type");
            payloads.push(frame.payload.to_vec());
        });
        fed.is_ok()
    });
    (payloads, is_sound)
}

/// The frame of a line: an exception when its name says so, an event of a common name when there is none.
fn frame(line: &[u8]) -> Vec<u8> {
    let named = line.strip_prefix(b"{\"").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        let payload = rest[end + 1..].strip_prefix(b":")?;
        Some((str::from_utf8(&rest[..end]).ok()?, payload.strip_suffix(b"}").unwrap_or(payload)))
    });
    let (name, payload) = named.filter(|(name, _)| name.len() < 200).unwrap_or(("contentBlockDelta", line));
    let kind = if name.ends_with("Exception") { "exception" } else { "event" };
    let key = format!(":{kind}-type");
    encode(&[(":message-type", kind), (&key, name)], payload)
}

fuzz_target!(|data: &[u8]| {
    let Some((bytes, size)) = cut(data) else { return };
    let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
    assert_eq!(decode(&chunks), decode(&[bytes]), "in chunks of {size}");
    check_stream(&Bedrock, bytes, size);

    let framed: Vec<u8> = bytes.split(|byte| *byte == b'\n').flat_map(frame).collect();
    check_stream(&Bedrock, &framed, size);
});
