//! A request body in pieces.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use penstock_providers::splice::SplicedBody;

/// The pieces of a spliced body, sent one after the other without being copied together.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl From<SplicedBody> for RequestBody {
    fn from(body: SplicedBody) -> Self {
        let left = body.len() as u64;
        Self { pieces: body.into_segments().collect(), left }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
