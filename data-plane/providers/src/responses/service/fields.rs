//! A JSON object in the making, whose values are written once.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, Box<RawValue>)>);

impl<'a> Fields<'a> {
    /// Sets a field; one of this name that is there already is replaced in its place.
    pub(super) fn set(&mut self, name: impl Into<Cow<'a, str>>, value: impl Serialize) {
        let name = name.into();
        let value = to_raw_value(&value).expect("strings, numbers and JSON always serialise");
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets a field if there is something to set.
    pub(super) fn set_some(&mut self, name: impl Into<Cow<'a, str>>, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Takes a field out.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// Is there no field?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object.
    pub(super) fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self).expect("written JSON can be written").into()
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
