//! What is wrong with a document, where, and what to do about it.

use std::fmt;

/// One finding of validation. All findings are reported at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the field, for example `/backends/chat-a/base_url`.
    pub path: String,
    /// 1-based line of the field in the source; 0 when unknown.
    pub line: u32,
    /// 1-based column, counted in characters; 0 when unknown.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// Errors refuse the document, warnings do not.
    pub severity: Severity,
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is taken; somebody should look.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// `12:9: error: /backends/chat-a/base_url: not an address (write http://HOST:PORT/v1)`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        write!(f, "{}: ", self.severity)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}

/// A [`Problem`] whose place is known to the caller only: what parsers of single values return.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Finding {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
