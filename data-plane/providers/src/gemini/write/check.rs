//! What can be wrong with a part, said with its place, before turns are merged.

use penstock_model::vendor::Wire;
use serde_json::value::RawValue;

use crate::dialect::TargetFacts;
use crate::exchange::shape::{image_type, place};
use crate::exchange::{Dropped, Field, Media, Part, Request, Source, Unwritable};
use crate::json::clip;

/// Refuses parts that cannot be written, and names what of the others will be left out.
pub(super) fn parts(
    request: &Request,
    target: &TargetFacts<'_>,
    dropped: &mut Dropped,
) -> Result<(), Unwritable> {
    for (index, turn) in request.turns.iter().enumerate() {
        if turn.name.is_some() {
            dropped.add(format!("{}.name", place(request, index)));
        }
        for (at, part) in turn.parts.iter().enumerate() {
            let name = if request.wire == Wire::Gemini { "parts" } else { "content" };
            let field = || format!("{}.{name}[{at}]", place(request, index));
            check(request, part, target, &field, dropped)?;
        }
    }
    Ok(())
}

fn check(
    request: &Request,
    part: &Part,
    target: &TargetFacts<'_>,
    field: &dyn Fn() -> String,
    dropped: &mut Dropped,
) -> Result<(), Unwritable> {
    let cache = match part {
        Part::Text(text) => text.cache,
        Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache,
        Part::ToolCall(call) => call.cache,
        Part::ToolResult(result) => result.cache,
        Part::Reasoning(_) | Part::Refusal(_) | Part::Other { .. } => None,
    };
    if cache.is_some() {
        dropped.add("cache_control");
    }
    match part {
        Part::Image(media) => {
            if media.detail.as_deref().is_some_and(|detail| detail != "auto") {
                dropped.add("detail");
            }
            image(request, media, target, field)
        }
        Part::Audio(media) | Part::File(media) => file(media, field),
        Part::ToolCall(call) => arguments(&call.arguments, &call.id, field),
        Part::ToolResult(result) => {
            result.parts.iter().try_for_each(|part| check(request, part, target, field, dropped))
        }
        Part::Other { wire, .. } if *wire != Wire::Gemini => {
            dropped.add(field());
            Ok(())
        }
        Part::Other { .. } | Part::Text(_) | Part::Reasoning(_) | Part::Refusal(_) => Ok(()),
    }
}

fn image(
    request: &Request,
    media: &Media,
    target: &TargetFacts<'_>,
    field: &dyn Fn() -> String,
) -> Result<(), Unwritable> {
    let field = || if request.wire == Wire::Openai { format!("{}.image_url", field()) } else { field() };
    match &media.source {
        Source::Base64(_) => image_type(media, &target.vendor.parameters.image_types, &field()).map(drop),
        Source::Url(url) if !target.vendor.parameters.image_urls && !at_google(url) => {
            Err(unsupported(field(), "this service does not fetch images from an address"))
        }
        Source::Url(_) if media.media_type.is_some() => {
            image_type(media, &target.vendor.parameters.image_types, &field()).map(drop)
        }
        Source::Url(_) => Ok(()),
        Source::FileId(_) => Err(unsupported(field(), "it is stored at another vendor")),
        Source::Text(_) => Err(Unwritable::Wrong(Field::new(field(), "text is no image"))),
    }
}

/// An address that services of this dialect know, whatever else they fetch.
fn at_google(url: &str) -> bool {
    url.starts_with("gs://") || url.starts_with("https://generativelanguage.googleapis.com/")
}

fn file(media: &Media, field: &dyn Fn() -> String) -> Result<(), Unwritable> {
    match &media.source {
        Source::FileId(_) => Err(unsupported(field(), "it is stored at another vendor")),
        Source::Base64(_) if media.media_type.is_none() => {
            Err(Unwritable::Wrong(Field::new(field(), "data needs a media type")))
        }
        _ => Ok(()),
    }
}

/// Arguments are a JSON object, or nothing (TR-14).
fn arguments(arguments: &str, id: &str, field: &dyn Fn() -> String) -> Result<(), Unwritable> {
    let text = arguments.trim();
    let is_object = serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().starts_with('{'));
    if is_object || text.is_empty() {
        return Ok(());
    }
    let reason = format!("the arguments of the tool call `{}` are not a JSON object", clip(id, 100));
    Err(Unwritable::Wrong(Field::new(field(), reason)))
}

fn unsupported(field: String, reason: &str) -> Unwritable {
    Unwritable::Unsupported(Field::new(field, reason))
}
