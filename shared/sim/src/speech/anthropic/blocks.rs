//! What the Messages API refuses about the turns of a conversation and their blocks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::check::{cache_control, count_marks};
use crate::check::{At, Checked, Wrong, is_name};
use crate::media;
use crate::script::{Asked, sign};

const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// Most blocks that may be marked to be cached.
const MOST_MARKS: usize = 4;

/// A call that waits for its result.
struct Open<'a> {
    id: &'a str,
    name: &'a str,
}

/// Checks the turns, and takes from the last what it asks for.
pub(super) fn conversation(root: &At<'_>, asked: &mut Asked, system_between: bool) -> Checked<()> {
    let turns = root.need("messages")?.list()?;
    if turns.is_empty() {
        return Err(root.need("messages")?.wrong("at least one message is required"));
    }
    let marks = count_marks(root.value);
    if marks > MOST_MARKS {
        let message =
            format!("A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {marks}.");
        return Err(Wrong::said("", message));
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        turn.only(&["role", "content"])?;
        if system_between && index > 0 && turn.value["role"] == "system" {
            content(turn, false)?;
            continue;
        }
        let role = role(turn)?;
        if index == 0 && role != "user" {
            return Err(Wrong::said("messages", "first message must use the \"user\" role"));
        }
        let blocks = content(turn, index + 1 == turns.len() && role == "assistant")?;
        if role == "user" {
            (asked.results, asked.images) = (Vec::new(), Vec::new());
            user(turn, &blocks, &open, asked)?;
            open.clear();
        } else {
            unanswered(&open, index)?;
            open = assistant(&blocks)?;
        }
    }
    // With adaptive thinking a turn need not begin with a thought.
    if root.value.pointer("/thinking/type").is_some_and(|kind| kind == "enabled") {
        signed_turn(&turns)?;
    }
    if !asked.tools_declared(root) && has_tool_blocks(&turns) {
        return Err(Wrong::said(
            "",
            "Requests which include `tool_use` or `tool_result` blocks must define tools",
        ));
    }
    unanswered(&open, turns.len())
}

impl Asked {
    fn tools_declared(&self, root: &At<'_>) -> bool {
        !self.tools.is_empty() || root.get("tools").is_some()
    }
}

fn has_tool_blocks(turns: &[At<'_>]) -> bool {
    let is_tool = |block: &Value| matches!(block["type"].as_str(), Some("tool_use" | "tool_result"));
    turns.iter().any(|turn| turn.value["content"].as_array().is_some_and(|blocks| blocks.iter().any(is_tool)))
}

fn role<'a>(turn: &At<'a>) -> Checked<&'a str> {
    let role = turn.need_text("role")?;
    match role {
        "user" | "assistant" => Ok(role),
        "system" => Err(Wrong::said(
            "messages",
            "Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an \
             input message role.",
        )),
        _ => Err(Wrong::said(
            "messages",
            format!("Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\""),
        )),
    }
}

/// The blocks of a turn. A text alone counts as one block.
fn content<'a>(turn: &At<'a>, is_prefill: bool) -> Checked<Vec<At<'a>>> {
    let content = turn.need("content")?;
    let empty = || {
        turn.wrong("all messages must have non-empty content except for the optional final assistant message")
    };
    match content.value {
        Value::String(text) if text.is_empty() && !is_prefill => Err(empty()),
        Value::String(text) if is_prefill && text.ends_with(char::is_whitespace) => {
            Err(Wrong::said("messages", "final assistant content cannot end with trailing whitespace"))
        }
        Value::String(_) => Ok(vec![content]),
        Value::Array(blocks) if blocks.is_empty() && !is_prefill => Err(empty()),
        _ => content.list(),
    }
}

fn unanswered(open: &[Open<'_>], index: usize) -> Checked<()> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|call| call.id).collect();
    Err(Wrong::said(
        format!("messages.{}", index - 1),
        format!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must \
             have a corresponding `tool_result` block in the next message.",
            ids.join(", ")
        ),
    ))
}

fn user<'a>(turn: &At<'a>, blocks: &[At<'a>], open: &[Open<'a>], asked: &mut Asked) -> Checked<()> {
    let mut answered: Vec<&str> = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(text) = block.value.as_str() {
            texts.push(text);
            continue;
        }
        match block.need_text("type")? {
            "text" => texts.push(text(block, "messages")?),
            "image" => asked.images.extend(image(block)?),
            "document" | "search_result" | "container_upload" => cache_control(block)?,
            "tool_result" => {
                let (id, said) = tool_result(block)?;
                let Some(call) = open.iter().find(|call| call.id == id) else {
                    return Err(block.wrong(format!(
                        "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                         have a corresponding `tool_use` block in the previous message."
                    )));
                };
                // Results come before everything else of their turn.
                if at != answered.len() {
                    return unanswered(open, index_of(turn));
                }
                if answered.contains(&id) {
                    let message = format!(
                        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                    );
                    return Err(block.wrong(message));
                }
                answered.push(id);
                asked.results.push((call.name.to_owned(), said));
            }
            other => return Err(unexpected(block, other, "user")),
        }
    }
    asked.text = texts.join("\n");
    let left: Vec<Open<'_>> = open
        .iter()
        .filter(|call| !answered.contains(&call.id))
        .map(|call| Open { id: call.id, name: call.name })
        .collect();
    unanswered(&left, index_of(turn))
}

fn index_of(turn: &At<'_>) -> usize {
    turn.path.rsplit('.').next().and_then(|step| step.parse().ok()).unwrap_or(1)
}

fn assistant<'a>(blocks: &[At<'a>]) -> Checked<Vec<Open<'a>>> {
    let mut calls: Vec<Open<'a>> = Vec::new();
    for block in blocks.iter().filter(|block| !block.value.is_string()) {
        match block.need_text("type")? {
            "text" => {
                text(block, "messages")?;
            }
            "tool_use" => {
                block.only(&["type", "id", "name", "input", "cache_control", "caller"])?;
                let id = block.need_text("id")?;
                if !is_name(id, "_-", 256) {
                    let message = "String should match pattern '^[a-zA-Z0-9_-]+$'";
                    return Err(block.need("id")?.wrong(message));
                }
                if calls.iter().any(|call| call.id == id) {
                    return Err(Wrong::said("messages", "`tool_use` ids must be unique"));
                }
                if !block.need("input")?.value.is_object() {
                    return Err(block.need("input")?.wrong("Input should be a valid dictionary"));
                }
                calls.push(Open { id, name: block.need_text("name")? });
            }
            "thinking" => {
                block.only(&["type", "thinking", "signature"])?;
                let signature = block.need("signature")?;
                if signature.text()? != sign(block.need_text("thinking")?) {
                    return Err(block.wrong("Invalid `signature` in `thinking` block"));
                }
            }
            "redacted_thinking" => {
                block.only(&["type", "data"])?;
                block.need_text("data")?;
            }
            other => return Err(unexpected(block, other, "assistant")),
        }
    }
    Ok(calls)
}

/// While thinking has a budget, the turn whose calls are being answered must begin with its thinking.
fn signed_turn(turns: &[At<'_>]) -> Checked<()> {
    let is_assistant = |turn: &&At<'_>| turn.value["role"] == "assistant";
    let Some(turn) = turns.iter().rfind(is_assistant) else { return Ok(()) };
    let blocks = turn.value["content"].as_array().map_or(&[][..], Vec::as_slice);
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let first = blocks.first().and_then(|block| block["type"].as_str()).unwrap_or("text");
    if !calls || matches!(first, "thinking" | "redacted_thinking") {
        return Ok(());
    }
    Err(Wrong::said(
        format!("{}.content.0.type", turn.path),
        format!(
            "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final \
             `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks)."
        ),
    ))
}

fn unexpected(block: &At<'_>, kind: &str, role: &str) -> Wrong {
    block.wrong(format!(
        "Input tag '{kind}' found using 'type' does not match any of the expected tags of a {role} turn"
    ))
}

/// The text of a text block; `owner` is named when it is empty.
pub(super) fn text<'a>(block: &At<'a>, owner: &str) -> Checked<&'a str> {
    block.only(&["type", "text", "cache_control", "citations"])?;
    cache_control(block)?;
    let text = block.need_text("text")?;
    if text.is_empty() {
        return Err(Wrong::said(owner, "text content blocks must be non-empty"));
    }
    Ok(text)
}

/// Media type and size of an image; `None` for one that is only linked.
fn image(block: &At<'_>) -> Checked<Option<(String, usize)>> {
    block.only(&["type", "source", "cache_control"])?;
    cache_control(block)?;
    let source = block.need("source")?;
    match source.need("type")?.one_of(&["base64", "url", "file"])? {
        "base64" => {
            source.only(&["type", "media_type", "data"])?;
            let media = source.need("media_type")?.one_of(IMAGES)?;
            let data = source.need("data")?;
            let Ok(bytes) = BASE64_STANDARD.decode(data.text()?) else {
                return Err(data.wrong("Invalid base64 data"));
            };
            if media::sniff(&bytes).is_some_and(|found| found != media) {
                let message = format!("Image does not match the provided media type {media}");
                return Err(data.wrong(message));
            }
            Ok(Some((media.to_owned(), bytes.len())))
        }
        "url" => {
            source.only(&["type", "url"])?;
            source.need_text("url").map(|_| None)
        }
        _ => source.need_text("file_id").map(|_| None),
    }
}

fn tool_result<'a>(block: &At<'a>) -> Checked<(&'a str, String)> {
    block.only(&["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    cache_control(block)?;
    block.flag_of("is_error")?;
    let id = block.need_text("tool_use_id")?;
    let Some(content) = block.get("content") else { return Ok((id, String::new())) };
    if let Some(text) = content.value.as_str() {
        return Ok((id, text.to_owned()));
    }
    let mut said = Vec::new();
    for part in content.list()? {
        match part.need_text("type")? {
            "text" => said.push(text(&part, "messages")?.to_owned()),
            "image" => said.extend(image(&part)?.map(|(media, size)| format!("{media} of {size} bytes"))),
            "document" | "search_result" | "tool_reference" => {}
            other => return Err(unexpected(&part, other, "tool_result")),
        }
    }
    Ok((id, said.join(" ")))
}
