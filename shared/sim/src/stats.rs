//! What a service has done so far.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// How a call ended, as the service sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Answered in full.
    Ok,
    /// Refused for a fault of the request: 400 to 428.
    ClientError,
    /// Refused with 429.
    RateLimited,
    /// Refused with 503 or 529, or because the queue was full.
    Overloaded,
    /// Failed with another 5xx, or with an error inside the stream.
    ServerError,
    /// The connection was reset.
    Reset,
    /// Garbage was sent.
    Garbage,
    /// Stopped half-way.
    Truncated,
    /// The caller left before the end, or the service shut down.
    Cancelled,
}

impl Ending {
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            ..400 => Self::Ok,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            400..500 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

/// Counts of the calls to `/v1`, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Calls that came.
    pub requests: u64,
    /// Calls that are being answered or wait for a slot.
    pub in_flight: u64,
    /// Most calls ever in flight at once.
    pub max_in_flight: u64,
    /// Connections taken so far.
    pub connections: u64,
    /// See [`Ending::Ok`].
    pub ok: u64,
    /// All endings but `ok`.
    pub failed: u64,
    /// See [`Ending::ClientError`].
    pub client_error: u64,
    /// See [`Ending::RateLimited`].
    pub rate_limited: u64,
    /// See [`Ending::Overloaded`].
    pub overloaded: u64,
    /// See [`Ending::ServerError`].
    pub server_error: u64,
    /// See [`Ending::Reset`].
    pub reset: u64,
    /// See [`Ending::Garbage`].
    pub garbage: u64,
    /// See [`Ending::Truncated`].
    pub truncated: u64,
    /// See [`Ending::Cancelled`].
    pub cancelled: u64,
    /// The last call, when the service was told to keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_request: Option<CapturedRequest>,
}

/// A call as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedRequest {
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// Its headers, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// Its body; bytes that are no text are replaced.
    pub body: String,
}

impl CapturedRequest {
    /// The first value of a header, by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    in_flight: AtomicU64,
    max_in_flight: AtomicU64,
    pub(crate) connections: AtomicU64,
    endings: [AtomicU64; 9],
    pub(crate) last_request: Mutex<Option<CapturedRequest>>,
}

impl Counters {
    /// Counts a call that begins, and tells its number, from 0.
    pub(crate) fn begin(&self) -> u64 {
        let now = self.in_flight.fetch_add(1, Relaxed) + 1;
        if now > self.max_in_flight.load(Relaxed) {
            self.max_in_flight.fetch_max(now, Relaxed);
        }
        self.requests.fetch_add(1, Relaxed)
    }

    pub(crate) fn end(&self, ending: Ending) {
        self.endings[ending as usize].fetch_add(1, Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        let ended = |ending: Ending| self.endings[ending as usize].load(Relaxed);
        let ok = ended(Ending::Ok);
        let all: u64 = self.endings.iter().map(|count| count.load(Relaxed)).sum();
        Stats {
            requests: self.requests.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            max_in_flight: self.max_in_flight.load(Relaxed),
            connections: self.connections.load(Relaxed),
            ok,
            failed: all - ok,
            client_error: ended(Ending::ClientError),
            rate_limited: ended(Ending::RateLimited),
            overloaded: ended(Ending::Overloaded),
            server_error: ended(Ending::ServerError),
            reset: ended(Ending::Reset),
            garbage: ended(Ending::Garbage),
            truncated: ended(Ending::Truncated),
            cancelled: ended(Ending::Cancelled),
            last_request: self.last_request.lock().expect("no holder panics").clone(),
        }
    }
}
