//! The admin API over gRPC.

use penstock_proto::admin::v1::policy_service_server::PolicyService;
use penstock_proto::admin::v1::state_service_server::StateService;
use penstock_proto::admin::v1::{
    ApplyPolicyRequest, ApplyPolicyResponse, DrainBackendRequest, DrainBackendResponse, GetDecisionRequest,
    GetDecisionResponse, GetPolicyVersionRequest, GetPolicyVersionResponse, ListAuditRequest,
    ListAuditResponse, ListBackendsRequest, ListBackendsResponse, ListDecisionsRequest,
    ListDecisionsResponse, ListNodesRequest, ListNodesResponse, ListPolicyVersionsRequest,
    ListPolicyVersionsResponse, RollbackPolicyRequest, ValidatePolicyRequest, ValidatePolicyResponse,
};
use tonic::{Request, Response, Status, async_trait};

use super::Service;

/// `penstock.admin.v1.PolicyService`.
pub(crate) struct PolicyGrpc(pub(crate) Service);

#[async_trait]
impl PolicyService for PolicyGrpc {
    async fn validate_policy(
        &self,
        request: Request<ValidatePolicyRequest>,
    ) -> Result<Response<ValidatePolicyResponse>, Status> {
        Ok(Response::new(self.0.validate(request.into_inner()).await?))
    }

    async fn apply_policy(
        &self,
        request: Request<ApplyPolicyRequest>,
    ) -> Result<Response<ApplyPolicyResponse>, Status> {
        Ok(Response::new(self.0.apply(request.into_inner()).await?))
    }

    async fn list_policy_versions(
        &self,
        request: Request<ListPolicyVersionsRequest>,
    ) -> Result<Response<ListPolicyVersionsResponse>, Status> {
        Ok(Response::new(self.0.list_versions(request.into_inner()).await?))
    }

    async fn get_policy_version(
        &self,
        request: Request<GetPolicyVersionRequest>,
    ) -> Result<Response<GetPolicyVersionResponse>, Status> {
        Ok(Response::new(self.0.get_version(request.into_inner()).await?))
    }

    async fn rollback_policy(
        &self,
        request: Request<RollbackPolicyRequest>,
    ) -> Result<Response<ApplyPolicyResponse>, Status> {
        Ok(Response::new(self.0.rollback(request.into_inner()).await?))
    }
}

/// `penstock.admin.v1.StateService`.
pub(crate) struct StateGrpc(pub(crate) Service);

#[async_trait]
impl StateService for StateGrpc {
    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        Ok(Response::new(self.0.nodes()))
    }

    async fn list_backends(
        &self,
        _: Request<ListBackendsRequest>,
    ) -> Result<Response<ListBackendsResponse>, Status> {
        Ok(Response::new(self.0.backends()))
    }

    async fn drain_backend(
        &self,
        request: Request<DrainBackendRequest>,
    ) -> Result<Response<DrainBackendResponse>, Status> {
        Ok(Response::new(self.0.drain(request.into_inner(), true).await?))
    }

    async fn undrain_backend(
        &self,
        request: Request<DrainBackendRequest>,
    ) -> Result<Response<DrainBackendResponse>, Status> {
        Ok(Response::new(self.0.drain(request.into_inner(), false).await?))
    }

    async fn get_decision(
        &self,
        request: Request<GetDecisionRequest>,
    ) -> Result<Response<GetDecisionResponse>, Status> {
        Ok(Response::new(self.0.decision(&request.into_inner())?))
    }

    async fn list_decisions(
        &self,
        request: Request<ListDecisionsRequest>,
    ) -> Result<Response<ListDecisionsResponse>, Status> {
        Ok(Response::new(self.0.decisions(&request.into_inner())))
    }

    async fn list_audit(
        &self,
        request: Request<ListAuditRequest>,
    ) -> Result<Response<ListAuditResponse>, Status> {
        Ok(Response::new(self.0.audit(request.into_inner()).await?))
    }
}
