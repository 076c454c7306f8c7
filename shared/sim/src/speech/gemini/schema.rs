//! The part of JSON Schema that Gemini's own `Schema` type takes.

use crate::check::{At, Checked};

const KNOWN: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];
const TYPES: &[&str] =
    &["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL", "TYPE_UNSPECIFIED"];

/// Checks a schema at every depth.
pub(super) fn check(at: &At<'_>) -> Checked<()> {
    at.only(KNOWN)?;
    let kind = match at.get("type") {
        Some(kind) if kind.value.is_array() => {
            return Err(kind.wrong("Proto field is not repeating, cannot start list."));
        }
        Some(kind) => {
            let upper = kind.text()?.to_uppercase();
            if !TYPES.contains(&upper.as_str()) {
                return Err(kind.wrong("invalid type"));
            }
            upper
        }
        None => String::new(),
    };
    let values = at.texts_of("enum")?;
    if !values.is_empty() && kind != "STRING" {
        return Err(at.need("enum")?.wrong("only allowed for STRING type"));
    }
    if values.iter().any(String::is_empty) {
        return Err(at.need("enum")?.wrong("cannot be empty"));
    }
    if let Some(format) = at.get("format")
        && kind == "STRING"
        && !matches!(format.text()?, "enum" | "date-time")
    {
        return Err(format.wrong("only 'enum' and 'date-time' are supported for STRING type"));
    }
    if kind == "ARRAY" {
        check(&at.need("items")?)?;
    }
    let properties = at.get("properties");
    if let Some(properties) = &properties {
        for name in properties.object()?.keys() {
            check(&properties.need(name)?)?;
        }
        if kind == "OBJECT" && properties.object()?.is_empty() {
            return Err(properties.wrong("should be non-empty for OBJECT type"));
        }
    }
    for required in at.list_of("required")? {
        let name = required.text()?;
        if properties.as_ref().is_none_or(|properties| properties.get(name).is_none()) {
            return Err(required.wrong("property is not defined"));
        }
    }
    at.list_of("anyOf")?.iter().try_for_each(check)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_keyword_that_it_does_not_know_is_refused_at_every_depth() {
        let good = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "STRING"}}},
            "required": ["a"]});
        assert!(check(&At::root(&good)).is_ok());
        for bad in [
            json!({"type": "object", "$schema": "x", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/P"}}}),
            json!({"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": 0}}}),
            json!({"type": "array", "items": {"type": "string", "const": "a"}}),
            json!({"type": ["string", "null"]}),
            json!({"type": "integer", "enum": ["1"]}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "array"}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
        ] {
            assert!(check(&At::root(&bad)).is_err(), "{bad}");
        }
    }
}
