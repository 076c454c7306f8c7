//! What Converse refuses about a request as a whole.

use serde_json::Value;

use super::messages;
use crate::check::{At, Checked, Wrong, is_name};
use crate::script::{Asked, Choice, Tool};

const KNOWN: &[&str] = &[
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig",
];
const LEAST_BUDGET: i64 = 1024;

pub(super) fn converse(body: &Value, asked: Asked) -> Checked<Asked> {
    let root = At::root(body);
    root.only(KNOWN)?;
    let mut asked = Asked { include_usage: true, ..asked };
    if let Some(config) = root.get("inferenceConfig") {
        config.only(&["maxTokens", "temperature", "topP", "stopSequences"])?;
        asked.max_tokens = config.at_least("maxTokens", 1)?;
        config.range("temperature", 0.0, 1.0)?;
        config.range("topP", 0.0, 1.0)?;
        asked.stop = config.texts_of("stopSequences")?;
        if asked.stop.iter().any(|stop| stop.trim().is_empty()) {
            let message = "The model returned the following errors: stop_sequences: each stop sequence must contain \
                           non-whitespace";
            return Err(Wrong::said("", message));
        }
    }
    for block in root.list_of("system")? {
        match messages::union(&block, &["text", "guardContent", "cachePoint"])? {
            ("cachePoint", _) => asked.cache = true,
            (_, text) if text.value.as_str() == Some("") => return Err(messages::blank(&text)),
            _ => {}
        }
    }
    if let Some(config) = root.get("toolConfig") {
        tool_config(&config, &mut asked)?;
    }
    if let Some(fields) = root.get("additionalModelRequestFields") {
        additional(&fields, &mut asked)?;
    }
    if let Some(output) = root.get("outputConfig") {
        output_config(&output, &mut asked)?;
    }
    messages::conversation(&root, &mut asked)?;
    Ok(asked)
}

fn tool_config(config: &At<'_>, asked: &mut Asked) -> Checked<()> {
    config.only(&["tools", "toolChoice"])?;
    let tools = config.need("tools")?.list()?;
    if tools.is_empty() {
        return Err(Wrong::said(
            "",
            "Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ));
    }
    for tool in &tools {
        let (kind, spec) = messages::union(tool, &["toolSpec", "cachePoint", "systemTool"])?;
        if kind != "toolSpec" {
            continue;
        }
        spec.only(&["name", "description", "inputSchema", "strict"])?;
        let name = spec.need_text("name")?;
        if !is_name(name, "_-", 64) {
            return Err(spec.wrong(format!(
                "Value '{name}' at 'toolConfig.tools' failed to satisfy constraint: Member must satisfy regular expression \
                 pattern: [a-zA-Z0-9_-]+"
            )));
        }
        if spec.text_of("description")? == Some("") {
            return Err(spec.wrong("description failed to satisfy constraint: Member must have length greater than or equal to 1"));
        }
        if asked.tools.iter().any(|tool| tool.name == name) {
            return Err(Wrong::said("", format!("The tool {name} is already defined at toolConfig.tools.")));
        }
        let input = spec.need("inputSchema")?;
        input.only(&["json"])?;
        let schema = input.need("json")?;
        if schema.value["type"] != "object" {
            return Err(schema
                .wrong(format!("The value at {}.type must be one of the following: object.", schema.path)));
        }
        asked.tools.push(Tool { name: name.to_owned(), schema: schema.value.clone() });
    }
    let Some(choice) = config.get("toolChoice") else { return Ok(()) };
    let (kind, value) = messages::union(&choice, &["auto", "any", "tool"])?;
    asked.choice = match kind {
        "any" => Choice::Any,
        "tool" => {
            let name = value.need_text("name")?;
            if !asked.tools.iter().any(|tool| tool.name == name) {
                return Err(Wrong::said(
                    "",
                    format!("toolConfig.toolChoice.tool.name: {name} is not defined in toolConfig.tools"),
                ));
            }
            Choice::Named(name.to_owned())
        }
        _ => Choice::Auto,
    };
    Ok(())
}

/// What goes to the model as it is: Claude takes these.
fn additional(fields: &At<'_>, asked: &mut Asked) -> Checked<()> {
    fields.only(&["thinking", "top_k", "anthropic_beta", "tool_choice", "output_config"])?;
    if let Some(choice) = fields.get("tool_choice") {
        asked.one_tool = choice.flag_of("disable_parallel_tool_use")?.unwrap_or(false);
    }
    let Some(thinking) = fields.get("thinking") else { return Ok(()) };
    match thinking.need("type")?.one_of(&["enabled", "disabled", "adaptive"])? {
        "disabled" => return Ok(()),
        "enabled" => {
            let budget = thinking.need("budget_tokens")?.whole()?;
            if budget < LEAST_BUDGET {
                let message = format!(
                    "The model returned the following errors: thinking.enabled.budget_tokens: Input should be greater than \
                     or equal to {LEAST_BUDGET}"
                );
                return Err(Wrong::said("", message));
            }
            if asked.max_tokens.is_some_and(|most| budget >= i64::from(most)) {
                let message = "The model returned the following errors: `max_tokens` must be greater than \
                               `thinking.budget_tokens`.";
                return Err(Wrong::said("", message));
            }
        }
        _ => {}
    }
    if matches!(asked.choice, Choice::Any | Choice::Named(_)) {
        let message = "The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use.";
        return Err(Wrong::said("", message));
    }
    asked.reasoning = true;
    Ok(())
}

/// The schema comes as text.
fn output_config(output: &At<'_>, asked: &mut Asked) -> Checked<()> {
    output.only(&["textFormat"])?;
    let format = output.need("textFormat")?;
    format.only(&["type", "structure"])?;
    format.need("type")?.one_of(&["json_schema"])?;
    let described = format.need("structure")?.need("jsonSchema")?;
    described.only(&["schema", "name", "description"])?;
    let schema = described.need("schema")?;
    let parsed =
        serde_json::from_str(schema.text()?).map_err(|_| schema.wrong("The schema is not valid JSON."))?;
    asked.schema = Some(parsed);
    Ok(())
}
