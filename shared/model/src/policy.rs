//! The validated policy: every name resolved to an index, every unit parsed, every impossible state gone.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::Adapter;
pub use crate::address::{Address, Host};
pub use crate::condition::{CONTEXT_FIELDS, Condition};
pub use crate::constraint::{Accepts, Constraint, Field, NumberField, TextField, address_number};
pub use crate::document::{Language, Preset};
pub use crate::features::{Feature, Features};
pub use crate::pattern::Pattern;
pub use crate::price::Price;
pub use crate::settings::Settings;
use crate::vendor::{Call, MaxTokens, Vendor};
pub use crate::window::week_minute;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// As a vector index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(/** Index into [`Policy::capabilities`]. */ CapabilityId);
index!(/** Index into [`Policy::backends`]. */ BackendId);
index!(/** Index into [`Policy::targets`]. */ TargetId);
index!(/** Index into [`Policy::routes`]. */ RouteId);
index!(/** Index into [`Policy::pools`]. */ PoolId);

/// A policy in force. Built only by [`crate::load`].
#[derive(Debug)]
pub struct Policy {
    /// In alphabetical order.
    pub capabilities: Vec<Capability>,
    /// The capability of requests that nothing else claims.
    pub default_capability: CapabilityId,
    /// In alphabetical order.
    pub backends: Vec<Backend>,
    /// Every (backend, model), each once.
    pub targets: Vec<Target>,
    /// In matching order.
    pub routes: Vec<Route>,
    /// Every (route, capability) that has candidates.
    pub pools: Vec<Pool>,
    /// How targets are compared.
    pub scoring: Scoring,
    /// When a target is taken out.
    pub breaker: BreakerSettings,
    /// Largest request body in bytes.
    pub body_limit: usize,
    /// Room for kept answers in bytes.
    pub cache_room: usize,
}

impl Policy {
    /// The names of a target: its backend and its model.
    ///
    /// # Panics
    /// When `target` is of another policy.
    #[must_use]
    pub fn target_key(&self, target: TargetId) -> (&str, &str) {
        let target = &self.targets[target.index()];
        (&self.backends[target.backend.index()].name, &target.model)
    }

    /// The pool that serves requests of `capability` on a route: the one of the route's own capability where it fixes
    /// one, else that of `capability`, else that of the default capability.
    ///
    /// # Panics
    /// When an index is of another policy.
    #[must_use]
    pub fn pool_for(&self, route: RouteId, capability: CapabilityId) -> PoolId {
        let route = &self.routes[route.index()];
        let wanted = route.capability.unwrap_or(capability);
        let pool = route.pools[wanted.index()].or(route.pools[self.default_capability.index()]);
        pool.expect("a policy is refused when a route lacks the pool of its own or of the default capability")
    }

    /// The target with these names. Looks through all of them: not for the hot path.
    #[must_use]
    pub fn find_target(&self, backend: &str, model: &str) -> Option<TargetId> {
        let is_it =
            |target: &Target| target.model == model && self.backends[target.backend.index()].name == backend;
        self.targets.iter().position(is_it).map(|index| TargetId(index as u32))
    }

    /// The pool with these names. Looks through all of them: not for the hot path.
    #[must_use]
    pub fn find_pool(&self, route: &str, capability: &str) -> Option<PoolId> {
        let is_it = |pool: &Pool| {
            self.routes[pool.route.index()].name == route
                && self.capabilities[pool.capability.index()].name == capability
        };
        self.pools.iter().position(is_it).map(|index| PoolId(index as u32))
    }

    /// The capability with this name.
    #[must_use]
    pub fn find_capability(&self, name: &str) -> Option<CapabilityId> {
        let index = self.capabilities.iter().position(|capability| capability.name == name)?;
        Some(CapabilityId(index as u32))
    }
}

/// See [`crate::document::Capability`].
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// Lower-cased.
    pub keywords: Vec<String>,
    /// As written.
    pub examples: Vec<String>,
}

/// See [`crate::document::Backend`].
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name.
    pub name: String,
    /// Whose service it is, or whose it is like.
    pub vendor: &'static Vendor,
    /// Where it is.
    pub address: Address,
    /// What is particular to this deployment.
    pub settings: Settings,
    /// Where its key is found.
    pub credential: Option<Credential>,
    /// Where it runs.
    pub zone: Option<String>,
    /// Where what is sent to it is kept, as routes ask for it; `None`: nobody knows.
    pub residency: Option<String>,
    /// Match per capability, 0..1, indexed by [`CapabilityId`]; 0 = does not have it.
    pub capability_match: Vec<f64>,
    /// Reshapes its calls.
    pub adapter: Option<Arc<Adapter>>,
}

impl Backend {
    /// The request target of a call, query included: the base URL's path and behind it the vendor's path for the call.
    /// `model` becomes one percent-encoded segment. `None` when the vendor has no such call.
    #[must_use]
    pub fn path(&self, call: Call, model: &str) -> Option<String> {
        let template = self.vendor.path(call)?;
        Some(self.settings.fill_path(&self.address.path, template, model))
    }
}

/// A reference to a secret; never the secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// An environment variable of the proxy.
    Env(String),
    /// A file, re-read when it changes.
    File(String),
}

/// What is chosen: one model of one backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Whose.
    pub backend: BackendId,
    /// The name the service knows it by.
    pub model: String,
    /// `model` as a JSON string with its quotes, ready to splice.
    pub model_json: String,
    /// Unknown stays unknown.
    pub price: Option<Price>,
    /// In tokens.
    pub context_window: Option<u32>,
    /// What it is known to lack.
    pub lacks: Features,
    /// The name of the output limit: the model's own, or else its vendor's.
    pub max_tokens_name: MaxTokens,
    /// The output limit of requests that set none, where the dialect requires one.
    pub default_max_tokens: u64,
}

/// See [`crate::document::Route`].
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// What must hold of the request, matchers first, then the parts of the condition that are as good as matchers.
    pub constraints: Vec<Constraint>,
    /// The compiled expression.
    pub condition: Option<Condition>,
    /// Assumed instead of classified.
    pub capability: Option<CapabilityId>,
    /// The pool for each capability, indexed by [`CapabilityId`]; `None` where the route has no candidate for it.
    pub pools: Vec<Option<PoolId>>,
    /// Parsed.
    pub timeouts: Timeouts,
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Retries per first attempt.
    pub retry_budget: f64,
    /// Is a request refused of which translation would lose something?
    pub strict: bool,
    /// How long answers are kept for identical requests, if they are.
    pub cache: Option<Duration>,
    /// Words that records of its requests carry.
    pub tags: Vec<String>,
}

/// Interchangeable candidates of one route for one capability.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Whose.
    pub route: RouteId,
    /// For what.
    pub capability: CapabilityId,
    /// Never empty.
    pub candidates: Vec<Candidate>,
}

/// A target within a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which.
    pub target: TargetId,
    /// Configured weight, above 0.
    pub weight: f64,
    /// How well its backend matches the pool's capability, 0..1.
    pub capability_match: f64,
    /// May the route's data go there?
    pub resident: bool,
}

/// Parsed timeouts of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To a connected socket, TLS included.
    pub connect: Duration,
    /// To the first token, or the response head.
    pub first_token: Duration,
    /// Silence in the middle of an answer.
    pub idle: Duration,
    /// All attempts up to the first byte to the client, and non-streamed answers whole.
    pub total: Duration,
}

/// Parsed scoring settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    /// The formula.
    pub preset: Preset,
    /// β.
    pub sharpness: f64,
    /// Smallest share of a healthy target.
    pub floor: f64,
}

/// Parsed breaker settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerSettings {
    /// Hard failures in a row that open it.
    pub consecutive_failures: u32,
    /// Share of failures in the window that opens it.
    pub failure_ratio: f64,
    /// Calls the window must hold.
    pub minimum_calls: u32,
    /// First open period.
    pub open: Duration,
    /// Longest open period.
    pub open_max: Duration,
    /// Successful probes that close it.
    pub probes: u32,
    /// How long the share grows back.
    pub ramp: Duration,
    /// Largest ejected share of a pool's weight.
    pub max_ejected: f64,
}
