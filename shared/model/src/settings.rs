//! What is particular to one deployment of a vendor's service, and the templates that it fills.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986 section 2.3: what a path segment is left with is safe anywhere.
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The placeholder that stands for the model; the others are names of [`Settings`].
const MODEL: &str = "model";

/// Fields of a backend that only some vendors need. What its vendor's templates need is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The vendor's region.
    pub region: Option<String>,
    /// The resource that is part of the address.
    pub resource: Option<String>,
    /// The Google Cloud project.
    pub project: Option<String>,
    /// The version of the interface.
    pub api_version: Option<String>,
}

impl Settings {
    /// The names of all, in the order of the reference page.
    pub(crate) const NAMES: [&str; 4] = ["region", "resource", "project", "api_version"];

    /// Names and values, in the same order.
    pub(crate) fn all(&self) -> [(&'static str, Option<&str>); 4] {
        let values = [&self.region, &self.resource, &self.project, &self.api_version];
        let mut all = Self::NAMES.map(|name| (name, None));
        for (entry, value) in all.iter_mut().zip(values) {
            entry.1 = value.as_deref();
        }
        all
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.all().into_iter().find(|(known, _)| *known == name)?.1
    }

    /// A base URL with its placeholders filled; `None` when one of them has no value.
    pub(crate) fn fill_url(&self, template: &str) -> Option<String> {
        placeholders(template)
            .all(|name| self.get(name).is_some())
            .then(|| fill(String::new(), template, |name| self.get(name).unwrap_or_default().into()))
    }

    /// `base` and the filled `template`, each value percent-encoded as one segment.
    pub(crate) fn fill_path(&self, base: &str, template: &str, model: &str) -> String {
        let value = |name: &str| match name {
            MODEL => model,
            name => self.get(name).unwrap_or_default(),
        };
        fill(base.to_owned(), template, |name| utf8_percent_encode(value(name), SEGMENT).into())
    }
}

/// The names in braces.
pub(crate) fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// Appends `template` to `out`. A brace without its partner stays as it is.
fn fill<'a>(mut out: String, template: &str, value: impl Fn(&str) -> Cow<'a, str>) -> String {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&value(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings() -> Settings {
        let text = |text: &str| Some(text.to_owned());
        Settings {
            region: text("us-east-1"),
            project: text("example.com:p"),
            api_version: text("2024-10-21"),
            resource: None,
        }
    }

    #[test]
    fn a_model_is_one_segment_whatever_is_in_it() {
        let path = |model: &str| settings().fill_path("/x", "/model/{model}/converse", model);
        assert_eq!(path("gpt-4o_mini.v1~2"), "/x/model/gpt-4o_mini.v1~2/converse");
        assert_eq!(
            path("arn:aws:bedrock:us-east-1:1:inference-profile/us.a:0"),
            "/x/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.a%3A0/converse"
        );
        assert_eq!(path("../{region}?x#通"), "/x/model/..%2F%7Bregion%7D%3Fx%23%E9%80%9A/converse");
    }

    #[test]
    fn settings_are_filled_in_and_a_missing_one_fills_nothing() {
        let template = "/projects/{project}/locations/{region}/m?v={api_version}";
        let expected = "/projects/example.com%3Ap/locations/us-east-1/m?v=2024-10-21";
        assert_eq!(settings().fill_path("", template, "m"), expected);
        assert_eq!(settings().fill_url("https://{region}.h"), Some("https://us-east-1.h".to_owned()));
        assert_eq!(settings().fill_url("https://{region}.{resource}.h"), None);
        assert_eq!(settings().fill_url("https://{what}.h"), None);
        assert_eq!(settings().fill_url("https://{h"), Some("https://{h".to_owned()));
    }

    proptest! {
        #[test]
        fn a_path_is_always_fit_to_be_a_request_target(model in ".*") {
            let path = settings().fill_path("/v1", "/m/{model}:call", &model);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%:".contains(&byte)));
            prop_assert_eq!(path.matches('/').count(), 3);
        }
    }
}
