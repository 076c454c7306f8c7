//! What the Responses API refuses.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::chat::{EFFORTS, schema, strict_schema, tool_choice, tool_name, tool_schema};
use super::super::message::image_url;
use crate::check::{At, Checked, Wrong};
use crate::script::{Asked, Tool, sign};

const KNOWN: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// What the answer repeats of the request.
const REPEATED: &[&str] = &[
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
];
const LEAST_OUTPUT: i64 = 16;

pub(super) fn responses(body: &Value, asked: Asked) -> Checked<Asked> {
    let root = At::root(body);
    root.only(KNOWN)?;
    let mut asked = Asked { stream: root.flag_of("stream")?.unwrap_or(false), include_usage: true, ..asked };
    if let Some(at) = root.get("stream_options") {
        at.only(&["include_obfuscation"])?;
        if !asked.stream {
            return Err(at.wrong("The 'stream_options' parameter is only allowed when 'stream' is enabled."));
        }
    }
    root.text_of("instructions")?;
    root.range("temperature", 0.0, 2.0)?;
    root.range("top_p", 0.0, 1.0)?;
    asked.max_tokens = root.at_least("max_output_tokens", LEAST_OUTPUT)?;
    asked.tools = tools(&root)?;
    asked.choice = tool_choice(&root, &asked.tools, false)?;
    asked.one_tool = !root.flag_of("parallel_tool_calls")?.unwrap_or(true);
    if let Some(reasoning) = root.get("reasoning") {
        reasoning.only(&["effort", "summary", "generate_summary"])?;
        let effort = reasoning.get("effort").map(|at| at.one_of(EFFORTS)).transpose()?;
        reasoning.get("summary").map(|at| at.one_of(&["auto", "concise", "detailed"])).transpose()?;
        asked.reasoning = effort != Some("none");
    }
    if let Some(text) = root.get("text") {
        text.only(&["format", "verbosity"])?;
        if let Some(format) = text.get("format") {
            (asked.schema, asked.json) = text_format(&format)?;
        }
    }
    input(&root, &mut asked)?;
    asked.echo = echo(body, &asked);
    Ok(asked)
}

fn echo(body: &Value, asked: &Asked) -> Value {
    let mut echo = json!({"tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "store": true,
        "truncation": "disabled", "metadata": {}, "temperature": 1.0, "top_p": 1.0});
    for field in REPEATED {
        if let Some(value) = body.get(field) {
            echo[*field] = value.clone();
        } else if echo.get(field).is_none() {
            echo[*field] = Value::Null;
        }
    }
    let encrypted = body["include"].to_string().contains("reasoning.encrypted_content");
    json!({"fields": echo, "encrypted": encrypted && asked.reasoning})
}

fn tools(root: &At<'_>) -> Checked<Vec<Tool>> {
    let mut tools = Vec::new();
    for at in root.list_of("tools")? {
        // Tools that the service runs itself declare nothing that is called back.
        if at.need_text("type")? != "function" {
            continue;
        }
        at.only(&["type", "name", "description", "parameters", "strict", "defer_loading"])?;
        let name = tool_name(&at)?;
        let parameters = at.get("parameters");
        if let Some(parameters) = &parameters {
            tool_schema(parameters, name)?;
            if at.flag_of("strict")?.unwrap_or(false) {
                strict_schema(parameters, name)?;
            }
        }
        let schema = parameters.map_or(Value::Null, |parameters| parameters.value.clone());
        tools.push(Tool { name: name.to_owned(), schema });
    }
    Ok(tools)
}

fn text_format(at: &At<'_>) -> Checked<(Option<Value>, bool)> {
    match at.need("type")?.one_of(&["text", "json_object", "json_schema"])? {
        "json_schema" => {
            at.only(&["type", "name", "description", "schema", "strict"])?;
            at.need("schema")?;
            schema(at).map(|schema| (Some(schema), false))
        }
        kind => Ok((None, kind == "json_object")),
    }
}

/// Checks the items, and takes from the last ones what they ask for.
fn input(root: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let input = root.need("input")?;
    if let Some(text) = input.value.as_str() {
        text.clone_into(&mut asked.text);
        return Ok(());
    }
    let mut calls: HashMap<&str, (&str, bool)> = HashMap::new();
    for item in input.list()? {
        let kind = item.text_of("type")?.unwrap_or("message");
        if kind != "function_call_output" && kind != "function_call" && kind != "reasoning" {
            asked.results.clear();
        }
        match kind {
            "message" => message(&item, asked)?,
            "function_call" => {
                item.only(&["type", "id", "call_id", "name", "arguments", "status", "namespace"])?;
                item.need_text("arguments")?;
                calls.insert(item.need_text("call_id")?, (item.need_text("name")?, false));
            }
            "function_call_output" => {
                item.only(&["type", "id", "call_id", "output", "status"])?;
                let id = item.need_text("call_id")?;
                let Some((name, answered)) = calls.get_mut(id) else {
                    let message = format!("No tool call found for function call output with call_id {id}.");
                    return Err(input.wrong(message));
                };
                *answered = true;
                asked.results.push(((*name).to_owned(), output(&item)?));
            }
            "reasoning" => reasoning(&item)?,
            "item_reference" => drop(item.need_text("id")?),
            other => return Err(item.need("type")?.wrong(format!("Invalid value: '{other}'."))),
        }
    }
    match calls.iter().find(|(_, (_, answered))| !answered) {
        Some((id, _)) => Err(input.wrong(format!("No tool output found for function call {id}."))),
        None => Ok(()),
    }
}

fn message(item: &At<'_>, asked: &mut Asked) -> Checked<()> {
    item.only(&["type", "id", "role", "content", "status", "phase"])?;
    let role = item.need("role")?.one_of(&["user", "assistant", "system", "developer"])?;
    let content = item.need("content")?;
    if let Some(text) = content.value.as_str() {
        if role == "user" {
            asked.images.clear();
            text.clone_into(&mut asked.text);
        }
        return Ok(());
    }
    let known: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        _ => &["input_text", "input_image", "input_file", "input_audio"],
    };
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content.list()? {
        match part.need("type")?.one_of(known)? {
            "input_text" => {
                part.only(&["type", "text"])?;
                texts.push(part.need_text("text")?);
            }
            "output_text" => {
                part.only(&["type", "text", "annotations", "logprobs"])?;
                part.need_text("text")?;
            }
            "input_image" => {
                part.only(&["type", "image_url", "file_id", "detail"])?;
                if let Some(url) = part.get("image_url") {
                    images.extend(image_url(&url)?);
                }
            }
            _ => {}
        }
    }
    if role == "user" {
        (asked.text, asked.images) = (texts.join("\n"), images);
    }
    Ok(())
}

fn output(item: &At<'_>) -> Checked<String> {
    let output = item.need("output")?;
    if let Some(text) = output.value.as_str() {
        return Ok(text.to_owned());
    }
    let mut said = Vec::new();
    for part in output.list()? {
        match part.need("type")?.one_of(&["input_text", "input_image", "input_file"])? {
            "input_text" => said.push(part.need_text("text")?.to_owned()),
            "input_image" => {
                let image = part.get("image_url").map(|url| image_url(&url)).transpose()?.flatten();
                said.extend(image.map(|(media, size)| format!("{media} of {size} bytes")));
            }
            _ => {}
        }
    }
    Ok(said.join(" "))
}

/// Encrypted reasoning must come back as it was given out.
fn reasoning(item: &At<'_>) -> Checked<()> {
    item.only(&["type", "id", "summary", "content", "encrypted_content", "status"])?;
    item.need_text("id")?;
    let mut summary = String::new();
    for part in item.need("summary")?.list()? {
        summary.push_str(part.need_text("text")?);
    }
    match item.text_of("encrypted_content")? {
        Some(encrypted) if encrypted != sign(&summary) => {
            let id = item.need_text("id")?;
            let message = format!("The encrypted content for item {id} could not be verified.");
            Err(Wrong::said(item.path.clone(), message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Choice;

    fn check(fields: Value) -> Checked<Asked> {
        let mut body = json!({"model": "m", "input": "hi"});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        responses(&body, Asked::default())
    }

    #[test]
    fn what_belongs_to_chat_is_refused_here() {
        assert!(check(json!({})).is_ok());
        for bad in [
            json!({"messages": []}),
            json!({"max_tokens": 5}),
            json!({"max_output_tokens": 15}),
            json!({"response_format": {"type": "text"}}),
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            json!({"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}),
            json!({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}]}),
            json!({"input": [{"type": "function_call_output", "call_id": "x", "output": "1"}]}),
            json!({"input": [{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"}]}),
            json!({"stream_options": {"include_obfuscation": false}}),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_call_and_its_output_are_paired_and_named() {
        let input = json!([
            {"role": "user", "content": "use tool f"},
            {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "x", "output": "42"},
        ]);
        let asked = check(json!({"input": input})).unwrap();
        assert_eq!(asked.results, [("f".to_owned(), "42".to_owned())]);
        assert_eq!(asked.choice, Choice::Auto);
    }
}
