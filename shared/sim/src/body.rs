//! Response bodies: whole, broken off, or a stream at a speaker's pace.

use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use crate::answer::{Events, Step};
use crate::speech::Frames;
use crate::stats::{Counters, Ending};

/// Why hyper is told to drop a connection.
#[derive(Debug, thiserror::Error)]
#[error("a simulated fault ends this connection")]
pub(crate) struct Broken;

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Counts a call until it is dropped; holds its slot meanwhile.
#[derive(Debug)]
pub(crate) struct Call {
    counters: Arc<Counters>,
    ending: Ending,
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

impl Call {
    /// A call that counts as cancelled unless its ending is told.
    pub(crate) fn begin(counters: &Arc<Counters>) -> (Self, u64) {
        let number = counters.begin();
        (Self { counters: Arc::clone(counters), ending: Ending::Cancelled, slot: None }, number)
    }

    pub(crate) fn ended(&mut self, ending: Ending) {
        self.ending = ending;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.counters.end(self.ending);
    }
}

/// A response body.
#[derive(Debug)]
pub(crate) enum SimBody {
    /// All at once.
    Whole(Bytes),
    /// The first part of `length` bytes; then the connection breaks.
    Short { first: Bytes, length: u64, paused: bool },
    /// A streamed answer.
    Stream(Box<StreamBody>),
}

impl Body for SimBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Short { first, paused, .. } => {
                if !first.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(std::mem::take(first)))));
                }
                break_off(paused, cx).map(Some)
            }
            Self::Stream(stream) => stream.poll_event(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Short { length, .. } => SizeHint::with_exact(*length),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Breaks the connection, but lets hyper send what it has first, which it does when a body is not ready.
fn break_off(paused: &mut bool, cx: &mut Context<'_>) -> Poll<Result<Frame<Bytes>, Broken>> {
    if std::mem::replace(paused, true) {
        return Poll::Ready(Err(Broken));
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// When each token is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) first_token: Duration,
    pub(crate) per_token: Duration,
}

impl Pace {
    /// How long after the start the token of this number is due.
    pub(crate) fn due(self, token: u32) -> Duration {
        self.first_token + self.per_token * token
    }
}

/// What happens in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HalfWay {
    /// Nothing: it goes on to its end.
    GoOn,
    /// It ends as if complete.
    End,
    /// The connection breaks.
    Break,
    /// Silence.
    Stall,
    /// These bytes, which say that something failed, and then it ends.
    Fail(Bytes),
    /// The end, after something failed.
    Over,
}

/// The events of a streamed answer.
#[derive(Debug)]
pub(crate) enum Source {
    /// Made one at a time, as fast as can be.
    Chat(Events),
    /// Made in advance.
    Frames(Frames),
}

impl Source {
    fn tokens(&self) -> u32 {
        match self {
            Self::Chat(events) => events.tokens(),
            Self::Frames(frames) => frames.tokens(),
        }
    }

    /// The number of the token that comes next, if one does.
    fn next_token(&self) -> Option<u32> {
        match self {
            Self::Chat(events) => match events.next_step() {
                Step::Token(token) => Some(token),
                _ => None,
            },
            Self::Frames(frames) => frames.next_token(),
        }
    }

    fn next_event(&mut self) -> Option<Bytes> {
        match self {
            Self::Chat(events) => events.next_event(),
            Self::Frames(frames) => frames.next_event(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Chat(events) => events.next_step() == Step::End,
            Self::Frames(frames) => frames.is_over(),
        }
    }
}

/// A streamed answer.
#[derive(Debug)]
pub(crate) struct StreamBody {
    events: Source,
    half_way: HalfWay,
    pace: Pace,
    start: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    paused: bool,
    call: Call,
}

impl StreamBody {
    pub(crate) fn new(events: Source, pace: Pace, half_way: HalfWay, call: Call) -> Self {
        Self { events, half_way, pace, start: Instant::now(), timer: None, paused: false, call }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(token) = self.events.next_token() {
            let tokens = self.events.tokens();
            // A stream of one token has no half but its beginning.
            let half = tokens.div_ceil(2).min(tokens.saturating_sub(1));
            if token >= half && self.half_way != HalfWay::GoOn {
                return self.stop(cx);
            }
            ready!(self.poll_due(token, cx));
        }
        let event = self.events.next_event();
        if self.events.is_over() {
            self.call.ended(Ending::Ok);
        }
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }

    fn stop(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.half_way {
            // Until the caller loses patience: no waker is kept, hyper drops the body when the connection ends.
            HalfWay::Stall => Poll::Pending,
            HalfWay::Break => {
                self.call.ended(Ending::Truncated);
                break_off(&mut self.paused, cx).map(Some)
            }
            HalfWay::Fail(error) => {
                let error = std::mem::take(error);
                self.half_way = HalfWay::Over;
                self.call.ended(Ending::ServerError);
                Poll::Ready(Some(Ok(Frame::data(error))))
            }
            HalfWay::Over => Poll::Ready(None),
            HalfWay::End | HalfWay::GoOn => {
                self.call.ended(Ending::Truncated);
                Poll::Ready(None)
            }
        }
    }

    fn poll_due(&mut self, token: u32, cx: &mut Context<'_>) -> Poll<()> {
        let after = self.pace.due(token);
        if after.is_zero() {
            return Poll::Ready(());
        }
        let due = self.start + after;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }
}
