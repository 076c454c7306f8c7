//! The reference page of the policy document, in Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use super::json_schema;
use crate::outcome::Outcome;
use crate::policy::CONTEXT_FIELDS;

const INTRODUCTION: &str = "\
<!-- Generated from the types in shared/model by `make generate`. Do not edit. -->

# The policy document

One document, in YAML 1.2 or JSON, says which services there are and which of them answers which request. The smallest:

```yaml
version: 1
capabilities:
  chat: {default: true}
backends:
  local:
    provider: openai
    base_url: http://127.0.0.1:8000/v1
    capabilities: [chat]
    models: [{name: qwen3-8b}]
routes:
  - name: default
```

`penstock policy validate FILE` reports every problem at once, with line and column; unknown fields are errors. The same check runs
when a policy is applied and again in every proxy. Editors that know JSON Schema take [policy.schema.json](policy.schema.json).

Names of capabilities, backends and routes have 1 to 63 lower-case letters, digits, dots, dashes and underscores, a letter or digit
first. Durations are a number and a unit (`250ms`, `2s`, `1m`), above zero and at most 24 hours; sizes likewise (`512KiB`, `8MiB`), at
most 1 GiB. A document has at most 4 MiB.
";

const POOLS: &str = "
## Which targets a route chooses from

A target is one model of one backend. For each capability, a route has a pool of targets:

- without `targets`: every backend that has the capability, with its first model;
- with `targets`: those whose backend has the capability; where none has it, all of them. What the list names wins over what a
  backend is said to be good at;
- a weight of 0 takes a target out before any of this.

A route with a `capability` has a pool for that one only. Every other route must have candidates for the default capability; for
another capability without candidates, the default's are taken.
";

const CONDITIONS: &str = "
## Conditions

A `condition` is an expression in [CEL](https://cel.dev) that gives `true` or `false`, for example
`stream && headers[\"x-tenant\"] == \"acme\"` or `hour >= 9 && hour < 18 && biz_type in [\"risk\", \"ocr\"]`. It has at most 2048 bytes. Unknown fields,
unknown functions and wrong types are found when the policy is validated. These are the fields:

| field | type | |
|---|---|---|
";

const OUTCOMES: &str = "
## Outcomes

Every attempt ends in one of these. *Failure*: counts in the breaker's `failure_ratio` and against the success rate. *Hard*: counts in
`consecutive_failures` as well. *Retried*: another target is tried, while the client has not seen a byte and `retry.attempts` allow.

| outcome | meaning | failure | hard | retried |
|---|---|---|---|---|
";

/// The reference page, generated from [`json_schema`], [`CONTEXT_FIELDS`] and [`Outcome`].
#[must_use]
pub fn reference_markdown() -> String {
    let schema = json_schema();
    let mut page = INTRODUCTION.to_owned();
    write_sections(&mut page, &schema, "", &schema);
    page.push_str(POOLS);
    page.push_str(CONDITIONS);
    for (name, kind, meaning) in CONTEXT_FIELDS {
        line(&mut page, format_args!("| `{name}` | {kind} | {meaning} |"));
    }
    page.push_str(OUTCOMES);
    for outcome in Outcome::ALL {
        let mark = |yes: bool| if yes { "yes" } else { "" };
        let (name, meaning) = (outcome.as_str(), outcome.description());
        let (failure, hard) = (mark(outcome.is_failure()), mark(outcome.is_hard_failure()));
        let retried = mark(outcome.is_retryable());
        line(&mut page, format_args!("| `{name}` | {meaning} | {failure} | {hard} | {retried} |"));
    }
    page
}

fn line(page: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(page, "{line}").expect("writing to a string cannot fail");
}

/// The section at `path`, and those its fields lead to.
fn write_sections(page: &mut String, schema: &Value, path: &str, section: &Value) {
    write_section(page, schema, path, section);
    for (name, field) in section["properties"].as_object().into_iter().flatten() {
        if let Some((path, section)) = subsection(schema, &join(path, name), field) {
            write_sections(page, schema, &path, section);
        }
    }
}

/// One map of fields: what it is, and a table.
fn write_section(page: &mut String, schema: &Value, path: &str, section: &Value) {
    let title = if path.is_empty() { "The document".to_owned() } else { format!("`{path}`") };
    line(page, format_args!("\n## {title}\n\n{}\n", text(section)));
    page.push_str("| field | type | default | |\n|---|---|---|---|\n");
    let required: Vec<&str> =
        section["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in section["properties"].as_object().into_iter().flatten() {
        let default = if required.contains(&name.as_str()) {
            "**required**".to_owned()
        } else {
            match &field["default"] {
                Value::Null => String::new(),
                Value::Object(fields) if !fields.is_empty() => "see there".to_owned(),
                Value::String(value) => format!("`{value}`"),
                value => format!("`{value}`"),
            }
        };
        let (kind, bounds) = (kind(schema, &join(path, name), field), bounds(field));
        line(
            page,
            format_args!(
                "| `{name}` | {kind}{bounds} | {default} | {}{} |",
                text(field),
                choices(schema, field)
            ),
        );
    }
}

/// The map of fields that a field is or holds, and its path.
fn subsection<'a>(schema: &'a Value, path: &str, field: &'a Value) -> Option<(String, &'a Value)> {
    let field = follow(schema, field);
    if field["properties"].is_object() {
        return Some((path.to_owned(), field));
    }
    if field["items"].is_object() {
        return subsection(schema, &format!("{path}[]"), &field["items"]);
    }
    if field["additionalProperties"].is_object() {
        return subsection(schema, &format!("{path}.NAME"), &field["additionalProperties"]);
    }
    None
}

/// Resolves a reference, and looks through "this or nothing".
fn follow<'a>(schema: &'a Value, field: &'a Value) -> &'a Value {
    if let Some(reference) = field["$ref"].as_str() {
        return schema.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
    }
    match field["anyOf"].as_array().map(Vec::as_slice) {
        Some([some, nothing]) if nothing["type"] == "null" => follow(schema, some),
        _ => field,
    }
}

/// The type of a field, with a link where it has a section of its own.
fn kind(schema: &Value, path: &str, field: &Value) -> String {
    let field = follow(schema, field);
    if let Some(branches) = field["anyOf"].as_array() {
        let kinds: Vec<String> = branches.iter().map(|branch| kind(schema, path, branch)).collect();
        return kinds.join(" or ");
    }
    if field["oneOf"].is_array() {
        return "choice".to_owned();
    }
    if field["properties"].is_object() {
        return format!("[fields](#{})", anchor(path));
    }
    let name = match &field["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    };
    match name {
        Some("array") => format!("list of {}", kind(schema, &format!("{path}[]"), &field["items"])),
        Some("object") => {
            format!("map of {}", kind(schema, &format!("{path}.NAME"), &field["additionalProperties"]))
        }
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    }
}

fn bounds(field: &Value) -> String {
    match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
        (Some(least), Some(most)) if least == most => String::new(),
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        _ => String::new(),
    }
}

/// The choices of an enumeration, each with what it means, and an example of free text.
fn choices(schema: &Value, field: &Value) -> String {
    let mut all = String::new();
    for choice in follow(schema, field)["oneOf"].as_array().into_iter().flatten() {
        let name = choice["const"].as_str().unwrap_or_default();
        all.push_str(&format!("<br>`{name}`: {}", text(choice)));
    }
    if let (Value::Null, Some(example)) = (&field["default"], field["examples"][0].as_str()) {
        all.push_str(&format!(" Example: `{example}`."));
    }
    all
}

/// A description on one line, fit for a table.
fn text(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The anchor that Markdown renderers give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    #[test]
    fn the_smallest_policy_of_the_page_loads() {
        let document =
            INTRODUCTION.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        assert_eq!(load(document).problems, []);
    }

    #[test]
    fn every_link_within_the_page_leads_to_a_heading() {
        let page = reference_markdown();
        let headings: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .map(|heading| anchor(&heading.replace('`', "")))
            .collect();
        let links: Vec<&str> = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.len() > 8, "{links:?}");
        for link in links {
            assert!(headings.iter().any(|heading| heading == link), "{link} not in {headings:?}");
        }
    }
}
