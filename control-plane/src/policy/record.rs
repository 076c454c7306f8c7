//! What is stored, as JSON. Fields are only added; unknown ones are ignored, so that replicas of two builds can share a
//! store.

use serde::{Deserialize, Serialize};

/// An immutable version, under `/penstock/v1/policies/{name}/versions/{n}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct VersionRecord {
    #[serde(flatten)]
    pub(super) version: Version,
    /// As the operator wrote it.
    pub(super) document: String,
}

/// All of a version but its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) version: u64,
    /// Lower-case hex SHA-256 of the document.
    pub(crate) content_hash: String,
    pub(crate) author: String,
    pub(crate) message: String,
    pub(crate) created_unix_ms: i64,
    /// The version whose content a rollback brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restored_from: Option<u64>,
}

/// Which version proxies are to serve, under `/penstock/v1/policies/{name}/head`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// 0 when there is none yet.
    pub(super) stable: u64,
    /// Of the stable version's document.
    pub(super) content_hash: String,
    /// The idempotency keys of the last changes, oldest first. They live here so that a key and its version are
    /// written, compared and forgotten together.
    #[serde(default)]
    pub(super) recent: Vec<Recent>,
}

/// A change that was made under an idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recent {
    pub(super) key: String,
    pub(super) version: u64,
}

/// Changes whose idempotency keys are remembered.
const REMEMBERED_KEYS: usize = 64;

impl Head {
    /// The head after `version` was made.
    pub(super) fn advanced_to(&self, version: &Version, idempotency_key: &str) -> Self {
        let mut recent = self.recent.clone();
        if !idempotency_key.is_empty() {
            recent.push(Recent { key: idempotency_key.to_owned(), version: version.version });
        }
        recent.drain(..recent.len().saturating_sub(REMEMBERED_KEYS));
        Self { stable: version.version, content_hash: version.content_hash.clone(), recent }
    }

    /// The version that was made under this idempotency key.
    pub(super) fn made_by(&self, idempotency_key: &str) -> Option<u64> {
        if idempotency_key.is_empty() {
            return None;
        }
        self.recent.iter().find(|recent| recent.key == idempotency_key).map(|recent| recent.version)
    }
}

/// Who did what, under `/penstock/v1/audit/{ulid}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) id: String,
    pub(crate) unix_ms: i64,
    pub(crate) actor: String,
    pub(crate) action: Action,
    pub(crate) policy: String,
    pub(crate) from_version: u64,
    pub(crate) to_version: u64,
    pub(crate) message: String,
    /// What it was done to, where that is not the policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) subject: String,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Action {
    #[serde(rename = "policy.apply")]
    Apply,
    #[serde(rename = "policy.rollback")]
    Rollback,
    #[serde(rename = "backend.drain")]
    Drain,
    #[serde(rename = "backend.undrain")]
    Undrain,
}

impl Action {
    pub(crate) const COUNT: usize = 4;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "policy.apply",
            Self::Rollback => "policy.rollback",
            Self::Drain => "backend.drain",
            Self::Undrain => "backend.undrain",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Version {
        Version {
            version: number,
            content_hash: format!("hash {number}"),
            author: String::new(),
            message: String::new(),
            created_unix_ms: 0,
            restored_from: None,
        }
    }

    #[test]
    fn a_head_remembers_a_bounded_number_of_idempotency_keys() {
        let mut head = Head::default();
        for number in 1..=100 {
            head = head.advanced_to(&version(number), &format!("key {number}"));
        }
        assert_eq!((head.stable, head.recent.len()), (100, REMEMBERED_KEYS));
        assert_eq!(head.made_by("key 100"), Some(100));
        assert_eq!(head.made_by("key 36"), None);
    }

    #[test]
    fn no_idempotency_key_matches_no_version() {
        let head = Head::default().advanced_to(&version(1), "");
        assert!(head.recent.is_empty());
        assert_eq!(head.made_by(""), None);
    }

    #[test]
    fn a_record_of_a_newer_build_can_be_read() {
        let stored = r#"{"stable": 3, "content_hash": "ab", "rollout": {"canary": 4}}"#;
        assert_eq!(serde_json::from_str::<Head>(stored).unwrap().stable, 3);
    }
}
