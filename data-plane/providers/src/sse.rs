//! Framing of event streams (WHATWG HTML, "Server-sent events"), watched from the side.
//!
//! The bytes themselves pass by; this finds the events in them wherever the reads were cut. Lines end with CRLF, LF or
//! CR. An event that lies in one read is looked at in place; only what a read cuts is copied, up to a limit.

/// Most bytes of one unfinished event that are kept where events are only looked at. A longer one is counted but not
/// looked into.
pub const MAX_HELD: usize = 64 << 10;

/// The same where events are translated: an image in base64 or a long argument has to be understood whole (SSE-11).
pub const MAX_TRANSLATED: usize = 32 << 20;

/// One event with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The data lines, joined by LF. Empty when `oversized`.
    pub data: &'a [u8],
    /// Was it announced as `event: error`?
    pub is_error: bool,
    /// Was it cut by reads and longer than what the framer keeps?
    pub oversized: bool,
}

/// Finds the events in a stream of reads.
#[derive(Debug)]
pub struct Framer {
    /// Most bytes of one unfinished event that are kept.
    limit: usize,
    /// The line that the last read cut.
    line: Vec<u8>,
    /// Data lines of the open event that are no longer in the current read.
    held: Vec<u8>,
    /// Does the open event have data in `held`?
    has_held: bool,
    is_error: bool,
    oversized: bool,
    /// The start of the cut line was dropped because it was too long.
    line_dropped: bool,
    /// The last read ended with CR: a LF that follows belongs to it.
    after_cr: bool,
    started: bool,
    open_bytes: u64,
    comments: u64,
}

impl Default for Framer {
    /// For a stream that is only looked at.
    fn default() -> Self {
        Self::with_limit(MAX_HELD)
    }
}

impl Framer {
    /// Keeps at most `limit` bytes of an event that reads cut.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            held: Vec::new(),
            has_held: false,
            is_error: false,
            oversized: false,
            line_dropped: false,
            after_cr: false,
            started: false,
            open_bytes: 0,
            comments: 0,
        }
    }

    /// Takes in one read and reports each event that ends in it.
    pub fn feed(&mut self, read: &[u8], mut on_event: impl FnMut(Event<'_>)) {
        self.feed_ends(read, |event, _| {
            if let Some(event) = event {
                on_event(event);
            }
        });
    }

    /// As [`Self::feed`], with where in `read` each event ends, its empty line included. Also reports empty lines that end
    /// nothing but comments.
    pub(crate) fn feed_ends(&mut self, read: &[u8], mut on_end: impl FnMut(Option<Event<'_>>, usize)) {
        let mut rest = read;
        let mut closed_one = false;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if let Some(after) = rest.strip_prefix(b"\n") {
                rest = after;
                // The second half of an empty line's end.
                closed_one = self.open_bytes == 0;
                if closed_one {
                    on_end(None, 1);
                }
            }
        }
        let mut open_from = rest.len();
        // The open event's only data line so far, when it lies wholly in this read.
        let mut in_place: Option<&[u8]> = None;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let line = &rest[..end];
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let cut_before = !self.line.is_empty() || self.line_dropped;
            if line.is_empty() && !cut_before {
                self.close(in_place.take(), |event| on_end(event, read.len() - rest.len()));
                open_from = rest.len();
                closed_one = true;
            } else if cut_before {
                self.hold(in_place.take());
                self.end_cut_line(line);
            } else if let Some(data) = self.read_line(line) {
                self.hold(in_place.take());
                if self.has_held { self.hold(Some(data)) } else { in_place = Some(data) }
            }
        }
        self.hold(in_place);
        self.hold_line(rest);
        self.open_bytes = if closed_one { open_from as u64 } else { self.open_bytes + read.len() as u64 };
    }

    /// The stream has ended. An event without its closing empty line is reported too: the standard would drop it, but
    /// services do end their streams like that.
    pub fn end(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        if !self.line.is_empty() || self.line_dropped {
            self.end_cut_line(b"");
        }
        self.close(None, |event| {
            if let Some(event) = event {
                on_event(event);
            }
        });
    }

    /// Is the open event already known to be too long to look into?
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// Bytes that have come since the last event or empty line ended.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        self.open_bytes
    }

    /// Comment lines so far: keep-alives.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Notes what a line says; the value when it is a data line.
    fn read_line<'l>(&mut self, line: &'l [u8]) -> Option<&'l [u8]> {
        let line = if self.started { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) };
        self.started = true;
        let trim = |value: &'l [u8]| value.strip_prefix(b" ").unwrap_or(value);
        if let Some(value) = line.strip_prefix(b"data:") {
            return Some(trim(value));
        }
        match memchr::memchr(b':', line) {
            Some(0) => self.comments += 1,
            Some(colon) if &line[..colon] == b"event" => self.is_error = trim(&line[colon + 1..]) == b"error",
            None if line == b"data" => return Some(b""),
            // `id`, `retry`, and fields that nobody defined.
            _ => {}
        }
        None
    }

    /// Reports the open event, if it has data, and starts the next.
    fn close(&mut self, in_place: Option<&[u8]>, on_end: impl FnOnce(Option<Event<'_>>)) {
        let data = if self.has_held { Some(self.held.as_slice()) } else { in_place };
        let is_error = self.is_error;
        on_end(if self.oversized {
            Some(Event { data: b"", is_error, oversized: true })
        } else {
            data.map(|data| Event { data, is_error, oversized: false })
        });
        self.held.clear();
        self.held.shrink_to(MAX_HELD);
        self.has_held = false;
        self.is_error = false;
        self.oversized = false;
    }

    /// Keeps a data line of the open event beyond the current read.
    fn hold(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        if self.oversized || self.held.len() + data.len() >= self.limit {
            return self.give_up();
        }
        if self.has_held {
            self.held.push(b'\n');
        }
        self.has_held = true;
        self.held.extend_from_slice(data);
    }

    /// Keeps the start of a line whose end has not come yet.
    fn hold_line(&mut self, part: &[u8]) {
        if self.line_dropped || part.is_empty() {
            return;
        }
        if self.line.len() + part.len() <= self.limit {
            return self.line.extend_from_slice(part);
        }
        let is_comment = self.line.first().or(part.first()) == Some(&b':');
        if is_comment {
            self.comments += 1;
        } else {
            self.give_up();
        }
        self.line = Vec::new();
        self.line_dropped = true;
    }

    fn end_cut_line(&mut self, part: &[u8]) {
        self.hold_line(part);
        if !std::mem::take(&mut self.line_dropped) {
            let mut line = std::mem::take(&mut self.line);
            let data = self.read_line(&line);
            self.hold(data);
            line.clear();
            line.shrink_to(MAX_HELD);
            self.line = line;
        }
    }

    /// Stops looking into the open event, and gives its memory back.
    fn give_up(&mut self) {
        self.oversized = true;
        self.held = Vec::new();
        self.has_held = false;
    }
}

#[cfg(test)]
mod tests;
