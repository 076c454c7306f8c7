//! The parts of a message, or of a tool's output.

use penstock_model::vendor::Wire;
use serde_json::Value;

use super::fields::Object;
use crate::exchange::shape::media_type;
use crate::exchange::{CacheHint, Field, Media, Part, Source, Text};

/// Reads a string or a list of parts.
pub(super) fn read(place: &str, content: Value) -> Result<Vec<Part>, Field> {
    match content {
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(parts) => {
            let part = |(index, value)| read_part(format!("{place}[{index}]"), value);
            parts.into_iter().enumerate().map(part).collect()
        }
        _ => Err(Field::new(place, "must be a string or a list of parts")),
    }
}

fn read_part(place: String, value: Value) -> Result<Part, Field> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let reader = match kind {
        "input_text" | "output_text" | "text" => read_text,
        "refusal" => |part: &mut Object| part.required_string("refusal").map(Part::Refusal),
        "input_image" => read_image,
        "input_file" => read_file,
        "input_audio" => read_audio,
        "" => return Err(Field::new(place, "must be an object with a `type`")),
        _ => return Ok(Part::Other { wire: Wire::OpenaiResponses, value }),
    };
    reader(&mut Object::new(place, value)?)
}

fn read_text(part: &mut Object) -> Result<Part, Field> {
    Ok(Part::Text(Text {
        text: part.required_string("text")?,
        cache: cache(part),
        citations: part.list("annotations")?.unwrap_or_default(),
        signature: None,
    }))
}

fn read_image(part: &mut Object) -> Result<Part, Field> {
    let mut media = source(part, "image_url", None)?
        .ok_or_else(|| Field::new(part.place.as_str(), "needs `image_url` or `file_id`"))?;
    media.detail = part.string("detail")?;
    Ok(Part::Image(media))
}

fn read_file(part: &mut Object) -> Result<Part, Field> {
    let mut media = source(part, "file_data", Some("file_url"))?
        .ok_or_else(|| Field::new(part.place.as_str(), "needs `file_data`, `file_url` or `file_id`"))?;
    media.name = part.string("filename")?;
    media.detail = part.string("detail")?;
    Ok(Part::File(media))
}

fn read_audio(part: &mut Object) -> Result<Part, Field> {
    let mut audio = part.object("input_audio")?.ok_or_else(|| part.wrong("input_audio", "is missing"))?;
    let kind = match audio.required_string("format")?.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    };
    Ok(Part::Audio(Media::new(Source::Base64(audio.required_string("data")?), Some(kind))))
}

/// Where an image or a file is: in `data` (base64 in a data URL, or a URL), at the address in `url`, or at the vendor.
fn source(part: &mut Object, data: &str, url: Option<&str>) -> Result<Option<Media>, Field> {
    let address = match url {
        Some(url) => part.string(url)?,
        None => None,
    };
    let mut media = if let Some(text) = part.string(data)? {
        match data_url(&text) {
            Some((kind, base64)) => Media::new(
                Source::Base64(base64.to_owned()),
                Some(media_type(kind)).filter(|k| !k.is_empty()),
            ),
            None if text.starts_with("data:") => return Err(part.wrong(data, "a data URL must be base64")),
            None if url.is_none() => Media::new(Source::Url(text), None),
            // Files may also come as plain base64.
            None => Media::new(Source::Base64(text), None),
        }
    } else if let Some(address) = address {
        Media::new(Source::Url(address), None)
    } else if let Some(id) = part.string("file_id")? {
        Media::new(Source::FileId(id), None)
    } else {
        return Ok(None);
    };
    media.cache = cache(part);
    Ok(Some(media))
}

/// Media type, with its parameters, and base64 of a data URL (RFC 2397); scheme and `base64` in any case.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let scheme = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
    let (head, data) = url[scheme.len()..].split_once(',')?;
    let (kind, encoding) = head.rsplit_once(';')?;
    encoding.trim().eq_ignore_ascii_case("base64").then_some((kind, data))
}

/// An explicit cache boundary. It lives for half an hour, or for twelve if asked: an hour is what others have nearest.
fn cache(part: &mut Object) -> Option<CacheHint> {
    let breakpoint = part.take("prompt_cache_breakpoint")?;
    let long = breakpoint.get("ttl").and_then(Value::as_str) == Some("12h");
    Some(if long { CacheHint::Hour } else { CacheHint::Default })
}
