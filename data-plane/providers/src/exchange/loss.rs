//! What a writer could not carry.

use std::fmt;

use bytes::Bytes;

/// A body for a service, and what it lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The body.
    pub body: Bytes,
    /// What the client asked for and the body does not carry.
    pub dropped: Dropped,
    /// The tool that stands in for structured output (TR-11): a call of it is the answer's text.
    pub json_tool: Option<String>,
}

/// Most fields that are named; the rest is counted.
const MOST: usize = 24;

/// Fields that were left out, by the names that the client gave them: `seed`, `tools[0].strict`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    fields: Vec<String>,
    more: usize,
}

impl Dropped {
    /// Takes note of a field, once.
    pub fn add(&mut self, field: impl Into<String>) {
        let field = field.into();
        if self.fields.contains(&field) {
            return;
        }
        if self.fields.len() < MOST {
            self.fields.push(field);
        } else {
            self.more += 1;
        }
    }

    /// Is nothing missing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names, in the order of their discovery.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }
}

/// As a header shows it: printable ASCII, names of a bounded length, comma-separated.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, field) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let plain: String = field
                .chars()
                .take(64)
                .map(|c| if c.is_ascii_graphic() && c != ',' { c } else { '_' })
                .collect();
            write!(f, "{comma}{plain}")?;
        }
        if self.more > 0 {
            write!(f, ", and {} more", self.more)?;
        }
        Ok(())
    }
}

/// A field and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Field {
    /// As the client wrote it, with its place: `messages[2].content[0].image_url`.
    pub field: String,
    /// In a few words. May quote the client's own value, never more than a few hundred bytes.
    pub reason: String,
}

impl Field {
    /// What is wrong with a field.
    #[must_use]
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

/// Why a request cannot be written for a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// The request itself is wrong: no target could take it. Answered with 400.
    #[error(transparent)]
    Wrong(Field),
    /// This target cannot carry it; another may. Answered with 400 when none can.
    #[error(transparent)]
    Unsupported(Field),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_fields_fit_a_header() {
        let mut dropped = Dropped::default();
        assert!(dropped.is_empty());
        dropped.add("seed");
        dropped.add("seed");
        dropped.add("x\r\nset-cookie: a,b\u{4f60}");
        assert_eq!(dropped.to_string(), "seed, x__set-cookie:_a_b_");
        for index in 0..100 {
            dropped.add(format!("f{index}"));
        }
        assert!(dropped.to_string().ends_with(", f21, and 78 more"), "{dropped}");
    }
}
