//! Where things are in the store.

/// A value drawn once when the store is created: tells one store from another with the same version numbers.
pub const LINEAGE: &str = "/penstock/v1/lineage";

/// All audit entries, each under its ULID, so that key order is time order.
pub const AUDIT: &str = "/penstock/v1/audit/";

/// Which version of the policy is stable.
#[must_use]
pub fn head(policy: &str) -> String {
    format!("/penstock/v1/policies/{policy}/head")
}

/// One immutable version.
#[must_use]
pub fn version(policy: &str, version: u64) -> String {
    format!("/penstock/v1/policies/{policy}/versions/{version}")
}

/// Which backends are out of service. Beside the versions of the policy, for it belongs to none.
#[must_use]
pub fn drained(policy: &str) -> String {
    format!("/penstock/v1/policies/{policy}/drained")
}

/// One audit entry.
#[must_use]
pub fn audit(id: &str) -> String {
    format!("{AUDIT}{id}")
}

/// What was trained. The version of a model is the hash of what it was trained from, so that policy versions with the
/// same examples, a rollback for one, share it.
#[must_use]
pub fn model(kind: &str, version: &str) -> String {
    format!("/penstock/v1/models/{kind}/{version}")
}
