//! Our words into those of the wire.

use penstock_model as model;
use penstock_proto::admin::v1 as admin;
use penstock_proto::fleet::v1 as fleet;

use crate::policy::{AuditRecord, Version};

pub(super) fn problem(problem: model::Problem) -> fleet::Problem {
    let severity = match problem.severity {
        model::Severity::Error => fleet::Severity::Error,
        model::Severity::Warning => fleet::Severity::Warning,
    };
    fleet::Problem {
        path: problem.path,
        line: problem.line,
        column: problem.column,
        message: problem.message,
        hint: problem.hint,
        severity: severity.into(),
    }
}

/// `standing`: how many connected nodes serve the version, and how many refused it.
pub(super) fn version(
    policy: &str,
    version: Version,
    stable: u64,
    (acked, nacked): (u32, u32),
) -> admin::PolicyVersion {
    admin::PolicyVersion {
        policy: policy.to_owned(),
        stable: version.version == stable,
        version: version.version,
        content_hash: version.content_hash,
        author: version.author,
        message: version.message,
        created_unix_ms: version.created_unix_ms,
        restored_from: version.restored_from.unwrap_or(0),
        acked,
        nacked,
    }
}

pub(super) fn audit(record: AuditRecord) -> admin::AuditEntry {
    admin::AuditEntry {
        id: record.id,
        unix_ms: record.unix_ms,
        actor: record.actor,
        action: record.action.as_str().to_owned(),
        policy: record.policy,
        from_version: record.from_version,
        to_version: record.to_version,
        message: record.message,
        subject: record.subject,
    }
}
