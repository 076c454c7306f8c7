//! Finding the keys that a policy refers to. They are held in memory and nowhere else.

use std::collections::HashMap;

use penstock_model::policy::Credential;

use crate::google::Tokens;

/// Where references lead.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    environment: HashMap<String, String>,
    /// For credentials that are only good for getting one.
    pub(crate) google: Tokens,
}

impl Secrets {
    pub(crate) fn new(environment: HashMap<String, String>) -> Self {
        Self { environment, google: Tokens::default() }
    }

    /// The secret, without white space around it. Files are read anew each time, which is once a second: a rotated key
    /// needs no restart.
    pub(crate) fn resolve(&self, credential: &Credential) -> Option<String> {
        let secret = match credential {
            Credential::Env(name) => self.environment.get(name).cloned(),
            Credential::File(path) => std::fs::read_to_string(path).ok(),
        }?;
        let secret = secret.trim();
        (!secret.is_empty()).then(|| secret.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_file_is_read_again_when_it_changes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let credential = Credential::File(file.path().to_string_lossy().into_owned());
        let secrets = Secrets::default();
        assert_eq!(secrets.resolve(&credential), None);
        for key in ["one\n", "two"] {
            std::fs::write(file.path(), key).unwrap();
            assert_eq!(secrets.resolve(&credential).as_deref(), Some(key.trim()));
        }
    }
}
