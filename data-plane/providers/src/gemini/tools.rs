//! `tools` and `toolConfig`, read and written.

use penstock_model::vendor::Wire;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::fields::{Fields, join, typed};
use super::lower::{lower, raise};
use crate::exchange::{Dropped, Field, Request, Tool, ToolChoice, ToolKind, Unwritable};

const CONFIG: &str = "toolConfig";
const CALLING: &str = "functionCallingConfig";

/// Reads `tools`: functions one by one, the service's own tools each as an object with its name.
pub(super) fn read(raw: &RawValue, request: &mut Request) -> Result<(), Field> {
    let tools: Vec<&RawValue> = typed(raw, "tools")?;
    for (index, raw) in tools.into_iter().enumerate() {
        let place = format!("tools[{index}]");
        let mut fields = Fields::read(raw, &place)?;
        let declarations: Vec<&RawValue> =
            fields.take_as("functionDeclarations", &place)?.unwrap_or_default();
        for (at, raw) in declarations.into_iter().enumerate() {
            let place = format!("{place}.functionDeclarations[{at}]");
            let tool = read_function(raw, &place, &mut request.extra)?;
            request.tools.push(tool);
        }
        let mut own = Map::new();
        fields.rest("", &mut own);
        for (name, value) in own {
            let kind = ToolKind::Other(json!({ name.as_str(): value }));
            request.tools.push(Tool { name, description: None, kind, cache: None });
        }
    }
    Ok(())
}

fn read_function(raw: &RawValue, place: &str, extra: &mut Map<String, Value>) -> Result<Tool, Field> {
    let mut function = Fields::read(raw, place)?;
    let Some(name) = function.take_as::<String>("name", place)? else {
        return Err(Field::new(join(place, "name"), "is missing"));
    };
    let description = function.take_as("description", place)?;
    let full: Option<Value> = function.take_as("parametersJsonSchema", place)?;
    let old: Option<Value> = function.take_as("parameters", place)?;
    let parameters = full.or_else(|| old.as_ref().map(raise));
    function.rest(place, extra);
    Ok(Tool { name, description, kind: ToolKind::Function { parameters, strict: None }, cache: None })
}

/// Reads `toolConfig`. `VALIDATED` (text, or calls that follow their schema) is as free as `AUTO`; it is kept in `extra`
/// for services that know it.
pub(super) fn read_config(raw: &RawValue, request: &mut Request) -> Result<(), Field> {
    let mut config = Fields::read(raw, CONFIG)?;
    if let Some(raw) = config.take(CALLING) {
        let place = join(CONFIG, CALLING);
        let mut calling = Fields::read(raw, &place)?;
        let mode: Option<String> = calling.take_as("mode", &place)?;
        let mut names: Vec<String> = calling.take_as("allowedFunctionNames", &place)?.unwrap_or_default();
        request.tool_choice = match (mode.as_deref().unwrap_or("AUTO"), names.len()) {
            ("NONE", _) => Some(ToolChoice::None),
            ("ANY", 0) => Some(ToolChoice::Required),
            ("ANY", 1) => names.pop().map(ToolChoice::Tool),
            ("ANY", _) => Some(ToolChoice::Allowed { required: true, names }),
            ("VALIDATED", 0) => {
                request.extra.insert(place.clone(), json!({ "mode": "VALIDATED" }));
                Some(ToolChoice::Auto)
            }
            ("VALIDATED" | "AUTO", 1..) => Some(ToolChoice::Allowed { required: false, names }),
            ("AUTO" | "MODE_UNSPECIFIED" | "", _) => Some(ToolChoice::Auto),
            (other, _) => {
                let reason = format!("`{}` is no mode that is known", crate::json::clip(other, 50));
                return Err(Field::new(join(&place, "mode"), reason));
            }
        };
        calling.rest(&place, &mut request.extra);
    }
    config.rest(CONFIG, &mut request.extra);
    Ok(())
}

/// Writes `tools`. `full_schema`: the service takes JSON Schema as it is.
pub(super) fn write(
    request: &Request,
    full_schema: bool,
    dropped: &mut Dropped,
) -> Result<Vec<Value>, Unwritable> {
    let mut functions = Vec::new();
    let mut own = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        if tool.cache.is_some() {
            dropped.add("cache_control");
        }
        match &tool.kind {
            ToolKind::Function { parameters, strict } => {
                if strict == &Some(true) {
                    dropped.add(format!("tools[{index}].strict"));
                }
                functions.push(write_function(tool, index, parameters.as_ref(), full_schema, dropped));
            }
            ToolKind::Other(value) if request.wire == Wire::Gemini => own.push(value.clone()),
            ToolKind::Other(_) => {
                let name = crate::json::clip(&tool.name, 100);
                let reason = format!("`{name}` is a tool of another vendor");
                return Err(Unwritable::Unsupported(Field::new(format!("tools[{index}]"), reason)));
            }
        }
    }
    if !functions.is_empty() {
        own.insert(0, json!({ "functionDeclarations": functions }));
    }
    Ok(own)
}

fn write_function(
    tool: &Tool,
    index: usize,
    parameters: Option<&Value>,
    full_schema: bool,
    dropped: &mut Dropped,
) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), tool.name.as_str().into());
    if let Some(description) = &tool.description {
        function.insert("description".to_owned(), description.as_str().into());
    }
    match parameters {
        Some(schema) if full_schema => {
            function.insert("parametersJsonSchema".to_owned(), schema.clone());
        }
        Some(schema) => {
            let lowered = lower(schema);
            for path in lowered.removed {
                dropped.add(format!("tools[{index}].parameters{path}"));
            }
            // An object without properties is refused here: no parameters are left out.
            if lowered.schema["properties"].as_object().is_some_and(|all| !all.is_empty()) {
                function.insert("parameters".to_owned(), lowered.schema);
            }
        }
        None => {}
    }
    Value::Object(function)
}

/// Writes `toolConfig.functionCallingConfig`; `None` when there is nothing to say.
pub(super) fn write_choice(request: &Request) -> Option<Value> {
    let calling = match request.tool_choice.as_ref()? {
        // Without tools, or by default, there is nothing to choose.
        _ if request.tools.is_empty() => return None,
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
        ToolChoice::Allowed { required: true, names } => {
            json!({ "mode": "ANY", "allowedFunctionNames": names })
        }
        // `AUTO` takes no list.
        ToolChoice::Allowed { required: false, names } => {
            json!({ "mode": "VALIDATED", "allowedFunctionNames": names })
        }
    };
    Some(calling)
}
