//! The JSON Schema of the policy document, and the reference page made from it.

mod reference;

use schemars::generate::SchemaSettings;
use serde_json::Value;

pub use reference::reference_markdown;

use crate::document::Document;

/// The JSON Schema (draft 2020-12) of a policy document, for editors and for [`crate::load`] alike.
#[must_use]
pub fn json_schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>().to_value()
}

/// The generated files of this crate: path from the root of the repository, and content.
#[must_use]
pub fn generated_files() -> Vec<(&'static str, String)> {
    let schema = format!("{:#}\n", json_schema());
    vec![("docs/reference/policy.schema.json", schema), ("docs/reference/policy.md", reference_markdown())]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_reference_is_what_the_types_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (path, expected) in generated_files() {
            let committed = fs::read_to_string(root.join(path)).unwrap_or_default();
            assert!(committed == expected, "{path} is out of date: run `make generate`");
        }
    }

    #[test]
    fn every_field_and_every_type_is_described() {
        fn check(path: &str, schema: &Value) {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, field) in properties {
                    assert!(field["description"].is_string(), "{path}/{name} has no description");
                }
            }
            for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
                assert!(definition["description"].is_string(), "{name} has no description");
                check(name, definition);
            }
        }
        check("", &json_schema());
    }
}
