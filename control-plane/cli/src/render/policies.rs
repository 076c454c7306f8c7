//! Policy versions.

use penstock_proto::admin::v1::{ListPolicyVersionsResponse, PolicyVersion};

use super::table::table;
use super::units::instant;

/// One line per version, newest first.
pub(crate) fn versions(response: &ListPolicyVersionsResponse) -> String {
    let header = vec!["VERSION", "STABLE", "NODES", "REFUSED BY", "CREATED", "AUTHOR", "MESSAGE", "CONTENT"];
    table(header, response.versions.iter().map(row).collect())
}

fn row(version: &PolicyVersion) -> Vec<String> {
    let message = match version.restored_from {
        0 => version.message.clone(),
        from if version.message.is_empty() => format!("(back to {from})"),
        from => format!("{} (back to {from})", version.message),
    };
    vec![
        version.version.to_string(),
        if version.stable { "*".to_owned() } else { String::new() },
        version.acked.to_string(),
        version.nacked.to_string(),
        instant(version.created_unix_ms),
        version.author.clone(),
        message,
        version.content_hash.chars().take(12).collect(),
    ]
}
