//! Proxies and what they serve.

use penstock_proto::admin::v1::{ListNodesResponse, Node};

use super::table::table;
use super::units::{ago, micros};

/// One line per node.
pub(crate) fn nodes(response: &ListNodesResponse, now_unix_ms: i64) -> String {
    let header = vec![
        "NODE", "STATE", "ZONE", "VERSION", "TAKEN", "TOOK", "REFUSED", "CALLS/S", "REPORT", "BUILD",
        "ADDRESS",
    ];
    table(header, response.nodes.iter().map(|node| row(node, now_unix_ms)).collect())
}

fn row(node: &Node, now: i64) -> Vec<String> {
    let identity = node.identity.clone().unwrap_or_default();
    let from_disk = node.health.as_ref().is_some_and(|health| health.from_disk);
    let dash = |empty: bool, text: String| if empty { "-".to_owned() } else { text };
    vec![
        identity.id,
        if node.connected { "connected" } else { "gone" }.to_owned(),
        dash(identity.zone.is_empty(), identity.zone.clone()),
        match (node.acked_version, from_disk) {
            (0, _) => "-".to_owned(),
            (version, true) => format!("{version} (disk)"),
            (version, false) => version.to_string(),
        },
        ago(node.acked_unix_ms, now),
        dash(node.ack_latency_us == 0, micros(node.ack_latency_us)),
        dash(node.nacked_version == 0, node.nacked_version.to_string()),
        format!("{:.1}", node.attempts_per_second),
        ago(node.last_report_unix_ms, now),
        identity.build,
        identity.address,
    ]
}
