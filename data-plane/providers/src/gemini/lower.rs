//! JSON Schema to the older `Schema` of this dialect, a subset of OpenAPI's, and back.
//!
//! One keyword that `Schema` does not know, at any depth of any tool, makes the service refuse the request (TR-06).
//! Lowering resolves local references (a cycle ends in an object without properties), turns `null` in unions into
//! `nullable`, joins `allOf`, and removes the keywords that are left; what it removes it names, but for those that say
//! nothing of the value (`$schema`, `$id`, `$defs`, `$comment`).
//!
//! The subset is that of the reference of `Schema` (Gemini API v1beta).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// A schema that has more than this, once its references are resolved, is cut.
const MAX_NODES: usize = 4096;

/// What is deeper than this, once references are resolved, is cut.
const MAX_DEPTH: usize = 64;

/// Keywords that are taken as they are.
const KEPT: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "default",
    "example",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Keywords whose loss changes nothing.
const SILENT: [&str; 7] =
    ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "propertyOrdering"];

/// What the service takes in `format`.
const FORMATS: [&str; 6] = ["enum", "date-time", "float", "double", "int32", "int64"];

/// A schema as the service takes it.
#[derive(Debug, PartialEq)]
pub(super) struct Lowered {
    /// The schema.
    pub(super) schema: Value,
    /// What it no longer says, each with its place: `.properties.a.uniqueItems`.
    pub(super) removed: Vec<String>,
}

/// Lowers a JSON Schema.
pub(super) fn lower(schema: &Value) -> Lowered {
    let mut lowering = Lowering { root: schema, open: Vec::new(), depth: 0, nodes: 0, removed: Vec::new() };
    let schema = Value::Object(lowering.schema(schema, ""));
    let mut seen = HashSet::new();
    lowering.removed.retain(|path| seen.insert(path.clone()));
    Lowered { schema, removed: lowering.removed }
}

struct Lowering<'a> {
    root: &'a Value,
    /// References that are being resolved.
    open: Vec<&'a str>,
    depth: usize,
    nodes: usize,
    removed: Vec<String>,
}

impl<'a> Lowering<'a> {
    fn schema(&mut self, schema: &'a Value, path: &str) -> Map<String, Value> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || self.depth == MAX_DEPTH {
            self.removed.push(path.to_owned());
            return Map::new();
        }
        self.depth += 1;
        let lowered = self.keywords(schema, path);
        self.depth -= 1;
        lowered
    }

    fn keywords(&mut self, schema: &'a Value, path: &str) -> Map<String, Value> {
        // `true` allows anything, as does a schema that says nothing.
        let Value::Object(keywords) = schema else { return Map::new() };
        let mut out = match keywords.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.reference(reference, path),
            None => Map::new(),
        };
        for (keyword, value) in keywords {
            self.keyword(keyword, value, path, &mut out);
        }
        self.types(keywords, path, &mut out);
        finish(&mut out);
        out
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value, path: &str, out: &mut Map<String, Value>) {
        let here = || format!("{path}.{keyword}");
        match keyword {
            "$ref" | "type" => {}
            "properties" => {
                let lowered: Map<String, Value> = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, schema)| {
                        (
                            name.clone(),
                            Value::Object(self.schema(schema, &format!("{path}.properties.{name}"))),
                        )
                    })
                    .collect();
                merge_object(out, "properties", lowered);
            }
            "required" => merge_list(out, "required", value),
            "items" if value.is_array() => self.removed.push(here()),
            "items" => {
                let items = self.schema(value, &here());
                out.insert("items".to_owned(), Value::Object(items));
            }
            "anyOf" | "oneOf" => self.union(value, &here(), out),
            "allOf" => {
                for (index, part) in value.as_array().into_iter().flatten().enumerate() {
                    let part = self.schema(part, &format!("{path}.allOf[{index}]"));
                    merge(out, part);
                }
            }
            "enum" => self.choices(value, here(), out),
            "const" => self.choices(&json!([value]), here(), out),
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            _ if KEPT.contains(&keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            _ if SILENT.contains(&keyword) => {}
            _ => self.removed.push(here()),
        }
    }

    /// What a local reference stands for; one within itself is any object.
    fn reference(&mut self, reference: &'a str, path: &str) -> Map<String, Value> {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        match target {
            Some(target) if !self.open.contains(&reference) => {
                self.open.push(reference);
                let lowered = self.schema(target, path);
                self.open.pop();
                lowered
            }
            Some(_) => {
                self.removed.push(format!("{path}.$ref"));
                Map::from_iter([("type".to_owned(), "OBJECT".into())])
            }
            None => {
                self.removed.push(format!("{path}.$ref"));
                Map::new()
            }
        }
    }

    /// `type`: one name, or a list of which `null` becomes `nullable` and several others a union.
    fn types(&mut self, keywords: &Map<String, Value>, path: &str, out: &mut Map<String, Value>) {
        let names: Vec<&str> = match keywords.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        if names.iter().any(|name| name.eq_ignore_ascii_case("null")) {
            out.insert("nullable".to_owned(), true.into());
        }
        let names: Vec<String> = names
            .iter()
            .filter(|name| !name.eq_ignore_ascii_case("null"))
            .map(|name| name.to_ascii_uppercase())
            .collect();
        match names.as_slice() {
            [] if out.contains_key("type") || out.contains_key("anyOf") => {}
            // Nothing but null.
            [] => drop(out.insert("type".to_owned(), "NULL".into())),
            [name] => drop(out.insert("type".to_owned(), name.as_str().into())),
            _ if out.contains_key("anyOf") => self.removed.push(format!("{path}.type")),
            several => {
                let alternatives = several.iter().map(|name| alternative(name, out)).collect();
                for keyword in ["type", "properties", "required", "items", "enum", "format", "pattern"] {
                    out.remove(keyword);
                }
                out.insert("anyOf".to_owned(), alternatives);
            }
        }
    }

    /// `anyOf` and `oneOf`, of which the service knows the first.
    fn union(&mut self, value: &'a Value, here: &str, out: &mut Map<String, Value>) {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_null = |schema: &&Value| schema["type"] == "null";
        if all.iter().any(|schema| is_null(&schema)) {
            out.insert("nullable".to_owned(), true.into());
        }
        let kept = all.iter().enumerate().filter(|(_, schema)| !is_null(schema));
        let mut lowered: Vec<Map<String, Value>> =
            kept.map(|(index, schema)| self.schema(schema, &format!("{here}[{index}]"))).collect();
        match (lowered.len(), out.contains_key("anyOf")) {
            (0, _) => {}
            (1, _) => merge(out, lowered.remove(0)),
            (_, false) => {
                out.insert("anyOf".to_owned(), lowered.into_iter().map(Value::Object).collect());
            }
            (_, true) => self.removed.push(here.to_owned()),
        }
    }

    /// `enum`, which the service knows for strings.
    fn choices(&mut self, value: &Value, here: String, out: &mut Map<String, Value>) {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.iter().any(Value::is_null) {
            out.insert("nullable".to_owned(), true.into());
        }
        let kept: Vec<&Value> = all.iter().filter(|one| !one.is_null()).collect();
        if !kept.is_empty() && kept.iter().all(|one| one.is_string()) {
            out.insert("enum".to_owned(), json!(kept));
            out.entry("type").or_insert("STRING".into());
        } else if !kept.is_empty() {
            self.removed.push(here);
        }
    }
}

/// One type of several, with the keywords that speak of it.
fn alternative(name: &str, out: &Map<String, Value>) -> Value {
    let keywords: &[&str] = match name {
        "OBJECT" => &["properties", "required"],
        "ARRAY" => &["items"],
        "STRING" => &["enum", "format", "pattern"],
        _ => &[],
    };
    let mut one = Map::from_iter([("type".to_owned(), name.into())]);
    for keyword in keywords {
        if let Some(value) = out.get(*keyword) {
            one.insert((*keyword).to_owned(), value.clone());
        }
    }
    finish(&mut one);
    Value::Object(one)
}

/// What the service wants of every schema: `items` in an array, in `required` only what is in `properties`, and a type.
fn finish(out: &mut Map<String, Value>) {
    if !out.contains_key("type") && out.contains_key("properties") {
        out.insert("type".to_owned(), "OBJECT".into());
    }
    if !out.contains_key("type") && out.contains_key("items") {
        out.insert("type".to_owned(), "ARRAY".into());
    }
    if out.get("type").is_some_and(|name| name == "ARRAY") && !out.contains_key("items") {
        out.insert("items".to_owned(), json!({ "type": "STRING" }));
    }
    let known = |out: &Map<String, Value>, name: &Value| {
        let properties = out.get("properties").and_then(Value::as_object);
        properties.zip(name.as_str()).is_some_and(|(properties, name)| properties.contains_key(name))
    };
    if let Some(Value::Array(required)) = out.get("required") {
        let kept: Vec<Value> = required.iter().filter(|name| known(out, name)).cloned().collect();
        if kept.is_empty() {
            out.remove("required")
        } else {
            out.insert("required".to_owned(), kept.into())
        };
    }
}

/// Adds `other`'s keywords; those that are there already stay.
fn merge(out: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => merge_object(out, &keyword, properties),
            ("required", value) => merge_list(out, &keyword, &value),
            (_, value) => drop(out.entry(keyword).or_insert(value)),
        }
    }
}

fn merge_object(out: &mut Map<String, Value>, keyword: &str, other: Map<String, Value>) {
    if let Value::Object(all) = out.entry(keyword).or_insert_with(|| Map::new().into()) {
        all.extend(other);
    }
}

fn merge_list(out: &mut Map<String, Value>, keyword: &str, other: &Value) {
    if let (Value::Array(all), Some(other)) = (out.entry(keyword).or_insert(json!([])), other.as_array()) {
        let new: Vec<Value> = other.iter().filter(|one| !all.contains(one)).cloned().collect();
        all.extend(new);
    }
}

/// A `Schema` of a client of this dialect as JSON Schema.
pub(super) fn raise(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (keyword, value) in keywords {
        let keyword = super::fields::camel_case(keyword);
        let value = match (keyword.as_str(), value) {
            ("nullable" | "propertyOrdering", _) => continue,
            ("type", Value::String(name)) => name.to_ascii_lowercase().into(),
            ("properties", Value::Object(all)) => {
                all.iter().map(|(name, schema)| (name.clone(), raise(schema))).collect::<Map<_, _>>().into()
            }
            ("items", schema) => raise(schema),
            ("anyOf", Value::Array(all)) => all.iter().map(raise).collect(),
            // Numbers of 64 bits may be written as text.
            (
                "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties",
                Value::String(text),
            ) => text.parse::<u64>().map_or_else(|_| value.clone(), Value::from),
            _ => value.clone(),
        };
        out.insert(keyword, value);
    }
    if keywords.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(name) = out.get_mut("type") {
            *name = json!([name.take(), "null"]);
        }
        if let Some(Value::Array(choices)) = out.get_mut("enum") {
            choices.push(Value::Null);
        }
        if let Some(Value::Array(all)) = out.get_mut("anyOf") {
            all.push(json!({ "type": "null" }));
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests;
