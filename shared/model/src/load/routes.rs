//! Routes of a document.

use std::collections::HashSet;

use super::coverage;
use super::matchers;
use super::names::{Names, check_name, check_text};
use super::pools::{Pools, Wanted, listed};
use super::report::Report;
use crate::document::{self, Document};
use crate::policy::{
    Accepts, CapabilityId, Condition, Field, Language, Pattern, Pool, Route, RouteId, TextField, Timeouts,
};
use crate::problem::Finding;
use crate::units;

/// All routes and all pools, without those that are refused.
pub(crate) fn resolve(
    raw: &Document,
    names: &Names<'_>,
    default_capability: Option<CapabilityId>,
    report: &mut Report,
) -> (Vec<Route>, Vec<Pool>) {
    if raw.routes.is_empty() {
        report.error(
            "/routes",
            Finding::new("there is no route", "add one; without match it takes every request"),
        );
    }
    let mut pools = Pools::new(names, default_capability);
    let mut routes = Vec::new();
    let mut seen = HashSet::new();
    // Those whose demands are what they seem.
    let mut sound = Vec::new();
    for (index, raw) in raw.routes.iter().enumerate() {
        let path = format!("/routes/{index}");
        if !seen.insert(&raw.name) {
            let message = format!("there is another route `{}` above", raw.name);
            report.error(&format!("{path}/name"), Finding::new(message, "give it a name of its own"));
        }
        let id = RouteId(index as u32);
        let capability = raw
            .capability
            .as_ref()
            .map(|name| names.find_capability(&format!("{path}/capability"), name, report));
        let targets = listed(&format!("{path}/targets"), raw.targets.as_deref(), names, report);
        // Without its capability or its targets a route would seem to lack candidates.
        if capability != Some(None) && targets.as_ref().map(Vec::len) == raw.targets.as_ref().map(Vec::len) {
            let residency =
                matchers::patterns(&format!("{path}/residency"), &raw.residency, check_text, report);
            let wanted = Wanted {
                route: id,
                targets: targets.as_deref(),
                capability: capability.flatten(),
                residency: &residency,
            };
            pools.add(&path, &wanted, report);
        }
        let errors = report.errors();
        routes.extend(resolve_route(&path, raw, capability.flatten(), names, report));
        sound.push(report.errors() == errors && report.is_sound(&path));
    }
    if routes.len() == raw.routes.len() {
        coverage::warn(&raw.routes, &routes, &sound, report);
    }
    let pools = pools.finish(report);
    attach(&mut routes, &pools, names.capability_count());
    (routes, pools)
}

fn resolve_route(
    path: &str,
    raw: &document::Route,
    capability: Option<CapabilityId>,
    names: &Names<'_>,
    report: &mut Report,
) -> Option<Route> {
    report.check(&format!("{path}/name"), check_name(&raw.name));
    let condition = raw
        .condition
        .as_deref()
        .and_then(|source| condition(&format!("{path}/condition"), source, names, report));
    let timeouts = timeouts(&format!("{path}/timeouts"), &raw.timeouts, report);
    let cache_ttl = raw
        .cache
        .as_ref()
        .and_then(|cache| report.check(&format!("{path}/cache/ttl"), units::duration(&cache.ttl)));
    let mut constraints = matchers::resolve(&format!("{path}/match"), &raw.matches, names, report);
    constraints.extend(condition.iter().flat_map(|condition| condition.constraints.iter().cloned()));
    Some(Route {
        name: raw.name.clone(),
        constraints,
        condition,
        capability,
        pools: Vec::new(),
        timeouts: timeouts?,
        attempts: raw.retry.attempts,
        retry_budget: raw.retry.budget,
        strict: raw.translation.strict,
        cache: cache_ttl,
        tags: tags(&format!("{path}/tags"), &raw.tags, report),
    })
}

fn condition(path: &str, source: &str, names: &Names<'_>, report: &mut Report) -> Option<Condition> {
    let backends_are_known = report.is_sound("/backends");
    let check = |name: &str| if backends_are_known { names.check_target(name) } else { Ok(()) };
    let condition = Condition::compile(source, &check)
        .map_err(|findings| {
            for at in findings {
                report.text_error(path, source, at.offset, at.finding);
            }
        })
        .ok()?;
    check_words(path, &condition, names, report);
    Some(condition)
}

/// Refuses a comparison with a word that the field can never be.
fn check_words(path: &str, condition: &Condition, names: &Names<'_>, report: &mut Report) {
    for constraint in &condition.constraints {
        let Accepts::Texts(patterns) = &constraint.accepts else { continue };
        for pattern in patterns {
            match (&constraint.field, pattern) {
                (Field::Text(TextField::Capability), Pattern::Exact(name)) => {
                    names.find_capability(path, name, report);
                }
                (Field::Text(TextField::Language), Pattern::Exact(name)) => {
                    let known = Language::ALL.iter().map(|language| language.as_str());
                    if !known.clone().any(|known| known == name) {
                        let hint = format!("there are {}", known.collect::<Vec<_>>().join(", "));
                        report.error(path, Finding::new("there is no such language", hint));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Bounded, since every record of the route's requests carries them.
fn tags(path: &str, raw: &[String], report: &mut Report) -> Vec<String> {
    const MOST: usize = 8;
    const MAX_BYTES: usize = 64;
    if raw.len() > MOST {
        let message = format!("there are {} tags, at most {MOST} are allowed", raw.len());
        report.error(path, Finding::new(message, "records of every request carry them"));
    }
    for (index, tag) in raw.iter().enumerate() {
        let path = format!("{path}/{index}");
        report.check(&path, check_text(tag));
        if tag.len() > MAX_BYTES || tag.contains(',') {
            let message = format!("a tag has at most {MAX_BYTES} bytes and no comma");
            report.error(&path, Finding::new(message, "for example team-a"));
        }
    }
    raw.to_vec()
}

fn timeouts(path: &str, raw: &document::Timeouts, report: &mut Report) -> Option<Timeouts> {
    let mut duration =
        |name: &str, text: &str| report.check(&format!("{path}/{name}"), units::duration(text));
    let connect = duration("connect", &raw.connect);
    let first_token = duration("first_token", &raw.first_token);
    let idle = duration("idle", &raw.idle);
    let total = duration("total", &raw.total);
    let timeouts = Timeouts { connect: connect?, first_token: first_token?, idle: idle?, total: total? };
    for (name, timeout) in [("connect", timeouts.connect), ("first_token", timeouts.first_token)] {
        if timeout > timeouts.total && report.is_sound(path) {
            let message = format!("{name} is longer than total ({}) and never elapses", raw.total);
            report.warning(&format!("{path}/{name}"), Finding::new(message, "shorten it, or raise total"));
        }
    }
    Some(timeouts)
}

/// Tells each route its pools.
fn attach(routes: &mut [Route], pools: &[Pool], capabilities: usize) {
    for route in routes.iter_mut() {
        route.pools = vec![None; capabilities];
    }
    for (index, pool) in pools.iter().enumerate() {
        // Where routes were refused, indices are off; then there will be no policy.
        if let Some(route) = routes.get_mut(pool.route.index()) {
            route.pools[pool.capability.index()] = Some(crate::policy::PoolId(index as u32));
        }
    }
}
