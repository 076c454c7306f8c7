//! A control plane that says what the test wants to hear, and remembers what it was asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use penstock_proto::admin::v1::policy_service_server::{PolicyService, PolicyServiceServer};
use penstock_proto::admin::v1::state_service_server::{StateService, StateServiceServer};
use penstock_proto::admin::v1::*;
use penstock_proto::fleet::v1::NodeIdentity;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// What it answers.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// To apply and rollback; nothing means UNIMPLEMENTED.
    pub(crate) change: Option<Result<ApplyPolicyResponse, Status>>,
    /// To each look at the nodes, one after the other; the last one stays.
    pub(crate) nodes: VecDeque<Vec<Node>>,
    pub(crate) versions: ListPolicyVersionsResponse,
    pub(crate) version: GetPolicyVersionResponse,
    pub(crate) decision: Option<Decision>,
    /// What was asked.
    pub(crate) applied: Vec<ApplyPolicyRequest>,
    pub(crate) rolled_back: Vec<RollbackPolicyRequest>,
    pub(crate) drained: Vec<DrainBackendRequest>,
}

pub(crate) use penstock_proto::fleet::v1::Decision;

/// It listens for as long as this lives.
pub(crate) struct Control {
    pub(crate) url: String,
    script: Arc<Mutex<Script>>,
    _runtime: Runtime,
}

impl Control {
    pub(crate) fn start(script: Script) -> Self {
        let runtime = Runtime::new().unwrap();
        let _entered = runtime.enter();
        let script = Arc::new(Mutex::new(script));
        let incoming = TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let url = format!("http://{}", incoming.local_addr().unwrap());
        runtime.spawn(
            Server::builder()
                .add_service(PolicyServiceServer::new(Fake(script.clone())))
                .add_service(StateServiceServer::new(Fake(script.clone())))
                .serve_with_incoming(incoming),
        );
        drop(_entered);
        Self { url, script, _runtime: runtime }
    }

    /// What it was asked so far.
    pub(crate) fn asked<T>(&self, read: impl FnOnce(&Script) -> T) -> T {
        read(&self.script.lock().unwrap())
    }
}

/// A node that serves `acked` and has refused `nacked`.
pub(crate) fn node(id: &str, acked: u64, nacked: u64) -> Node {
    Node {
        identity: Some(NodeIdentity { id: id.to_owned(), ..NodeIdentity::default() }),
        connected: true,
        acked_version: acked,
        nacked_version: nacked,
        ..Node::default()
    }
}

struct Fake(Arc<Mutex<Script>>);

impl Fake {
    fn change(&self, ask: impl FnOnce(&mut Script)) -> Result<Response<ApplyPolicyResponse>, Status> {
        let mut script = self.0.lock().unwrap();
        ask(&mut script);
        let answer = script.change.clone().unwrap_or_else(|| Err(Status::unimplemented("not in the script")));
        answer.map(Response::new)
    }
}

#[tonic::async_trait]
impl PolicyService for Fake {
    async fn validate_policy(
        &self,
        _: Request<ValidatePolicyRequest>,
    ) -> Result<Response<ValidatePolicyResponse>, Status> {
        Err(Status::unimplemented("no command calls it"))
    }

    async fn apply_policy(
        &self,
        request: Request<ApplyPolicyRequest>,
    ) -> Result<Response<ApplyPolicyResponse>, Status> {
        self.change(|script| script.applied.push(request.into_inner()))
    }

    async fn list_policy_versions(
        &self,
        _: Request<ListPolicyVersionsRequest>,
    ) -> Result<Response<ListPolicyVersionsResponse>, Status> {
        Ok(Response::new(self.0.lock().unwrap().versions.clone()))
    }

    async fn get_policy_version(
        &self,
        _: Request<GetPolicyVersionRequest>,
    ) -> Result<Response<GetPolicyVersionResponse>, Status> {
        Ok(Response::new(self.0.lock().unwrap().version.clone()))
    }

    async fn rollback_policy(
        &self,
        request: Request<RollbackPolicyRequest>,
    ) -> Result<Response<ApplyPolicyResponse>, Status> {
        self.change(|script| script.rolled_back.push(request.into_inner()))
    }
}

#[tonic::async_trait]
impl StateService for Fake {
    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        let mut script = self.0.lock().unwrap();
        let nodes = match script.nodes.len() {
            0 | 1 => script.nodes.front().cloned().unwrap_or_default(),
            _ => script.nodes.pop_front().unwrap(),
        };
        Ok(Response::new(ListNodesResponse { nodes }))
    }

    async fn list_backends(
        &self,
        _: Request<ListBackendsRequest>,
    ) -> Result<Response<ListBackendsResponse>, Status> {
        Ok(Response::new(ListBackendsResponse::default()))
    }

    async fn drain_backend(
        &self,
        request: Request<DrainBackendRequest>,
    ) -> Result<Response<DrainBackendResponse>, Status> {
        let request = request.into_inner();
        let drained = DrainedTarget { backend: request.backend.clone(), model: request.model.clone() };
        self.0.lock().unwrap().drained.push(request);
        Ok(Response::new(DrainBackendResponse { drained: vec![drained], unchanged: false }))
    }

    async fn undrain_backend(
        &self,
        _: Request<DrainBackendRequest>,
    ) -> Result<Response<DrainBackendResponse>, Status> {
        Ok(Response::new(DrainBackendResponse { drained: Vec::new(), unchanged: true }))
    }

    async fn get_decision(
        &self,
        request: Request<GetDecisionRequest>,
    ) -> Result<Response<GetDecisionResponse>, Status> {
        let decision = self.0.lock().unwrap().decision.clone();
        let id = request.into_inner().id;
        match decision {
            Some(decision) if decision.id == id => {
                Ok(Response::new(GetDecisionResponse { decision: Some(decision) }))
            }
            _ => Err(Status::not_found(format!("no decision {id} among the last 0 of 0 nodes"))),
        }
    }

    async fn list_decisions(
        &self,
        _: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        Err(Status::unimplemented("no command calls it"))
    }

    async fn list_audit(&self, _: Request<ListAuditRequest>) -> Result<Response<ListAuditResponse>, Status> {
        Err(Status::unimplemented("no command calls it"))
    }
}
