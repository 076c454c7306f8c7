//! Which language people are spoken to in. Output for programs knows only one.

use std::collections::HashMap;

/// English, unless the locale is a Chinese one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// By `LC_ALL`, else `LC_MESSAGES`, else `LANG`, as POSIX orders them.
    pub(crate) fn of(environment: &HashMap<String, String>) -> Self {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|name| environment.get(*name).filter(|value| !value.is_empty()));
        if locale.is_some_and(|locale| locale.starts_with("zh")) { Self::Chinese } else { Self::English }
    }

    /// The text in this language.
    pub(crate) fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(pairs: &[(&str, &str)]) -> Language {
        Language::of(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_locale_decides_and_lc_all_decides_first() {
        assert_eq!(language(&[]), Language::English);
        assert_eq!(language(&[("LANG", "zh_CN.UTF-8")]), Language::Chinese);
        assert_eq!(language(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C")]), Language::English);
        assert_eq!(
            language(&[("LANG", "en_US.UTF-8"), ("LC_ALL", ""), ("LC_MESSAGES", "zh_TW")]),
            Language::Chinese
        );
    }
}
