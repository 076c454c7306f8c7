//! The route table: snapshot, live state and this process's handles, as one value that a request loads once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use penstock_decision::capability::Classifier;
use penstock_decision::plan::Plans;
use penstock_decision::rules::Rules;
use penstock_model::Snapshot;
use penstock_model::adapter::Adapter;
use penstock_model::policy::{Address, Backend, Candidate, Policy, Pool, PoolId, RouteId, TargetId};
use penstock_model::vendor::{Auth, Call, MaxTokens, Vendor};
use penstock_providers::aws::sign as aws;
use penstock_providers::dialect::TargetFacts;
use penstock_providers::google_auth::ServiceAccount;
use penstock_providers::splice::ModelName;

use crate::cache::Answers;
use crate::clock::Moment;
use crate::facts::Places;
use crate::retry::RetryBudget;
use crate::secrets::Secrets;
use crate::target::TargetState;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct RouteTable {
    pub(crate) snapshot: Snapshot,
    pub(crate) rules: Arc<Rules>,
    pub(crate) classifier: Arc<Classifier>,
    /// The checksum of the classifier's model; empty when it has none.
    pub(crate) capability_model: Arc<str>,
    pub(crate) plans: Plans,
    pub(crate) places: Arc<Places>,
    /// By [`TargetId`].
    pub(crate) targets: Vec<Arc<Target>>,
    /// By [`RouteId`].
    pub(crate) retry_budgets: Vec<Arc<RetryBudget>>,
    /// Where a route keeps answers.
    pub(crate) answers: Option<Arc<Answers>>,
    /// Proxies that share the work, this one included.
    pub(crate) nodes: u32,
    /// The version as a header value.
    pub(crate) version: HeaderValue,
}

/// A target, ready to be called.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) state: Arc<TargetState>,
    pub(crate) upstream: Upstream,
    pub(crate) vendor: &'static Vendor,
    pub(crate) model: ModelName,
    /// The name of the output limit here.
    pub(crate) max_tokens_name: MaxTokens,
    /// The output limit of requests without one.
    pub(crate) default_max_tokens: u64,
    /// The backend's name as a header value.
    pub(crate) backend: HeaderValue,
    /// Headers that every request carries.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Those of a request for a stream besides.
    pub(crate) stream_headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) credential: Shown,
    /// The policy names a credential, but it cannot be found: the target cannot be called.
    pub(crate) credential_missing: bool,
    /// The secret itself, to take it out of what a service says.
    pub(crate) secret: Option<String>,
    /// Reshapes its calls.
    pub(crate) adapter: Option<Arc<Adapter>>,
    uris: Vec<(Call, Uri)>,
}

/// How a credential is shown to the service.
#[derive(Debug)]
pub(crate) enum Shown {
    /// Not at all.
    Not,
    /// In this header.
    Header(HeaderName, HeaderValue),
    /// By signing each request, for this region.
    Signature(aws::Credentials, String),
}

/// Where a target's connections go.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// The same for all targets at the same address: the index into each worker's pool.
    pub(crate) id: usize,
    pub(crate) address: Address,
    pub(crate) host: HeaderValue,
}

impl Target {
    /// What a request is written for.
    pub(crate) fn facts(&self) -> TargetFacts<'_> {
        TargetFacts {
            vendor: self.vendor,
            model: &self.state.model,
            max_tokens_name: self.max_tokens_name,
            default_max_tokens: self.default_max_tokens,
        }
    }

    /// Where a call goes; `None` when the service has no such call.
    pub(crate) fn uri(&self, call: Call) -> Option<&Uri> {
        self.uris.iter().find(|(known, _)| *known == call).map(|(_, uri)| uri)
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

    /// May a request of `route` be sent once more? Takes it out of the budget.
    pub(crate) fn may_retry(&self, route: RouteId, now: Moment) -> bool {
        let share = self.policy().routes[route.index()].retry_budget;
        self.retry_budgets[route.index()].take(now, share, self.nodes)
    }

    /// Is there a service that takes calls of no protocol?
    pub(crate) fn has_generic(&self) -> bool {
        self.targets.iter().any(|target| target.vendor.wire.is_generic())
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
    retry_budgets: HashMap<String, Arc<RetryBudget>>,
    answers: Option<Arc<Answers>>,
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

    /// Retry budgets of all routes of `policy`. Those of routes that are no longer in it are forgotten.
    pub(crate) fn retry_budgets(&mut self, policy: &Policy) -> Vec<Arc<RetryBudget>> {
        let mut old = std::mem::take(&mut self.retry_budgets);
        let budgets = policy.routes.iter().map(|route| old.remove(&route.name).unwrap_or_default());
        let budgets: Vec<_> = budgets.collect();
        let names = policy.routes.iter().map(|route| route.name.clone());
        self.retry_budgets = names.zip(budgets.iter().cloned()).collect();
        budgets
    }

    /// The kept answers, if a route of `policy` keeps any. They begin anew when their room changes.
    pub(crate) fn answers(&mut self, policy: &Policy) -> Option<Arc<Answers>> {
        let old = self.answers.take().filter(|old| old.room() == policy.cache_room);
        if policy.routes.iter().any(|route| route.cache.is_some()) {
            self.answers = Some(old.unwrap_or_else(|| Arc::new(Answers::new(policy.cache_room))));
        }
        self.answers.clone()
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
        let credential = secret.as_deref().map_or(Shown::Not, |secret| show(backend, secret, secrets));
        let text = |text: &str| HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        Target {
            state,
            upstream: Upstream {
                id: upstream_id,
                host: text(&backend.address.authority),
                address: backend.address.clone(),
            },
            vendor: backend.vendor,
            model: ModelName::new(&target.model),
            max_tokens_name: target.max_tokens_name,
            default_max_tokens: target.default_max_tokens,
            backend: text(&backend.name),
            headers: headers(&backend.vendor.headers),
            stream_headers: headers(&backend.vendor.stream_headers),
            credential_missing: backend.credential.is_some()
                && backend.vendor.auth != Auth::None
                && matches!(credential, Shown::Not),
            credential,
            secret,
            adapter: backend.adapter.clone(),
            uris: uris(backend, &target.model),
        }
    }
}

/// The calls of a backend. Those of a stream may have a path of their own.
fn uris(backend: &Backend, model: &str) -> Vec<(Call, Uri)> {
    let uri = |call: Call| Some((call, Uri::try_from(backend.path(call, model)?).ok()?));
    backend.vendor.calls.keys().copied().chain([Call::MessagesStream]).filter_map(uri).collect()
}

fn headers(fixed: &BTreeMap<String, String>) -> Vec<(HeaderName, HeaderValue)> {
    let header = |(name, value): (&String, &String)| Some((name.parse().ok()?, value.parse().ok()?));
    fixed.iter().filter_map(header).collect()
}

/// The credential as the vendor wants to see it; not at all when no header can carry it.
fn show(backend: &Backend, secret: &str, secrets: &Secrets) -> Shown {
    let sensitive = |name: HeaderName, value: String| match HeaderValue::try_from(value) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Shown::Header(name, value)
        }
        Err(_) => Shown::Not,
    };
    match &backend.vendor.auth {
        Auth::None => Shown::Not,
        Auth::Header(name) => match name.parse() {
            Ok(name) => sensitive(name, secret.to_owned()),
            Err(_) => Shown::Not,
        },
        Auth::Aws => match aws::Credentials::parse(secret) {
            Some(credentials) => {
                Shown::Signature(credentials, backend.settings.region.clone().unwrap_or_default())
            }
            None => sensitive(AUTHORIZATION, format!("Bearer {secret}")),
        },
        Auth::Google if ServiceAccount::looks_like(secret) => match secrets.google.current(secret) {
            Some(token) => sensitive(AUTHORIZATION, format!("Bearer {token}")),
            None => Shown::Not,
        },
        Auth::Bearer | Auth::Google => sensitive(AUTHORIZATION, format!("Bearer {secret}")),
    }
}
