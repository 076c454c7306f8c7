//! Objects read member by member, with what nobody asked for left over.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exchange::Field;
use crate::json::clip;

/// The members of an object, their values still in the client's text. Names are in camelCase, however they were written.
pub(super) struct Fields<'a> {
    members: Vec<(String, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// Reads the object that stands at `place`.
    pub(super) fn read(raw: &'a RawValue, place: &str) -> Result<Self, Field> {
        let fields: Self = typed(raw, place)?;
        let mut names: Vec<&str> = fields.members.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let field = join(place, clip(pair[0], 100));
                Err(Field::new(field, "occurs twice"))
            }
            None => Ok(fields),
        }
    }

    /// Takes a member out; `None` when there is none, or it is `null`.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.members.iter().position(|(known, _)| known == name)?;
        let (_, raw) = self.members.swap_remove(at);
        (raw.get() != "null").then_some(raw)
    }

    /// Takes a member of a known type out of the object at `place`.
    pub(super) fn take_as<T: Deserialize<'a>>(
        &mut self,
        name: &str,
        place: &str,
    ) -> Result<Option<T>, Field> {
        self.take(name).map(|raw| typed(raw, &join(place, name))).transpose()
    }

    /// How many members are left.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// What is left goes to `extra`, each name after `prefix`.
    pub(super) fn rest(self, prefix: &str, extra: &mut Map<String, Value>) {
        for (name, raw) in self.members {
            if let Ok(value) = serde_json::from_str(raw.get()) {
                extra.insert(join(prefix, &name), value);
            }
        }
    }
}

/// `raw` as a `T`; the error names `place`.
pub(super) fn typed<'a, T: Deserialize<'a>>(raw: &'a RawValue, place: &str) -> Result<T, Field> {
    serde_json::from_str(raw.get()).map_err(|error| wrong(place, &error))
}

/// What serde says is wrong with the value at `place`.
pub(super) fn wrong(place: &str, error: &serde_json::Error) -> Field {
    let full = error.to_string();
    let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
    Field::new(place, clip(reason, 200))
}

/// The place of a member.
pub(super) fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// `generation_config` as `generationConfig`.
pub(super) fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        match c {
            '_' if !out.is_empty() => upper = true,
            _ if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            _ => out.push(c),
        }
    }
    out
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
            members.push((camel_case(&name), raw));
        }
        Ok(Fields { members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name_and_the_rest_is_kept() {
        let raw: &RawValue =
            serde_json::from_str(r#"{"top_k":1,"newThing":[2],"seed":null,"_x":3}"#).unwrap();
        let mut fields = Fields::read(raw, "generationConfig").unwrap();
        assert_eq!(fields.take_as::<u64>("topK", "generationConfig").unwrap(), Some(1));
        assert!(fields.take("seed").is_none());
        let mut extra = Map::new();
        fields.rest("generationConfig", &mut extra);
        assert_eq!(
            Value::Object(extra),
            serde_json::json!({"generationConfig._x": 3, "generationConfig.newThing": [2]})
        );
    }

    #[test]
    fn a_name_in_both_spellings_is_refused_because_two_readers_may_take_different_ones() {
        let raw: &RawValue = serde_json::from_str(r#"{"top_k":1,"topK":2}"#).unwrap();
        assert_eq!(Fields::read(raw, "g").err(), Some(Field::new("g.topK", "occurs twice")));
        let raw: &RawValue = serde_json::from_str("[1]").unwrap();
        assert_eq!(Fields::read(raw, "g").err().unwrap().field, "g");
    }
}
