//! A small instance of a JSON Schema: what a tool is called with, and what structured output looks like.

use serde_json::{Map, Value, json};

/// Schemas may refer to themselves; deeper than this nothing is filled in any more.
const MAX_DEPTH: usize = 16;

/// The smallest instance that `schema` allows: required properties only, first of every choice. A text is the name of
/// its property, so that tests see which went where.
pub(crate) fn sample(schema: &Value) -> Value {
    Sampler { root: schema }.instance(schema, "value", MAX_DEPTH)
}

struct Sampler<'a> {
    root: &'a Value,
}

impl<'a> Sampler<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let pointer = reference.strip_prefix('#').unwrap_or_default();
        self.root.pointer(pointer).unwrap_or(schema)
    }

    fn instance(&self, schema: &'a Value, name: &str, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if depth == 0 {
            return Value::Null;
        }
        if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
            return value.clone();
        }
        if let Some(value) = schema.pointer("/enum/0") {
            return value.clone();
        }
        for choice in ["anyOf", "oneOf"] {
            let choices = schema.get(choice).and_then(Value::as_array);
            let not_null = |choice: &&Value| choice["type"] != "null";
            if let Some(first) = choices.and_then(|choices| choices.iter().find(not_null)) {
                return self.instance(first, name, depth - 1);
            }
        }
        match type_of(schema).as_str() {
            "object" => self.object(schema, depth),
            "array" => {
                let count = schema["minItems"].as_u64().unwrap_or(1).min(16);
                let item = &schema["items"];
                (0..count).map(|_| self.instance(item, name, depth - 1)).collect()
            }
            "integer" => json!(least(schema).ceil() as i64),
            "number" => json!(least(schema) + 0.5),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => json!(text(schema, name)),
        }
    }

    fn object(&self, schema: &'a Value, depth: usize) -> Value {
        let required = schema["required"].as_array();
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        let mut object = Map::new();
        for name in names {
            object.insert(name.to_owned(), self.instance(&schema["properties"][name], name, depth - 1));
        }
        Value::Object(object)
    }
}

/// In lower case, as Gemini writes it otherwise; the first that is not null where there are several.
fn type_of(schema: &Value) -> String {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null"),
        kind => Some(kind),
    };
    let guess = if schema.get("properties").is_some() { "object" } else { "string" };
    kind.and_then(Value::as_str).map_or_else(|| guess.to_owned(), str::to_lowercase)
}

fn least(schema: &Value) -> f64 {
    let above = schema["exclusiveMinimum"].as_f64().map(|bound| bound + 1.0);
    schema["minimum"].as_f64().or(above).unwrap_or(1.0)
}

fn text(schema: &Value, name: &str) -> String {
    let least = schema["minLength"].as_u64().unwrap_or(0).min(1000) as usize;
    match schema["format"].as_str() {
        Some("date") => "2026-01-01".to_owned(),
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        _ => format!("{name:-<least$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_properties_are_filled_at_every_depth() {
        let schema = json!({
            "type": "object", "required": ["city", "days", "units", "near", "tags", "limit"],
            "properties": {
                "city": {"type": "string"}, "days": {"type": "integer", "minimum": 3}, "other": {"type": "string"},
                "units": {"enum": ["c", "f"]}, "near": {"$ref": "#/$defs/P"},
                "tags": {"type": "array", "items": {"type": ["null", "string"]}},
                "limit": {"anyOf": [{"type": "null"}, {"type": "NUMBER"}]}
            },
            "$defs": {"P": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]}}
        });
        let expected = json!({
            "city": "city", "days": 3, "units": "c", "near": {"x": true}, "tags": ["tags"], "limit": 1.5
        });
        assert_eq!(sample(&schema), expected);
        assert_eq!(sample(&json!({"type": "object"})), json!({}));
    }

    #[test]
    fn a_schema_that_holds_itself_comes_to_an_end() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
        assert!(sample(&schema).is_object());
    }
}
