//! What is gRPC about a gRPC call: how messages are framed, how long it may take, and how it says how it ended.
//!
//! A message is five bytes and itself: whether it is compressed, and its length. How a call ended is said by the trailers
//! `grpc-status` and `grpc-message`, or by headers of these names when there was no message at all; the HTTP status says
//! nothing. Messages pass as they are: nothing here knows what is in them.
//!
//! Wire facts: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md> and `statuscodes.md` beside it.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use penstock_model::outcome::Outcome;

use crate::json::clip;

/// The media type of a call, without what may follow it.
pub const CONTENT_TYPE: &str = "application/grpc";

/// Bytes before each message.
const HEADER: usize = 5;

/// Longest `grpc-message` that is kept.
const MAX_TEXT: usize = 2 << 10;

/// Is it a call, by its media type? What browsers send instead (`application/grpc-web`) is framed otherwise.
#[must_use]
pub fn is_call(content_type: &[u8]) -> bool {
    let rest = content_type
        .get(..CONTENT_TYPE.len())
        .filter(|kind| kind.eq_ignore_ascii_case(CONTENT_TYPE.as_bytes()));
    rest.is_some() && matches!(content_type.get(CONTENT_TYPE.len()), None | Some(b'+' | b';'))
}

/// Why bytes are no messages. Nothing that comes after it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The first byte is neither 0 nor 1.
    #[error("this is no gRPC message")]
    NoMessage,
    /// Longer than the limit.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// What would have been allowed.
        limit: usize,
    },
    /// The body ended within a message.
    #[error("the message is cut short")]
    Cut,
}

/// Follows the messages in a stream of reads. Keeps none of them.
#[derive(Debug)]
pub struct Frames {
    limit: usize,
    header: [u8; HEADER],
    /// Bytes of the header that are here.
    have: usize,
    /// Bytes of the message that are still to come, once its header is here.
    left: usize,
    failed: Option<Error>,
}

impl Frames {
    /// For messages of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, header: [0; HEADER], have: 0, left: 0, failed: None }
    }

    /// Takes in one read.
    ///
    /// # Errors
    /// When these are no messages, or one is too long: as soon as its header says so. The same again from then on.
    pub fn feed(&mut self, mut read: &[u8]) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        while !read.is_empty() {
            if self.left > 0 {
                let part = self.left.min(read.len());
                self.left -= part;
                read = &read[part..];
                continue;
            }
            self.header[self.have] = read[0];
            self.have += 1;
            read = &read[1..];
            self.check_header().inspect_err(|error| self.failed = Some(*error))?;
        }
        Ok(())
    }

    /// The body has ended.
    ///
    /// # Errors
    /// When it did so within a message, or had failed before.
    pub fn end(&self) -> Result<(), Error> {
        match self.failed {
            Some(error) => Err(error),
            None if self.left == 0 && self.have == 0 => Ok(()),
            None => Err(Error::Cut),
        }
    }

    fn check_header(&mut self) -> Result<(), Error> {
        let [compressed, a, b, c, d] = self.header;
        if compressed > 1 {
            return Err(Error::NoMessage);
        }
        if self.have < HEADER {
            return Ok(());
        }
        self.have = 0;
        self.left = u32::from_be_bytes([a, b, c, d]) as usize;
        if self.left > self.limit { Err(Error::TooLong { limit: self.limit }) } else { Ok(()) }
    }
}

/// How long the client will wait, as `grpc-timeout` says it: at most eight digits and a unit. `None` when it is nothing of
/// that kind.
#[must_use]
pub fn read_timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// The value of `grpc-timeout` that says `wait`, or a little less where eight digits do not say it exactly.
#[must_use]
pub fn write_timeout(wait: Duration) -> HeaderValue {
    const MOST: u128 = 99_999_999;
    let (count, unit) = match (wait.as_micros(), wait.as_millis()) {
        (micros, _) if micros <= MOST => (micros, 'u'),
        (_, millis) if millis <= MOST => (millis, 'm'),
        _ => (u128::from(wait.as_secs()).min(MOST), 'S'),
    };
    HeaderValue::try_from(format!("{count}{unit}")).unwrap_or_else(|_| HeaderValue::from_static("1S"))
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// 0 is good. What is no code of gRPC's is 2, "unknown".
    pub code: u32,
    /// For people; bounded, without control characters. Empty when the service said nothing.
    pub message: String,
}

/// Names of the codes, and what each means for the target that gave it.
const CODES: [(&str, Outcome); 17] = [
    ("OK", Outcome::Ok),
    ("CANCELLED", Outcome::ServerError),
    ("UNKNOWN", Outcome::ServerError),
    ("INVALID_ARGUMENT", Outcome::ClientError),
    ("DEADLINE_EXCEEDED", Outcome::ServerError),
    ("NOT_FOUND", Outcome::ClientError),
    ("ALREADY_EXISTS", Outcome::ClientError),
    ("PERMISSION_DENIED", Outcome::CredentialRejected),
    ("RESOURCE_EXHAUSTED", Outcome::RateLimited),
    ("FAILED_PRECONDITION", Outcome::ClientError),
    ("ABORTED", Outcome::ServerError),
    ("OUT_OF_RANGE", Outcome::ClientError),
    ("UNIMPLEMENTED", Outcome::ClientError),
    ("INTERNAL", Outcome::ServerError),
    ("UNAVAILABLE", Outcome::Overloaded),
    ("DATA_LOSS", Outcome::ServerError),
    ("UNAUTHENTICATED", Outcome::CredentialRejected),
];

impl Status {
    /// Reads trailers, or the headers of an answer that has nothing else. `None` when they do not say: then an answer
    /// that has ended is cut short.
    #[must_use]
    pub fn read(trailers: &HeaderMap) -> Option<Self> {
        let code = trailers.get("grpc-status")?;
        let code = code.to_str().ok().and_then(|code| code.trim().parse().ok());
        let code = code.filter(|code| (*code as usize) < CODES.len()).unwrap_or(2);
        let message = trailers.get("grpc-message").map(|text| decode(text.as_bytes())).unwrap_or_default();
        Some(Self { code, message })
    }

    /// The code with this name.
    #[must_use]
    pub fn code_of(name: &str) -> Option<u32> {
        CODES.iter().position(|(known, _)| *known == name).map(|code| code as u32)
    }

    /// The code's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        CODES[self.code as usize % CODES.len()].0
    }

    /// What it means for the target. That a deadline has passed or a call was cancelled is the service's doing here: when
    /// it was ours, or the client's, we know it before the service says so.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        CODES[self.code as usize % CODES.len()].1
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

/// Percent-decodes a `grpc-message`. As gRPC asks for, what is wrongly encoded stays as it is, and is no error.
fn decode(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        let code = digits.and_then(|digits| Some(16 * hex(digits[0])? + hex(digits[1])?));
        bytes.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    let text = String::from_utf8_lossy(&bytes);
    clip(&text, MAX_TEXT).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

/// A message as `grpc-message` carries it: printable ASCII but `%`, the rest percent-encoded.
#[must_use]
pub fn encode_message(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn frame(message: &[u8]) -> Vec<u8> {
        [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
    }

    fn followed(limit: usize, chunks: &[&[u8]]) -> Result<(), Error> {
        let mut frames = Frames::with_limit(limit);
        for chunk in chunks {
            if let Err(error) = frames.feed(chunk) {
                assert_eq!(frames.feed(&frame(b"x")), Err(error));
                assert_eq!(frames.end(), Err(error));
                return Err(error);
            }
        }
        frames.end()
    }

    fn status(code: &str, message: &str) -> Option<Status> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_str(code).unwrap());
        trailers.insert("grpc-message", HeaderValue::from_str(message).unwrap());
        Status::read(&trailers)
    }

    #[test]
    fn messages_are_followed_wherever_reads_cut_them() {
        let body = [frame(b"one"), frame(b""), frame(b"three")].concat();
        for size in 1..=body.len() {
            let chunks: Vec<&[u8]> = body.chunks(size).collect();
            assert_eq!(followed(100, &chunks), Ok(()));
        }
        assert_eq!(followed(100, &[&body[..body.len() - 1]]), Err(Error::Cut));
        assert_eq!(followed(100, &[&body[..2]]), Err(Error::Cut));
        assert_eq!(followed(100, &[]), Ok(()));
        assert_eq!(followed(100, &[b"\x01\0\0\0\x01z"]), Ok(()), "compressed: between client and service");
    }

    #[test]
    fn what_is_too_long_or_no_message_is_refused_at_its_header() {
        assert_eq!(followed(100, &[b"HTTP/1.1"]), Err(Error::NoMessage));
        assert_eq!(followed(3, &[&frame(b"abc")]), Ok(()));
        assert_eq!(followed(3, &[&frame(b"abcd")[..5]]), Err(Error::TooLong { limit: 3 }));
        assert_eq!(followed(3, &[b"\0\xff", b"\xff\xff\xff"]), Err(Error::TooLong { limit: 3 }));
        assert_eq!(followed(3, &[&[frame(b"a"), frame(b"abcd")].concat()]), Err(Error::TooLong { limit: 3 }));
    }

    #[test]
    fn a_call_is_known_by_its_media_type() {
        for call in ["application/grpc", "application/grpc+proto", "Application/gRPC;charset=utf-8"] {
            assert!(is_call(call.as_bytes()), "{call}");
        }
        for other in
            ["", "application/json", "application/grpc-web", "application/grpcx", "text/application/grpc"]
        {
            assert!(!is_call(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_timeout_is_read_in_every_unit() {
        let read = |text: &str| read_timeout(&HeaderValue::from_str(text).unwrap());
        for (text, nanos) in [
            ("1H", 3_600_000_000_000),
            ("2M", 120_000_000_000),
            ("3S", 3_000_000_000),
            ("4m", 4_000_000),
            ("5u", 5_000),
            ("6n", 6),
        ] {
            assert_eq!(read(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        for bad in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S", " 1S"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_status_is_read_with_its_message_decoded() {
        let read = status("14", "queue full: %E6%BD%AE %25").unwrap();
        assert_eq!(read.to_string(), "UNAVAILABLE: queue full: 潮 %");
        assert_eq!(read.outcome(), Outcome::Overloaded);
        assert_eq!(status("0", "").unwrap().to_string(), "OK");
        assert_eq!(status("3", "100% of %zz %4").unwrap().message, "100% of %zz %4");
        assert_eq!(status("3", "a%0D%0Ab%FF").unwrap().message, "a  b\u{fffd}");
        assert_eq!(status("3", &"x".repeat(5000)).unwrap().message.len(), MAX_TEXT);
        for unknown in ["99", "-1", "", "ok"] {
            assert_eq!(status(unknown, "").unwrap().name(), "UNKNOWN", "{unknown}");
        }
        assert_eq!(Status::read(&HeaderMap::new()), None);
    }

    #[test]
    fn each_code_has_its_meaning() {
        let meaning = |code: u32| Status { code, message: String::new() }.outcome();
        assert_eq!(meaning(0), Outcome::Ok);
        for blameless in [3, 5, 6, 9, 11, 12] {
            assert_eq!(meaning(blameless), Outcome::ClientError);
        }
        for failure in [1, 2, 4, 10, 13, 14, 15] {
            assert!(meaning(failure).is_failure());
        }
        assert_eq!((meaning(7), meaning(16)), (Outcome::CredentialRejected, Outcome::CredentialRejected));
        assert_eq!(meaning(8), Outcome::RateLimited);
    }

    proptest! {
        #[test]
        fn any_message_survives_its_encoding(text in "\\PC{0,80}") {
            let encoded = encode_message(&text);
            prop_assert!(HeaderValue::from_str(&encoded).is_ok());
            prop_assert_eq!(decode(encoded.as_bytes()), text);
        }

        #[test]
        fn noise_is_read_alike_in_any_chunks(noise in prop::collection::vec(prop::sample::select(&[0_u8, 0, 0, 1, 3, 200][..]), 0..60), size in 1_usize..9) {
            let chunks: Vec<&[u8]> = noise.chunks(size).collect();
            prop_assert_eq!(followed(4, &[&noise]), followed(4, &chunks));
        }

        #[test]
        fn a_timeout_that_is_written_is_read_and_never_longer(micros in any::<u64>()) {
            let wait = Duration::from_micros(micros % 10_000_000_000_000);
            let read = read_timeout(&write_timeout(wait)).unwrap();
            prop_assert!(read <= wait && wait - read <= wait / 10_000, "{wait:?} {read:?}");
        }
    }
}
