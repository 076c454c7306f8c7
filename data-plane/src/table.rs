//! The route table: snapshot, live state and this process's handles, as one value that a request loads once.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use penstock_decision::capability::Classifier;
use penstock_decision::plan::Plans;
use penstock_model::policy::{Address, Candidate, Policy, Pool, PoolId, TargetId};
use penstock_model::{Snapshot, Vendor};
use penstock_providers::openai::upstream::{self, Endpoint};
use penstock_providers::splice::ModelName;

use crate::secrets::Secrets;
use crate::target::TargetState;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct RouteTable {
    pub(crate) snapshot: Snapshot,
    pub(crate) classifier: Arc<Classifier>,
    pub(crate) plans: Plans,
    /// By [`TargetId`].
    pub(crate) targets: Vec<Arc<Target>>,
    /// The version as a header value.
    pub(crate) version: HeaderValue,
}

/// A target, ready to be called.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) state: Arc<TargetState>,
    pub(crate) upstream: Upstream,
    pub(crate) model: ModelName,
    pub(crate) vendor: &'static Vendor,
    /// The backend's name as a header value.
    pub(crate) backend: HeaderValue,
    /// `None` when the backend has no credential.
    pub(crate) authorization: Option<HeaderValue>,
    /// The policy names a credential, but it cannot be found: the target cannot be called.
    pub(crate) credential_missing: bool,
    /// The secret itself, to take it out of what a service says.
    pub(crate) secret: Option<String>,
}

/// Where a target's connections go.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// The same for all targets at the same address: the index into each worker's pool.
    pub(crate) id: usize,
    pub(crate) address: Address,
    pub(crate) host: HeaderValue,
    chat: Uri,
    embeddings: Uri,
}

impl Upstream {
    pub(crate) fn uri(&self, endpoint: Endpoint) -> &Uri {
        match endpoint {
            Endpoint::ChatCompletions => &self.chat,
            Endpoint::Embeddings => &self.embeddings,
        }
    }
}

impl RouteTable {
    pub(crate) fn policy(&self) -> &Policy {
        &self.snapshot.policy
    }

    pub(crate) fn pool(&self, pool: PoolId) -> &Pool {
        &self.snapshot.policy.pools[pool.index()]
    }

    pub(crate) fn candidate(&self, pool: PoolId, index: usize) -> Candidate {
        self.pool(pool).candidates[index]
    }

    pub(crate) fn target(&self, target: TargetId) -> &Arc<Target> {
        &self.targets[target.index()]
    }

    /// Names of a pool: route and capability.
    pub(crate) fn pool_names(&self, pool: PoolId) -> (&str, &str) {
        let pool = self.pool(pool);
        let policy = self.policy();
        (&policy.routes[pool.route.index()].name, &policy.capabilities[pool.capability.index()].name)
    }
}

/// What outlives each table: target states by name, upstream ids by address.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    states: HashMap<(String, String), Arc<TargetState>>,
    upstreams: HashMap<Address, usize>,
}

impl Registry {
    /// Handles for all targets of `policy`. States of targets that are no longer in it are forgotten.
    pub(crate) fn targets(&mut self, policy: &Policy, secrets: &Secrets) -> Vec<Arc<Target>> {
        let targets: Vec<_> = (0..policy.targets.len())
            .map(|index| Arc::new(self.target(policy, TargetId(index as u32), secrets)))
            .collect();
        let in_policy = |key: &(String, String)| policy.find_target(&key.0, &key.1).is_some();
        self.states.retain(|key, _| in_policy(key));
        targets
    }

    fn target(&mut self, policy: &Policy, id: TargetId, secrets: &Secrets) -> Target {
        let target = &policy.targets[id.index()];
        let backend = &policy.backends[target.backend.index()];
        let key = (backend.name.clone(), target.model.clone());
        let fresh = || Arc::new(TargetState::new(&backend.name, &target.model));
        let state = Arc::clone(self.states.entry(key).or_insert_with(fresh));
        let next = self.upstreams.len();
        let upstream_id = *self.upstreams.entry(backend.address.clone()).or_insert(next);
        let secret = backend.credential.as_ref().and_then(|credential| secrets.resolve(credential));
        let authorization = secret.as_deref().and_then(|secret| upstream::bearer(secret).ok());
        let uri =
            |endpoint: Endpoint| Uri::try_from(endpoint.path(&backend.address.path)).unwrap_or_default();
        let text = |text: &str| HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        Target {
            state,
            upstream: Upstream {
                id: upstream_id,
                host: text(&backend.address.authority),
                chat: uri(Endpoint::ChatCompletions),
                embeddings: uri(Endpoint::Embeddings),
                address: backend.address.clone(),
            },
            model: ModelName::new(&target.model),
            vendor: backend.vendor,
            backend: text(&backend.name),
            credential_missing: backend.credential.is_some() && authorization.is_none(),
            authorization,
            secret,
        }
    }
}
