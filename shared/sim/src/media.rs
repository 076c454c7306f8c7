//! What an image is, from its first bytes and from a data URL.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The media type that the first bytes tell, if they tell one.
pub(crate) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Media type and bytes of a base64 data URL.
pub(crate) fn data_url(url: &str) -> Option<(String, Vec<u8>)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media = head.strip_suffix(";base64")?.split(';').next()?;
    Some((media.to_lowercase(), BASE64_STANDARD.decode(data).ok()?))
}
