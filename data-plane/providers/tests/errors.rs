//! What each vendor's errors mean: every case of `fixtures/errors/VENDOR.json`, written from the vendors' documentation.
//!
//! A case is an answer and what is to be done about it. `status` is null for an error inside a stream; with 200 the body is
//! a whole answer. `wait_ms` is how long the key is left alone, and null when the answer does not say.

#![expect(clippy::unwrap_used, reason = "a test may fail at once")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use penstock_model::Vendor;
use penstock_model::outcome::Outcome;
use penstock_model::vendor::{Meaning, common_errors};
use penstock_providers::classify::{Classified, classify, classify_success};
use penstock_providers::vendor_error::VendorError;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Value,
    means: Meaning,
    #[serde(default)]
    wait_ms: Option<u64>,
}

/// All vendors but those whose services speak no protocol of ours: the errors of these pass as they are.
fn talking() -> impl Iterator<Item = &'static Vendor> {
    Vendor::all().iter().filter(|vendor| !vendor.wire.is_generic())
}

fn cases(vendor: &Vendor) -> Vec<Case> {
    let file = format!("fixtures/errors/{}.json", vendor.name);
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file));
    serde_json::from_str(&text.unwrap_or_else(|_| panic!("{file} is missing"))).unwrap()
}

impl Case {
    fn body(&self) -> Vec<u8> {
        match &self.body {
            Value::String(text) => text.clone().into_bytes(),
            json => json.to_string().into_bytes(),
        }
    }

    fn classify(&self, vendor: &Vendor) -> Classified {
        if self.status == Some(200) {
            return classify_success(vendor, &self.body()).expect("it is an error");
        }
        let header = |(name, value): (&String, &String)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = self.headers.iter().map(header).collect();
        let status = self.status.map(|status| StatusCode::from_u16(status).unwrap());
        classify(vendor, status, &headers, VendorError::read(&self.body()), SystemTime::UNIX_EPOCH)
    }
}

#[test]
fn every_error_of_every_vendor_means_what_its_fixture_says() {
    for vendor in talking() {
        for case in cases(vendor) {
            let classified = case.classify(vendor);
            assert_eq!(classified.meaning, case.means, "{}: {case:?}", vendor.name);
            let wait = classified.limit.wait.map(|wait| wait.as_millis() as u64);
            assert_eq!(wait, case.wait_ms, "{}: {case:?}", vendor.name);
        }
    }
}

#[test]
fn the_outcome_follows_from_the_meaning() {
    for vendor in talking() {
        for case in cases(vendor) {
            let expected = match case.means {
                Meaning::RateLimited => Outcome::RateLimited,
                Meaning::Overloaded => Outcome::Overloaded,
                Meaning::ServerError => Outcome::ServerError,
                Meaning::Credential => Outcome::CredentialRejected,
                Meaning::Client | Meaning::TooLong => Outcome::ClientError,
                Meaning::ContentFilter => Outcome::ContentFiltered,
            };
            assert_eq!(case.classify(vendor).outcome, expected, "{}: {case:?}", vendor.name);
        }
    }
}

/// Services on one's own machines have no accounts and no filter.
#[test]
fn every_vendor_has_an_error_of_each_class_that_it_knows() {
    for vendor in talking() {
        let cases = cases(vendor);
        let has = |meaning: Meaning| cases.iter().any(|case| case.means == meaning);
        assert!(
            [Meaning::Client, Meaning::ServerError, Meaning::Overloaded].into_iter().all(has),
            "{}",
            vendor.name
        );
        let own = ["ollama", "ollama-openai"].contains(&vendor.name.as_str());
        assert!(
            own || [Meaning::RateLimited, Meaning::Credential, Meaning::TooLong].into_iter().all(has),
            "{}",
            vendor.name
        );
    }
}

#[test]
fn every_rule_of_every_vendor_has_a_case() {
    for vendor in talking() {
        let cases = cases(vendor);
        for rule in &vendor.errors {
            let mentioned = |text: &str| {
                let matching = cases.iter().filter(|case| case.means == rule.means);
                matching.into_iter().any(|case| {
                    let whole = format!("{:?} {}", case.headers, case.body).to_lowercase();
                    whole.contains(&text.to_lowercase())
                })
            };
            for text in rule.codes.iter().chain(&rule.message) {
                assert!(mentioned(text), "{}: no case for `{text}`", vendor.name);
            }
            let status = |case: &Case| case.status == rule.status && case.means == rule.means;
            assert!(rule.status.is_none() || cases.iter().any(status), "{}: {rule:?}", vendor.name);
        }
    }
}

#[test]
fn no_code_stands_in_two_rules_of_one_list() {
    let lists = Vendor::all().iter().map(|vendor| &*vendor.errors).chain([common_errors()]);
    for rules in lists {
        let unconditional = rules.iter().filter(|rule| rule.status.is_none() && rule.message.is_none());
        let mut codes: Vec<String> =
            unconditional.flat_map(|rule| &rule.codes).map(|code| code.to_ascii_lowercase()).collect();
        codes.sort_unstable();
        assert!(codes.windows(2).all(|pair| pair[0] != pair[1]), "{codes:?}");
    }
}
