//! Framing of newline-delimited JSON: one value a line.
//!
//! Works on bytes, so that a character may be cut anywhere. A line that lies in one read is looked at in place; only what
//! a read cuts is copied, up to a limit.

use crate::sse::{MAX_HELD, MAX_TRANSLATED};

/// A line that is longer than the limit. Nothing of it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Finds the lines in a stream of reads.
#[derive(Debug)]
pub struct Lines {
    max: usize,
    /// The line that the last read cut.
    cut: Vec<u8>,
    /// The start of the cut line was dropped because it was too long.
    dropped: bool,
    open_bytes: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(MAX_TRANSLATED)
    }
}

impl Lines {
    /// Keeps at most `max` bytes of a line that reads cut.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, cut: Vec::new(), dropped: false, open_bytes: 0 }
    }

    /// Takes in one read and reports each line that ends in it, without its line ending. Empty lines are left out.
    pub fn feed(&mut self, read: &[u8], mut on_line: impl FnMut(Result<&[u8], TooLong>)) {
        let mut rest = read;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if self.cut.is_empty() && !self.dropped {
                report(line, &mut on_line);
            } else {
                self.hold(line);
                self.close(&mut on_line);
            }
            self.open_bytes = 0;
        }
        self.hold(rest);
        self.open_bytes += rest.len() as u64;
    }

    /// The stream has ended: a last line without a line ending is reported too.
    pub fn end(&mut self, mut on_line: impl FnMut(Result<&[u8], TooLong>)) {
        self.close(&mut on_line);
        self.open_bytes = 0;
    }

    /// Bytes that have come since the last line ended.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        self.open_bytes
    }

    fn hold(&mut self, part: &[u8]) {
        if self.dropped {
            return;
        }
        if self.cut.len() + part.len() > self.max {
            self.cut = Vec::new();
            self.dropped = true;
        } else {
            self.cut.extend_from_slice(part);
        }
    }

    fn close(&mut self, on_line: &mut impl FnMut(Result<&[u8], TooLong>)) {
        if std::mem::take(&mut self.dropped) {
            on_line(Err(TooLong));
        }
        report(&self.cut, on_line);
        self.cut.clear();
        self.cut.shrink_to(MAX_HELD);
    }
}

fn report(line: &[u8], on_line: &mut impl FnMut(Result<&[u8], TooLong>)) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        on_line(Ok(line));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(max: usize, chunks: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let mut found = Vec::new();
        let mut lines = Lines::new(max);
        for chunk in chunks {
            lines.feed(chunk, |line| found.push(line.ok().map(<[u8]>::to_vec)));
        }
        lines.end(|line| found.push(line.ok().map(<[u8]>::to_vec)));
        found
    }

    #[test]
    fn a_character_cut_between_two_reads_stays_whole_sse_01() {
        let found = lines(100, &[b"{\"a\":\"\xe6\xbd", b"\xae\xf0\x9f", b"\x9a", b"\xb2\"}\r\n", b"\n{}"]);
        assert_eq!(found, [Some("{\"a\":\"潮🚲\"}".into()), Some(b"{}".to_vec())]);
    }

    #[test]
    fn a_line_is_reported_when_its_end_comes_and_not_at_the_next_sse_02() {
        let mut count = 0;
        let mut lines = Lines::default();
        lines.feed(b"{\"a\":1}", |_| count += 1);
        assert_eq!(lines.open_bytes(), 7);
        lines.feed(b"\n{", |_| count += 1);
        assert_eq!((count, lines.open_bytes()), (1, 1));
    }

    #[test]
    fn four_megabytes_in_one_line_pass_and_a_line_without_end_is_bounded_sse_11() {
        let long = format!("\"{}\"\n", "x".repeat(4 << 20));
        let chunks: Vec<&[u8]> = long.as_bytes().chunks(16 << 10).collect();
        assert_eq!(lines(MAX_TRANSLATED, &chunks), [Some(long.trim_end().into())]);

        let mut endless = Lines::new(1 << 20);
        for _ in 0..256 {
            endless.feed(&[b'x'; 16 << 10], |_| panic!("no line has ended"));
            assert!(endless.cut.capacity() <= 2 << 20);
        }
        assert_eq!(endless.open_bytes(), 256 * (16 << 10));
        let mut found = Vec::new();
        endless.feed(b"x\n1\n", |line| found.push(line.map(<[u8]>::to_vec)));
        assert_eq!(found, [Err(TooLong), Ok(b"1".to_vec())]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            bytes in prop::collection::vec(prop::sample::select(&b"ab\r\n {\xe6"[..]), 0..80),
            size in 1_usize..9,
        ) {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(lines(1000, &chunks), lines(1000, &[&bytes]));
        }
    }
}
