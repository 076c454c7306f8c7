use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use http::{HeaderMap, HeaderValue};
use penstock_model::condition::{Fact, FactValue, NoFacts};

use super::*;
use crate::rules::Rules;
use crate::testing::{facts, policy, request};

const HEAD: &str = "
version: 1
capabilities: {chat: {default: true}, code: {keywords: [code]}}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}
routes:
";

/// How often the texts were asked for while the request found its route, and its name.
fn looks(routes: &str, model: &str) -> (u32, String) {
    let policy = policy(&format!("{HEAD}{routes}  - name: rest\n"));
    let (headers, classifier) = (HeaderMap::new(), Classifier::new(&policy, None));
    let looks = AtomicU32::new(0);
    let texts = || {
        looks.fetch_add(1, Relaxed);
        vec![Cow::Borrowed("some code")]
    };
    let request = RequestContext { model, ..request(&headers) };
    let facts = Facts::new(request, &policy, &classifier, None, &texts, &NoFacts);
    let matched = Rules::new(&policy).match_route(&facts).route.unwrap();
    (looks.load(Relaxed), policy.routes[matched.index()].name.clone())
}

#[test]
fn the_text_is_looked_at_only_for_rules_that_need_it_and_once() {
    let rules = "  - {name: one, match: {models: [x]}}
  - {name: two, match: {models: [y], languages: [ja]}}
  - {name: three, match: {models: [z], languages: [en], capabilities: [code]}, condition: \"capability_confidence > 0.5\"}\n";
    assert_eq!(looks(rules, "x"), (0, "one".to_owned()));
    assert_eq!(looks(rules, "y"), (1, "rest".to_owned()), "the language of the text is wanted");
    assert_eq!(looks(rules, "z"), (1, "three".to_owned()), "for everything together");
    assert_eq!(looks(rules, "other"), (0, "rest".to_owned()), "no route that needs it could match");
}

#[test]
fn what_the_client_named_is_not_guessed() {
    let policy = policy(HEAD.replace("routes:\n", "routes: [{name: all}]").as_str());
    let (headers, classifier) = (HeaderMap::new(), Classifier::new(&policy, None));
    let texts = || unreachable!("nobody needs the text");
    let facts =
        Facts::new(request(&headers), &policy, &classifier, policy.find_capability("code"), &texts, &NoFacts);
    assert_eq!(facts.classification().source, CapabilitySource::Caller);
}

#[test]
fn a_host_is_compared_without_its_port_and_its_case() {
    for (host, bare) in [
        ("AI.Example:8080", "ai.example"),
        ("ai.example", "ai.example"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("ai.example:", "ai.example:"),
        ("", ""),
    ] {
        assert_eq!(bare_host(host), bare, "{host}");
    }
}

#[test]
fn a_session_stays_in_its_bucket_and_requests_without_one_spread() {
    let policy = policy(HEAD.replace("routes:\n", "routes: [{name: all}]").as_str());
    let bucket = |session: &'static str, request_id: &str, in_body: &str| {
        let mut headers = HeaderMap::new();
        if !session.is_empty() {
            headers.insert(SESSION, HeaderValue::from_static(session));
        }
        let request = RequestContext { request_id, session: in_body, ..request(&headers) };
        facts(&policy, request, &[], |facts| facts.bucket())
    };
    assert_eq!(bucket("s-1", "a", ""), bucket("s-1", "b", ""));
    assert_eq!(bucket("s-1", "a", "x"), bucket("", "b", "s-1"), "the header goes before the body");
    let mut counts = [0_u32; 100];
    for index in 0..20_000 {
        counts[bucket("", &format!("{index:016x}"), "") as usize] += 1;
    }
    // 200 each, and a standard deviation of 14.
    assert!(counts.iter().all(|count| (130..270).contains(count)), "{counts:?}");
    // The same in every version: whoever was in stays in.
    assert_eq!([bucket("s-1", "", ""), bucket("s-2", "", ""), bucket("", "req-1", "")], [68, 5, 81]);
}

/// Backends about which something is known.
#[derive(Debug)]
struct Known;

impl BackendFacts for Known {
    fn fact(&self, name: &str, fact: Fact) -> Option<FactValue> {
        match (name, fact) {
            ("a", Fact::SuccessRate) => Some(FactValue::Number(0.75)),
            ("a/m", Fact::InFlight) => Some(FactValue::Count(3)),
            ("a", Fact::Breaker) => Some(FactValue::Word("open")),
            _ => None,
        }
    }
}

#[test]
fn conditions_see_how_backends_are_doing() {
    let headers = HeaderMap::new();
    for (condition, expected) in [
        ("backends.a.success_rate < 0.8", "one"),
        ("backends['a'].success_rate > 0.8", "rest"),
        ("backends['a/m'].in_flight == 3 && backends.a.breaker == 'open'", "one"),
        ("backends.a.cost_per_1k_tokens < 5.0", "rest"),
        ("!has(backends.a.cost_per_1k_tokens)", "one"),
    ] {
        let policy =
            policy(&format!("{HEAD}  - {{name: one, condition: \"{condition}\"}}\n  - name: rest\n"));
        let (classifier, texts) = (Classifier::new(&policy, None), Vec::new);
        let facts = Facts::new(request(&headers), &policy, &classifier, None, &texts, &Known);
        let matched = Rules::new(&policy).match_route(&facts);
        assert!(matched.failed.is_empty(), "{condition}: {:?}", matched.failed);
        assert_eq!(policy.routes[matched.route.unwrap().index()].name, expected, "{condition}");
    }
}
