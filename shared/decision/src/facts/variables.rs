//! Facts as CEL variables, each made when a condition names it.

use cel::common::types::{CelBool, CelDouble, CelInt, CelMap, CelMapKey, CelString, CelTimestamp};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use penstock_model::policy::{NumberField, TextField};

use super::Facts;

/// What services take for the temperature when a request sets none.
const USUAL_TEMPERATURE: f64 = 1.0;

impl<'a> Facts<'a> {
    /// Made once per request, and only for conditions that use headers in ways that are no matchers.
    fn header_map(&self) -> &CelMap<'a> {
        self.headers.get_or_init(|| {
            let request = self.request;
            let entry = |name: &'a http::HeaderName| -> Option<(CelMapKey<'a>, Box<dyn Val + 'a>)> {
                let value = request.header(name.as_str())?;
                Some((CelMapKey::String(name.as_str().into()), Box::new(CelString::from(value))))
            };
            let entries: std::collections::HashMap<_, _> = request.headers.keys().filter_map(entry).collect();
            entries.into()
        })
    }
}

impl VariableResolver for Facts<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let text = |value: &'b str| CowVal::owned(CelString::from(value));
        let bool = |value: bool| CowVal::owned(CelBool::from(value));
        let double = |value: f64| CowVal::owned(CelDouble::from(value));
        let request = &self.request;
        Some(match variable {
            "headers" => CowVal::Borrowed(self.header_map()),
            "client_ip" => CowVal::owned(CelString::from(request.client_ip.to_canonical().to_string())),
            "stream" => bool(request.stream),
            "system_prompt" => bool(request.system_prompt),
            "images" => bool(request.images),
            "audio" => bool(request.audio),
            "json_schema" => bool(request.json_schema),
            "temperature" => double(request.temperature.unwrap_or(USUAL_TEMPERATURE)),
            "capability_confidence" => double(self.classification().confidence),
            "now" => CowVal::owned(CelTimestamp::from(self.arrived().fixed_offset())),
            "date" => CowVal::owned(CelString::from(self.date())),
            "backends" => CowVal::Borrowed(&self.backends),
            _ => {
                if let Some(field) = TextField::ALL.iter().find(|field| field.as_str() == variable) {
                    return Some(text(self.text(*field)));
                }
                let field = NumberField::ALL.iter().find(|field| field.as_str() == variable)?;
                let number = i64::try_from(self.number(*field)).unwrap_or(i64::MAX);
                CowVal::owned(CelInt::from(number))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use penstock_model::policy::CONTEXT_FIELDS;

    use super::*;
    use crate::testing::{facts, policy, request};

    #[test]
    fn every_field_of_the_reference_page_has_a_value_of_its_type() {
        let headers = HeaderMap::new();
        let policy = policy(penstock_model::DEMO_POLICY);
        facts(&policy, request(&headers), &["hello"], |facts| {
            for (name, kind, _) in CONTEXT_FIELDS {
                let value = facts.resolve(name).unwrap_or_else(|| panic!("{name} has no value"));
                let found = value.get_type().name().rsplit('.').next().unwrap().to_lowercase();
                assert_eq!(found, kind.split('(').next().unwrap(), "{name}");
            }
            assert!(facts.resolve("tenant").is_none());
        });
    }
}
