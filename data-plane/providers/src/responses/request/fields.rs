//! Taking typed fields out of a JSON object, with errors that name the field.

use serde_json::{Map, Number, Value};

use crate::exchange::Field;

/// A JSON object and its place in the request.
pub(super) struct Object {
    /// `input[2]`; empty for the request itself.
    pub(super) place: String,
    /// What has not been taken yet.
    pub(super) rest: Map<String, Value>,
}

impl Object {
    /// `value`, which must be an object.
    pub(super) fn new(place: impl Into<String>, value: Value) -> Result<Self, Field> {
        let place = place.into();
        match value {
            Value::Object(rest) => Ok(Self { place, rest }),
            _ => Err(Field::new(place, "must be an object")),
        }
    }

    /// Where the field of this name is.
    pub(super) fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// An error about the field of this name.
    pub(super) fn wrong(&self, name: &str, reason: impl Into<String>) -> Field {
        Field::new(self.place_of(name), reason)
    }

    /// Whatever the field holds; `null` is nothing.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.shift_remove(name).filter(|value| !value.is_null())
    }

    /// A string.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Field> {
        self.typed(name, "must be a string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// A string that must be there.
    pub(super) fn required_string(&mut self, name: &str) -> Result<String, Field> {
        self.string(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, Field> {
        self.typed(name, "must be true or false", |value| value.as_bool())
    }

    /// A number.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<Number>, Field> {
        self.typed(name, "must be a number", |value| match value {
            Value::Number(number) => Some(number),
            _ => None,
        })
    }

    /// A whole number from 0.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u64>, Field> {
        self.typed(name, "must be a whole number", |value| value.as_u64())
    }

    /// A list.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Field> {
        self.typed(name, "must be a list", |value| match value {
            Value::Array(items) => Some(items),
            _ => None,
        })
    }

    /// An object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Field> {
        let place = self.place_of(name);
        self.take(name).map(|value| Self::new(place, value)).transpose()
    }

    fn typed<T>(
        &mut self,
        name: &str,
        reason: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Field> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.wrong(name, reason)),
        }
    }
}
