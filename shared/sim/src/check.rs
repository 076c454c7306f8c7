//! Walks through a request's JSON and says where it is wrong, in words that each dialect puts in its own way.

use serde_json::{Map, Value};

/// A value, and where it stands in the request.
#[derive(Debug, Clone)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    /// Field names and list positions from the top, joined by dots; empty for the request itself.
    pub(crate) path: String,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) path: String,
    pub(crate) what: What,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A field that does not exist.
    Unknown,
    /// A field that has to be there.
    Missing,
    /// A value of another type than this.
    Type(&'static str),
    /// Anything else, in the vendor's words.
    Said(String),
}

impl Wrong {
    pub(crate) fn said(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), what: What::Said(message.into()) }
    }

    /// `messages.0.content` as `messages[0].content`.
    pub(crate) fn bracketed(&self) -> String {
        let mut out = String::with_capacity(self.path.len() + 4);
        for step in self.path.split('.').filter(|step| !step.is_empty()) {
            if step.bytes().all(|byte| byte.is_ascii_digit()) {
                out.extend(["[", step, "]"]);
            } else {
                out.extend([if out.is_empty() { "" } else { "." }, step]);
            }
        }
        out
    }
}

/// A check's outcome.
pub(crate) type Checked<T> = Result<T, Wrong>;

impl<'a> At<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    fn below(&self, step: &str) -> String {
        if self.path.is_empty() { step.to_owned() } else { format!("{}.{step}", self.path) }
    }

    pub(crate) fn wrong(&self, message: impl Into<String>) -> Wrong {
        Wrong::said(self.path.clone(), message)
    }

    fn of_type(&self, expected: &'static str) -> Wrong {
        Wrong { path: self.path.clone(), what: What::Type(expected) }
    }

    pub(crate) fn object(&self) -> Checked<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.of_type("object"))
    }

    /// An object without other fields than these.
    pub(crate) fn only(&self, known: &[&str]) -> Checked<&'a Map<String, Value>> {
        let object = self.object()?;
        match object.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(Wrong { path: self.below(key), what: What::Unknown }),
            None => Ok(object),
        }
    }

    /// A field; `None` when it is absent or null.
    pub(crate) fn get(&self, field: &str) -> Option<Self> {
        let value = self.value.get(field).filter(|value| !value.is_null())?;
        Some(Self { value, path: self.below(field) })
    }

    pub(crate) fn need(&self, field: &str) -> Checked<Self> {
        self.get(field).ok_or_else(|| Wrong { path: self.below(field), what: What::Missing })
    }

    pub(crate) fn text(&self) -> Checked<&'a str> {
        self.value.as_str().ok_or_else(|| self.of_type("string"))
    }

    pub(crate) fn flag(&self) -> Checked<bool> {
        self.value.as_bool().ok_or_else(|| self.of_type("boolean"))
    }

    pub(crate) fn number(&self) -> Checked<f64> {
        self.value.as_f64().ok_or_else(|| self.of_type("number"))
    }

    pub(crate) fn whole(&self) -> Checked<i64> {
        self.value.as_i64().ok_or_else(|| self.of_type("integer"))
    }

    pub(crate) fn list(&self) -> Checked<Vec<Self>> {
        let items = self.value.as_array().ok_or_else(|| self.of_type("array"))?;
        let at = |(index, value)| Self { value, path: self.below(&usize::to_string(&index)) };
        Ok(items.iter().enumerate().map(at).collect())
    }

    pub(crate) fn need_text(&self, field: &str) -> Checked<&'a str> {
        self.need(field)?.text()
    }

    pub(crate) fn text_of(&self, field: &str) -> Checked<Option<&'a str>> {
        self.get(field).map(|at| at.text()).transpose()
    }

    pub(crate) fn flag_of(&self, field: &str) -> Checked<Option<bool>> {
        self.get(field).map(|at| at.flag()).transpose()
    }

    pub(crate) fn whole_of(&self, field: &str) -> Checked<Option<i64>> {
        self.get(field).map(|at| at.whole()).transpose()
    }

    /// The entries of a list that may be absent.
    pub(crate) fn list_of(&self, field: &str) -> Checked<Vec<Self>> {
        self.get(field).map_or_else(|| Ok(Vec::new()), |at| at.list())
    }

    /// A list of strings that may be absent.
    pub(crate) fn texts_of(&self, field: &str) -> Checked<Vec<String>> {
        self.list_of(field)?.iter().map(|at| at.text().map(str::to_owned)).collect()
    }

    /// A number that may be absent but must lie between these.
    pub(crate) fn range(&self, field: &str, from: f64, to: f64) -> Checked<Option<f64>> {
        let Some(at) = self.get(field) else { return Ok(None) };
        let number = at.number()?;
        if (from..=to).contains(&number) {
            return Ok(Some(number));
        }
        Err(at.wrong(format!("expected a value from {from} to {to}, got {number}")))
    }

    /// A whole number that may be absent but must be at least this.
    pub(crate) fn at_least(&self, field: &str, least: i64) -> Checked<Option<u32>> {
        let Some(at) = self.get(field) else { return Ok(None) };
        let number = at.whole()?;
        match u32::try_from(number) {
            Ok(fits) if number >= least => Ok(Some(fits)),
            _ => Err(at.wrong(format!("expected a value of at least {least}, got {number}"))),
        }
    }

    /// A text that must be one of these.
    pub(crate) fn one_of(&self, known: &[&str]) -> Checked<&'a str> {
        let text = self.text()?;
        if known.contains(&text) {
            return Ok(text);
        }
        Err(self.wrong(format!("expected one of {}, got '{text}'", known.join(", "))))
    }
}

/// Letters, digits and `extra`, from 1 to `most` of them.
pub(crate) fn is_name(name: &str, extra: &str, most: usize) -> bool {
    let good = |character: char| character.is_ascii_alphanumeric() || extra.contains(character);
    !name.is_empty() && name.len() <= most && name.chars().all(good)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let value = json!({"a": [{"b": 1}], "n": null});
        let root = At::root(&value);
        let entry = root.need("a").unwrap().list().unwrap().remove(0);
        let wrong = entry.need_text("b").unwrap_err();
        assert_eq!((wrong.bracketed().as_str(), wrong.what), ("a[0].b", What::Type("string")));
        assert_eq!(entry.only(&["c"]).unwrap_err().what, What::Unknown);
        assert_eq!(root.need("n").unwrap_err(), Wrong { path: "n".to_owned(), what: What::Missing });
        assert!(root.range("n", 0.0, 1.0).unwrap().is_none());
        assert!(entry.range("b", 2.0, 3.0).is_err() && entry.at_least("b", 1).unwrap() == Some(1));
    }
}
