//! What chat completions refuse about messages and their order.

use crate::check::{At, Checked, Wrong};
use crate::media;
use crate::script::Asked;

/// Checks the messages, and takes from the last what they ask for.
pub(super) fn conversation(root: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut opened_by = String::new();
    for message in root.need("messages")?.list()? {
        let role = message.need_text("role")?;
        if role == "tool" {
            asked.results.push(tool(&message, &mut open)?);
            continue;
        }
        unanswered(&open, &opened_by)?;
        asked.results.clear();
        match role {
            "assistant" => {
                open = assistant(&message)?;
                opened_by.clone_from(&message.path);
            }
            "user" => {
                asked.images.clear();
                asked.text = user(&message, asked)?;
            }
            // The roles themselves have been checked; text is all that instructions may hold.
            _ => drop(text(&message)?),
        }
    }
    unanswered(&open, &opened_by)
}

fn unanswered(open: &[(&str, &str)], path: &str) -> Checked<()> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|(id, _)| *id).collect();
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}.",
        ids.join(", ")
    );
    Err(Wrong::said(path, message))
}

/// Name of the tool, and what it said.
fn tool(message: &At<'_>, open: &mut Vec<(&str, &str)>) -> Checked<(String, String)> {
    let id = message.need_text("tool_call_id")?;
    let Some(at) = open.iter().position(|(known, _)| *known == id) else {
        let text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                    'tool_calls'.";
        return Err(message.wrong(text));
    };
    let (_, name) = open.remove(at);
    Ok((name.to_owned(), text(message)?))
}

/// Ids and names of the calls.
fn assistant<'a>(message: &At<'a>) -> Checked<Vec<(&'a str, &'a str)>> {
    let mut calls = Vec::new();
    if let Some(at) = message.get("tool_calls")
        && at.list()?.is_empty()
    {
        return Err(at.wrong("Invalid 'tool_calls': empty array. Expected an array with minimum length 1."));
    }
    for call in message.list_of("tool_calls")? {
        let id = call.need_text("id")?;
        let kind = call.need("type")?.one_of(&["function", "custom"])?;
        let function = call.need(kind)?;
        if kind == "function" {
            function.need_text("arguments")?;
        }
        if calls.iter().any(|(known, _)| *known == id) {
            return Err(call.wrong(format!("Duplicate tool call id '{id}'.")));
        }
        calls.push((id, function.need_text("name")?));
    }
    if message.get("content").is_some() {
        text(message)?;
    }
    Ok(calls)
}

fn text(message: &At<'_>) -> Checked<String> {
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut texts = Vec::new();
    for part in content.list()? {
        match part.need("type")?.one_of(&["text", "refusal"])? {
            "text" => texts.push(part.need_text("text")?),
            _ => texts.push(part.need_text("refusal")?),
        }
    }
    Ok(texts.join("\n"))
}

/// The text; images go to where they are asked about.
fn user(message: &At<'_>, asked: &mut Asked) -> Checked<String> {
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut texts = Vec::new();
    for part in content.list()? {
        match part.need("type")?.one_of(&["text", "image_url", "input_audio", "file", "video_url"])? {
            "text" => texts.push(part.need_text("text")?),
            "image_url" => {
                let image = part.need("image_url")?;
                image.only(&["url", "detail"])?;
                asked.images.extend(image_url(&image.need("url")?)?);
            }
            "input_audio" => {
                let audio = part.need("input_audio")?;
                audio.need("format")?.one_of(&["wav", "mp3"])?;
                audio.need_text("data")?;
            }
            _ => {}
        }
    }
    Ok(texts.join("\n"))
}

/// Media type and size of an image; `None` for one that is only linked.
pub(super) fn image_url(at: &At<'_>) -> Checked<Option<(String, usize)>> {
    let url = at.text()?;
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(None);
    }
    let Some((media, bytes)) = media::data_url(url) else {
        return Err(at.wrong(
            "expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,...')",
        ));
    };
    let good =
        matches!(media.as_str(), "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp");
    if !good || media::sniff(&bytes).is_none() {
        let message = "You uploaded an unsupported image. Please make sure your image has of one the following formats: \
                       ['png', 'jpeg', 'gif', 'webp'].";
        return Err(at.wrong(message));
    }
    Ok(Some((media, bytes.len())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value) -> Checked<Asked> {
        let body = json!({"messages": messages});
        let mut asked = Asked::default();
        conversation(&At::root(&body), &mut asked).map(|()| asked)
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
    }

    #[test]
    fn every_call_needs_its_answer_and_every_answer_its_call() {
        let user = json!({"role": "user", "content": "hi"});
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]});
        let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("said {id}")});
        let good = check(json!([user, calls, answer("b"), answer("a")])).unwrap();
        assert_eq!(good.results.len(), 2);
        assert_eq!(good.results[0], ("f".to_owned(), "said b".to_owned()));
        for bad in [
            json!([user, calls, answer("a")]),
            json!([user, calls, answer("a"), user, answer("b")]),
            json!([user, answer("a")]),
            json!([user, calls, answer("a"), answer("b"), answer("c")]),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn images_must_be_of_a_type_that_is_taken() {
        let image = |url: &str| json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
        let good = check(image("data:image/png;base64,iVBORw0KGgo=")).unwrap();
        assert_eq!(good.images, [("image/png".to_owned(), 8)]);
        assert!(check(image("data:image/svg+xml;base64,PHN2Zy8+")).is_err());
        assert!(check(image("iVBORw0KGgo=")).is_err());
    }
}
