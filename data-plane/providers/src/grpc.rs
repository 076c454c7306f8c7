//! What is gRPC about a gRPC call: how messages are framed, and how it says how it ended.
//!
//! A message is five bytes and itself: whether it is compressed, and its length. How a call ended is said by the trailers
//! `grpc-status` and `grpc-message`, or by headers of these names when there was no message at all; the HTTP status says
//! nothing. Messages pass as they are: nothing here knows what is in them.
//!
//! Wire facts: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md> and `statuscodes.md` beside it.

use std::fmt;

use http::HeaderMap;
use penstock_model::outcome::Outcome;

use crate::json::clip;

/// Bytes before each message.
pub const HEADER: usize = 5;

/// Most bytes of a message by default, as gRPC's own libraries have it.
pub const MAX_MESSAGE: usize = 4 << 20;

/// Longest `grpc-message` that is kept.
const MAX_TEXT: usize = 2 << 10;

/// Why bytes are no messages. Nothing that comes after it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Compressed, which nobody was asked to do.
    #[error("the message is compressed")]
    Compressed,
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

/// What stands before a message of `length` bytes, uncompressed.
///
/// # Errors
/// When it does not fit the four bytes of a length.
pub fn header(length: usize) -> Result<[u8; HEADER], Error> {
    let length = u32::try_from(length).map_err(|_| Error::TooLong { limit: u32::MAX as usize })?;
    let [a, b, c, d] = length.to_be_bytes();
    Ok([0, a, b, c, d])
}

/// Finds the messages in a stream of reads. Keeps at most one, of at most the limit.
#[derive(Debug)]
pub struct Messages {
    limit: usize,
    /// Header and message, as far as they have come.
    held: Vec<u8>,
    failed: Option<Error>,
}

impl Default for Messages {
    fn default() -> Self {
        Self::with_limit(MAX_MESSAGE)
    }
}

impl Messages {
    /// For messages of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, held: Vec::new(), failed: None }
    }

    /// Takes in one read and reports each message that ends in it. One that lies wholly in the read is not copied.
    ///
    /// # Errors
    /// When these are no messages, or one is too long: as soon as its header says so. The same again from then on.
    pub fn feed(&mut self, read: &[u8], mut on_message: impl FnMut(&[u8])) -> Result<(), Error> {
        match self.failed {
            Some(error) => Err(error),
            None => self.take(read, &mut on_message).inspect_err(|error| {
                self.failed = Some(*error);
                self.held = Vec::new();
            }),
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// When it did so within a message, or had failed before.
    pub fn end(&self) -> Result<(), Error> {
        match self.failed {
            Some(error) => Err(error),
            None if self.held.is_empty() => Ok(()),
            None => Err(Error::Cut),
        }
    }

    fn take(&mut self, read: &[u8], on_message: &mut impl FnMut(&[u8])) -> Result<(), Error> {
        let mut rest = read;
        while !self.held.is_empty() {
            let wanted = match self.length(&self.held)? {
                Some(length) => HEADER + length,
                None => HEADER,
            };
            let missing = wanted - self.held.len();
            let (part, behind) = rest.split_at(missing.min(rest.len()));
            self.held.extend_from_slice(part);
            rest = behind;
            if part.len() < missing {
                return Ok(());
            }
            if let Some(length) = self.length(&self.held)?
                && self.held.len() == HEADER + length
            {
                on_message(&self.held[HEADER..]);
                self.held.clear();
            }
        }
        while let Some(length) = self.length(rest)?
            && rest.len() >= HEADER + length
        {
            on_message(&rest[HEADER..HEADER + length]);
            rest = &rest[HEADER + length..];
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// The length of the message whose frame begins here; `None` when its header is not all there.
    fn length(&self, frame: &[u8]) -> Result<Option<usize>, Error> {
        match frame.first() {
            Some(0) | None => {}
            Some(1) => return Err(Error::Compressed),
            Some(_) => return Err(Error::NoMessage),
        }
        let Some(&[_, a, b, c, d]) = frame.first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit { Err(Error::TooLong { limit: self.limit }) } else { Ok(Some(length)) }
    }
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
        [&header(message.len()).unwrap()[..], message].concat()
    }

    fn messages(limit: usize, chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), Error>) {
        let mut reader = Messages::with_limit(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            if let Err(error) = reader.feed(chunk, |message| found.push(message.to_vec())) {
                assert_eq!(reader.feed(&frame(b"x"), |_| panic!("it has failed")), Err(error));
                assert_eq!(reader.end(), Err(error));
                return (found, Err(error));
            }
            assert!(reader.held.len() <= HEADER + limit);
        }
        let end = reader.end();
        (found, end)
    }

    fn status(code: &str, message: &str) -> Option<Status> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_str(code).unwrap());
        trailers.insert("grpc-message", HeaderValue::from_str(message).unwrap());
        Status::read(&trailers)
    }

    #[test]
    fn messages_are_found_wherever_reads_cut_them() {
        let body = [frame(b"one"), frame(b""), frame(b"three")].concat();
        for size in 1..=body.len() {
            let chunks: Vec<&[u8]> = body.chunks(size).collect();
            let (found, end) = messages(100, &chunks);
            assert_eq!((found, end), (vec![b"one".to_vec(), Vec::new(), b"three".to_vec()], Ok(())));
        }
        assert_eq!(messages(100, &[&body[..body.len() - 1]]).1, Err(Error::Cut));
        assert_eq!(messages(100, &[&body[..2]]).1, Err(Error::Cut));
        assert_eq!(messages(100, &[]), (Vec::new(), Ok(())));
    }

    #[test]
    fn what_is_compressed_too_long_or_no_message_is_refused_at_its_header() {
        assert_eq!(messages(100, &[b"\x01"]).1, Err(Error::Compressed));
        assert_eq!(messages(100, &[b"HTTP/1.1"]).1, Err(Error::NoMessage));
        assert_eq!(messages(3, &[&frame(b"abc")]).1, Ok(()));
        assert_eq!(messages(3, &[&frame(b"abcd")]).1, Err(Error::TooLong { limit: 3 }));
        assert_eq!(messages(3, &[b"\0\xff", b"\xff\xff\xff"]).1, Err(Error::TooLong { limit: 3 }));
        let (found, end) = messages(3, &[&[frame(b"a"), frame(b"abcd")].concat()]);
        assert_eq!((found, end), (vec![b"a".to_vec()], Err(Error::TooLong { limit: 3 })));
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
            let (whole, pieces) = (messages(4, &[&noise]), messages(4, &chunks));
            prop_assert_eq!(whole, pieces);
        }
    }
}
