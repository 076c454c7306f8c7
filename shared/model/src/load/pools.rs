//! Which targets a route may choose from, for each capability.
//!
//! * Without `targets`: every backend that has the capability, with its first model.
//! * With `targets`: those whose backend has the capability; where none has it, all of them, with match 0. What an
//!   operator lists wins over what a backend is said to be good at.
//! * Weight 0 takes a target out before any of this.
//! * A route that fixes a `capability` has a pool for that one only. Every other route has one for the default
//!   capability at least.

use super::names::Names;
use super::report::Report;
use crate::document;
use crate::policy::{BackendId, Candidate, CapabilityId, Pattern, Pool, RouteId, TargetId};
use crate::problem::Finding;

/// The most candidates of all pools together: 32 MB of them.
const MAX_CANDIDATES: usize = 1_000_000;

/// A target that a route allows, whatever the capability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    pub(crate) backend: BackendId,
    pub(crate) target: TargetId,
    pub(crate) weight: f64,
}

/// What a route says of its pools.
pub(crate) struct Wanted<'a> {
    pub(crate) route: RouteId,
    /// The targets it lists, if it lists any.
    pub(crate) targets: Option<&'a [Allowed]>,
    /// Its capability, where it fixes one.
    pub(crate) capability: Option<CapabilityId>,
    /// Where its data may go; anywhere when empty.
    pub(crate) residency: &'a [Pattern],
}

/// All pools of a policy, as they are built.
pub(crate) struct Pools<'a> {
    names: &'a Names<'a>,
    default_capability: Option<CapabilityId>,
    pools: Vec<Pool>,
    candidates: usize,
}

impl<'a> Pools<'a> {
    pub(crate) fn new(names: &'a Names<'a>, default_capability: Option<CapabilityId>) -> Self {
        Self { names, default_capability, pools: Vec::new(), candidates: 0 }
    }

    /// The pools, when there are not too many.
    pub(crate) fn finish(self, report: &mut Report) -> Vec<Pool> {
        if self.candidates > MAX_CANDIDATES {
            let message = format!(
                "routes × capabilities × targets make {} candidates; {MAX_CANDIDATES} are the limit",
                self.candidates
            );
            report.error("/routes", Finding::new(message, "give routes a capability, or targets"));
        }
        self.pools
    }

    /// Adds the pools of one route, the one at `path`.
    pub(crate) fn add(&mut self, path: &str, wanted: &Wanted<'_>, report: &mut Report) {
        let Wanted { route, targets, capability: fixed, residency } = *wanted;
        if targets.is_some_and(<[Allowed]>::is_empty) {
            return;
        }
        let explicit = targets.is_some();
        let allowed = match targets {
            Some(targets) => targets.to_vec(),
            None => self.first_models(),
        };
        let allowed: Vec<Allowed> = allowed.into_iter().filter(|allowed| allowed.weight > 0.0).collect();
        let capabilities = match fixed {
            Some(fixed) => fixed.0..fixed.0 + 1,
            None => 0..self.names.capability_count() as u32,
        };
        let mut served = Vec::new();
        for capability in capabilities.map(CapabilityId) {
            let candidates = self.candidates(&allowed, capability, explicit, residency);
            if candidates.is_empty() {
                continue;
            }
            served.push(capability);
            self.candidates += candidates.len();
            if self.candidates <= MAX_CANDIDATES {
                self.pools.push(Pool { route, capability, candidates });
            }
        }
        let needed = fixed.or(self.default_capability);
        let missing = needed.is_some_and(|needed| !served.contains(&needed));
        if missing && report.is_sound(path) && (explicit || self.names.capabilities_are_known(report)) {
            report_missing(path, explicit, fixed.is_some(), report);
        }
        let anywhere =
            served.is_empty() || allowed.iter().any(|allowed| self.is_resident(allowed, residency));
        if !anywhere && report.is_sound(path) {
            let hint = "give a backend of this route that residency, or name another";
            let message = "none of the route's backends keeps data there: it would refuse every request";
            report.error(&format!("{path}/residency"), Finding::new(message, hint));
        }
    }

    fn first_models(&self) -> Vec<Allowed> {
        let first = |backend| {
            let target = self.names.target(backend, 0)?;
            Some(Allowed { backend, target, weight: self.names.backend(backend).weight })
        };
        self.names.backends().filter_map(first).collect()
    }

    /// May data that is to stay in `residency` go to this backend?
    fn is_resident(&self, allowed: &Allowed, residency: &[Pattern]) -> bool {
        let backend = self.names.backend(allowed.backend);
        let kept = backend.residency.as_ref().or(backend.region.as_ref());
        residency.is_empty() || kept.is_some_and(|kept| residency.iter().any(|wanted| wanted.matches(kept)))
    }

    fn candidates(
        &self,
        allowed: &[Allowed],
        capability: CapabilityId,
        explicit: bool,
        residency: &[Pattern],
    ) -> Vec<Candidate> {
        let candidate = |allowed: &Allowed| Candidate {
            target: allowed.target,
            weight: allowed.weight,
            capability_match: self.names.capability_match(allowed.backend, capability),
            resident: self.is_resident(allowed, residency),
        };
        let all: Vec<Candidate> = allowed.iter().map(candidate).collect();
        let able: Vec<Candidate> =
            all.iter().copied().filter(|candidate| candidate.capability_match > 0.0).collect();
        if able.is_empty() && explicit { all } else { able }
    }
}

fn report_missing(path: &str, explicit: bool, fixed: bool, report: &mut Report) {
    let hint = "add it to a backend, or give the route targets";
    if explicit {
        let hint = "give at least one of them a weight above 0";
        report
            .error(&format!("{path}/targets"), Finding::new("the weights of the targets add up to 0", hint));
    } else if fixed {
        let message = "no backend with a weight above 0 has this capability";
        report.error(&format!("{path}/capability"), Finding::new(message, hint));
    } else {
        let message =
            "the route has no candidates: no backend with a weight above 0 has the default capability";
        report.error(path, Finding::new(message, hint));
    }
}

/// The targets a route lists. `None` when it lists none; those that are refused are left out.
pub(crate) fn listed(
    path: &str,
    raw: Option<&[document::RouteTarget]>,
    names: &Names<'_>,
    report: &mut Report,
) -> Option<Vec<Allowed>> {
    let raw = raw?;
    if raw.is_empty() {
        let hint = "name at least one, or leave the field out for every backend that has the capability";
        report.error(path, Finding::new("the list of targets is empty", hint));
    }
    let mut allowed: Vec<Allowed> = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        let path = format!("{path}/{index}");
        let Some(backend) = names.find_backend(&format!("{path}/backend"), &raw.backend, report) else {
            continue;
        };
        let model = match &raw.model {
            Some(model) => names.find_model(&format!("{path}/model"), backend, model, report),
            None => Some(0),
        };
        let Some(target) = model.and_then(|model| names.target(backend, model)) else { continue };
        if allowed.iter().any(|other| other.target == target) {
            report.error(&path, Finding::new("this target is listed twice", "remove one of the two"));
            continue;
        }
        let weight = raw.weight.unwrap_or(names.backend(backend).weight);
        allowed.push(Allowed { backend, target, weight });
    }
    Some(allowed)
}
