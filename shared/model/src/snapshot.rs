//! A policy version as proxies hold it.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{Policy, Problem, load};

/// A policy version, compiled and validated.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Which policy of the control plane.
    pub name: String,
    /// Grows with every apply and every rollback.
    pub version: u64,
    /// Lower-case hex SHA-256 of the document.
    pub content_hash: String,
    /// Drawn once when the control plane's store was created.
    pub lineage: String,
    /// What it says.
    pub policy: Arc<Policy>,
}

impl Snapshot {
    /// Loads `document` as version `version` of the policy `name`.
    ///
    /// # Errors
    /// Every problem of the document, warnings included, when at least one of them is an error.
    pub fn load(name: &str, version: u64, lineage: &str, document: &str) -> Result<Self, Vec<Problem>> {
        let loaded = load(document);
        let policy = Arc::new(loaded.policy.ok_or(loaded.problems)?);
        let content_hash = content_hash(document);
        Ok(Self { name: name.to_owned(), version, content_hash, lineage: lineage.to_owned(), policy })
    }
}

/// Lower-case hex SHA-256 of the document's text. Two documents that differ in a comment differ in their hash.
#[must_use]
pub fn content_hash(document: &str) -> String {
    Sha256::digest(document).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_hash_is_the_sha256_that_other_tools_print() {
        assert_eq!(content_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
