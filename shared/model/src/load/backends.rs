//! Backends of a document, and the targets they make.

use std::collections::HashSet;
use std::sync::Arc;

use super::adapter;
use super::names::{Names, check_name, check_text};
use super::report::Report;
use super::service::{self, Service};
use super::source::escape;
use crate::document::{self, BackendCapabilities, Document};
use crate::policy::{Backend, BackendId, CapabilityId, Credential, Feature, Features, Price, Target};
use crate::price::nanos;
use crate::problem::Finding;
use crate::vendor::{MaxTokens, Vendor};

/// All backends and all targets, without those that are refused.
pub(crate) fn resolve(raw: &Document, names: &Names<'_>, report: &mut Report) -> (Vec<Backend>, Vec<Target>) {
    let mut backends = Vec::new();
    let mut targets = Vec::new();
    let mut currency = None;
    for (id, (name, backend)) in names.backends().zip(&raw.backends) {
        let path = format!("/backends/{}", escape(name));
        report.check(&path, check_name(name));
        targets.extend(models(&path, id, backend, &mut currency, report));
        backends.extend(resolve_backend(&path, id, name, backend, names, report));
    }
    if raw.backends.is_empty() {
        report.error("/backends", Finding::new("there is no backend", "add at least one"));
    }
    (backends, targets)
}

fn resolve_backend(
    path: &str,
    id: BackendId,
    name: &str,
    raw: &document::Backend,
    names: &Names<'_>,
    report: &mut Report,
) -> Option<Backend> {
    check_capabilities(path, &raw.capabilities, names, report);
    let service = service::resolve(path, raw, report);
    let credential = raw
        .credential
        .as_deref()
        .map(|reference| report.check(&format!("{path}/credential"), credential(reference)));
    if let Some(zone) = &raw.zone {
        report.check(&format!("{path}/zone"), check_text(zone));
    }
    let residency = raw.residency.as_ref().or(raw.region.as_ref());
    if let Some(residency) = &raw.residency {
        report.check(&format!("{path}/residency"), check_text(residency));
    }
    let adapter = adapter::resolve(path, raw, report);
    let capabilities = (0..names.capability_count() as u32).map(CapabilityId);
    let Service { vendor, address, settings } = service?;
    Some(Backend {
        name: name.to_owned(),
        vendor,
        address,
        settings,
        credential: credential.flatten(),
        zone: raw.zone.clone(),
        residency: residency.cloned(),
        capability_match: capabilities.map(|capability| names.capability_match(id, capability)).collect(),
        adapter: adapter.map(Arc::new),
    })
}

fn check_capabilities(path: &str, raw: &BackendCapabilities, names: &Names<'_>, report: &mut Report) {
    match raw {
        BackendCapabilities::List(list) => {
            let mut seen = HashSet::new();
            for (index, name) in list.iter().enumerate() {
                let path = format!("{path}/capabilities/{index}");
                names.find_capability(&path, name, report);
                if !seen.insert(name) {
                    report.warning(
                        &path,
                        Finding::new(format!("`{name}` is listed twice"), "remove one of the two"),
                    );
                }
            }
        }
        BackendCapabilities::Graded(graded) => {
            for (name, value) in graded {
                let path = format!("{path}/capabilities/{}", escape(name));
                names.find_capability(&path, name, report);
                if !(0.0..=1.0).contains(value) {
                    report.error(&path, Finding::new("must be from 0 to 1", "1 is a perfect match, 0 none"));
                }
            }
        }
    }
}

/// Reads `env:NAME` or `file:/path`. Never repeats `reference`: it may be the key itself.
fn credential(reference: &str) -> Result<Credential, Finding> {
    let variable = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match reference.split_once(':') {
        Some(("env", name)) if variable(name) => Ok(Credential::Env(name.to_owned())),
        Some(("file", path)) if path.starts_with('/') && !path.contains('\0') => {
            Ok(Credential::File(path.to_owned()))
        }
        Some(("env", _)) => Err(Finding::new(
            "not the name of an environment variable",
            "letters, digits and underscores: env:OPENAI_API_KEY",
        )),
        Some(("file", _)) => Err(Finding::new("not an absolute path", "write file:/path/to/the/key")),
        _ => Err(Finding::new(
            "a credential is a reference, never the key itself",
            "put the key into an environment variable of the proxy and write env:NAME, or into a file and write file:/path",
        )),
    }
}

/// The targets of one backend. `currency` is the one that all prices so far are in.
fn models(
    path: &str,
    backend: BackendId,
    raw: &document::Backend,
    currency: &mut Option<String>,
    report: &mut Report,
) -> Vec<Target> {
    if raw.models.is_empty() {
        report
            .error(&format!("{path}/models"), Finding::new("the backend has no model", "name at least one"));
    }
    let vendor = Vendor::find(&raw.provider);
    let usual_name = vendor.map_or(MaxTokens::AsGiven, |vendor| vendor.parameters.max_tokens);
    // An answer that is reshaped is read as a whole.
    let whole = raw.adapter.as_ref().is_some_and(|adapter| adapter.response.is_some());
    let usually_lacks = vendor.map_or(Features::default(), Vendor::lacks).with(Feature::Streaming, whole);
    let mut seen = HashSet::new();
    let mut targets = Vec::new();
    for (index, model) in raw.models.iter().enumerate() {
        let path = format!("{path}/models/{index}");
        let name_path = format!("{path}/name");
        report.check(&name_path, check_text(&model.name));
        if !seen.insert(&model.name) {
            let finding =
                Finding::new(format!("the model `{}` is listed twice", model.name), "remove one of the two");
            report.error(&name_path, finding);
        }
        targets.push(Target {
            backend,
            model: model.name.clone(),
            model_json: serde_json::Value::from(model.name.as_str()).to_string(),
            price: model
                .price
                .as_ref()
                .and_then(|raw| price(&format!("{path}/price"), raw, currency, report)),
            context_window: model.context_window,
            lacks: model.supports.lacks(usually_lacks),
            max_tokens_name: model.max_tokens_name.unwrap_or(usual_name),
            default_max_tokens: model.default_max_tokens.into(),
        });
    }
    targets
}

fn price(
    path: &str,
    raw: &document::Price,
    currency: &mut Option<String>,
    report: &mut Report,
) -> Option<Price> {
    let currency_path = format!("{path}/currency");
    let is_code = raw.currency.len() == 3 && raw.currency.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_code {
        report.error(
            &currency_path,
            Finding::new("not a currency", "three capital letters as in ISO 4217: USD, CNY"),
        );
    } else if *currency.get_or_insert_with(|| raw.currency.clone()) != raw.currency {
        let message = format!("other prices are in {}", currency.as_deref().unwrap_or_default());
        // The field may be left out: then the price as a whole is the place.
        report.error(
            &currency_path,
            Finding::new(message, "prices are compared: write all of them in one currency"),
        );
    }
    let mut given = |name: &str, text: &str| report.check(&format!("{path}/{name}"), nanos(text));
    let input = given("input", &raw.input);
    let output = given("output", &raw.output);
    let mut or = |name: &str, text: &Option<String>, other: Option<u64>| match text {
        Some(text) => given(name, text),
        None => other,
    };
    let cached_input = or("cached_input", &raw.cached_input, input);
    let cache_write = or("cache_write", &raw.cache_write, input);
    let cache_write_1h = or("cache_write_1h", &raw.cache_write_1h, cache_write);
    Some(Price {
        currency: raw.currency.clone(),
        input: input?,
        cached_input: cached_input?,
        cache_write: cache_write?,
        cache_write_1h: cache_write_1h?,
        output: output?,
    })
}
