//! Where a backend is: its vendor, its settings, its address.

use super::report::Report;
use crate::document;
use crate::policy::{Address, Settings};
use crate::problem::{Finding, did_you_mean};
use crate::settings::placeholders;
use crate::vendor::{Auth, Vendor};

/// Which service, and where.
pub(crate) struct Service {
    pub(crate) vendor: &'static Vendor,
    pub(crate) address: Address,
    pub(crate) settings: Settings,
}

/// The service of the backend at `path`.
pub(crate) fn resolve(path: &str, raw: &document::Backend, report: &mut Report) -> Option<Service> {
    let vendor = Vendor::find(&raw.provider)?;
    let settings = Settings {
        region: raw.region.clone(),
        resource: raw.resource.clone(),
        project: raw.project.clone(),
        api_version: raw.api_version.clone(),
    };
    for (name, value) in settings.all() {
        if let Some(value) = value {
            report.check(&format!("{path}/{name}"), check_value(name, value));
        }
    }
    let own = raw.base_url.as_deref();
    let of_region = settings.region.as_ref().and_then(|region| vendor.regions.get(region));
    let template = own.or(of_region.map(String::as_str)).or(vendor.base_url.as_deref());
    // A provider that is unknown has been reported and replaced: nothing can be said of what it needs.
    if report.is_sound(&format!("{path}/provider")) {
        if own.is_none() {
            check_region(path, vendor, &settings, report);
        }
        check_settings(path, vendor, template.unwrap_or_default(), &settings, report);
        if template.is_none() {
            let message = format!("`{}` has no address of its own", vendor.name);
            let hint = "write base_url: http://HOST:PORT/v1";
            report.error(&format!("{path}/base_url"), Finding::new(message, hint));
        }
    }
    let address = address(&format!("{path}/base_url"), template?, &settings, report)?;
    Some(Service { vendor, address, settings })
}

/// The values become part of host names and paths.
fn check_value(name: &str, value: &str) -> Result<(), Finding> {
    let label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let (good, hint) = match name {
        "region" | "resource" => (value.bytes().all(label), "letters, digits and dashes"),
        // Projects of an organisation's domain are called `example.com:name`.
        _ => (
            value.bytes().all(|byte| label(byte) || b"._:".contains(&byte)),
            "letters, digits, dashes, dots, underscores and colons",
        ),
    };
    if good && (1..=63).contains(&value.len()) {
        return Ok(());
    }
    Err(Finding::new(format!("not a value for `{name}`"), format!("1 to 63 {hint}")))
}

/// Is what the service needs there, and is what is there needed?
fn check_settings(path: &str, vendor: &Vendor, base_url: &str, settings: &Settings, report: &mut Report) {
    let templates = || vendor.calls.values().map(String::as_str).chain([base_url]);
    for (name, value) in settings.all() {
        // Amazon's signature covers the region, whatever the address.
        let needed = templates().any(|template| placeholders(template).any(|used| used == name))
            || (name == "region" && vendor.auth == Auth::Aws);
        let chooses_url = name == "region" && !vendor.regions.is_empty();
        let path = format!("{path}/{name}");
        match value {
            None if needed => {
                let message = format!("`{}` needs the field `{name}`", vendor.name);
                report.error(&path, Finding::new(message, "add it"));
            }
            Some(_) if !needed && !chooses_url => {
                let message = format!("`{}` does not use the field `{name}`", vendor.name);
                report.warning(&path, Finding::new(message, "remove it, or check the provider"));
            }
            _ => {}
        }
    }
}

/// A vendor whose address does not take just any region: is this one of its own?
fn check_region(path: &str, vendor: &Vendor, settings: &Settings, report: &mut Report) {
    let Some(region) = settings.region.as_deref() else { return };
    let any = vendor.base_url.as_deref().is_some_and(|url| placeholders(url).any(|name| name == "region"));
    if any || vendor.regions.is_empty() || vendor.regions.contains_key(region) {
        return;
    }
    let names: Vec<&str> = vendor.regions.keys().map(String::as_str).collect();
    let hint = did_you_mean(region, names.iter().copied())
        .unwrap_or_else(|| format!("there are {}; any other place needs a base_url", names.join(", ")));
    let message = format!("`{}` has no such region", vendor.name);
    report.error(&format!("{path}/region"), Finding::new(message, hint));
}

fn address(path: &str, template: &str, settings: &Settings, report: &mut Report) -> Option<Address> {
    if placeholders(template).any(|name| !Settings::NAMES.contains(&name)) {
        let hint =
            format!("a base URL may hold {}", Settings::NAMES.map(|name| format!("{{{name}}}")).join(", "));
        report.error(path, Finding::new("there is a placeholder without a meaning", hint));
        return None;
    }
    let url = settings.fill_url(template)?;
    report.check(path, Address::parse(&url))
}
