//! What is wrong with a document, where, and what to do about it.

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
