//! From text to policy.
//!
//! ```text
//! text ──source──▶ JSON value ──structure──▶ Document ──names, capabilities, backends, routes, pools──▶ Policy
//! ```
//!
//! No stage stops at its first problem. What the first two find wrong is mended, so that the others can check the rest.

mod adapter;
mod backends;
mod capabilities;
mod coverage;
mod matchers;
mod names;
mod pools;
mod report;
mod routes;
mod service;
mod source;
mod structure;
#[cfg(test)]
mod tests;

use report::Report;
pub(crate) use source::escape;

use crate::document::{self, Document};
use crate::policy::{BreakerSettings, Scoring};
use crate::problem::Finding;
use crate::{Policy, Problem, Vendor, units};

/// What [`load`] found.
#[derive(Debug)]
pub struct Loaded {
    /// Present when no problem is an error.
    pub policy: Option<Policy>,
    /// Errors and warnings, in document order.
    pub problems: Vec<Problem>,
}

/// Decodes, validates and compiles a document in YAML or JSON. Reports every problem at once.
#[must_use]
pub fn load(document: &str) -> Loaded {
    let mut report = Report::default();
    let policy = decode(document, &mut report).and_then(|document| resolve(&document, &mut report));
    let policy = policy.filter(|_| !report.has_errors());
    Loaded { policy, problems: report.into_problems(document) }
}

/// Text to a plain value: for files of our own, whose mistakes a test finds.
pub(crate) fn plain_value(text: &str) -> Option<serde_json::Value> {
    source::parse(text, &mut Report::default()).map(|source| source.value)
}

/// Text to document. Where the text can be read at all there is a document; where it has errors, a mended one.
fn decode(text: &str, report: &mut Report) -> Option<Document> {
    let source = source::parse(text, report)?;
    report.locate_in(source.spots);
    let mut value = source.value;
    structure::check(&mut value, report);
    match serde_json::from_value::<Document>(value) {
        Ok(mut document) => {
            name_default_models(&mut document);
            Some(document)
        }
        Err(_) => {
            // Only should the schema allow what the types do not; serde's message may repeat a secret.
            let hint = "compare it with the reference page";
            report.error("", Finding::new("the document has a form that cannot be read", hint));
            None
        }
    }
}

/// What generic services serve need not have a name.
fn name_default_models(document: &mut Document) {
    for backend in document.backends.values_mut() {
        let generic = Vendor::find(&backend.provider).is_some_and(|vendor| vendor.wire.is_generic());
        if generic && backend.models.is_empty() {
            backend.models.push(document::Model::named("default"));
        }
    }
}

fn resolve(raw: &Document, report: &mut Report) -> Option<Policy> {
    let names = names::Names::new(raw);
    let capabilities = capabilities::resolve(raw, &names, report);
    let default_capability = capabilities.as_ref().map(|(_, default)| *default);
    let (backends, targets) = backends::resolve(raw, &names, report);
    let (routes, pools) = routes::resolve(raw, &names, default_capability, report);
    let breaker = breaker(&raw.breaker, report);
    let cache_room = report.check("/limits/cache", units::size(&raw.limits.cache));
    let body_limit = report.check("/limits/body", units::size(&raw.limits.body));
    let document::Scoring { preset, sharpness, floor } = raw.scoring;
    let (capabilities, default_capability) = capabilities?;
    Some(Policy {
        capabilities,
        default_capability,
        backends,
        targets,
        routes,
        pools,
        scoring: Scoring { preset, sharpness, floor },
        breaker: breaker?,
        body_limit: body_limit?,
        cache_room: cache_room?,
    })
}

fn breaker(raw: &document::Breaker, report: &mut Report) -> Option<BreakerSettings> {
    let open = report.check("/breaker/open", units::duration(&raw.open));
    let open_max = report.check("/breaker/open_max", units::duration(&raw.open_max));
    let ramp = report.check("/breaker/ramp", units::duration(&raw.ramp));
    let (open, open_max) = (open?, open_max?);
    if open > open_max && report.is_sound("/breaker") {
        let message =
            format!("the longest open period ({}) is shorter than the first ({})", raw.open_max, raw.open);
        report.error("/breaker", Finding::new(message, "raise open_max, or shorten open"));
    }
    Some(BreakerSettings {
        consecutive_failures: raw.consecutive_failures,
        failure_ratio: raw.failure_ratio,
        minimum_calls: raw.minimum_calls,
        open,
        open_max,
        probes: raw.probes,
        ramp: ramp?,
        max_ejected: raw.max_ejected,
    })
}
