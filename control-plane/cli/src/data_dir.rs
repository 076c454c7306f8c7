//! Where state is kept when no flag says so.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::failure::Failure;

/// The platform's folder for state, after the XDG base directory specification: `$XDG_STATE_HOME/penstock`,
/// `~/.local/state/penstock`, and `/var/lib/penstock` for services, which have no home.
pub(crate) fn default(environment: &HashMap<String, String>) -> PathBuf {
    let folder = |name: &str| environment.get(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
    if let Some(state) = folder("XDG_STATE_HOME") {
        return state.join("penstock");
    }
    match folder("HOME") {
        Some(home) if home.parent().is_some() => home.join(".local/state/penstock"),
        _ => PathBuf::from("/var/lib/penstock"),
    }
}

/// Makes sure that `folder` is there and can be written to.
pub(crate) fn create(folder: &std::path::Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Failure::Setting {
        what: format!("cannot create the data folder {}: {source}", folder.display()),
        advice: "name another with --data-dir".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(pairs: &[(&str, &str)]) -> PathBuf {
        default(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_state_folder_follows_the_platform() {
        assert_eq!(folder(&[("HOME", "/home/ann")]), PathBuf::from("/home/ann/.local/state/penstock"));
        assert_eq!(
            folder(&[("HOME", "/home/ann"), ("XDG_STATE_HOME", "/state")]),
            PathBuf::from("/state/penstock")
        );
        assert_eq!(folder(&[]), PathBuf::from("/var/lib/penstock"));
        assert_eq!(folder(&[("HOME", "/")]), PathBuf::from("/var/lib/penstock"));
    }

    /// The XDG specification: a relative path is invalid and to be ignored.
    #[test]
    fn a_relative_state_folder_is_ignored() {
        assert_eq!(
            folder(&[("HOME", "/home/ann"), ("XDG_STATE_HOME", "state")]),
            PathBuf::from("/home/ann/.local/state/penstock")
        );
    }
}
