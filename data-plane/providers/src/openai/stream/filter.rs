//! What the client gets of a stream that passes through.
//!
//! Three kinds of events are not passed as they came: the report of usage that the client did not ask for (SSE-05), a tool
//! call under an index that another one has (SSE-06), and data that is no JSON (SSE-03). All else is the very bytes of the
//! reads, in pieces of the reads themselves. An event that a read cuts is kept back until its end has come: no client
//! can use half an event. It is passed at once when it grows beyond [`MAX_HELD`].

use bytes::Bytes;
use smallvec::SmallVec;

use super::{SseWatch, Verdict};
use crate::sse::MAX_HELD;

/// What goes to the client for one read: nearly always one piece.
pub type Pieces = SmallVec<[Bytes; 3]>;

/// The event that has not ended yet.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Its bytes so far, unless they were passed on.
    held: Vec<u8>,
    /// Is it passed on as it comes, because it is too long to be kept back?
    passing: bool,
}

impl SseWatch {
    /// Takes in one read of the body, and gives what the client gets for it.
    pub fn filter(&mut self, read: Bytes) -> Pieces {
        let Self { framer, seen, open } = self;
        let mut out = Pieces::new();
        // Of `read`, what is before `passed` has been dealt with, and what is before `ended` belongs to whole events.
        let (mut passed, mut ended) = (0, 0);
        framer.feed_ends(&read, |event, end| {
            let verdict = event.map_or(Verdict::Pass, |event| seen.inspect(event));
            let held = std::mem::take(&mut open.held);
            let too_late = std::mem::take(&mut open.passing);
            if verdict == Verdict::Pass || too_late {
                push(&mut out, held.into());
            } else {
                push(&mut out, read.slice(passed..ended));
                if let Verdict::Replace(data) = verdict {
                    push(&mut out, event_of(&data));
                }
                passed = end;
            }
            ended = end;
        });
        // Too long to look into, and hence too long to be anything but content.
        seen.first_token |= framer.is_oversized();
        push(&mut out, read.slice(passed..ended));
        let cut = read.slice(ended..);
        if open.passing || open.held.len() + cut.len() > MAX_HELD {
            open.passing = true;
            push(&mut out, std::mem::take(&mut open.held).into());
            push(&mut out, cut);
        } else {
            open.held.extend_from_slice(&cut);
        }
        out
    }

    /// The body has ended: gives what is left for the client. For streams that went through [`Self::filter`].
    pub fn finish(&mut self) -> Option<Bytes> {
        let mut verdict = Verdict::Pass;
        let seen = &mut self.seen;
        self.framer.end(|event| verdict = seen.inspect(event));
        let held = Bytes::from(std::mem::take(&mut self.open.held));
        let left = match verdict {
            Verdict::Pass => held,
            Verdict::Drop => Bytes::new(),
            Verdict::Replace(data) if !self.open.passing => event_of(&data),
            Verdict::Replace(_) => held,
        };
        (!left.is_empty()).then_some(left)
    }

    /// Has the client been given the beginning of an event and not its end? Whatever is said to it next must first end
    /// that event.
    #[must_use]
    pub fn is_inside_event(&self) -> bool {
        self.open.passing
    }
}

fn push(out: &mut Pieces, piece: Bytes) {
    if !piece.is_empty() {
        out.push(piece);
    }
}

fn event_of(data: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(data.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests;
