//! What Gemini refuses about the turns of a conversation and their parts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::check::{At, Checked, Wrong};
use crate::script::{Asked, sign};

const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];
const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// Signatures that are documented to be taken unchecked, for calls that another model has made.
const UNCHECKED: &[&str] = &["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Checks the turns, and takes from the last what it asks for.
pub(super) fn conversation(root: &At<'_>, asked: &mut Asked, vertex: bool) -> Checked<()> {
    let turns = root.list_of("contents")?;
    if turns.is_empty() {
        return Err(Wrong::said("contents", "contents is not specified"));
    }
    let mut called: Vec<&str> = Vec::new();
    let mut before = "";
    for (index, turn) in turns.iter().enumerate() {
        turn.only(&["role", "parts"])?;
        let role = match turn.text_of("role")? {
            Some(role @ ("user" | "model")) => role,
            Some("function") => "user",
            None if !vertex && turns.len() == 1 => "user",
            _ => return Err(Wrong::said("", "Please use a valid role: user, model.")),
        };
        if role == before {
            return Err(Wrong::said(
                "",
                "Please ensure that multiturn requests alternate between user and model.",
            ));
        }
        before = role;
        let parts = turn.list_of("parts")?;
        if parts.is_empty() {
            return Err(Wrong::said(format!("contents.{index}.parts"), "contents.parts must not be empty."));
        }
        if role == "user" {
            user(&parts, &mut called, asked)?;
        } else {
            called = model(&parts, &called)?;
            if asked.reasoning {
                signed(index, &parts)?;
            }
        }
    }
    if before == "model" {
        return Err(Wrong::said(
            "",
            "Please ensure that single turn requests end with a user role or the role field is empty.",
        ));
    }
    Ok(())
}

/// Exactly one of the kinds of data, and fields that go with any.
fn kind<'a>(part: &At<'a>) -> Checked<(&'static str, At<'a>)> {
    let beside = ["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"];
    part.only(&[DATA, &beside].concat())?;
    let mut data = DATA.iter().filter_map(|kind| Some((*kind, part.get(kind)?)));
    match (data.next(), data.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(part.wrong("data: required oneof field 'data' must have one initialized field")),
        _ => Err(part.wrong("oneof field 'data' is already set.")),
    }
}

fn user<'a>(parts: &[At<'a>], called: &mut Vec<&'a str>, asked: &mut Asked) -> Checked<()> {
    (asked.results, asked.images) = (Vec::new(), Vec::new());
    let mut texts = Vec::new();
    let mut left = std::mem::take(called);
    let expected = left.len();
    let mut answered = 0;
    for part in parts {
        match kind(part)? {
            ("text", text) => texts.push(not_empty(part, &text)?),
            ("inlineData", data) => asked.images.extend(inline(&data)?),
            ("fileData", data) => {
                data.only(&["mimeType", "fileUri", "displayName"])?;
                data.need_text("fileUri")?;
            }
            ("functionResponse", response) => {
                response.only(&["id", "name", "response", "willContinue", "scheduling", "parts"])?;
                let name = response.need_text("name")?;
                let said = response.need("response")?;
                if said.object().is_err() {
                    return Err(said.wrong("expected a google.protobuf.Struct"));
                }
                let Some(at) = left.iter().position(|known| *known == name) else {
                    return Err(out_of_turn());
                };
                left.remove(at);
                answered += 1;
                asked.results.push((name.to_owned(), said.value.to_string()));
            }
            (other, _) => return Err(part.wrong(format!("{other} is not allowed in a user turn"))),
        }
    }
    if answered != expected {
        return Err(Wrong::said(
            "",
            "Please ensure that the number of function response parts is equal to the number of function call parts of \
             the function call turn.",
        ));
    }
    asked.text = texts.join("\n");
    Ok(())
}

fn out_of_turn() -> Wrong {
    Wrong::said("", "Please ensure that function response turn comes immediately after a function call turn.")
}

/// Names of the functions that are called.
fn model<'a>(parts: &[At<'a>], unanswered: &[&str]) -> Checked<Vec<&'a str>> {
    if !unanswered.is_empty() {
        return Err(out_of_turn());
    }
    let mut called = Vec::new();
    for part in parts {
        match kind(part)? {
            ("text", text) => drop(not_empty(part, &text)?),
            ("functionCall", call) => {
                call.only(&["id", "name", "args", "partialArgs", "willContinue"])?;
                if let Some(args) = call.get("args") {
                    args.object()?;
                }
                called.push(call.need_text("name")?);
            }
            ("functionResponse", _) => return Err(out_of_turn()),
            _ => {}
        }
    }
    Ok(called)
}

/// A turn with calls has a signature on the first, and it is the one that was given out.
fn signed(index: usize, parts: &[At<'_>]) -> Checked<()> {
    let Some(part) = parts.iter().find(|part| part.get("functionCall").is_some()) else { return Ok(()) };
    let call = part.need("functionCall")?;
    let name = call.need_text("name")?;
    match part.text_of("thoughtSignature")? {
        Some(signature) if signature == sign(name) || UNCHECKED.contains(&signature) => Ok(()),
        Some(_) => Err(Wrong::said("", "Corrupted thought signature.")),
        None => Err(Wrong::said(
            "",
            format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly, and missing thought_signature may lead to degraded model performance. Additional data, \
                 function call `default_api:{name}` , position {index}."
            ),
        )),
    }
}

/// Empty text is taken only where it carries a signature.
fn not_empty<'a>(part: &At<'_>, text: &At<'a>) -> Checked<&'a str> {
    let words = text.text()?;
    if words.is_empty() && part.get("thoughtSignature").is_none() {
        return Err(Wrong::said("", "Unable to submit request because it must have a text parameter."));
    }
    Ok(words)
}

/// Media type and size of an image; `None` for other media.
fn inline(data: &At<'_>) -> Checked<Option<(String, usize)>> {
    data.only(&["mimeType", "data", "displayName"])?;
    let mime = data.need_text("mimeType")?;
    let Ok(bytes) = BASE64_STANDARD.decode(data.need_text("data")?) else {
        return Err(data.need("data")?.wrong("Base64 decoding failed"));
    };
    if !mime.starts_with("image/") {
        let known = ["audio/", "video/", "text/"].iter().any(|kind| mime.starts_with(kind))
            || mime == "application/pdf";
        return if known { Ok(None) } else { Err(unsupported(mime)) };
    }
    if !IMAGES.contains(&mime) {
        return Err(unsupported(mime));
    }
    if crate::media::sniff(&bytes).is_some_and(|found| found != mime) {
        return Err(Wrong::said("", "Provided image is not valid."));
    }
    Ok(Some((mime.to_owned(), bytes.len())))
}

fn unsupported(mime: &str) -> Wrong {
    Wrong::said("", format!("Unsupported MIME type: {mime}"))
}
