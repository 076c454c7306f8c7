use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

/// A delta and an exception, as a service sent them.
const DELTA: &str = "AAAAlwAAAFfzC+A+CzpldmVudC10eXBlBwARY29udGVudEJsb2NrRGVsdGENOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJjb250ZW50QmxvY2tJbmRleCI6MCwiZGVsdGEiOnsidGV4dCI6IkJsdWUgIn19iYQYYw==";
const EXCEPTION: &str = "AAAAiAAAAGHeAXX0DzpleGNlcHRpb24tdHlwZQcAE3Rocm90dGxpbmdFeGNlcHRpb24NOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcACWV4Y2VwdGlvbnsibWVzc2FnZSI6InNsb3cgZG93biJ9gy7gcg==";

/// Message type, event or exception type, payload: of each frame, in order.
type Seen = Vec<(Option<String>, Option<String>, Vec<u8>)>;

fn decode(chunks: &[&[u8]]) -> (Seen, Result<(), Broken>) {
    let mut decoder = Decoder::default();
    let mut seen = Vec::new();
    let mut result = Ok(());
    for chunk in chunks {
        result = decoder.feed(chunk, |frame| {
            let text = |name| frame.header(name).map(str::to_owned);
            let kind = text(":event-type").or_else(|| text(":exception-type"));
            seen.push((text(":message-type"), kind, frame.payload.to_vec()));
        });
    }
    (seen, result)
}

fn recorded() -> Vec<u8> {
    [DELTA, EXCEPTION].into_iter().flat_map(|frame| STANDARD.decode(frame).unwrap()).collect()
}

#[test]
fn a_recorded_delta_and_exception_are_read_wherever_they_are_cut_sse_09() {
    let bytes = recorded();
    let some = |text: &str| Some(text.to_owned());
    let expected = vec![
        (
            some("event"),
            some("contentBlockDelta"),
            br#"{"contentBlockIndex":0,"delta":{"text":"Blue "}}"#.to_vec(),
        ),
        (some("exception"), some("throttlingException"), br#"{"message":"slow down"}"#.to_vec()),
    ];
    for cut in 0..=bytes.len() {
        assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), (expected.clone(), Ok(())), "cut at {cut}");
    }
}

#[test]
fn what_the_encoder_writes_is_what_the_service_sent() {
    let headers = [
        (":event-type", "contentBlockDelta"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    let frame = encode(&headers, br#"{"contentBlockIndex":0,"delta":{"text":"Blue "}}"#);
    assert_eq!(STANDARD.encode(frame), DELTA);
}

#[test]
fn any_altered_bit_fails_the_stream_and_it_stays_failed_sse_09() {
    let bytes = STANDARD.decode(DELTA).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let (seen, result) = decode(&[&altered]);
        assert_eq!((seen, result), (vec![], Err(Broken::Checksum)), "bit {bit}");
    }
    let mut altered = bytes.clone();
    altered[100] ^= 1;
    let (seen, result) = decode(&[&altered, &bytes]);
    assert_eq!((seen, result), (vec![], Err(Broken::Checksum)));
}

#[test]
fn a_length_above_the_limit_is_refused_before_anything_is_allocated_sse_09() {
    let mut prelude = Vec::new();
    prelude.extend_from_slice(&(MAX_FRAME + 1).to_be_bytes());
    prelude.extend_from_slice(&0_u32.to_be_bytes());
    prelude.extend_from_slice(&crc32fast::hash(&prelude).to_be_bytes());
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(&prelude, |_| unreachable!()), Err(Broken::TooLong));
    assert_eq!(decoder.held.capacity(), 0);

    // Within the limit, memory follows what has come.
    prelude.truncate(0);
    prelude.extend_from_slice(&MAX_FRAME.to_be_bytes());
    prelude.extend_from_slice(&0_u32.to_be_bytes());
    prelude.extend_from_slice(&crc32fast::hash(&prelude).to_be_bytes());
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(&prelude, |_| unreachable!()), Ok(()));
    assert_eq!(decoder.open_bytes(), 12);
    assert!(decoder.held.capacity() < 1024);
}

#[test]
fn lengths_that_contradict_each_other_are_malformed() {
    for (total, headers) in [(0_u32, 0_u32), (15, 0), (16, 1), (40, 25), (40, u32::MAX)] {
        let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend_from_slice(&[0; 40]);
        assert_eq!(decode(&[&bytes]).1, Err(Broken::Malformed), "{total} {headers}");
    }
}

#[test]
fn headers_of_all_types_are_passed_over_and_unknown_ones_are_malformed() {
    let mut block = Vec::new();
    let values: [(u8, &[u8]); 9] = [
        (0, b""),
        (1, b""),
        (2, b"1"),
        (3, b"12"),
        (4, b"1234"),
        (5, b"12345678"),
        (6, b"\x00\x03abc"),
        (8, b"12345678"),
        (9, b"1234567890123456"),
    ];
    for (kind, value) in values {
        block.extend_from_slice(b"\x01x");
        block.push(kind);
        block.extend_from_slice(value);
    }
    block.extend_from_slice(b"\x0d:message-type\x07\x00\x05event");
    let (seen, result) = decode(&[&encode_raw(&block, b"{}")]);
    assert_eq!(result, Ok(()));
    assert_eq!(seen, [(Some("event".to_owned()), None, b"{}".to_vec())]);
    for broken in [
        &b"\x01x\x0a"[..],
        b"\x01x\x02",
        b"\x05x",
        b"\x01",
        b"\x01x\x07\x00\x09abc",
        b"\x01x\x07\x00\x01\xff",
    ] {
        assert_eq!(decode(&[&encode_raw(broken, b"")]).1, Err(Broken::Malformed), "{broken:?}");
    }
}

#[test]
fn the_memory_of_a_large_frame_is_given_back_sse_11() {
    let frame = encode(&[], &vec![b'x'; 4 << 20]);
    let mut decoder = Decoder::default();
    let mut lengths = Vec::new();
    for chunk in frame.chunks(16 << 10) {
        decoder.feed(chunk, |frame| lengths.push(frame.payload.len())).unwrap();
    }
    assert_eq!(lengths, [4 << 20]);
    assert!(decoder.held.capacity() <= MAX_KEPT);
}

fn frames() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    prop::collection::vec(("[a-zA-Z:-]{0,20}", prop::collection::vec(any::<u8>(), 0..200)), 0..8)
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(frames in frames(), sizes in prop::collection::vec(1_usize..64, 1..20)) {
        let mut bytes = Vec::new();
        for (kind, payload) in &frames {
            bytes.extend(encode(&[(":message-type", "event"), (":event-type", kind)], payload));
        }
        let mut chunks = Vec::new();
        let mut rest = bytes.as_slice();
        for size in sizes.iter().cycle() {
            let (chunk, left) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = left;
            if rest.is_empty() { break }
        }
        let whole = decode(&[&bytes]);
        prop_assert_eq!(whole.0.len(), frames.len());
        prop_assert_eq!(decode(&chunks), whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic(reads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..6)) {
        let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
        let _ = decode(&reads);
    }

    #[test]
    fn arbitrary_headers_under_right_checksums_never_panic(block in prop::collection::vec(any::<u8>(), 0..100), payload in prop::collection::vec(any::<u8>(), 0..10)) {
        let (seen, result) = decode(&[&encode_raw(&block, &payload)]);
        prop_assert_eq!(seen.len(), usize::from(result.is_ok()));
    }
}
