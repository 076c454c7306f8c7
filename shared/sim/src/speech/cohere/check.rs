//! What Cohere's chat refuses.

use serde_json::Value;

use crate::check::{At, Checked, Wrong};
use crate::media;
use crate::script::{Asked, Choice, Tool};

const KNOWN: &[&str] = &[
    "stream",
    "model",
    "messages",
    "tools",
    "strict_tools",
    "documents",
    "citation_options",
    "response_format",
    "safety_mode",
    "max_tokens",
    "stop_sequences",
    "temperature",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "k",
    "p",
    "logprobs",
    "tool_choice",
    "thinking",
    "priority",
];
const MOST_STOPS: usize = 5;

pub(super) fn chat(body: &Value, asked: Asked) -> Checked<Asked> {
    let root = At::root(body);
    root.only(KNOWN)?;
    let mut asked = Asked { stream: root.flag_of("stream")?.unwrap_or(false), include_usage: true, ..asked };
    asked.max_tokens = root.at_least("max_tokens", 1)?;
    root.range("temperature", 0.0, 1.0)?;
    root.range("p", 0.01, 0.99)?;
    root.range("k", 0.0, 500.0)?;
    root.range("frequency_penalty", 0.0, 1.0)?;
    root.range("presence_penalty", 0.0, 1.0)?;
    root.at_least("seed", 0)?;
    asked.stop = root.texts_of("stop_sequences")?;
    if asked.stop.len() > MOST_STOPS {
        return Err(Wrong::said(
            "stop_sequences",
            format!("at most {MOST_STOPS} stop sequences are allowed"),
        ));
    }
    asked.tools = tools(&root)?;
    if let Some(choice) = root.get("tool_choice") {
        if asked.tools.is_empty() {
            return Err(Wrong::said("", "tool_choice can only be specified when tools are provided"));
        }
        asked.choice = match choice.one_of(&["REQUIRED", "NONE"])? {
            "NONE" => Choice::None,
            _ => Choice::Any,
        };
    }
    if let Some(thinking) = root.get("thinking") {
        thinking.only(&["type", "token_budget"])?;
        asked.reasoning = thinking.need("type")?.one_of(&["enabled", "disabled"])? == "enabled";
        thinking.at_least("token_budget", 1)?;
    }
    if let Some(format) = root.get("response_format") {
        format.only(&["type", "json_schema"])?;
        asked.json = format.need("type")?.one_of(&["text", "json_object"])? == "json_object";
        asked.schema = format.get("json_schema").map(|schema| schema.value.clone());
        if asked.json && !asked.tools.is_empty() {
            return Err(Wrong::said("", "json response format is not supported with tools"));
        }
    }
    conversation(&root, &mut asked)?;
    Ok(asked)
}

fn tools(root: &At<'_>) -> Checked<Vec<Tool>> {
    let mut tools = Vec::new();
    for at in root.list_of("tools")? {
        at.only(&["type", "function"])?;
        at.need("type")?.one_of(&["function"])?;
        let function = at.need("function")?;
        function.only(&["name", "description", "parameters"])?;
        let name = function.need_text("name")?.to_owned();
        let parameters = function.need("parameters")?;
        parameters.object()?;
        tools.push(Tool { name, schema: parameters.value.clone() });
    }
    Ok(tools)
}

fn conversation(root: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let messages = root.need("messages")?.list()?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    for message in &messages {
        let role = message.need("role")?.one_of(&["system", "user", "assistant", "tool"])?;
        if role == "tool" {
            message.only(&["role", "tool_call_id", "content"])?;
            let id = message.need_text("tool_call_id")?;
            let Some(at) = open.iter().position(|(known, _)| *known == id) else {
                let text = format!("tool call id not found in previous tool calls: {id}");
                return Err(message.wrong(text));
            };
            let (_, name) = open.remove(at);
            let said = content(message, &["text", "document"], asked)?;
            asked.results.push((name.to_owned(), said));
            continue;
        }
        if let Some((id, _)) = open.first() {
            return Err(message.wrong(format!("no tool result was given for the tool call {id}")));
        }
        asked.results.clear();
        match role {
            "assistant" => open = assistant(message, asked)?,
            "user" => {
                message.only(&["role", "content"])?;
                asked.images.clear();
                asked.text = content(message, &["text", "image_url"], asked)?;
            }
            _ => {
                message.only(&["role", "content"])?;
                content(message, &["text"], asked)?;
            }
        }
    }
    match messages.last().map(|message| &message.value["role"]) {
        None => Err(Wrong::said("messages", "at least one message is required")),
        Some(role) if role == "assistant" || role == "system" => {
            Err(Wrong::said("messages", "the last message must be from a user or a tool"))
        }
        Some(_) => Ok(()),
    }
}

fn assistant<'a>(message: &At<'a>, asked: &mut Asked) -> Checked<Vec<(&'a str, &'a str)>> {
    message.only(&["role", "content", "tool_plan", "tool_calls", "citations"])?;
    message.text_of("tool_plan")?;
    let mut calls = Vec::new();
    for call in message.list_of("tool_calls")? {
        call.only(&["id", "type", "function"])?;
        call.need("type")?.one_of(&["function"])?;
        let function = call.need("function")?;
        let arguments = function.need("arguments")?;
        if serde_json::from_str::<Value>(arguments.text()?).is_err() {
            return Err(arguments.wrong("arguments must be a JSON object"));
        }
        calls.push((call.need_text("id")?, function.need_text("name")?));
    }
    if message.get("content").is_some() {
        content(message, &["text", "thinking"], asked)?;
    } else if calls.is_empty() {
        return Err(message.wrong("an assistant message needs content or tool_calls"));
    }
    Ok(calls)
}

/// The text; images of a user go to where they are asked about.
fn content(message: &At<'_>, kinds: &[&str], asked: &mut Asked) -> Checked<String> {
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        return match text {
            "" => Err(content.wrong("content must not be empty")),
            text => Ok(text.to_owned()),
        };
    }
    let mut texts = Vec::new();
    for part in content.list()? {
        match part.need("type")?.one_of(kinds)? {
            "text" => texts.push(part.need_text("text")?.to_owned()),
            "document" => texts.push(part.need("document")?.need("data")?.value.to_string()),
            "image_url" => {
                let url = part.need("image_url")?.need("url")?;
                let Some((kind, bytes)) = media::data_url(url.text()?) else {
                    if url.text()?.starts_with("http") {
                        continue;
                    }
                    return Err(url.wrong("images must be a base64 data URL or a link"));
                };
                if media::sniff(&bytes).is_none() {
                    return Err(
                        url.wrong("unsupported image format: only png, jpeg, webp and gif are supported")
                    );
                }
                asked.images.push((kind, bytes.len()));
            }
            _ => drop(part.need_text("thinking")?),
        }
    }
    Ok(texts.join("\n"))
}
