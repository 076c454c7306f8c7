//! Routes of a document.

use std::collections::HashSet;

use super::names::{Names, check_name, check_text};
use super::pools::{Pools, listed};
use super::report::Report;
use super::source::escape;
use crate::document::{self, Document};
use crate::policy::{CapabilityId, Condition, Pattern, Pool, Route, RouteId, Timeouts};
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
            pools.add(&path, id, targets.as_deref(), capability.flatten(), report);
        }
        routes.extend(resolve_route(&path, raw, capability.flatten(), report));
    }
    warn_of_unreachable(&raw.routes, report);
    let pools = pools.finish(report);
    attach(&mut routes, &pools, names.capability_count());
    (routes, pools)
}

fn resolve_route(
    path: &str,
    raw: &document::Route,
    capability: Option<CapabilityId>,
    report: &mut Report,
) -> Option<Route> {
    report.check(&format!("{path}/name"), check_name(&raw.name));
    let condition_path = format!("{path}/condition");
    let condition = raw.condition.as_deref().map(|source| condition(&condition_path, source, report));
    let timeouts = timeouts(&format!("{path}/timeouts"), &raw.timeouts, report);
    let matches = format!("{path}/match");
    let cache_ttl = raw
        .cache
        .as_ref()
        .and_then(|cache| report.check(&format!("{path}/cache/ttl"), units::duration(&cache.ttl)));
    Some(Route {
        name: raw.name.clone(),
        paths: patterns(&format!("{matches}/paths"), &raw.matches.paths, check_path, report),
        models: patterns(&format!("{matches}/models"), &raw.matches.models, check_text, report),
        headers: headers(&format!("{matches}/headers"), raw, report),
        stream: raw.matches.stream,
        condition: condition.flatten(),
        capability,
        pools: Vec::new(),
        timeouts: timeouts?,
        attempts: raw.retry.attempts,
        retry_budget: raw.retry.budget,
        strict: raw.translation.strict,
        cache: cache_ttl,
    })
}

fn condition(path: &str, source: &str, report: &mut Report) -> Option<Condition> {
    Condition::compile(source)
        .map_err(|findings| {
            for at in findings {
                report.text_error(path, source, at.offset, at.finding);
            }
        })
        .ok()
}

fn patterns(
    path: &str,
    raw: &[String],
    check: fn(&str) -> Result<(), Finding>,
    report: &mut Report,
) -> Vec<Pattern> {
    let pattern = |(index, source): (usize, &String)| {
        report.check(&format!("{path}/{index}"), check(source));
        Pattern::new(source)
    };
    raw.iter().enumerate().map(pattern).collect()
}

fn check_path(pattern: &str) -> Result<(), Finding> {
    check_text(pattern)?;
    if !pattern.starts_with(['/', '*']) {
        return Err(Finding::new("a path begins with a slash", "for example /v1/chat/completions or /v1/*"));
    }
    if pattern.contains('?') {
        return Err(Finding::new(
            "paths are matched without their query",
            "remove the question mark and what follows",
        ));
    }
    Ok(())
}

fn headers(path: &str, raw: &document::Route, report: &mut Report) -> Vec<(String, Pattern)> {
    // The characters of a token, RFC 9110 section 5.6.2.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let mut headers: Vec<(String, Pattern)> = Vec::new();
    for (name, pattern) in &raw.matches.headers {
        let path = format!("{path}/{}", escape(name));
        if name.is_empty() || !name.bytes().all(is_token) {
            report.error(&path, Finding::new("not the name of a header", "for example x-tenant"));
        }
        let name = name.to_ascii_lowercase();
        if headers.iter().any(|(other, _)| *other == name) {
            report.error(
                &path,
                Finding::new(format!("the header `{name}` is given twice"), "header names ignore case"),
            );
        }
        report.check(&path, check_text(pattern));
        headers.push((name, Pattern::new(pattern)));
    }
    headers
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

/// Warns once, of the first route that no request can reach.
fn warn_of_unreachable(routes: &[document::Route], report: &mut Report) {
    let Some(first) = routes.iter().position(takes_everything) else { return };
    let below = routes.len() - first - 1;
    if below == 0 || !report.is_sound(&format!("/routes/{first}")) {
        return;
    }
    let message = match below {
        1 => format!("never reached: the route `{}` above takes every request", routes[first].name),
        _ => format!(
            "never reached, like all below it: the route `{}` above takes every request",
            routes[first].name
        ),
    };
    let hint = "move that route to the end, or give it a match";
    report.warning(&format!("/routes/{}", first + 1), Finding::new(message, hint));
}

fn takes_everything(route: &document::Route) -> bool {
    let any = |patterns: &[String]| {
        patterns.is_empty() || patterns.iter().any(|pattern| Pattern::new(pattern).matches_all())
    };
    let matches = &route.matches;
    any(&matches.paths)
        && any(&matches.models)
        && matches.headers.is_empty()
        && matches.stream.is_none()
        && route.condition.is_none()
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
