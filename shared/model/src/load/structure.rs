//! Checks a value against the JSON Schema, and mends what does not fit.
//!
//! Mending lets the checks after this one run on the rest of the document, so that one run finds every problem: what is
//! unknown is removed, what is missing or of the wrong kind is replaced by a sample from the schema. [`Report`] notes
//! those paths as broken, and nobody sees the mended value: the document is refused.

use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::report::Report;
use super::source::escape;
use crate::problem::{Finding, did_you_mean};

static SCHEMA: LazyLock<Value> = LazyLock::new(crate::schema::json_schema);
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&SCHEMA).expect("the schema of our own types is valid"));

/// A path and what to put there; nothing to remove it.
type Repair = (String, Option<Value>);

/// Reports every place where `value` does not fit the schema, and mends it.
pub(crate) fn check(value: &mut Value, report: &mut Report) {
    let mut repairs = Vec::new();
    for error in VALIDATOR.iter_errors(value) {
        explain(&error, report, &mut repairs);
    }
    for (path, replacement) in repairs {
        report.mark_broken(&path);
        mend(value, &path, replacement);
    }
}

fn mend(value: &mut Value, path: &str, replacement: Option<Value>) {
    let (parent, token) = path.rsplit_once('/').unwrap_or(("", ""));
    let token = token.replace("~1", "/").replace("~0", "~");
    match (replacement, value.pointer_mut(path).is_some()) {
        (Some(replacement), true) => {
            if let Some(place) = value.pointer_mut(path) {
                *place = replacement;
            }
        }
        (Some(replacement), false) => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
                fields.insert(token, replacement);
            }
        }
        (None, _) => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
                fields.remove(&token);
            }
        }
    }
}

fn explain(error: &ValidationError<'_>, report: &mut Report, repairs: &mut Vec<Repair>) {
    let path = error.instance_path().as_str();
    let schema = schema_of(error);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected {
                let path = format!("{path}/{}", escape(name));
                report.key_error(&path, unknown_field(name, schema));
                repairs.push((path, None));
            }
            return;
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let field = &schema["properties"][name];
            let path = format!("{path}/{}", escape(name));
            if !is_misspelt(name, error.instance(), schema) {
                report.error(&path, Finding::new(format!("the field `{name}` is missing"), hint_for(field)));
            }
            repairs.push((path, Some(sample(field))));
            return;
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let wrong_kind = |branch: &&Vec<ValidationError<'static>>| {
                !branch.iter().any(|error| is_type_error(error) && error.instance_path().as_str() == path)
            };
            let candidates: Vec<_> = context.iter().filter(wrong_kind).collect();
            if let (false, [only]) = (is_choice(context), candidates.as_slice()) {
                for error in *only {
                    explain(error, report, repairs);
                }
                return;
            }
            report.error(path, wrong_branch(error.instance(), context));
        }
        ValidationErrorKind::Type { kind } => {
            report.error(path, wrong_type(error.instance(), kinds(kind), schema))
        }
        ValidationErrorKind::Minimum { limit } => {
            report.error(path, Finding::new(format!("must be at least {}", number(limit)), hint_for(schema)));
        }
        ValidationErrorKind::Maximum { limit } => {
            report.error(path, Finding::new(format!("must be at most {}", number(limit)), hint_for(schema)));
        }
        // The schema uses no other keyword; should it ever, this is plain enough and repeats no value.
        _ => report.error(path, Finding::new(error.masked().to_string(), hint_for(schema))),
    }
    repairs.push((path.to_owned(), Some(sample(schema))));
}

/// The part of the schema that `error` is about.
fn schema_of(error: &ValidationError<'_>) -> &'static Value {
    let path = error.schema_path().as_str();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    SCHEMA.pointer(parent).unwrap_or(&Value::Null)
}

fn unknown_field(name: &str, schema: &Value) -> Finding {
    let fields: Vec<&str> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
    let hint = did_you_mean(name, fields.iter().copied())
        .unwrap_or_else(|| format!("known here: {}", fields.join(", ")));
    Finding::new(format!("there is no field `{name}`"), hint)
}

/// Is there an unknown field whose hint will be `name`?
fn is_misspelt(name: &str, value: &Value, schema: &Value) -> bool {
    let mut unknown =
        value.as_object().into_iter().flatten().filter(|(key, _)| schema["properties"][key].is_null());
    unknown.any(|(key, _)| did_you_mean(key, [name]).is_some())
}

/// Is it one of several constants?
fn is_choice(branches: &[Vec<ValidationError<'static>>]) -> bool {
    !branches.is_empty() && branches.iter().all(|branch| choice(branch).is_some())
}

fn choice(branch: &[ValidationError<'static>]) -> Option<String> {
    branch.iter().find_map(|error| match error.kind() {
        ValidationErrorKind::Constant { expected_value } => expected_value.as_str().map(str::to_owned),
        _ => None,
    })
}

fn is_type_error(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Type { .. })
}

/// No branch of a choice fits, and none comes near.
fn wrong_branch(value: &Value, branches: &[Vec<ValidationError<'static>>]) -> Finding {
    if is_choice(branches) {
        let choices: Vec<String> = branches.iter().filter_map(|branch| choice(branch)).collect();
        let near = did_you_mean(value.as_str().unwrap_or_default(), choices.iter().map(String::as_str));
        let message = match choices.as_slice() {
            [only] => format!("must be `{only}`"),
            all => format!("must be one of `{}`", all.join("`, `")),
        };
        return Finding::new(
            message,
            near.unwrap_or_else(|| "nothing else is known to this version".to_owned()),
        );
    }
    let kinds = branches.iter().flatten().filter_map(|error| match error.kind() {
        ValidationErrorKind::Type { kind } => Some(kinds(kind)),
        _ => None,
    });
    wrong_type(value, kinds.flatten().collect(), &Value::Null)
}

fn kinds(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(kind) => vec![*kind],
        TypeKind::Multiple(kinds) => kinds.iter().collect(),
    }
}

fn wrong_type(value: &Value, expected: Vec<JsonType>, schema: &Value) -> Finding {
    let expected: Vec<JsonType> = expected.into_iter().filter(|kind| *kind != JsonType::Null).collect();
    let found = match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    let wanted: Vec<&str> = expected.iter().map(|kind| describe(*kind)).collect();
    // The value itself is not repeated: it may be a secret in the wrong place.
    let hint = match (value, expected.first()) {
        (Value::Null, Some(JsonType::Object)) => "write {} or give it fields".to_owned(),
        (Value::Null, _) => "give it a value, or leave the field out where it is optional".to_owned(),
        (_, Some(JsonType::String)) => match &schema["examples"][0] {
            Value::Null => "put it in quotes".to_owned(),
            example => format!("for example {example}"),
        },
        (Value::String(_), Some(JsonType::Boolean)) => "write true or false, without quotes".to_owned(),
        (Value::String(_), Some(JsonType::Integer | JsonType::Number)) => {
            "write it without quotes".to_owned()
        }
        (_, Some(JsonType::Array)) => "put it in brackets, or on lines that begin with `- `".to_owned(),
        _ => hint_for(schema),
    };
    Finding::new(format!("must be {}, not {found}", wanted.join(" or ")), hint)
}

fn describe(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "empty",
        JsonType::Number => "a number",
        JsonType::Object => "a map",
        JsonType::String => "text",
    }
}

/// The first sentence of what the schema says about a field.
fn hint_for(schema: &Value) -> String {
    let description = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    description.split_inclusive(". ").next().unwrap_or_default().trim().to_owned()
}

fn number(limit: &Value) -> String {
    limit.as_f64().map_or_else(|| limit.to_string(), |limit| limit.to_string())
}

/// A value that fits `schema`.
fn sample(schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return sample(SCHEMA.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null));
    }
    for ready in [&schema["default"], &schema["const"], &schema["examples"][0], &schema["minimum"]] {
        if !ready.is_null() {
            return ready.clone();
        }
    }
    for branches in [&schema["oneOf"], &schema["anyOf"]] {
        if let Some(branch) = branches.get(0) {
            return sample(branch);
        }
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            required.map(|name| (name.to_owned(), sample(&schema["properties"][name]))).collect()
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") => Value::String(String::new()),
        Some("boolean") => Value::Bool(false),
        Some("integer" | "number") => Value::from(0),
        _ => Value::Null,
    }
}
