//! Strings with `*` for any run of characters, as routes use them for paths, models and header values.

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

    /// Does it match every value?
    #[must_use]
    pub fn matches_all(&self) -> bool {
        matches!(self, Self::Glob(parts) if parts.iter().all(String::is_empty))
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
