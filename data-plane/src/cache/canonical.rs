//! What makes two requests the same.

use std::collections::BTreeMap;
use std::fmt;

use penstock_model::Snapshot;
use penstock_model::policy::RouteId;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Number;
use sha2::{Digest, Sha256};

/// A SHA-256: nobody can make a request that gets the answer of another.
pub(crate) type Key = [u8; 32];

/// The key of a call with a JSON body; `None` for a body that is not JSON, or has a field twice: services differ in which
/// of the two they take.
pub(crate) fn key(snapshot: &Snapshot, route: RouteId, call: &[&str], body: &[u8]) -> Option<Key> {
    let canonical: Canonical<'_> = serde_json::from_slice(body).ok()?;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(snapshot.content_hash.as_bytes());
    part(snapshot.policy.routes[route.index()].name.as_bytes());
    for text in call {
        part(text.as_bytes());
    }
    part(&serde_json::to_vec(&canonical).ok()?);
    Some(hash.finalize().into())
}

/// A JSON value whose fields are in alphabetical order.
enum Canonical<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Borrowed(&'a str),
    Owned(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl<'de> Deserialize<'de> for Canonical<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Canonical<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Canonical::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Canonical::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Canonical::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Canonical::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Number::from_f64(value).map(Canonical::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Canonical::Borrowed(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Canonical::Owned(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Canonical::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut object = BTreeMap::new();
        while let Some((name, value)) = fields.next_entry()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a field comes twice"));
            }
        }
        Ok(Canonical::Object(object))
    }
}

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => value.serialize(serializer),
            Self::Borrowed(value) => serializer.serialize_str(value),
            Self::Owned(value) => serializer.serialize_str(value),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => fields.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn key_of(body: &str) -> Option<Key> {
        let policy = json!({
            "version": 1,
            "capabilities": {"chat": {"default": true}},
            "backends": {"a": {"provider": "openai", "capabilities": ["chat"], "models": [{"name": "m"}]}},
            "routes": [{"name": "all"}],
        });
        let snapshot = Snapshot::load("default", 1, "test", &policy.to_string()).unwrap();
        key(&snapshot, RouteId(0), &["chat"], body.as_bytes())
    }

    #[test]
    fn order_and_white_space_make_no_difference_and_all_else_does() {
        let same = key_of(r#"{"model":"m","messages":[{"role":"user","content":"你好"}],"n":1}"#).unwrap();
        let spaced = "{ \"n\": 1,\n\"messages\": [ {\"content\":\"\\u4f60好\", \"role\":\"user\"} ], \"model\":\"m\" }";
        assert_eq!(key_of(spaced), Some(same));
        for other in [
            r#"{"model":"m","messages":[{"role":"user","content":"你好 "}],"n":1}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"你好"}],"n":1.0}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"你好"}],"n":1,"stream":true}"#,
            r#"{"model":"m","messages":["user","你好"],"n":1}"#,
        ] {
            assert_ne!(key_of(other), Some(same), "{other}");
        }
    }

    #[test]
    fn a_field_that_comes_twice_has_no_key() {
        assert_eq!(key_of(r#"{"model":"m","model":"m"}"#), None);
        assert_eq!(key_of(r#"{"messages":[{"role":"user","role":"system"}]}"#), None);
        assert_eq!(key_of("{"), None);
        assert!(key_of("[]").is_some());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a-c\"\\\\你]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c]{0,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_and_no_others_have_equal_keys(one in value(), other in value()) {
            let mut sorted = one.clone();
            sorted.sort_all_objects();
            prop_assert_eq!(key_of(&one.to_string()), key_of(&sorted.to_string()));
            prop_assert_eq!(one == other, key_of(&one.to_string()) == key_of(&other.to_string()));
        }
    }
}
