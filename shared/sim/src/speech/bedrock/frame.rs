//! AWS event stream frames.
//!
//! A frame is: its length and that of its headers (u32 each), the CRC-32 of these eight bytes, headers, payload, and the
//! CRC-32 of all before. A header is: length of its name (u8), name, type (7 for text), length (u16), text.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::Value;

/// Lengths, their checksum, and the checksum at the end.
const AROUND: usize = 4 + 4 + 4 + 4;
const TEXT: u8 = 7;

pub(super) fn event(name: &str, payload: &Value) -> Bytes {
    frame(
        &[(":event-type", name), (":content-type", "application/json"), (":message-type", "event")],
        payload,
    )
}

pub(super) fn exception(name: &str, payload: &Value) -> Bytes {
    frame(
        &[(":exception-type", name), (":content-type", "application/json"), (":message-type", "exception")],
        payload,
    )
}

fn frame(headers: &[(&str, &str)], payload: &Value) -> Bytes {
    let mut head = BytesMut::new();
    for (name, value) in headers {
        head.put_u8(name.len() as u8);
        head.put_slice(name.as_bytes());
        head.put_u8(TEXT);
        head.put_u16(value.len() as u16);
        head.put_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = AROUND + head.len() + payload.len();
    let mut out = BytesMut::with_capacity(length);
    out.put_u32(length as u32);
    out.put_u32(head.len() as u32);
    out.put_u32(crc32fast::hash(&out));
    out.put_slice(&head);
    out.put_slice(payload.as_bytes());
    out.put_u32(crc32fast::hash(&out));
    out.freeze()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Built by hand from the description of the format, the checksums with another program.
    #[test]
    fn a_frame_has_its_lengths_and_checksums() {
        let bytes = event("ping", &json!({}));
        assert_eq!(bytes.len(), u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize);
        let prelude = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
        assert_eq!(prelude, crc32fast::hash(&bytes[..8]));
        let headers = u32::from_be_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(&bytes[12 + headers..bytes.len() - 4], b"{}");
        assert_eq!(&bytes[12..12 + 12], b"\x0b:event-type");
        let last = u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        assert_eq!(last, crc32fast::hash(&bytes[..bytes.len() - 4]));
    }
}
