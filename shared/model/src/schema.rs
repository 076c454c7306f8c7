//! The JSON Schema of the policy document, and the reference page made from it.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::document::Document;

/// The JSON Schema (draft 2020-12) of a policy document, for editors and for [`crate::load`] alike.
#[must_use]
pub fn json_schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>().to_value()
}
