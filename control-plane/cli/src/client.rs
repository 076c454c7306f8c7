//! The control plane's admin API, as commands call it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use penstock_proto::admin::v1::policy_service_client::PolicyServiceClient;
use penstock_proto::admin::v1::state_service_client::StateServiceClient;
use penstock_proto::admin::v1::{ApplyPolicyResponse, ListNodesRequest, Node};
use penstock_proto::fleet::v1::{Problem, Severity};
use prost::Message;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::failure::Failure;

/// How long connecting may take, and how long a call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest answer: a policy document of the largest size with room to spare.
const MAX_ANSWER: usize = 16 << 20;
/// Time between two looks at the nodes.
const POLL: Duration = Duration::from_millis(20);

/// Which control plane a command talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// The control plane's gRPC address
    #[arg(long, env = "PENSTOCK_SERVER", value_name = "URL", default_value = "http://127.0.0.1:7070")]
    pub(crate) server: String,
}

/// A connection to a control plane.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    server: String,
    channel: Channel,
}

impl Client {
    /// Connects now, so that a wrong address is told from a refusal.
    pub(crate) async fn connect(server: &str) -> Result<Self, Failure> {
        let invalid = || Failure::Setting {
            what: format!("{server:?} is not the address of a control plane"),
            advice: "write http://HOST:PORT, usually with port 7070".to_owned(),
        };
        if !server.starts_with("http://") {
            return Err(invalid());
        }
        let endpoint = Endpoint::from_shared(server.to_owned()).map_err(|_| invalid())?;
        let connected = endpoint.connect_timeout(CONNECT_TIMEOUT).timeout(CALL_TIMEOUT).connect().await;
        match connected {
            Ok(channel) => Ok(Self { server: server.to_owned(), channel }),
            Err(error) => Err(Failure::Unreachable { server: server.to_owned(), detail: root(&error) }),
        }
    }

    /// Policies.
    pub(crate) fn policies(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Nodes, backends, decisions.
    pub(crate) fn state(&self) -> StateServiceClient<Channel> {
        StateServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// What a refused call means to whoever made it.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        let detail = status.message().to_owned();
        match status.code() {
            // A status that the transport made has a cause; one that the server sent has none.
            Code::Unavailable if std::error::Error::source(status).is_some() => {
                Failure::Unreachable { server: self.server.clone(), detail: root(status) }
            }
            Code::Unavailable => Failure::StoreDown { detail },
            Code::Aborted => Failure::Conflict { detail },
            Code::NotFound => Failure::NotFound { detail },
            code => Failure::Refused {
                detail: if detail.is_empty() {
                    format!("the control plane answered: {code}")
                } else {
                    detail
                },
            },
        }
    }

    /// Waits until every connected node, and at least so many of them, serves `version` or has refused it; for at most
    /// `patience`.
    pub(crate) async fn wait_served(
        &self,
        version: u64,
        at_least: usize,
        patience: Duration,
    ) -> Result<Served, Failure> {
        let start = Instant::now();
        loop {
            let nodes = self.state().list_nodes(ListNodesRequest {}).await;
            let nodes = nodes.map_err(|status| self.failure(&status))?.into_inner().nodes;
            let served = Served::of(version, &nodes, start.elapsed());
            if (served.is_settled() && served.nodes >= at_least) || served.after >= patience {
                return Ok(served);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// How far a version has come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    /// Connected nodes that serve it.
    pub(crate) served: usize,
    /// Connected nodes that refused it, with their reasons.
    pub(crate) refused: Vec<(String, Vec<Problem>)>,
    /// All connected nodes.
    pub(crate) nodes: usize,
    /// When this was seen, from the start of the wait.
    pub(crate) after: Duration,
}

impl Served {
    fn of(version: u64, nodes: &[Node], after: Duration) -> Self {
        let connected: Vec<_> = nodes.iter().filter(|node| node.connected).collect();
        let id = |node: &Node| node.identity.clone().unwrap_or_default().id;
        // A later version may have overtaken this one.
        let served: HashSet<_> =
            connected.iter().filter(|node| node.acked_version >= version).map(|node| id(node)).collect();
        let refused = connected
            .iter()
            .filter(|node| node.nacked_version == version && !served.contains(&id(node)))
            .map(|node| (id(node), node.nack_problems.clone()))
            .collect();
        Self { served: served.len(), refused, nodes: connected.len(), after }
    }

    fn is_settled(&self) -> bool {
        self.served + self.refused.len() == self.nodes
    }
}

/// The deepest cause: what the system said. What lies above it only says that a transport failed.
fn root(error: &dyn std::error::Error) -> String {
    let deepest = std::iter::successors(error.source(), |&error| error.source()).last();
    deepest.map_or_else(|| error.to_string(), ToString::to_string)
}

/// The problems that an `INVALID_ARGUMENT` carries.
pub(crate) fn problems_of(status: &Status) -> Vec<penstock_model::Problem> {
    let details = ApplyPolicyResponse::decode(status.details()).unwrap_or_default();
    problems(&details.problems)
}

/// Problems as the rest of the program knows them.
pub(crate) fn problems(problems: &[Problem]) -> Vec<penstock_model::Problem> {
    let convert = |problem: &Problem| penstock_model::Problem {
        path: problem.path.clone(),
        line: problem.line,
        column: problem.column,
        message: problem.message.clone(),
        hint: problem.hint.clone(),
        severity: match problem.severity() {
            Severity::Warning => penstock_model::Severity::Warning,
            Severity::Error | Severity::Unspecified => penstock_model::Severity::Error,
        },
    };
    problems.iter().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use penstock_proto::fleet::v1::NodeIdentity;

    use super::*;

    fn node(id: &str, connected: bool, acked_version: u64, nacked_version: u64) -> Node {
        let identity = Some(NodeIdentity { id: id.to_owned(), ..NodeIdentity::default() });
        Node { identity, connected, acked_version, nacked_version, ..Node::default() }
    }

    #[test]
    fn only_connected_nodes_are_waited_for() {
        let nodes = [node("a", true, 4, 0), node("b", true, 3, 0), node("c", false, 3, 0)];
        let served = Served::of(4, &nodes, Duration::ZERO);
        assert_eq!((served.served, served.nodes, served.is_settled()), (1, 2, false));
    }

    #[test]
    fn a_node_that_refused_is_not_waited_for() {
        let served = Served::of(4, &[node("a", true, 4, 0), node("b", true, 3, 4)], Duration::ZERO);
        assert_eq!((served.served, served.refused.len(), served.is_settled()), (1, 1, true));
    }

    #[test]
    fn a_node_that_serves_a_later_version_counts_as_served() {
        let served = Served::of(4, &[node("a", true, 5, 4)], Duration::ZERO);
        assert_eq!((served.served, served.refused.len()), (1, 0));
    }
}
