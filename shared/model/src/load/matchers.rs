//! What a route matches.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use http::HeaderName;
use ipnet::IpNet;

use super::names::{Names, check_text};
use super::report::Report;
use super::source::escape;
use crate::constraint::{Constraint, Field, NumberField, TextField, address_number};
use crate::document::{Language, Match, TokenRange};
use crate::pattern::Pattern;
use crate::problem::Finding;
use crate::window;

/// Every matcher as a constraint. One that takes every value is none.
pub(super) fn resolve(path: &str, raw: &Match, names: &Names<'_>, report: &mut Report) -> Vec<Constraint> {
    use NumberField::{Audio, Images, JsonSchema, MaxTokens, PromptTokens, Stream, Tools};
    let mut matchers = Matchers { path, report, found: Vec::new() };
    matchers.texts("methods", TextField::Method, &raw.methods, check_method);
    matchers.texts("paths", TextField::Path, &raw.paths, check_path);
    matchers.texts("hosts", TextField::Host, &raw.hosts, check_host);
    matchers.texts("models", TextField::Model, &raw.models, check_text);
    matchers.texts("biz_types", TextField::BizType, &raw.biz_types, check_text);
    matchers.texts("users", TextField::User, &raw.users, check_text);
    matchers.headers(raw);
    let flags =
        [(Stream, raw.stream), (Images, raw.images), (Audio, raw.audio), (JsonSchema, raw.json_schema)];
    for (field, wanted) in flags {
        matchers.flag(field, wanted, 1);
    }
    matchers.flag(Tools, raw.tools, u128::MAX);
    matchers.tokens("prompt_tokens", PromptTokens, raw.prompt_tokens.as_ref());
    matchers.tokens("max_tokens", MaxTokens, raw.max_tokens.as_ref());
    matchers.networks(&raw.networks);
    if let Some(percent) = raw.percent.filter(|percent| *percent < 100) {
        matchers.numbers(NumberField::Bucket, vec![0..=u128::from(percent.max(1)) - 1]);
    }
    matchers.time(raw);
    matchers.languages(&raw.languages);
    matchers.capabilities(&raw.capabilities, names);
    matchers.found
}

struct Matchers<'a> {
    path: &'a str,
    report: &'a mut Report,
    found: Vec<Constraint>,
}

impl Matchers<'_> {
    fn numbers(&mut self, field: NumberField, ranges: Vec<RangeInclusive<u128>>) {
        self.found.push(Constraint::numbers(Field::Number(field), ranges));
    }

    fn texts(
        &mut self,
        name: &str,
        field: TextField,
        raw: &[String],
        check: fn(&str) -> Result<(), Finding>,
    ) {
        let found = patterns(&format!("{}/{name}", self.path), raw, check, self.report);
        if !found.is_empty() && !found.iter().any(Pattern::matches_all) {
            self.found.push(Constraint::texts(Field::Text(field), found));
        }
    }

    fn exact(&mut self, field: TextField, names: impl Iterator<Item = String>) {
        let names: Vec<Pattern> = names.map(Pattern::Exact).collect();
        if !names.is_empty() {
            self.found.push(Constraint::texts(Field::Text(field), names));
        }
    }

    fn headers(&mut self, raw: &Match) {
        let mut seen: Vec<HeaderName> = Vec::new();
        for (name, pattern) in &raw.headers {
            let path = format!("{}/headers/{}", self.path, escape(name));
            self.report.check(&path, check_text(pattern));
            let Ok(name) = HeaderName::try_from(name) else {
                self.report.error(&path, Finding::new("not the name of a header", "for example x-tenant"));
                continue;
            };
            if seen.contains(&name) {
                let message = format!("the header `{name}` is given twice");
                self.report.error(&path, Finding::new(message, "header names ignore case"));
            }
            seen.push(name.clone());
            self.found.push(Constraint::texts(Field::Header(name), vec![Pattern::new(pattern)]));
        }
    }

    /// `most` is what the field is at most when it is set.
    fn flag(&mut self, field: NumberField, wanted: Option<bool>, most: u128) {
        if let Some(wanted) = wanted {
            self.numbers(field, vec![if wanted { 1..=most } else { 0..=0 }]);
        }
    }

    fn tokens(&mut self, name: &str, field: NumberField, raw: Option<&TokenRange>) {
        let Some(TokenRange { min, max }) = raw else { return };
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let finding = Finding::new("min is more than max", "exchange them: both ends are included");
            self.report.error(&format!("{}/{name}", self.path), finding);
            return;
        }
        let range = u128::from(min.unwrap_or(0))..=max.map_or(u128::MAX, u128::from);
        if range != (0..=u128::MAX) {
            self.numbers(field, vec![range]);
        }
    }

    fn networks(&mut self, raw: &[String]) {
        let mut ranges = Vec::new();
        for (index, text) in raw.iter().enumerate() {
            let path = format!("{}/networks/{index}", self.path);
            ranges.extend(self.report.check(&path, network(text)));
        }
        if !raw.is_empty() {
            self.numbers(NumberField::ClientIp, ranges);
        }
    }

    fn time(&mut self, raw: &Match) {
        let Some(window) = &raw.time else { return };
        match window::minutes(window) {
            Ok((zone, ranges)) => self.found.push(Constraint::numbers(Field::WeekMinute(zone), ranges)),
            Err(findings) => {
                for (field, finding) in findings {
                    self.report.error(&format!("{}/time/{field}", self.path), finding);
                }
            }
        }
    }

    fn languages(&mut self, raw: &[Language]) {
        if !Language::ALL.iter().all(|language| raw.contains(language)) {
            self.exact(TextField::Language, raw.iter().map(|language| language.as_str().to_owned()));
        }
    }

    fn capabilities(&mut self, raw: &[String], names: &Names<'_>) {
        for (index, name) in raw.iter().enumerate() {
            names.find_capability(&format!("{}/capabilities/{index}", self.path), name, self.report);
        }
        self.exact(TextField::Capability, raw.iter().cloned());
    }
}

/// The patterns of a list.
pub(super) fn patterns(
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

fn check_method(method: &str) -> Result<(), Finding> {
    check_text(method)?;
    let good = method.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_*".contains(&byte));
    good.then_some(()).ok_or_else(|| Finding::new("not a method", "in capitals, for example GET"))
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

fn check_host(pattern: &str) -> Result<(), Finding> {
    check_text(pattern)?;
    if pattern.chars().any(|c| c.is_uppercase() || c == '/' || c.is_whitespace()) {
        return Err(Finding::new("not the name of a host", "in lower case, without scheme and path"));
    }
    // An IPv6 address has colons, too, but stands in brackets.
    if pattern.rsplit_once(':').is_some_and(|(host, _)| !host.contains('[') || host.contains(']')) {
        return Err(Finding::new(
            "hosts are matched without their port",
            "remove the colon and what follows",
        ));
    }
    Ok(())
}

/// The addresses of a network, from the first to the last.
fn network(text: &str) -> Result<RangeInclusive<u128>, Finding> {
    let wrong = || Finding::new("not a network", "write an address, or as 10.0.0.0/8 or 2001:db8::/32");
    let network: IpNet = match text.parse::<IpAddr>() {
        Ok(address) => address.into(),
        Err(_) => text.parse().map_err(|_| wrong())?,
    };
    if network.trunc() != network {
        let message = format!("the address has bits beyond its prefix of {}", network.prefix_len());
        return Err(Finding::new(message, format!("did you mean {}?", network.trunc())));
    }
    Ok(address_number(network.network())..=address_number(network.broadcast()))
}
