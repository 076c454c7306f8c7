//! Strings with `*` for any run of characters, as routes use them for paths, models, header values and the like.

use std::fmt;

/// A string with `*` for any run of characters, the empty one included. Nothing else is special.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// No star.
    Exact(String),
    /// The parts between stars; the first is anchored at the start, the last at the end.
    Glob(Vec<String>),
}

impl Pattern {
    /// Compiles `source`.
    #[must_use]
    pub fn new(source: &str) -> Self {
        if source.contains('*') {
            Self::Glob(source.split('*').map(str::to_owned).collect())
        } else {
            Self::Exact(source.to_owned())
        }
    }

    /// Does `value` match, whole?
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == value,
            Self::Glob(parts) => {
                let [first, middle @ .., last] = parts.as_slice() else {
                    return false;
                };
                let Some(mut rest) = value.strip_prefix(first.as_str()) else {
                    return false;
                };
                for part in middle {
                    match rest.find(part.as_str()) {
                        Some(at) => rest = &rest[at + part.len()..],
                        None => return false,
                    }
                }
                rest.ends_with(last.as_str())
            }
        }
    }

    /// Does it match all that `other` matches? `true` is certain.
    ///
    /// A star of `other` stands for any run, so that only a star can match it; and what a star matches may as well be
    /// another run.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.matches(&other.to_string())
    }

    /// Is there a value that both match?
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(exact), pattern) | (pattern, Self::Exact(exact)) => pattern.matches(exact),
            // The longer beginning, the middles of both, the longer end: both match that.
            (Self::Glob(these), Self::Glob(those)) => {
                let ends = these.first().zip(those.first()).zip(these.last().zip(those.last()));
                ends.is_some_and(|((a, b), (y, z))| {
                    (a.starts_with(b.as_str()) || b.starts_with(a.as_str()))
                        && (y.ends_with(z.as_str()) || z.ends_with(y.as_str()))
                })
            }
        }
    }

    /// Does it match every value?
    #[must_use]
    pub fn matches_all(&self) -> bool {
        matches!(self, Self::Glob(parts) if parts.iter().all(String::is_empty))
    }
}

/// As written.
impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(exact) => formatter.write_str(exact),
            Self::Glob(parts) => formatter.write_str(&parts.join("*")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook recursion: exponential, and plainly right.
    fn reference(pattern: &[char], value: &[char]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some(('*', rest)) => (0..=value.len()).any(|skip| reference(rest, &value[skip..])),
            Some((first, rest)) => value.first() == Some(first) && reference(rest, &value[1..]),
        }
    }

    #[test]
    fn a_star_stands_for_any_run_and_the_ends_are_anchored() {
        let pattern = Pattern::new("gpt-4*-mini");
        assert!(pattern.matches("gpt-4o-mini"));
        assert!(pattern.matches("gpt-4-mini"));
        assert!(!pattern.matches("gpt-4-mini-2"));
        assert!(!pattern.matches("my-gpt-4-mini"));
        assert!(!Pattern::new("ab*ba").matches("aba"), "the two ends may not overlap");
    }

    #[test]
    fn only_stars_match_all() {
        assert!(Pattern::new("*").matches_all());
        assert!(Pattern::new("**").matches_all());
        assert!(!Pattern::new("").matches_all());
        assert!(!Pattern::new("a*").matches_all());
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_textbook_recursion(pattern in "[ab*长]{0,7}", value in "[ab长]{0,9}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Pattern::new(&pattern).matches(&value), reference(&chars(&pattern), &chars(&value)));
        }
    }
}
