//! Data URLs and media types.

use crate::exchange::shape::media_type;
use crate::exchange::{Field, Media, Source};

/// What stands at an address: the data itself where it is a data URL (RFC 2397), whose parameters and case are of no
/// meaning (TR-07).
pub(super) fn from_url(url: String, path: &str) -> Result<Media, Field> {
    let is_data = url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        return Ok(Media::new(Source::Url(url), None));
    }
    let Some((head, data)) = url[5..].split_once(',') else {
        return Err(Field::new(path, "a data URL without data"));
    };
    let is_base64 = head.rsplit(';').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    if !is_base64 || !head.contains(';') {
        return Err(Field::new(path, "only data URLs in base64 are understood"));
    }
    let kind = media_type(head);
    Ok(Media::new(Source::Base64(data.to_owned()), (!kind.is_empty()).then_some(kind)))
}

/// The reverse of [`from_url`].
pub(super) fn to_url(data: &str, media_type: &str) -> String {
    let mut url = String::with_capacity(data.len() + media_type.len() + 13);
    url.extend(["data:", media_type, ";base64,", data]);
    url
}

/// The media type of one of OpenAI's audio formats: `wav`, `mp3`.
pub(super) fn audio_type(format: &str) -> String {
    let format = format.to_ascii_lowercase();
    if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") }
}

/// The reverse of [`audio_type`], for the other names of these types, too.
pub(super) fn audio_format(media_type: &str) -> &str {
    match media_type {
        "audio/mpeg" => "mp3",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        other => other.strip_prefix("audio/").unwrap_or(other),
    }
}
