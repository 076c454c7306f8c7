//! A request body that the client is still sending while the service already answers: a gRPC stream.
//!
//! It goes on to the service as it comes, at the service's pace. What went is kept, up to a limit, so that it can be sent
//! again to another service, until the first message of an answer is on its way to the client. An attempt that ends takes
//! its body with it: the service sees a reset, never an end that the client did not make.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;
use penstock_providers::grpc::{Error, Frames};

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(crate) struct Upload(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    incoming: Incoming,
    frames: Frames,
    /// What came so far; once nothing is to be sent again, what the attempt has still to send of it.
    kept: VecDeque<Bytes>,
    /// How much of it the attempt has sent.
    sent: usize,
    keep: Keep,
    /// Bytes that came so far.
    length: usize,
    ended: bool,
    failed: Option<Failed>,
    /// The number of the attempt that may read on.
    attempt: u64,
    /// Of the task that sends the body.
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy)]
enum Keep {
    UpTo(usize),
    Nothing,
}

/// Why the client's part ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It sent what is no gRPC.
    Wrong(Error),
    /// It broke off.
    Broken,
}

impl Upload {
    /// `limit`: of one message, and of what is kept.
    pub(crate) fn new(incoming: Incoming, limit: usize) -> Self {
        Self(Rc::new(RefCell::new(State {
            incoming,
            frames: Frames::with_limit(limit),
            kept: VecDeque::new(),
            sent: 0,
            keep: Keep::UpTo(limit),
            length: 0,
            ended: false,
            failed: None,
            attempt: 0,
            waker: None,
        })))
    }

    /// The body for the next attempt, from its beginning. The attempt lasts as long as the guard.
    pub(crate) fn begin(&self) -> (UploadBody, UploadGuard) {
        let mut state = self.0.borrow_mut();
        state.sent = 0;
        (UploadBody { upload: self.clone(), attempt: state.attempt }, UploadGuard(self.clone()))
    }

    /// Can it be sent from its beginning?
    pub(crate) fn is_repeatable(&self) -> bool {
        let state = self.0.borrow();
        state.length == 0 || matches!(state.keep, Keep::UpTo(_))
    }

    /// It will not be sent again.
    pub(crate) fn forget(&self) {
        self.0.borrow_mut().forget();
    }

    /// Has the client sent everything?
    pub(crate) fn has_ended(&self) -> bool {
        self.0.borrow().ended
    }

    /// Why it ended before its time, if it did.
    pub(crate) fn failed(&self) -> Option<Failed> {
        self.0.borrow().failed
    }

    /// Bytes that came so far.
    pub(crate) fn length(&self) -> u64 {
        self.0.borrow().length as u64
    }
}

impl State {
    fn forget(&mut self) {
        self.keep = Keep::Nothing;
        self.kept.drain(..self.sent);
        self.sent = 0;
    }

    fn keep(&mut self, data: &Bytes) {
        match self.keep {
            Keep::UpTo(limit) if self.length <= limit => {
                self.kept.push_back(data.clone());
                self.sent += 1;
            }
            Keep::UpTo(_) => self.forget(),
            Keep::Nothing => {}
        }
    }

    /// The next of what an earlier attempt had from the client already.
    fn again(&mut self) -> Option<Bytes> {
        match self.keep {
            Keep::UpTo(_) => {
                let data = self.kept.get(self.sent).cloned()?;
                self.sent += 1;
                Some(data)
            }
            Keep::Nothing => self.kept.pop_front(),
        }
    }

    /// The next from the client.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failed>>> {
        loop {
            if let Some(failed) = self.failed {
                return Poll::Ready(Some(Err(failed)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let taken = match std::task::ready!(Pin::new(&mut self.incoming).poll_frame(context)) {
                None => {
                    self.ended = true;
                    self.frames.end().map_err(Failed::Wrong)
                }
                Some(Err(_)) => Err(Failed::Broken),
                Some(Ok(frame)) => {
                    // A client of gRPC sends no trailers.
                    let Ok(data) = frame.into_data() else { continue };
                    self.length += data.len();
                    match self.frames.feed(&data) {
                        Ok(()) => {
                            self.keep(&data);
                            return Poll::Ready(Some(Ok(data)));
                        }
                        Err(error) => Err(Failed::Wrong(error)),
                    }
                }
            };
            self.failed = taken.err();
        }
    }
}

/// Ends an attempt's body when it is dropped.
#[derive(Debug)]
pub(crate) struct UploadGuard(Upload);

impl Drop for UploadGuard {
    fn drop(&mut self) {
        let mut state = self.0.0.borrow_mut();
        state.attempt += 1;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An upload as one attempt sends it.
#[derive(Debug)]
pub(crate) struct UploadBody {
    upload: Upload,
    attempt: u64,
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let mut state = self.upload.0.borrow_mut();
        if state.attempt != self.attempt {
            return Poll::Ready(Some(Err(reset())));
        }
        if let Some(data) = state.again() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let polled = state.poll(context);
        if polled.is_pending() {
            state.waker = Some(context.waker().clone());
        }
        polled.map(|data| data.map(|data| data.map(Frame::data).map_err(|_| reset())))
    }
}

/// Makes hyper reset the stream as a caller does that gives up.
fn reset() -> h2::Error {
    h2::Reason::CANCEL.into()
}
