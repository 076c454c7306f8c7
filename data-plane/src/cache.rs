//! Answers kept for identical requests, where a route asks for it.
//!
//! The key is a hash of the route as this policy has it, the call, and the body in a canonical form, so that the order of
//! fields and white space do not matter and everything else does. Only complete, good answers are kept; a stream is kept
//! as its bytes and comes back as a stream. Of identical requests that arrive together one goes to a service and the
//! others wait for its answer ([`flight`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AGE, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Response};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::answer::AnswerBody;
use crate::clock::Moment;

mod canonical;
mod flight;
mod keeper;

pub(crate) use canonical::{Key, key};
use flight::Flights;
pub(crate) use keeper::Keeper;

/// An answer larger than this share of the room is not kept: it would push out too many others.
const LARGEST_SHARE: usize = 16;
/// What an entry takes beside its body.
const OVERHEAD: usize = 256;
/// A guess, for the size of the tables.
const TYPICAL_BODY: usize = 2_048;

/// An answer that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Type, and what translation has dropped.
    headers: HeaderMap,
    body: Bytes,
    since: Moment,
    until: Moment,
}

/// See the module's documentation. One per process; empty at the start.
#[derive(Debug)]
pub(crate) struct Answers {
    kept: Cache<Key, Kept, Weight>,
    flights: Flights,
    room: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Kept> for Weight {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        (OVERHEAD + kept.body.len()) as u64
    }
}

/// What a request is told.
pub(crate) enum Looked {
    /// Here it is.
    Hit(Kept),
    /// Nobody has it: go and get it. The keeper takes the answer in.
    Miss(Box<Keeper>),
    /// Nobody has it, and this answer is not to be kept.
    Skip,
}

/// What the client wants of the cache, as HTTP has it (RFC 9111, section 5.2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wish {
    /// Take nothing from it.
    no_cache: bool,
    /// Put nothing into it.
    no_store: bool,
}

impl Wish {
    fn of(headers: &HeaderMap) -> Self {
        let mut wish = Self::default();
        let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
        for directive in values.flat_map(|value| value.split(',')).map(str::trim) {
            wish.no_cache |= directive.eq_ignore_ascii_case("no-cache");
            wish.no_store |= directive.eq_ignore_ascii_case("no-store");
        }
        wish
    }
}

impl Answers {
    /// With room for this many bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            kept: Cache::with_weighter((room / TYPICAL_BODY).max(16), room as u64, Weight),
            flights: Flights::default(),
            room,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// How many bytes it may hold.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// Requests that got an answer from it, and requests that did not, since it began.
    pub(crate) fn looked(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    /// Looks for an answer. While an identical request is under way it waits for that one's answer, but not beyond `patience`.
    pub(crate) async fn look(
        self: &Arc<Self>,
        key: Key,
        headers: &HeaderMap,
        ttl: Duration,
        patience: Duration,
        now: impl Fn() -> Moment,
    ) -> Looked {
        let wish = Wish::of(headers);
        if !wish.no_cache {
            if let Some(kept) = self.fresh(key, now()) {
                return Looked::Hit(kept);
            }
            if let Some(other) = self.flights.under_way(key) {
                other.landed(patience).await;
                if let Some(kept) = self.fresh(key, now()) {
                    return Looked::Hit(kept);
                }
            }
        }
        self.misses.fetch_add(1, Relaxed);
        if wish.no_store {
            return Looked::Skip;
        }
        let largest = self.room / LARGEST_SHARE;
        Looked::Miss(Box::new(Keeper::new(Arc::clone(self), key, self.flights.take_off(key), ttl, largest)))
    }

    fn fresh(&self, key: Key, now: Moment) -> Option<Kept> {
        let kept = self.kept.get(&key).filter(|kept| now < kept.until)?;
        self.hits.fetch_add(1, Relaxed);
        Some(kept)
    }

    fn keep(&self, key: Key, kept: Kept) {
        self.kept.insert(key, kept);
    }
}

impl Kept {
    /// As an answer for a client.
    pub(crate) fn answer(self, now: Moment) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::from(self.body));
        *response.headers_mut() = self.headers;
        let headers = response.headers_mut();
        headers.insert(AGE, HeaderValue::from(now.since(self.since).as_secs()));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_wishes_are_read_as_http_has_them() {
        let wish = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CACHE_CONTROL, HeaderValue::from_static(value));
            }
            let wish = Wish::of(&headers);
            (wish.no_cache, wish.no_store)
        };
        assert_eq!(wish(&[]), (false, false));
        assert_eq!(wish(&["max-age=0"]), (false, false));
        assert_eq!(wish(&["No-Cache"]), (true, false));
        assert_eq!(wish(&["no-cache, no-store"]), (true, true));
        assert_eq!(wish(&["no-transform", "no-store"]), (false, true));
    }
}
