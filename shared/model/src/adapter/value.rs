//! Values between JSON and CEL.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cel::Value as Cel;
use cel::objects::{Key, Map};
use http::HeaderMap;
use serde_json::{Number, Value};

/// Integers are `int` where they fit, else `uint`: in CEL the two do not mix.
pub(super) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => number_to_cel(number),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (Key::from(name.as_str()), to_cel(value)));
            Cel::Map(Map { map: Arc::new(members.collect()) })
        }
    }
}

fn number_to_cel(number: &Number) -> Cel {
    if let Some(number) = number.as_i64() {
        return Cel::Int(number);
    }
    match number.as_u64() {
        Some(number) => Cel::UInt(number),
        None => number.as_f64().map_or(Cel::Null, Cel::Float),
    }
}

/// The reverse. Members are sorted, for maps of CEL have no order.
///
/// # Errors
/// What it is that JSON cannot hold.
pub(super) fn to_json(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => Value::Bool(*value),
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => {
            Number::from_f64(*number).map(Value::Number).ok_or_else(|| format!("the number {number}"))?
        }
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let mut members = BTreeMap::new();
            for (key, value) in map.map.iter() {
                members.insert(name(key), to_json(value)?);
            }
            Value::Object(members.into_iter().collect())
        }
        other => return Err(format!("a value of type {}", other.type_of())),
    })
}

fn name(key: &Key) -> String {
    match key {
        Key::Int(key) => key.to_string(),
        Key::Uint(key) => key.to_string(),
        Key::Bool(key) => key.to_string(),
        Key::String(key) => key.as_str().to_owned(),
    }
}

/// A value within a text.
pub(super) fn push_text(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(part) => text.push_str(part),
        other => text.push_str(&other.to_string()),
    }
}

/// Headers by their lower-case names; the first value of each.
pub(super) fn headers(headers: &HeaderMap) -> Cel {
    let texts = headers.keys().filter_map(|name| Some((name.as_str(), headers.get(name)?.to_str().ok()?)));
    Cel::from(texts.collect::<HashMap<&str, &str>>())
}
