//! The members of a JSON object, each with its value as it stands.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exchange::Field;
use crate::json::{JsonStr, clip};

/// Longest reason that is handed on: serde quotes the value that it refuses.
const MAX_REASON: usize = 200;

/// The members in their order.
pub(in crate::openai) struct Members<'a>(pub(in crate::openai) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object; `path` names it in errors.
    pub(in crate::openai) fn read(json: &'a str, path: &str) -> Result<Self, Field> {
        serde_json::from_str(json).map_err(|error| wrong(path, &error))
    }

    /// A member that is there and not `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, raw)| key == name && raw.get() != "null").map(|(_, raw)| *raw)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(serde::Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut members = Vec::with_capacity(8);
                while let Some((Key(name), raw)) = map.next_entry()? {
                    members.push((name, raw));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The elements of an array.
pub(super) fn elements<'a>(raw: &'a RawValue, path: &str) -> Result<Vec<&'a RawValue>, Field> {
    serde_json::from_str(raw.get()).map_err(|error| wrong(path, &error))
}

/// A value of some type.
pub(super) fn typed<T: DeserializeOwned>(raw: &RawValue, path: &str) -> Result<T, Field> {
    serde_json::from_str(raw.get()).map_err(|error| wrong(path, &error))
}

/// A string. Half of a surrogate pair, which cut emoji leave behind, becomes U+FFFD.
pub(super) fn string(raw: &RawValue, path: &str) -> Result<String, Field> {
    match JsonStr::new(raw) {
        Some(text) => Ok(text.decode().into_owned()),
        None => Err(Field::new(path, "must be a string")),
    }
}

/// Any value. Strings with half a surrogate pair, which `serde_json` refuses, are let through as [`string`] does.
pub(super) fn value(raw: &RawValue, path: &str) -> Result<Value, Field> {
    if raw.get().starts_with('"') { string(raw, path).map(Value::String) } else { typed(raw, path) }
}

fn wrong(path: &str, error: &serde_json::Error) -> Field {
    let full = error.to_string();
    let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
    Field::new(path, clip(reason, MAX_REASON))
}
