//! Warns of routes that are in the way of each other.
//!
//! A route is certainly unreachable when one above it demands nothing but what it demands as well. That several above it
//! take all of its requests together is not noticed, nor what two conditions have in common that are not matchers in
//! disguise. Two routes overlap when they demand something of the same fields, have requests in common, and neither takes
//! all that the other does: then which is first decides, and nothing in them says so. A general route below a special one
//! is how policies are written, and no reason to warn.

use std::collections::HashMap;

use super::report::Report;
use crate::constraint::{Accepts, Constraint, Field};
use crate::document;
use crate::pattern::Pattern;
use crate::policy::Route;
use crate::problem::Finding;

/// So many of a kind are told one by one.
const TOLD: usize = 10;
/// So many pairs of routes are compared. More would take longer than anybody waits for a warning.
const MOST_PAIRS: usize = 1_000_000;

/// Warns of routes that no request can reach, and of those that overlap. `routes` are what `raw` became; `sound` are
/// those without errors.
pub(super) fn warn(raw: &[document::Route], routes: &[Route], sound: &[bool], report: &mut Report) {
    let mut above = Above::new(routes);
    let (mut unreachable, mut overlapping) = (Vec::new(), Vec::new());
    for (index, route) in routes.iter().enumerate() {
        if !sound[index] {
            continue;
        }
        let rivals = above.rivals(route);
        if let Some(&rival) = rivals.iter().find(|&&rival| covers(&routes[rival], route)) {
            unreachable.push((index, rival));
            continue;
        }
        let overlaps =
            |&&rival: &&usize| overlap(&routes[rival], route) && lead_elsewhere(&raw[rival], &raw[index]);
        overlapping.extend(rivals.iter().find(overlaps).map(|&rival| (index, rival)));
        above.insert(index, route);
        if takes_everything(route) {
            warn_of_all_below(index, routes, report);
            break;
        }
    }
    tell(report, &unreachable, routes, |rival| {
        let message =
            format!("never reached: the route `{rival}` above takes every request that this one would");
        Finding::new(message, "move it above that route, or change what one of them matches")
    });
    tell(report, &overlapping, routes, |rival| {
        let message = format!("overlaps the route `{rival}` above: requests that fit both take that one");
        Finding::new(message, "put first the one that is to win, or let them exclude each other")
    });
}

fn tell(report: &mut Report, pairs: &[(usize, usize)], routes: &[Route], finding: impl Fn(&str) -> Finding) {
    for (told, &(index, rival)) in pairs.iter().enumerate().take(TOLD) {
        let mut finding = finding(&routes[rival].name);
        let more = pairs.len() - TOLD.min(pairs.len());
        if told + 1 == TOLD && more > 0 {
            finding.message.push_str(&format!("; the same is true of {more} more routes"));
        }
        report.warning(&format!("/routes/{index}"), finding);
    }
}

fn warn_of_all_below(everything: usize, routes: &[Route], report: &mut Report) {
    let name = &routes[everything].name;
    let message = match routes.len() - everything - 1 {
        0 => return,
        1 => format!("never reached: the route `{name}` above takes every request"),
        _ => format!("never reached, like all below it: the route `{name}` above takes every request"),
    };
    let hint = "move that route to the end, or give it a match";
    report.warning(&format!("/routes/{}", everything + 1), Finding::new(message, hint));
}

fn takes_everything(route: &Route) -> bool {
    route.constraints.is_empty() && route.condition.as_ref().is_none_or(|condition| condition.rest.is_empty())
}

/// Does `above` take every request that `below` would?
fn covers(above: &Route, below: &Route) -> bool {
    let demanded = |constraint: &Constraint| {
        below
            .constraints
            .iter()
            .any(|other| other.field == constraint.field && constraint.accepts.covers(&other.accepts))
    };
    let source = |route: &Route| route.condition.as_ref().map(|condition| condition.source.clone());
    above.constraints.iter().all(demanded) && (is_indexable(above) || source(above) == source(below))
}

/// Is nothing left of its condition?
fn is_indexable(route: &Route) -> bool {
    route.condition.as_ref().is_none_or(|condition| condition.rest.is_empty())
}

/// Do both demand something of the same fields, with requests in common, and neither take all of the other's?
fn overlap(above: &Route, below: &Route) -> bool {
    let meets = |one: &Route, other: &Route| {
        one.constraints.iter().all(|constraint| {
            let mut same =
                other.constraints.iter().filter(|other| other.field == constraint.field).peekable();
            same.peek().is_some() && same.all(|other| constraint.accepts.overlaps(&other.accepts))
        })
    };
    is_indexable(above)
        && is_indexable(below)
        && meets(above, below)
        && meets(below, above)
        && !covers(below, above)
}

fn lead_elsewhere(one: &document::Route, other: &document::Route) -> bool {
    one.targets != other.targets || one.capability != other.capability
}

/// The routes above, found by what they demand.
struct Above<'a> {
    /// How many routes demand this value of this field.
    frequency: HashMap<(&'a Field, &'a str), usize>,
    /// Those that demand one of a few values of a field, under each of these.
    by_value: HashMap<(&'a Field, &'a str), Vec<usize>>,
    others: Vec<usize>,
    pairs_left: usize,
}

impl<'a> Above<'a> {
    fn new(routes: &'a [Route]) -> Self {
        let mut frequency = HashMap::new();
        for value in routes.iter().flat_map(|route| &route.constraints).filter_map(values).flatten() {
            *frequency.entry(value).or_default() += 1;
        }
        Self { frequency, by_value: HashMap::new(), others: Vec::new(), pairs_left: MOST_PAIRS }
    }

    fn insert(&mut self, index: usize, route: &'a Route) {
        let commonness = |values: &Vec<_>| values.iter().map(|value| self.frequency[value]).sum::<usize>();
        match route.constraints.iter().filter_map(values).min_by_key(commonness) {
            Some(values) => {
                for value in values {
                    self.by_value.entry(value).or_default().push(index);
                }
            }
            None => self.others.push(index),
        }
    }

    /// Those above that may cover or overlap `route`, in order.
    fn rivals(&mut self, route: &Route) -> Vec<usize> {
        let values = route.constraints.iter().filter_map(values).flatten();
        let sharing = values.filter_map(|value| self.by_value.get(&value)).flatten();
        let mut rivals: Vec<usize> = sharing.chain(&self.others).copied().take(self.pairs_left).collect();
        self.pairs_left -= rivals.len();
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }
}

/// The values that a constraint lists, if it does not accept others besides.
fn values(constraint: &Constraint) -> Option<Vec<(&Field, &str)>> {
    let Accepts::Texts(patterns) = &constraint.accepts else { return None };
    let exact = |pattern: &'_ Pattern| matches!(pattern, Pattern::Exact(_));
    if !patterns.iter().all(exact) {
        return None;
    }
    let values = patterns.iter().filter_map(|pattern| match pattern {
        Pattern::Exact(text) => Some((&constraint.field, text.as_str())),
        Pattern::Glob(_) => None,
    });
    Some(values.collect())
}
