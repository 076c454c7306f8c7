//! A control plane on free ports, and its gRPC clients.

use penstock_control_plane::{Config, Running, StoreConfig, start};
use penstock_proto::admin::v1::policy_service_client::PolicyServiceClient;
use penstock_proto::admin::v1::state_service_client::StateServiceClient;
use penstock_proto::admin::v1::{
    ApplyPolicyRequest, ApplyPolicyResponse, ListPolicyVersionsRequest, PolicyVersion,
};
use tonic::Status;
use tonic::transport::Channel;

pub(crate) struct Control {
    pub(crate) running: Running,
    pub(crate) policy: PolicyServiceClient<Channel>,
    pub(crate) state: StateServiceClient<Channel>,
}

/// A valid policy; documents with different notes differ in content only.
pub(crate) fn document(note: &str) -> String {
    format!(
        "# {note}
version: 1
capabilities:
  chat: {{default: true}}
backends:
  a:
    provider: openai
    base_url: http://127.0.0.1:1/v1
    capabilities: [chat]
    models: [{{name: m}}]
  b:
    provider: openai
    base_url: http://127.0.0.1:2/v1
    capabilities: [chat]
    models: [{{name: m, price: {{input: '1.00', output: '2.00'}}}}]
routes:
  - name: everything
"
    )
}

pub(crate) fn config(store: StoreConfig) -> Config {
    Config {
        grpc_listen: "127.0.0.1:0".parse().unwrap(),
        http_listen: "127.0.0.1:0".parse().unwrap(),
        store,
        policy_name: "default".to_owned(),
        initial_policy: None,
    }
}

impl Control {
    pub(crate) async fn start(config: Config) -> Self {
        let running = start(config).await.unwrap();
        let channel = Channel::from_shared(format!("http://{}", running.grpc_addr())).unwrap().connect_lazy();
        let (policy, state) = (PolicyServiceClient::new(channel.clone()), StateServiceClient::new(channel));
        Self { running, policy, state }
    }

    /// On a new file in `folder`.
    pub(crate) async fn embedded(folder: &tempfile::TempDir) -> Self {
        Self::start(config(StoreConfig::Embedded(folder.path().join("store.redb")))).await
    }

    /// Ends it, connections included.
    pub(crate) async fn shutdown(self) {
        let Self { running, policy, state } = self;
        drop((policy, state));
        running.shutdown().await;
    }

    pub(crate) async fn apply(&self, document: &str) -> Result<ApplyPolicyResponse, Status> {
        self.apply_as(ApplyPolicyRequest {
            document: document.as_bytes().to_vec(),
            author: "tester".to_owned(),
            ..ApplyPolicyRequest::default()
        })
        .await
    }

    pub(crate) async fn apply_as(&self, request: ApplyPolicyRequest) -> Result<ApplyPolicyResponse, Status> {
        self.policy.clone().apply_policy(request).await.map(tonic::Response::into_inner)
    }

    /// Applies a document that is taken, and gives the version it became.
    pub(crate) async fn version_of(&self, document: &str) -> u64 {
        self.apply(document).await.unwrap().version.unwrap().version
    }

    pub(crate) async fn versions(&self) -> Vec<PolicyVersion> {
        let request = ListPolicyVersionsRequest { limit: 500, ..ListPolicyVersionsRequest::default() };
        self.policy.clone().list_policy_versions(request).await.unwrap().into_inner().versions
    }
}

/// The stable code of an error.
pub(crate) fn code(status: &Status) -> &str {
    status.metadata().get("penstock-code").map_or("none", |code| code.to_str().unwrap())
}
