//! What Gemini refuses about a request as a whole.

use serde_json::Value;

use super::{contents, schema};
use crate::check::{At, Checked, Wrong};
use crate::script::{Asked, Choice, Tool};

const KNOWN: &[&str] = &[
    "contents",
    "tools",
    "toolConfig",
    "safetySettings",
    "systemInstruction",
    "generationConfig",
    "cachedContent",
    "model",
    "serviceTier",
    "store",
];
const GENERATION: &[&str] = &[
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
];
const MOST_STOPS: usize = 5;

pub(super) fn generate(body: &Value, asked: Asked, vertex: bool) -> Checked<Asked> {
    let root = At::root(body);
    let known: Vec<&str> = KNOWN.iter().chain(if vertex { &["labels"][..] } else { &[] }).copied().collect();
    root.only(&known)?;
    let mut asked = Asked { include_usage: true, cache: root.get("cachedContent").is_some(), ..asked };
    asked.tools = tools(&root)?;
    asked.choice = tool_config(&root, &asked.tools)?;
    if let Some(config) = root.get("generationConfig") {
        generation(&config, &mut asked)?;
    }
    if let Some(system) = root.get("systemInstruction") {
        system.only(&["role", "parts"])?;
        for part in system.need("parts")?.list()? {
            part.only(&["text"])?;
            part.need_text("text")?;
        }
    }
    for setting in root.list_of("safetySettings")? {
        setting.only(&["category", "threshold", "method"])?;
    }
    contents::conversation(&root, &mut asked, vertex)?;
    Ok(asked)
}

fn tools(root: &At<'_>) -> Checked<Vec<Tool>> {
    let mut tools = Vec::new();
    for at in root.list_of("tools")? {
        at.only(&[
            "functionDeclarations",
            "googleSearch",
            "googleSearchRetrieval",
            "codeExecution",
            "urlContext",
            "computerUse",
            "fileSearch",
            "googleMaps",
        ])?;
        for declaration in at.list_of("functionDeclarations")? {
            declaration.only(&[
                "name",
                "description",
                "parameters",
                "parametersJsonSchema",
                "response",
                "responseJsonSchema",
                "behavior",
            ])?;
            let name = declaration.need_text("name")?;
            if !is_function_name(name) {
                return Err(declaration.need("name")?.wrong(
                    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, \
                     0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.",
                ));
            }
            if tools.iter().any(|tool: &Tool| tool.name == name) {
                return Err(Wrong::said("", format!("Duplicate function declaration found: {name}")));
            }
            let parameters = declaration.get("parameters");
            let json_schema = declaration.get("parametersJsonSchema");
            if parameters.is_some() && json_schema.is_some() {
                return Err(declaration.wrong("only one of parameters and parametersJsonSchema may be set"));
            }
            if let Some(parameters) = &parameters {
                schema::check(parameters)?;
            }
            let schema = parameters.or(json_schema).map_or(Value::Null, |at| at.value.clone());
            tools.push(Tool { name: name.to_owned(), schema });
        }
    }
    Ok(tools)
}

fn is_function_name(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && crate::check::is_name(name, "_.:-", 64)
}

fn tool_config(root: &At<'_>, tools: &[Tool]) -> Checked<Choice> {
    let Some(config) = root.get("toolConfig") else { return Ok(Choice::Auto) };
    config.only(&["functionCallingConfig", "retrievalConfig"])?;
    let Some(calling) = config.get("functionCallingConfig") else { return Ok(Choice::Auto) };
    calling.only(&["mode", "allowedFunctionNames"])?;
    let modes = ["AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"];
    let mode = calling.get("mode").map_or(Ok("AUTO"), |at| at.one_of(&modes))?;
    let allowed = calling.texts_of("allowedFunctionNames")?;
    if !allowed.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        let message = "Function calling config is set with allowed_function_names while mode is not ANY.";
        return Err(Wrong::said("", message));
    }
    if let Some(name) = allowed.iter().find(|name| !tools.iter().any(|tool| tool.name == **name)) {
        let message = format!("allowed_function_names: {name} is not one of the declared functions");
        return Err(calling.wrong(message));
    }
    if mode == "ANY" && tools.is_empty() {
        return Err(Wrong::said(
            "",
            "Function calling mode is set to ANY but no function declarations are provided.",
        ));
    }
    Ok(match (mode, allowed.first()) {
        ("NONE", _) => Choice::None,
        ("ANY", Some(name)) => Choice::Named(name.clone()),
        ("ANY", None) => Choice::Any,
        _ => Choice::Auto,
    })
}

fn generation(config: &At<'_>, asked: &mut Asked) -> Checked<()> {
    config.only(GENERATION)?;
    config.range("temperature", 0.0, 2.0)?;
    config.range("topP", 0.0, 1.0)?;
    config.range("presencePenalty", -2.0, 1.999)?;
    config.range("frequencyPenalty", -2.0, 1.999)?;
    config.at_least("topK", 1)?;
    config.whole_of("seed")?;
    asked.max_tokens = config.at_least("maxOutputTokens", 1)?;
    if config.at_least("candidateCount", 1)?.is_some_and(|count| count > 1) {
        return Err(Wrong::said("", "Multiple candidates is not enabled for this model"));
    }
    asked.stop = config.texts_of("stopSequences")?;
    if asked.stop.len() > MOST_STOPS {
        let message = format!("the number of stop sequences must be at most {MOST_STOPS}");
        return Err(config.need("stopSequences")?.wrong(message));
    }
    if asked.stop.iter().any(String::is_empty) {
        return Err(config.need("stopSequences")?.wrong("stop sequences must not be empty"));
    }
    if let Some(thinking) = config.get("thinkingConfig") {
        thinking.only(&["includeThoughts", "thinkingBudget", "thinkingLevel"])?;
        if let Some(level) = thinking.get("thinkingLevel") {
            if thinking.get("thinkingBudget").is_some() {
                return Err(Wrong::said(
                    "",
                    "You can only set only one of thinking budget and thinking level.",
                ));
            }
            let upper = level.text()?.to_uppercase();
            if !["MINIMAL", "LOW", "MEDIUM", "HIGH", "THINKING_LEVEL_UNSPECIFIED"].contains(&upper.as_str()) {
                return Err(level.wrong("invalid thinking level"));
            }
        }
        let budget = thinking.whole_of("thinkingBudget")?;
        if budget.is_some_and(|budget| !(-1..=32_768).contains(&budget)) {
            return Err(
                thinking.wrong("The thinking budget is invalid. Please choose a value between -1 and 32768.")
            );
        }
        asked.reasoning = thinking.flag_of("includeThoughts")?.unwrap_or(false) && budget != Some(0);
    }
    response_format(config, asked)
}

fn response_format(config: &At<'_>, asked: &mut Asked) -> Checked<()> {
    let types = ["text/plain", "application/json", "text/x.enum", "application/xml", "application/yaml"];
    let mime = config.get("responseMimeType").map(|at| at.one_of(&types)).transpose()?;
    let (schema, json_schema) = (config.get("responseSchema"), config.get("responseJsonSchema"));
    if schema.is_some() && json_schema.is_some() {
        return Err(config.wrong("only one of response_schema and response_json_schema may be set"));
    }
    if let Some(schema) = &schema {
        schema::check(schema)?;
    }
    asked.schema = schema.or(json_schema).map(|at| at.value.clone());
    if asked.schema.is_some() && !matches!(mime, Some("application/json" | "text/x.enum")) {
        let message = "response_schema is only supported when response mimetype is set to application/json or \
                       text/x.enum\n";
        return Err(config.wrong(message));
    }
    asked.json = mime == Some("application/json");
    Ok(())
}
