//! The admin API, without a protocol.

use std::sync::Arc;

use penstock_proto::admin::v1::{
    ApplyPolicyRequest, ApplyPolicyResponse, DrainBackendRequest, DrainBackendResponse, DrainedTarget,
    GetDecisionRequest, GetDecisionResponse, GetPolicyVersionRequest, GetPolicyVersionResponse,
    ListAuditRequest, ListAuditResponse, ListBackendsResponse, ListDecisionsRequest, ListDecisionsResponse,
    ListNodesResponse, ListPolicyVersionsRequest, ListPolicyVersionsResponse, RollbackPolicyRequest,
    ValidatePolicyRequest, ValidatePolicyResponse,
};

use super::convert;
use super::failure::{Failure, Kind};
use crate::fleet::Fleet;
use crate::metrics::PolicyChanges;
use crate::policy::{self, Action, Apply, Change, Outcome, Policies, Rollback, Version};

/// Decisions listed when no limit is given.
const DEFAULT_LIMIT: u32 = 50;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) policies: Policies,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) changes: Arc<PolicyChanges>,
}

impl Service {
    pub(super) async fn validate(
        &self,
        request: ValidatePolicyRequest,
    ) -> Result<ValidatePolicyResponse, Failure> {
        let (_, problems) = policy::validate(policy::text(request.document)?).await;
        Ok(ValidatePolicyResponse { problems: problems.into_iter().map(convert::problem).collect() })
    }

    pub(super) async fn apply(&self, request: ApplyPolicyRequest) -> Result<ApplyPolicyResponse, Failure> {
        self.policies.check_name(&request.policy)?;
        let dry_run = request.dry_run;
        let apply = Apply {
            document: request.document,
            author: request.author,
            message: request.message,
            expected_version: request.expected_version,
            idempotency_key: request.idempotency_key,
            dry_run,
        };
        let outcome = self.policies.apply(apply).await;
        if !dry_run {
            self.changes.record(Action::Apply, &outcome);
        }
        Ok(self.outcome(outcome?))
    }

    pub(super) async fn rollback(
        &self,
        request: RollbackPolicyRequest,
    ) -> Result<ApplyPolicyResponse, Failure> {
        self.policies.check_name(&request.policy)?;
        let rollback = Rollback {
            to_version: request.to_version,
            author: request.author,
            message: request.message,
            idempotency_key: request.idempotency_key,
        };
        let outcome = self.policies.rollback(rollback).await;
        self.changes.record(Action::Rollback, &outcome);
        Ok(self.outcome(outcome?))
    }

    fn outcome(&self, outcome: Outcome) -> ApplyPolicyResponse {
        let stable = outcome.version.as_ref().map_or(0, |version| version.version);
        ApplyPolicyResponse {
            version: outcome.version.map(|version| self.version(version, stable)),
            problems: outcome.problems.into_iter().map(convert::problem).collect(),
            unchanged: outcome.unchanged,
        }
    }

    fn version(&self, version: Version, stable: u64) -> penstock_proto::admin::v1::PolicyVersion {
        let standing = self.fleet.nodes.standing(version.version);
        convert::version(self.policies.name(), version, stable, standing)
    }

    pub(super) async fn list_versions(
        &self,
        request: ListPolicyVersionsRequest,
    ) -> Result<ListPolicyVersionsResponse, Failure> {
        self.policies.check_name(&request.policy)?;
        let (versions, stable_version) = self.policies.list(request.limit).await?;
        let versions = versions.into_iter().map(|version| self.version(version, stable_version)).collect();
        Ok(ListPolicyVersionsResponse { versions, stable_version })
    }

    pub(super) async fn get_version(
        &self,
        request: GetPolicyVersionRequest,
    ) -> Result<GetPolicyVersionResponse, Failure> {
        self.policies.check_name(&request.policy)?;
        let (version, document, stable) = self.policies.get(request.version).await?;
        Ok(GetPolicyVersionResponse {
            version: Some(self.version(version, stable)),
            document: document.into_bytes(),
        })
    }

    pub(super) async fn audit(&self, request: ListAuditRequest) -> Result<ListAuditResponse, Failure> {
        let entries = self.policies.audit(request.limit).await?;
        Ok(ListAuditResponse { entries: entries.into_iter().map(convert::audit).collect() })
    }

    pub(super) fn nodes(&self) -> ListNodesResponse {
        ListNodesResponse { nodes: self.fleet.nodes.list() }
    }

    pub(super) fn backends(&self) -> ListBackendsResponse {
        self.fleet.scores.borrow().as_ref().map(|scored| scored.backends.clone()).unwrap_or_default()
    }

    /// Takes a backend out of service, or brings it back.
    pub(super) async fn drain(
        &self,
        request: DrainBackendRequest,
        drain: bool,
    ) -> Result<DrainBackendResponse, Failure> {
        let policy = self.fleet.published.borrow().as_ref().and_then(|published| published.policy.clone());
        let change = Change {
            target: policy::DrainedTarget {
                backend: request.backend,
                model: Some(request.model).filter(|model| !model.is_empty()),
            },
            drain,
            author: request.author,
            message: request.message,
        };
        let (drained, changed) = self.policies.drain(change, policy.as_deref()).await?;
        let shown = |target: policy::DrainedTarget| DrainedTarget {
            backend: target.backend,
            model: target.model.unwrap_or_default(),
        };
        Ok(DrainBackendResponse {
            drained: drained.targets.into_iter().map(shown).collect(),
            unchanged: !changed,
        })
    }

    pub(super) fn decision(&self, request: &GetDecisionRequest) -> Result<GetDecisionResponse, Failure> {
        let found = self.fleet.decisions.lock().find(&request.id);
        let decision = found.ok_or_else(|| {
            let message = "no such decision among the last 2000 that were kept and the last 500 that failed: it was \
                           not sampled, is too old, or its proxy reports to another control plane";
            Failure::new(Kind::NotFound, "decision_not_found", message)
        })?;
        Ok(GetDecisionResponse { decision: Some((*decision).clone()) })
    }

    pub(super) fn decisions(&self, request: &ListDecisionsRequest) -> ListDecisionsResponse {
        let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit };
        let found = self.fleet.decisions.lock().list(limit as usize, request.failed_only);
        ListDecisionsResponse { decisions: found.iter().map(|decision| (**decision).clone()).collect() }
    }
}
