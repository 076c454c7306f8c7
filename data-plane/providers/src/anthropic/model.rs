//! What older models of Anthropic's cannot do.
//!
//! The newest way of asking is the default, so that a new or an unknown name (an alias, another vendor's model behind
//! this dialect) needs no change here. The exceptions are models that exist already: a list that will not grow.

/// The version in a model's name: `claude-sonnet-4-5-20250929` is 4.5, `claude-3-7-sonnet@20250219` 3.7.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude")?;
    let mut words =
        name.split(|c: char| !c.is_ascii_alphanumeric()).skip_while(|word| number(word).is_none());
    let major = number(words.next()?)?;
    // A date follows a version without a minor part.
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

fn number(word: &str) -> Option<u32> {
    if word.len() <= 2 { word.parse().ok() } else { None }
}

/// Does it only know thinking with a budget, and no adaptive thinking and effort (before 4.6)? From 4.7 on, budgets are
/// refused.
pub(super) fn thinks_by_budget(model: &str) -> bool {
    version(model).is_some_and(|version| version < (4, 6))
}

/// Does it hold its answers and its tools' arguments to a schema (from 4.5 on)?
pub(super) fn keeps_schemas(model: &str) -> bool {
    version(model).is_none_or(|version| version >= (4, 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_every_form_of_name() {
        let cases = [
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-3-haiku@20240307", Some((3, 0))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5@20250929", Some((4, 5))),
            ("anthropic.claude-opus-4-1-20250805-v1:0", Some((4, 1))),
            ("claude-2.1", Some((2, 1))),
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-next", None),
            ("deepseek-chat", None),
        ];
        for (name, expected) in cases {
            assert_eq!(version(name), expected, "{name}");
        }
    }

    #[test]
    fn only_models_known_to_be_old_are_treated_as_old() {
        assert!(thinks_by_budget("claude-sonnet-4-5") && !thinks_by_budget("claude-opus-4-6"));
        assert!(!thinks_by_budget("my-alias") && keeps_schemas("my-alias"));
        assert!(keeps_schemas("claude-haiku-4-5-20251001") && !keeps_schemas("claude-3-5-haiku-latest"));
    }
}
