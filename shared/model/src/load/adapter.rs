//! The adapter of a backend.

use super::report::Report;
use crate::adapter::Adapter;
use crate::document;
use crate::problem::Finding;
use crate::vendor::{Vendor, Wire};

/// The adapter of the backend at `path`, if it has one.
pub(crate) fn resolve(path: &str, backend: &document::Backend, report: &mut Report) -> Option<Adapter> {
    let raw = backend.adapter.as_ref()?;
    let path = format!("{path}/adapter");
    if Vendor::find(&backend.provider).is_some_and(|vendor| vendor.wire != Wire::Http) {
        let message = format!("a backend of provider `{}` has no use for an adapter", backend.provider);
        report.error(&path, Finding::new(message, "remove it, or write provider: http"));
    }
    let compiled = Adapter::compile(raw).map_err(|faults| {
        for fault in faults {
            let hint = "the guide to generic services shows how adapters are written";
            let (place, text) = (format!("{path}{}", fault.place), text(raw, &fault.place));
            report.text_error(&place, text, fault.offset, Finding::new(fault.reason, hint));
        }
    });
    compiled.ok()
}

/// The string at `place`; empty when what is there is no string.
fn text<'a>(raw: &'a document::Adapter, place: &str) -> &'a str {
    let below = |root: &str, template: &'a Option<serde_json::Value>| {
        template.as_ref()?.pointer(place.strip_prefix(root)?)?.as_str()
    };
    let text = match place {
        "/path" => raw.path.as_deref(),
        "/method" => raw.method.as_deref(),
        _ => below("/request", &raw.request).or_else(|| below("/response", &raw.response)),
    };
    text.unwrap_or_default()
}
