//! Decodes compressed bodies as they come.
//!
//! Services compress streams too, and flush after each event: what a read holds is handed on with that read, not at the
//! end of the body (SSE-12). A small body must not become a huge one (SEC-05): a body may give [`RATIO`] times what it is,
//! and [`SLACK`] more. Deflate itself gives at most about 1,000 times, and text as models write it about 20 times; the
//! slack is for one large and monotonous answer.
//!
//! An encoding that is not known here must not be asked for: see [`ACCEPTED`].

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What can be decoded, as the value of `accept-encoding`.
pub const ACCEPTED: &str = "gzip, deflate";

/// Most bytes that a byte of input may stand for, over the whole body.
pub const RATIO: u64 = 100;

/// Bytes that a body may hold beyond that.
pub const SLACK: u64 = 16 << 20;

/// Why a body cannot be decoded. Nothing that comes after it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not what its encoding says it is: wrong data, or something behind the end.
    #[error("the body is not what its content-encoding says")]
    Corrupt,
    /// It ends too early, or its checksum says that it is not what was sent.
    #[error("the compressed body is cut short or damaged")]
    Cut,
    /// More than [`RATIO`] and [`SLACK`] allow.
    #[error("the body is far larger than what was sent for it")]
    TooLarge,
}

/// A decoder of one body.
#[derive(Debug)]
pub struct Inflate {
    decoder: Decoder,
    failed: Option<Error>,
}

#[derive(Debug)]
enum Decoder {
    Identity,
    Gzip(Box<MultiGzDecoder<Bounded>>),
    /// Deflate of which nothing has come yet. The standard wraps it in zlib's format; some services send it bare, and
    /// the first byte tells.
    Unknown(Bounded),
    Zlib(Box<ZlibDecoder<Bounded>>),
    Bare(Box<DeflateDecoder<Bounded>>),
}

/// Where decoded bytes go, as long as there are not too many.
#[derive(Debug, Default)]
struct Bounded {
    out: Vec<u8>,
    /// How many more may come.
    left: u64,
    exceeded: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => {
                self.left = left;
                self.out.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            None => {
                self.exceeded = true;
                Err(io::ErrorKind::FileTooLarge.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inflate {
    /// For the value of a `content-encoding` header. `None` for one that is not known, and for several on top of each
    /// other.
    #[must_use]
    pub fn for_encoding(encoding: &str) -> Option<Self> {
        let bounded = Bounded { left: SLACK, ..Bounded::default() };
        let decoder = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Decoder::Identity,
            "gzip" | "x-gzip" => Decoder::Gzip(Box::new(MultiGzDecoder::new(bounded))),
            "deflate" => Decoder::Unknown(bounded),
            _ => return None,
        };
        Some(Self { decoder, failed: None })
    }

    /// Is there nothing to decode?
    #[must_use]
    pub fn is_identity(&self) -> bool {
        matches!(self.decoder, Decoder::Identity)
    }

    /// Takes in one read and appends all that it stands for to `out`. After an error `out` holds what came before it.
    ///
    /// # Errors
    /// When the body is corrupt, or far too large. The same again from then on.
    pub fn feed(&mut self, read: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if read.is_empty() {
            return Ok(());
        }
        self.decoder.know(read[0]);
        match &mut self.decoder {
            Decoder::Identity => {
                out.extend_from_slice(read);
                return Ok(());
            }
            Decoder::Unknown(_) => unreachable!("the first byte decides"),
            Decoder::Gzip(decoder) => run(&mut **decoder, MultiGzDecoder::get_mut, read, out),
            Decoder::Zlib(decoder) => run(&mut **decoder, ZlibDecoder::get_mut, read, out),
            Decoder::Bare(decoder) => run(&mut **decoder, DeflateDecoder::get_mut, read, out),
        }
        .inspect_err(|error| self.failed = Some(*error))
    }

    /// The body has ended.
    ///
    /// # Errors
    /// When it is cut short, which a stream whose last event has come may forgive, or its checksum is wrong; and after an
    /// error, that error.
    pub fn end(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let ended = match &mut self.decoder {
            // No body at all, as of a `HEAD`, is not cut.
            Decoder::Identity | Decoder::Unknown(_) => Ok(()),
            Decoder::Gzip(decoder) if decoder.get_ref().left == SLACK => Ok(()),
            Decoder::Gzip(decoder) => decoder.try_finish(),
            Decoder::Zlib(decoder) => decoder.try_finish(),
            Decoder::Bare(decoder) => decoder.try_finish(),
        };
        ended.map_err(|_| Error::Cut).inspect_err(|error| self.failed = Some(*error))
    }
}

impl Decoder {
    /// Tells zlib's format from bare deflate. Zlib's low four bits say "deflate"; those of a bare stream would say a
    /// stored block with a padding that encoders leave empty.
    fn know(&mut self, first: u8) {
        if let Self::Unknown(bounded) = self {
            let bounded = std::mem::take(bounded);
            *self = if first & 0x0F == 8 {
                Self::Zlib(Box::new(ZlibDecoder::new(bounded)))
            } else {
                Self::Bare(Box::new(DeflateDecoder::new(bounded)))
            };
        }
    }
}

/// Decodes straight into the caller's buffer.
fn run<D: Write>(
    decoder: &mut D,
    bounded: fn(&mut D) -> &mut Bounded,
    read: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let sink = bounded(decoder);
    sink.left = sink.left.saturating_add(RATIO.saturating_mul(read.len() as u64));
    std::mem::swap(&mut sink.out, out);
    let done = decoder.write_all(read).and_then(|()| decoder.flush());
    let sink = bounded(decoder);
    std::mem::swap(&mut sink.out, out);
    done.map_err(|_| if sink.exceeded { Error::TooLarge } else { Error::Corrupt })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(encoding: &str, chunks: &[&[u8]]) -> (Vec<u8>, Result<(), Error>) {
        let mut inflate = Inflate::for_encoding(encoding).unwrap();
        let mut out = Vec::new();
        for chunk in chunks {
            if let Err(error) = inflate.feed(chunk, &mut out) {
                assert_eq!(inflate.feed(b"x", &mut Vec::new()), Err(error), "an error stays");
                return (out, Err(error));
            }
        }
        let end = inflate.end();
        (out, end)
    }

    #[test]
    fn each_event_comes_with_its_write_sse_12() {
        let writes = [
            "H4sIAAAAAAAAA0pJLEm0UqhWSs7Iz0xOLVayiq5WysxLSa1QsjLQUUpJzSlJVLICSufnlaTmlShZKTkq1dbG1nJxAQAAAP//",
            "SiFKY62OUlpmXmZxRnxRamJxfh7QgOKS/AIlsBEAAAAA//8=",
            "ghgR7eLv5xrLxQUAAAD//w==",
            "AwDNeHiYigAAAA==",
        ];
        let expected = [
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "data: [DONE]\n\n",
            "",
        ];
        let mut inflate = Inflate::for_encoding("gzip").unwrap();
        for (write, expected) in writes.iter().zip(expected) {
            let mut out = Vec::new();
            inflate.feed(&STANDARD.decode(write).unwrap(), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        assert_eq!(inflate.end(), Ok(()));
    }

    #[test]
    fn only_known_encodings_are_decoded_and_never_two_at_once_sse_12_sec_05() {
        for known in ["gzip", " GZIP ", "x-gzip", "deflate", "identity", ""] {
            assert!(Inflate::for_encoding(known).is_some(), "{known}");
        }
        for unknown in ["br", "zstd", "compress", "gzip, gzip", "gzip, identity"] {
            assert!(Inflate::for_encoding(unknown).is_none(), "{unknown}");
        }
        for asked in ACCEPTED.split(", ") {
            assert!(!Inflate::for_encoding(asked).unwrap().is_identity());
        }
        assert_eq!(decode("identity", &[b"a", b"", b"b"]), (b"ab".to_vec(), Ok(())));
    }

    #[test]
    fn deflate_is_read_with_and_without_zlibs_frame() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(b"hello hello").unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(b"hello hello").unwrap();
        for bytes in [zlib.finish().unwrap(), bare.finish().unwrap()] {
            let chunks: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode("deflate", &chunks), (b"hello hello".to_vec(), Ok(())));
            assert_eq!(decode("deflate", &[&bytes[..bytes.len() - 1]]).1, Err(Error::Cut));
        }
        assert_eq!(decode("deflate", &[]), (Vec::new(), Ok(())));
    }

    #[test]
    fn several_members_are_one_body() {
        let bytes = [gzip(b"one, "), gzip(b"two")].concat();
        for size in [1, 7, 1000] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(decode("gzip", &chunks), (b"one, two".to_vec(), Ok(())), "in chunks of {size}");
        }
    }

    #[test]
    fn a_cut_body_a_wrong_checksum_and_no_gzip_at_all_are_errors() {
        let whole = gzip(b"hello");
        for length in 1..whole.len() {
            assert_eq!(decode("gzip", &[&whole[..length]]).1, Err(Error::Cut), "{length} bytes");
        }
        assert_eq!(decode("gzip", &[]), (Vec::new(), Ok(())));
        let mut wrong = whole.clone();
        let checksum = wrong.len() - 6;
        wrong[checksum] ^= 1;
        assert_eq!(decode("gzip", &[&wrong]), (b"hello".to_vec(), Err(Error::Cut)));
        assert_eq!(decode("gzip", &[b"hello, this is no gzip"]).1, Err(Error::Corrupt));
    }

    #[test]
    fn a_bomb_stops_within_its_bound_and_one_large_answer_passes_sec_05() {
        let bomb = gzip(&vec![0; 64 << 20]);
        for size in [1 << 10, 64 << 10, bomb.len()] {
            let chunks: Vec<&[u8]> = bomb.chunks(size).collect();
            let (out, end) = decode("gzip", &chunks);
            assert_eq!(end, Err(Error::TooLarge));
            assert!(out.len() as u64 <= SLACK + RATIO * bomb.len() as u64);
        }
        let large = vec![b'x'; 4 << 20];
        assert_eq!(decode("gzip", &[&gzip(&large)]), (large, Ok(())));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_bytes(text in prop::collection::vec(any::<u8>(), 0..2000), size in 1_usize..200) {
            let bytes = gzip(&text);
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(decode("gzip", &chunks), (text, Ok(())));
        }

        #[test]
        fn noise_never_panics(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            size in 1_usize..50,
        ) {
            let mut bytes = gzip(b"some text, some more text, and again some text");
            let at = at.index(bytes.len());
            bytes.splice(at..at, noise.clone());
            for (encoding, bytes) in [("gzip", &bytes), ("gzip", &noise), ("deflate", &noise)] {
                let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                let _ = decode(encoding, &chunks);
            }
        }
    }
}
