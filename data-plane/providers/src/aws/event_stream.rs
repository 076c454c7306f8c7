//! Framing of `application/vnd.amazon.eventstream`.
//!
//! ```text
//! u32 total length | u32 headers' length | u32 CRC of these 8 bytes | headers | payload | u32 CRC of all before
//! header: u8 name length | name | u8 type | value
//! ```
//!
//! All numbers are big-endian, checksums are CRC-32 (ISO-HDLC). A frame that lies in one read is looked at in place;
//! what a read cuts is copied once. No length is believed, and nothing allocated for it, before its checksum and the
//! limit have been looked at; memory grows with what has come, not with what was announced.
//!
//! Source: "Amazon event stream specification", smithy.io.

/// Longest frame that is accepted.
pub const MAX_FRAME: u32 = 16 << 20;

/// Memory that a decoder keeps between frames.
const MAX_KEPT: usize = 64 << 10;

/// The lengths and their checksum.
const PRELUDE: usize = 12;

/// A checksum.
const CRC: usize = 4;

/// One frame, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    headers: &'a [u8],
    /// What it carries.
    pub payload: &'a [u8],
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A checksum does not fit: bytes were altered or lost on the way.
    #[error("a frame of the event stream has a wrong checksum")]
    Checksum,
    /// The announced length is above [`MAX_FRAME`].
    #[error("a frame of the event stream is longer than {MAX_FRAME} bytes")]
    TooLong,
    /// Lengths or headers contradict each other.
    #[error("a frame of the event stream is malformed")]
    Malformed,
}

impl<'a> Frame<'a> {
    /// The text of a header; `None` when there is none, or it is no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        // Looked through when the frame was read.
        let found = headers(self.headers).map_while(Result::ok).find(|(known, _)| *known == name.as_bytes());
        found.and_then(|(_, value)| value)
    }

    /// `bytes` is as long as its prelude says, and the prelude's checksum is right.
    fn read(bytes: &'a [u8], headers_length: usize) -> Result<Self, Broken> {
        let (checked, crc) = bytes.split_at(bytes.len() - CRC);
        if crc32fast::hash(checked) != number(crc) {
            return Err(Broken::Checksum);
        }
        let (of_headers, payload) = checked[PRELUDE..].split_at(headers_length);
        headers(of_headers).try_for_each(|header| header.map(drop))?;
        Ok(Self { headers: of_headers, payload })
    }
}

/// The lengths that a frame begins with.
#[derive(Debug, Clone, Copy)]
struct Prelude {
    total: usize,
    headers: usize,
}

impl Prelude {
    /// Reads at least [`PRELUDE`] bytes.
    fn read(bytes: &[u8]) -> Result<Self, Broken> {
        let (lengths, crc) = bytes[..PRELUDE].split_at(PRELUDE - CRC);
        let total = number(&lengths[..4]);
        let headers = number(&lengths[4..]);
        if crc32fast::hash(lengths) != number(crc) {
            return Err(Broken::Checksum);
        }
        if total > MAX_FRAME {
            return Err(Broken::TooLong);
        }
        let (total, headers) = (total as usize, headers as usize);
        if headers.saturating_add(PRELUDE + CRC) > total {
            return Err(Broken::Malformed);
        }
        Ok(Self { total, headers })
    }
}

/// The first four bytes as a number.
fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Names and, where they are text, values of all headers.
fn headers(mut rest: &[u8]) -> impl Iterator<Item = Result<(&[u8], Option<&str>), Broken>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let header = read_header(&mut rest).ok_or(Broken::Malformed);
        if header.is_err() {
            rest = &[];
        }
        Some(header)
    })
}

fn read_header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a str>)> {
    const TEXT: u8 = 7;
    let name_length = *rest.split_off_first()?;
    let name = rest.split_off(..usize::from(name_length))?;
    let kind = *rest.split_off_first()?;
    let length = match kind {
        // true, false
        0 | 1 => 0,
        // numbers of 8, 16, 32 and 64 bits
        2 => 1,
        3 => 2,
        4 => 4,
        // the last but one: a timestamp
        5 | 8 => 8,
        // bytes, text
        6 | TEXT => {
            let length = rest.split_off(..2)?;
            usize::from(u16::from_be_bytes([length[0], length[1]]))
        }
        // a UUID
        9 => 16,
        _ => return None,
    };
    let value = rest.split_off(..length)?;
    let text = if kind == TEXT { Some(str::from_utf8(value).ok()?) } else { None };
    Some((name, text))
}

/// Finds the frames in a stream of reads.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The start of the frame that the last read cut.
    held: Vec<u8>,
    broken: Option<Broken>,
}

impl Decoder {
    /// Takes in one read and reports each frame that ends in it.
    ///
    /// # Errors
    /// When the stream cannot be read on. From then on every call returns the same error.
    pub fn feed(&mut self, read: &[u8], mut on_frame: impl FnMut(Frame<'_>)) -> Result<(), Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let fed = self.try_feed(read, &mut on_frame);
        if let Err(broken) = fed {
            self.broken = Some(broken);
            self.held = Vec::new();
        }
        fed
    }

    fn try_feed(&mut self, read: &[u8], on_frame: &mut impl FnMut(Frame<'_>)) -> Result<(), Broken> {
        let mut rest = read;
        if !self.held.is_empty() && !self.complete_held(&mut rest, on_frame)? {
            return Ok(());
        }
        while rest.len() >= PRELUDE {
            let prelude = Prelude::read(rest)?;
            let Some(frame) = rest.split_off(..prelude.total) else { break };
            on_frame(Frame::read(frame, prelude.headers)?);
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// Takes from `rest` what the cut frame lacks. Has it come to its end?
    fn complete_held(
        &mut self,
        rest: &mut &[u8],
        on_frame: &mut impl FnMut(Frame<'_>),
    ) -> Result<bool, Broken> {
        if !self.hold_up_to(PRELUDE, rest) {
            return Ok(false);
        }
        let prelude = Prelude::read(&self.held)?;
        if !self.hold_up_to(prelude.total, rest) {
            return Ok(false);
        }
        on_frame(Frame::read(&self.held, prelude.headers)?);
        self.held.clear();
        self.held.shrink_to(MAX_KEPT);
        Ok(true)
    }

    /// Takes from `rest` until `length` bytes are held. Are they?
    fn hold_up_to(&mut self, length: usize, rest: &mut &[u8]) -> bool {
        let lacking = length.saturating_sub(self.held.len()).min(rest.len());
        let (taken, left) = rest.split_at(lacking);
        self.held.extend_from_slice(taken);
        *rest = left;
        self.held.len() >= length
    }

    /// Bytes of the frame that has not ended yet.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        self.held.len() as u64
    }
}

/// Writes a frame whose headers are all text, as a service would: for simulated services and tests.
///
/// # Panics
/// When a name is longer than 255 bytes, a value longer than 65,535, or the whole longer than 4 GiB.
#[must_use]
pub fn encode(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).expect("a short name"));
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).expect("a short value").to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    encode_raw(&block, payload)
}

/// Writes a frame around headers that are encoded already.
fn encode_raw(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).expect("a frame below 4 GiB").to_be_bytes();
    let mut frame = Vec::with_capacity(PRELUDE + headers.len() + payload.len() + CRC);
    frame.extend_from_slice(&length(PRELUDE + headers.len() + payload.len() + CRC));
    frame.extend_from_slice(&length(headers.len()));
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests;
