//! Conversations as strict services want them: instructions apart, roles in turn, each call followed by its result.
//!
//! OpenAI's chat takes messages in nearly any order. Anthropic, Gemini and Bedrock want one list of instructions, roles
//! that alternate, and the results of all calls of a turn in the turn that follows. Readers keep what the client sent;
//! the writers for such services call these.

use penstock_model::vendor::Wire;

use super::content::{Media, Part, Source, Text, ToolResult};
use super::loss::{Field, Unwritable};
use super::request::{Request, Role, Turn};

/// The texts of all instructions, in order; empty ones are left out (TR-01).
#[must_use]
pub fn instructions(request: &Request) -> Vec<&Text> {
    let turns = request.turns.iter().filter(|turn| is_instruction(turn.role));
    let texts = turns.flat_map(|turn| &turn.parts).filter_map(|part| match part {
        Part::Text(text) if !text.text.is_empty() => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The conversation without its instructions (see [`instructions`]), in which user and assistant alternate: neighbours
/// of one role are one turn (TR-02), results of tools come first in theirs (TR-03), and empty texts, and turns of
/// nothing else, are left out (TR-04).
///
/// # Errors
/// - [`Unwritable::Wrong`] when the calls of a turn and the results in the next do not match one to one; names the id.
/// - [`Unwritable::Unsupported`] when an instruction holds anything but text.
pub fn alternating(request: &Request) -> Result<Vec<Turn>, Unwritable> {
    let mut turns: Vec<Turn> = Vec::with_capacity(request.turns.len());
    let mut places = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.iter().enumerate() {
        if is_instruction(turn.role) {
            check_instruction(request, index, turn)?;
            continue;
        }
        let parts = turn.parts.iter().filter(|part| !is_empty_text(part)).cloned();
        match turns.last_mut().filter(|last| last.role == turn.role) {
            Some(last) => {
                last.parts.extend(parts);
                if last.name != turn.name {
                    last.name = None;
                }
            }
            None => {
                let parts: Vec<Part> = parts.collect();
                if !parts.is_empty() {
                    turns.push(Turn { role: turn.role, name: turn.name.clone(), parts });
                    places.push(index);
                }
            }
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.role == Role::User) {
        // Stable: the results keep their order, and so does the rest.
        turn.parts.sort_by_key(|part| !matches!(part, Part::ToolResult(_)));
    }
    check_results(request, &turns, &places)?;
    Ok(turns)
}

/// The media type of an image, if a service takes it (TR-07). One without a type is known by its first bytes. `field`
/// is the image's place in the request.
///
/// # Errors
/// [`Unwritable::Wrong`] when no service takes such a thing as an image (SVG, a document, no type at all),
/// [`Unwritable::Unsupported`] when it is not among `allowed`.
pub fn image_type(media: &Media, allowed: &[String], field: &str) -> Result<String, Unwritable> {
    let named = media.media_type.as_deref().map(media_type);
    let Some(kind) = named.or_else(|| sniff(&media.source).map(str::to_owned)) else {
        return Err(Unwritable::Wrong(Field::new(field, "an image needs a media type")));
    };
    if allowed.contains(&kind) {
        return Ok(kind);
    }
    let shown = crate::json::clip(&kind, 100);
    let reason = format!("images of type `{shown}` are not taken; {} are", allowed.join(", "));
    let problem = Field::new(field, reason);
    if kind.starts_with("image/") && !kind.starts_with("image/svg") {
        Err(Unwritable::Unsupported(problem))
    } else {
        Err(Unwritable::Wrong(problem))
    }
}

/// A media type as [`Media::media_type`] holds it: lower-case, without parameters, `image/jpg` by its real name.
#[must_use]
pub fn media_type(written: &str) -> String {
    let kind = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "image/jpg" { "image/jpeg".to_owned() } else { kind }
}

/// Where the turn of this index stands in the client's body.
#[must_use]
pub fn place(request: &Request, index: usize) -> String {
    // Where instructions are a field of their own, readers make it the first turn.
    let apart = request.turns.first().is_some_and(|turn| turn.role == Role::System);
    let in_list = index.saturating_sub(usize::from(apart));
    match request.wire {
        Wire::Gemini => format!("contents[{in_list}]"),
        Wire::Anthropic | Wire::Bedrock => format!("messages[{in_list}]"),
        Wire::OpenaiResponses => format!("input[{in_list}]"),
        _ => format!("messages[{index}]"),
    }
}

/// Where a part stands in the client's body, for errors about it.
#[must_use]
pub fn locate(request: &Request, part: &Part) -> String {
    let list = if request.wire == Wire::Gemini { "parts" } else { "content" };
    let holds = |other: &Part| match other {
        Part::ToolResult(result) => other == part || result.parts.contains(part),
        _ => other == part,
    };
    let mut places = request.turns.iter().enumerate().filter_map(|(index, turn)| {
        let inner = turn.parts.iter().position(holds)?;
        Some(format!("{}.{list}[{inner}]", place(request, index)))
    });
    places.next().unwrap_or_else(|| "messages".to_owned())
}

fn is_instruction(role: Role) -> bool {
    matches!(role, Role::System | Role::Developer)
}

/// An empty text without a signature (Gemini puts some on empty texts).
fn is_empty_text(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.text.is_empty() && text.signature.is_none())
}

fn check_instruction(request: &Request, index: usize, turn: &Turn) -> Result<(), Unwritable> {
    match turn.parts.iter().position(|part| !matches!(part, Part::Text(_))) {
        Some(part) => {
            let field = format!("{}.content[{part}]", place(request, index));
            Err(Unwritable::Unsupported(Field::new(field, "instructions can only be text")))
        }
        None => Ok(()),
    }
}

/// Every call has one result, in the turn after it, and every result one call, in the turn before it.
fn check_results(request: &Request, turns: &[Turn], places: &[usize]) -> Result<(), Unwritable> {
    let mut open: Vec<&str> = Vec::new();
    let mut open_place = 0;
    let wrong =
        |turn: usize, reason: String| Err(Unwritable::Wrong(Field::new(place(request, turn), reason)));
    for (turn, &at) in turns.iter().zip(places) {
        for result in results(turn) {
            let id = &result.call_id;
            let Some(index) = open.iter().position(|call| call == id) else {
                return wrong(
                    at,
                    format!("no tool call `{}` just before this result, or a second one", short(id)),
                );
            };
            open.swap_remove(index);
        }
        if let Some(id) = open.first() {
            return wrong(
                open_place,
                format!("the tool call `{}` has no result in the next turn", short(id)),
            );
        }
        for part in &turn.parts {
            if let Part::ToolCall(call) = part {
                if open.contains(&call.id.as_str()) {
                    return wrong(at, format!("two tool calls are called `{}`", short(&call.id)));
                }
                open.push(&call.id);
            }
        }
        open_place = at;
    }
    match open.first() {
        Some(id) => wrong(open_place, format!("the tool call `{}` has no result", short(id))),
        None => Ok(()),
    }
}

fn results(turn: &Turn) -> impl Iterator<Item = &ToolResult> {
    turn.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// An id as an error quotes it.
fn short(id: &str) -> &str {
    crate::json::clip(id, 100)
}

/// The type of an image in base64, by its first bytes.
fn sniff(source: &Source) -> Option<&'static str> {
    let Source::Base64(data) = source else { return None };
    // The signatures of PNG, JPEG, GIF and RIFF (WebP), as base64 begins with them.
    const SIGNATURES: [(&str, &str); 4] = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ];
    SIGNATURES.into_iter().find(|(start, _)| data.starts_with(start)).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests;
