//! Takes an answer in while it goes to the client, and keeps it if it was good to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::flight::Flight;
use super::{Answers, Kept, Key};
use crate::attempt::DROPPED;
use crate::clock::Moment;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Keeper {
    answers: Arc<Answers>,
    key: Key,
    /// Ends when the keeper does: others that wait look again, and go themselves if there is nothing.
    _flight: Option<Flight>,
    ttl: Duration,
    largest: usize,
    headers: HeaderMap,
    pieces: Vec<Bytes>,
    size: usize,
}

impl Keeper {
    pub(super) fn new(
        answers: Arc<Answers>,
        key: Key,
        flight: Option<Flight>,
        ttl: Duration,
        largest: usize,
    ) -> Self {
        Self {
            answers,
            key,
            _flight: flight,
            ttl,
            largest,
            headers: HeaderMap::new(),
            pieces: Vec::new(),
            size: 0,
        }
    }

    /// The answer begins. Of its headers those are kept that say something of the body; the rest is about the one call.
    pub(crate) fn begin(&mut self, headers: &HeaderMap) {
        for name in [CONTENT_TYPE, DROPPED] {
            if let Some(value) = headers.get(&name) {
                self.headers.insert(name, value.clone());
            }
        }
    }

    /// A piece of it.
    pub(crate) fn take(&mut self, piece: &Bytes) {
        self.size += piece.len();
        if self.size <= self.largest {
            self.pieces.push(piece.clone());
        } else {
            self.pieces.clear();
        }
    }

    /// It was good to its end.
    pub(crate) fn keep(self, now: Moment) {
        if !(1..=self.largest).contains(&self.size) {
            return;
        }
        // In one piece of its own: pieces are parts of larger buffers.
        let mut body = BytesMut::with_capacity(self.size);
        for piece in &self.pieces {
            body.extend_from_slice(piece);
        }
        let until = Moment(now.0 + self.ttl.as_micros() as u64);
        self.answers.keep(self.key, Kept { headers: self.headers, body: body.freeze(), since: now, until });
    }
}
