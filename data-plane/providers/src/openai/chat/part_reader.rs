//! Reads the parts of a content: text, pictures, sounds, files.

use penstock_model::vendor::Wire;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::media;
use super::members::{Members, elements, string, value};
use crate::exchange::{CacheHint, Field, Media, Part, Source, Text};

/// A content: a string, or a list of parts.
pub(super) fn content(
    raw: &RawValue,
    path: &str,
    extra: &mut Map<String, Value>,
) -> Result<Vec<Part>, Field> {
    if raw.get().starts_with('"') {
        return Ok(vec![Part::text(string(raw, path)?)]);
    }
    let parts = elements(raw, path)?.into_iter().enumerate();
    parts.map(|(index, raw)| part(raw, &format!("{path}[{index}]"), extra)).collect()
}

fn part(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Part, Field> {
    if raw.get().starts_with('"') {
        return Ok(Part::text(string(raw, path)?));
    }
    let members = Members::read(raw.get(), path)?;
    let kind = members.get("type").map(|kind| string(kind, &format!("{path}.type"))).transpose()?;
    let Some(kind) = kind else { return Err(Field::new(format!("{path}.type"), "is missing")) };
    let Some(inner) = members.get(if kind == "input_text" { "text" } else { &kind }) else {
        return Ok(Part::Other { wire: Wire::Openai, value: value(raw, path)? });
    };
    let inner_path = format!("{path}.{kind}");
    let mut part = match kind.as_str() {
        "text" | "input_text" => Part::text(string(inner, &inner_path)?),
        "refusal" => Part::Refusal(string(inner, &inner_path)?),
        "image_url" => Part::Image(image(inner, &inner_path, extra)?),
        "input_audio" => Part::Audio(audio(inner, &inner_path, extra)?),
        "file" => Part::File(file(inner, &inner_path, extra)?),
        _ => return Ok(Part::Other { wire: Wire::Openai, value: value(raw, path)? }),
    };
    for (key, raw) in &members.0 {
        if key == "type" || *key == kind || (kind == "input_text" && key == "text") || raw.get() == "null" {
            continue;
        }
        let hint = if key == "cache_control" { Some(cache_hint(raw, path)?) } else { None };
        match (&mut part, hint) {
            (Part::Text(Text { cache, .. }), Some(hint)) => *cache = Some(hint),
            (Part::Image(media) | Part::Audio(media) | Part::File(media), Some(hint)) => {
                media.cache = Some(hint);
            }
            _ => {
                extra.insert(format!("{path}.{key}"), value(raw, path)?);
            }
        }
    }
    Ok(part)
}

/// `{"type":"ephemeral"}`, with or without a `ttl`.
pub(super) fn cache_hint(raw: &RawValue, path: &str) -> Result<CacheHint, Field> {
    let path = format!("{path}.cache_control");
    let members = Members::read(raw.get(), &path)?;
    let ttl = members.get("ttl").map(|ttl| string(ttl, &path)).transpose()?;
    match ttl.as_deref() {
        None => Ok(CacheHint::Default),
        Some("5m") => Ok(CacheHint::FiveMinutes),
        Some("1h") => Ok(CacheHint::Hour),
        Some(_) => Err(Field::new(format!("{path}.ttl"), "must be `5m` or `1h`")),
    }
}

fn image(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Media, Field> {
    // A bare address is not in the interface's reference, but many services and clients have it.
    if raw.get().starts_with('"') {
        return media::from_url(string(raw, path)?, path);
    }
    let (mut image, mut detail) = (None, None);
    for (key, raw) in Members::read(raw.get(), path)?.0 {
        let path = format!("{path}.{key}");
        match key.as_ref() {
            _ if raw.get() == "null" => {}
            "url" => image = Some(media::from_url(string(raw, &path)?, &path)?),
            "detail" => detail = Some(string(raw, &path)?),
            _ => {
                extra.insert(path.clone(), value(raw, &path)?);
            }
        }
    }
    let image = image.ok_or_else(|| Field::new(format!("{path}.url"), "is missing"))?;
    Ok(Media { detail, ..image })
}

fn audio(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Media, Field> {
    let (mut audio, mut format) = (None, None);
    for (key, raw) in Members::read(raw.get(), path)?.0 {
        let path = format!("{path}.{key}");
        match key.as_ref() {
            _ if raw.get() == "null" => {}
            "data" => {
                let data = string(raw, &path)?;
                // Qwen takes addresses and data URLs here.
                audio = Some(if data.starts_with("data:") || data.starts_with("http") {
                    media::from_url(data, &path)?
                } else {
                    Media::new(Source::Base64(data), None)
                });
            }
            "format" => format = Some(string(raw, &path)?),
            _ => {
                extra.insert(path.clone(), value(raw, &path)?);
            }
        }
    }
    let mut audio = audio.ok_or_else(|| Field::new(format!("{path}.data"), "is missing"))?;
    if let Some(format) = format {
        audio.media_type = Some(media::audio_type(&format));
    }
    Ok(audio)
}

fn file(raw: &RawValue, path: &str, extra: &mut Map<String, Value>) -> Result<Media, Field> {
    let (mut file, mut name) = (None, None);
    for (key, raw) in Members::read(raw.get(), path)?.0 {
        let path = format!("{path}.{key}");
        match key.as_ref() {
            _ if raw.get() == "null" => {}
            "file_data" => {
                let data = string(raw, &path)?;
                file = Some(if data.starts_with("data:") || data.starts_with("http") {
                    media::from_url(data, &path)?
                } else {
                    Media::new(Source::Base64(data), None)
                });
            }
            "file_id" => file = Some(Media::new(Source::FileId(string(raw, &path)?), None)),
            "filename" => name = Some(string(raw, &path)?),
            _ => {
                extra.insert(path.clone(), value(raw, &path)?);
            }
        }
    }
    let file = file.ok_or_else(|| Field::new(path, "has neither `file_data` nor `file_id`"))?;
    Ok(Media { name, ..file })
}
