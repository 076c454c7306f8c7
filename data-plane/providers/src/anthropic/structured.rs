//! Structured output: natively where it can be, else by the hidden tool (see [`json_tool`]).
//!
//! The rule: `output_config.format` when the vendor's parameters list `schema`, the model knows it, and the schema is one
//! that the service takes (docs: "Structured outputs", "JSON Schema limitations": closed objects, no bounds on numbers
//! and lengths). Any other schema, and "any JSON object", for which there is no native way, becomes the hidden tool.

use penstock_model::vendor::{JsonOutput, Wire};
use serde_json::{Map, Value};

use super::model;
use crate::dialect::TargetFacts;
use crate::exchange::{Format, Request, json_tool};

/// How an answer's form is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Structured {
    /// Not at all.
    No,
    /// With this schema in `output_config.format`.
    Native(Value),
    /// With a tool of this name.
    Tool(String),
}

/// Does the target hold answers and arguments to schemas?
pub(super) fn keeps_schemas(target: &TargetFacts<'_>) -> bool {
    target.vendor.parameters.json.contains(&JsonOutput::Schema) && model::keeps_schemas(target.model)
}

/// Decides.
pub(super) fn plan(request: &Request, target: &TargetFacts<'_>) -> Structured {
    match &request.output.format {
        None | Some(Format::Text) => Structured::No,
        Some(Format::JsonSchema(schema)) if keeps_schemas(target) => {
            // A client of this dialect knows what the service takes.
            let native = if request.wire == Wire::Anthropic {
                Some(schema.schema.clone())
            } else {
                closed(&schema.schema)
            };
            native.map_or_else(|| Structured::Tool(json_tool::name(request)), Structured::Native)
        }
        Some(Format::JsonSchema(_) | Format::JsonObject) => Structured::Tool(json_tool::name(request)),
    }
}

/// Keywords that the service refuses.
const REFUSED: [&str; 19] = [
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// The schema with every object closed, which it must say; `None` when it cannot be written so.
fn closed(schema: &Value) -> Option<Value> {
    let Value::Object(fields) = schema else { return None };
    let is_object =
        fields.get("type").is_some_and(|kind| kind == "object") || fields.contains_key("properties");
    let open = fields.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
    let recursive = fields.get("$ref").is_some_and(|target| target == "#");
    let shapeless = is_object && !fields.contains_key("properties");
    if open || recursive || shapeless || REFUSED.iter().any(|word| fields.contains_key(*word)) {
        return None;
    }
    let mut out = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => Value::Object(
                named
                    .iter()
                    .map(|(name, schema)| Some((name.clone(), closed(schema)?)))
                    .collect::<Option<_>>()?,
            ),
            ("items", schema) => closed(schema)?,
            ("anyOf" | "allOf", Value::Array(schemas)) => {
                Value::Array(schemas.iter().map(closed).collect::<Option<_>>()?)
            }
            (_, other) => other.clone(),
        };
        out.insert(name.clone(), value);
    }
    if is_object {
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn open_objects_are_closed_at_every_depth() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "c": {"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]}},
            "$defs": {"d": {"type": "object", "properties": {}, "additionalProperties": false}}});
        let closed = closed(&schema).unwrap();
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["properties"]["a"]["items"]["additionalProperties"], false);
        assert_eq!(super::closed(&closed).as_ref(), Some(&closed));
    }

    #[test]
    fn a_schema_that_the_service_refuses_is_not_written_natively() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {"child": {"$ref": "#"}}}),
            json!(true),
        ] {
            assert_eq!(closed(&schema), None, "{schema}");
        }
        let property = json!({"type": "object", "properties": {"minimum": {"type": "integer"}}});
        assert!(closed(&property).is_some(), "a property may be called like a keyword");
    }
}
