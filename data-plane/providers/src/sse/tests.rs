use proptest::prelude::*;

use super::*;

/// The data of all events, and how many were oversized, fed in the given reads.
fn events<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut framer = Framer::default();
    let mut found = Vec::new();
    for read in reads {
        framer.feed(read, |event| found.push(event.data.to_vec()));
    }
    found
}

fn text(found: &[Vec<u8>]) -> Vec<&str> {
    found.iter().map(|data| str::from_utf8(data).unwrap()).collect()
}

#[test]
fn all_line_endings_and_a_missing_space_are_understood_before_the_stream_ends_sse_02() {
    let crlf: [&[u8]; 2] = [b"data:a\r\n\r", b"\ndata: b\r\n\r\n"];
    assert_eq!(text(&events(crlf)), ["a", "b"]);
    assert_eq!(text(&events([b"data:a\r\rdata: b\r\r".as_slice()])), ["a", "b"]);
    assert_eq!(text(&events([b"data:a\n\r\ndata: b\r\n\n".as_slice()])), ["a", "b"]);
}

#[test]
fn a_bare_cr_at_the_end_of_a_read_ends_the_event_at_once_sse_02() {
    let mut framer = Framer::default();
    let mut count = 0;
    framer.feed(b"data: a\r\r", |_| count += 1);
    assert_eq!(count, 1);
}

#[test]
fn comments_other_fields_and_empty_events_are_no_events_sse_03() {
    let mut framer = Framer::default();
    let mut found = Vec::new();
    framer.feed(
        b": waiting\n\n:\n\nid: 7\nretry: 10\n\nevent: ping\n\n\n\ndatax: no\n\n data: no\n\ndata: yes\n\n",
        |event| {
            found.push((event.data.to_vec(), event.is_error));
        },
    );
    assert_eq!(found, [(b"yes".to_vec(), false)]);
    assert_eq!(framer.comments(), 2);
}

#[test]
fn several_data_lines_are_joined_and_the_error_name_is_seen() {
    let mut framer = Framer::default();
    let mut found = Vec::new();
    framer.feed(b"\xEF\xBB\xBFdata: {\ndata\ndata:}\n\nevent: error\ndata: x\n\ndata: y\n\n", |event| {
        found.push((event.data.to_vec(), event.is_error));
    });
    assert_eq!(found, [(b"{\n\n}".to_vec(), false), (b"x".to_vec(), true), (b"y".to_vec(), false)]);
}

#[test]
fn an_event_longer_than_the_bound_is_counted_but_not_kept_sse_11() {
    let mut framer = Framer::default();
    let mut found = Vec::new();
    let piece = vec![b'x'; 16 << 10];
    framer.feed(b"data: ", |_| {});
    for _ in 0..256 {
        framer.feed(&piece, |_| {});
        assert!(framer.line.capacity() + framer.held.capacity() <= 4 * MAX_HELD);
    }
    assert!(framer.is_oversized());
    assert_eq!(framer.open_bytes(), 6 + (4 << 20));
    framer.feed(b"\n\ndata: small\n\n", |event| found.push((event.data.to_vec(), event.oversized)));
    assert_eq!(found, [(vec![], true), (b"small".to_vec(), false)]);
    assert_eq!(framer.open_bytes(), 0);
}

#[test]
fn many_lines_of_one_event_and_one_long_comment_are_bounded_too_sse_11() {
    let mut framer = Framer::default();
    let mut found = Vec::new();
    for _ in 0..10_000 {
        framer.feed(b"data: 0123456789\n", |_| {});
        assert!(framer.held.capacity() <= 2 * MAX_HELD);
    }
    framer.feed(b"\n", |event| found.push(event.oversized));
    framer.feed(b":", |_| {});
    for _ in 0..1_000 {
        framer.feed(&[b'c'; 1000], |_| {});
        assert!(framer.line.capacity() <= 2 * MAX_HELD);
    }
    framer.feed(b"\n\ndata: x\n\n", |event| found.push(event.oversized));
    assert_eq!(found, [true, false]);
    assert_eq!(framer.comments(), 1);
}

#[test]
fn a_large_event_within_one_read_is_looked_at_in_place() {
    let mut read = b"data: ".to_vec();
    read.extend(vec![b'y'; 3 * MAX_HELD]);
    read.extend(b"\n\n");
    let found = events([read.as_slice()]);
    assert_eq!(found[0].len(), 3 * MAX_HELD);
}

/// A stream made of events whose data is known, with every kind of line ending and of noise.
fn stream() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<u8>>)> {
    let ending = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let noise = prop::sample::select(vec!["", ": c", "id: 1", "event: x", "nonsense"]);
    let data = prop::collection::vec("[^\r\n]{0,12}", 1..4);
    prop::collection::vec((data, ending, noise), 0..6).prop_map(|items| {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (lines, ending, noise) in items {
            for part in [noise].into_iter().filter(|noise| !noise.is_empty()) {
                bytes.extend(part.as_bytes());
                bytes.extend(ending.as_bytes());
            }
            for line in &lines {
                bytes.extend(b"data: ");
                bytes.extend(line.as_bytes());
                bytes.extend(ending.as_bytes());
            }
            bytes.extend(ending.as_bytes());
            expected.push(lines.join("\n").into_bytes());
        }
        (bytes, expected)
    })
}

proptest! {
    #[test]
    fn events_are_the_same_however_the_reads_are_cut_sse_01(
        (bytes, expected) in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let reads = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&events(reads), &expected);
        prop_assert_eq!(&events(bytes.chunks(1)), &expected);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(reads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16)) {
        let joined: Vec<u8> = reads.concat();
        prop_assert_eq!(events(reads.iter().map(Vec::as_slice)), events([joined.as_slice()]));
    }
}

#[test]
fn a_translating_framer_reads_an_event_of_four_mebibytes_cut_into_pieces_sse_11() {
    let text = "x".repeat(4 << 20);
    let bytes = format!("data: {text}\n\ndata: b\n\n");
    let mut framer = Framer::with_limit(MAX_TRANSLATED);
    let mut lengths = Vec::new();
    for read in bytes.as_bytes().chunks(16 << 10) {
        framer.feed(read, |event| lengths.push((event.data.len(), event.oversized)));
    }
    assert_eq!(lengths, [(4 << 20, false), (1, false)]);
    assert!(framer.held.capacity() <= MAX_HELD && framer.line.capacity() <= MAX_HELD, "memory is given back");
}
