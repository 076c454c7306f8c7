//! What Converse refuses about the turns of a conversation and their blocks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::check::{At, Checked, Wrong, is_name};
use crate::script::{Asked, sign};

const BLOCKS: &[&str] = &[
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
];

/// A union has exactly one member.
pub(super) fn union<'a>(at: &At<'a>, members: &[&'static str]) -> Checked<(&'static str, At<'a>)> {
    let fields = at.only(members)?;
    let member = members.iter().find_map(|member| Some((*member, at.get(member)?)));
    match member {
        Some(member) if fields.len() == 1 => Ok(member),
        _ => Err(at.wrong(format!(
            "Unable to parse request: the union at {} must have exactly one of {} set",
            at.path,
            members.join(", ")
        ))),
    }
}

pub(super) fn blank(at: &At<'_>) -> Wrong {
    let block = at.path.strip_suffix(".text").unwrap_or(&at.path);
    at.wrong(format!("The text field in the ContentBlock object at {block} is blank. Add text to the text field, and try again."))
}

/// Checks the turns, and takes from the last what it asks for.
pub(super) fn conversation(root: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let turns = root.need("messages")?.list()?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut before = "";
    let mut uses_tools = false;
    // With adaptive thinking a turn need not begin with a thought.
    let thinking = root.value.pointer("/additionalModelRequestFields/thinking/type");
    let has_budget = thinking.is_some_and(|kind| kind == "enabled");
    for (index, turn) in turns.iter().enumerate() {
        turn.only(&["role", "content"])?;
        let role = turn.need("role")?.one_of(&["user", "assistant"])?;
        if index == 0 && role != "user" {
            let message = "A conversation must start with a user message. Try again with a conversation that starts with a \
                           user message.";
            return Err(Wrong::said("", message));
        }
        if role == before {
            let message = "A conversation must alternate between user and assistant roles. Make sure the conversation \
                           alternates between user and assistant roles and try again.";
            return Err(Wrong::said("", message));
        }
        before = role;
        let blocks = turn.need("content")?.list()?;
        if blocks.is_empty() {
            let message = format!(
                "The content field in the Message object at messages.{index} is empty. Add a ContentBlock \
                                   object to the content field and try again."
            );
            return Err(Wrong::said("", message));
        }
        if role == "user" {
            uses_tools |= !open.is_empty();
            user(index, &blocks, &open, asked)?;
            open.clear();
        } else {
            open = assistant(index, &blocks, has_budget)?;
        }
    }
    if turns.is_empty() {
        return Err(Wrong::said(
            "",
            "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        ));
    }
    if (uses_tools || !open.is_empty()) && asked.tools.is_empty() {
        let message =
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
        return Err(Wrong::said("", message));
    }
    unanswered(turns.len(), &open.iter().map(|(id, _)| *id).collect::<Vec<_>>())
}

fn unanswered(index: usize, ids: &[&str]) -> Checked<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Expected toolResult blocks at messages.{index}.content for the following Ids: {}",
        ids.join(", ")
    );
    Err(Wrong::said("", message))
}

fn user<'a>(index: usize, blocks: &[At<'a>], open: &[(&'a str, &'a str)], asked: &mut Asked) -> Checked<()> {
    (asked.results, asked.images) = (Vec::new(), Vec::new());
    let mut texts = Vec::new();
    let mut left: Vec<&str> = open.iter().map(|(id, _)| *id).collect();
    for block in blocks {
        match union(block, BLOCKS)? {
            ("text", text) => texts.push(not_blank(&text)?),
            ("image", at) => asked.images.extend(image(&at)?),
            ("cachePoint", at) => {
                at.only(&["type", "ttl"])?;
                at.need("type")?.one_of(&["default"])?;
                asked.cache = true;
            }
            ("toolResult", result) => {
                result.only(&["toolUseId", "content", "status", "type"])?;
                let id = result.need_text("toolUseId")?;
                let Some(at) = left.iter().position(|known| *known == id) else {
                    let message = format!(
                        "The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of \
                         previous turn."
                    );
                    return Err(Wrong::said("", message));
                };
                left.remove(at);
                let name = open.iter().find(|(known, _)| *known == id).map_or("", |(_, name)| name);
                asked.results.push((name.to_owned(), tool_result(&result)?));
            }
            ("toolUse" | "reasoningContent", at) => {
                let message =
                    "The model returned the following errors: only assistant messages may hold these blocks";
                return Err(at.wrong(message));
            }
            _ => {}
        }
    }
    asked.text = texts.join("\n");
    unanswered(index, &left)
}

fn tool_result(result: &At<'_>) -> Checked<String> {
    if let Some(status) = result.get("status") {
        status.one_of(&["success", "error"])?;
    }
    let mut said = Vec::new();
    for part in result.need("content")?.list()? {
        match union(&part, &["text", "json", "image", "document", "video", "searchResult"])? {
            ("text", text) => said.push(not_blank(&text)?.to_owned()),
            ("json", json) => {
                json.object()?;
                said.push(json.value.to_string());
            }
            ("image", at) => said.extend(image(&at)?.map(|(media, size)| format!("{media} of {size} bytes"))),
            _ => {}
        }
    }
    Ok(said.join(" "))
}

/// Ids and names of the calls.
fn assistant<'a>(index: usize, blocks: &[At<'a>], reasons: bool) -> Checked<Vec<(&'a str, &'a str)>> {
    let mut calls = Vec::new();
    let mut first = "";
    for block in blocks {
        let (kind, at) = union(block, BLOCKS)?;
        first = if first.is_empty() { kind } else { first };
        match kind {
            "text" => drop(not_blank(&at)?),
            "toolUse" => {
                at.only(&["toolUseId", "name", "input", "type"])?;
                let id = at.need_text("toolUseId")?;
                if !is_name(id, "_-.:", 64) {
                    let message = format!(
                        "Value '{id}' at 'messages.{index}' failed to satisfy constraint: Member must satisfy \
                                           regular expression pattern: [a-zA-Z0-9_.:-]+"
                    );
                    return Err(Wrong::said("", message));
                }
                if at.need("input")?.object().is_err() {
                    let message = format!(
                        "The format of the value at {}.input is invalid. Provide a json object for the field and try again.",
                        at.path
                    );
                    return Err(Wrong::said("", message));
                }
                calls.push((id, at.need_text("name")?));
            }
            "reasoningContent" => reasoning(index, &at)?,
            "toolResult" | "image" => {
                return Err(at.wrong(
                    "The model returned the following errors: only user messages may hold these blocks",
                ));
            }
            _ => {}
        }
    }
    if reasons && !calls.is_empty() && first != "reasoningContent" {
        let message = format!(
            "The model returned the following errors: messages.{index}.content.0.type: Expected `thinking` or \
             `redacted_thinking`, but found `{first}`."
        );
        return Err(Wrong::said("", message));
    }
    Ok(calls)
}

fn reasoning(index: usize, at: &At<'_>) -> Checked<()> {
    let (kind, text) = union(at, &["reasoningText", "redactedContent"])?;
    if kind == "redactedContent" {
        return Ok(());
    }
    text.only(&["text", "signature"])?;
    if text.text_of("signature")? == Some(sign(text.need_text("text")?).as_str()) {
        return Ok(());
    }
    let message = format!(
        "The model returned the following errors: messages.{index}.content.0: Invalid `signature` in `thinking` block"
    );
    Err(Wrong::said("", message))
}

fn not_blank<'a>(at: &At<'a>) -> Checked<&'a str> {
    let text = at.text()?;
    if text.trim().is_empty() { Err(blank(at)) } else { Ok(text) }
}

/// Media type and size of an image; `None` for one that is kept in S3.
fn image(at: &At<'_>) -> Checked<Option<(String, usize)>> {
    at.only(&["format", "source"])?;
    let format = at.need("format")?.one_of(&["png", "jpeg", "gif", "webp"])?;
    let (kind, bytes) = union(&at.need("source")?, &["bytes", "s3Location"])?;
    if kind == "s3Location" {
        return Ok(None);
    }
    let Ok(data) = BASE64_STANDARD.decode(bytes.text()?) else {
        return Err(bytes.wrong("The image source bytes are not valid base64."));
    };
    let media = format!("image/{format}");
    if crate::media::sniff(&data).is_some_and(|found| found != media) {
        return Err(bytes.wrong("The model returned the following errors: Could not process image"));
    }
    Ok(Some((media, data.len())))
}
