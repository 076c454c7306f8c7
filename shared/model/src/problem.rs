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

/// A hint that names the candidate most like `name`, when one is near enough to be a slip of the finger.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const MAX_CANDIDATES: usize = 1_000;
    const MAX_LENGTH: usize = 64;
    let length = name.chars().count();
    let allowed = 1 + length / 4;
    let similar =
        |candidate: &&str| length <= MAX_LENGTH && candidate.chars().count().abs_diff(length) <= allowed;
    let near = candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(similar)
        .map(|candidate| (edit_distance(name, candidate), candidate));
    let (distance, best) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then(|| format!("did you mean `{best}`?"))
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let hint = |name: &str| did_you_mean(name, ["backends", "capabilities", "routes"]);
        assert_eq!(hint("backend").as_deref(), Some("did you mean `backends`?"));
        assert_eq!(hint("capabilites").as_deref(), Some("did you mean `capabilities`?"));
        assert_eq!(hint("ruotes").as_deref(), Some("did you mean `routes`?"));
        assert_eq!(hint("plans"), None);
        assert_eq!(did_you_mean("a", []), None);
    }

    #[test]
    fn the_edit_distance_counts_swaps_as_one() {
        for (a, b, distance) in [
            ("", "", 0),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("长短", "长", 1),
        ] {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
        }
    }
}
