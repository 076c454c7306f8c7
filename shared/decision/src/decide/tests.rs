use std::borrow::Cow;

use http::HeaderMap;
use penstock_model::condition::NoFacts;

use super::*;
use crate::capability::Classifier;
use crate::context::RequestContext;
use crate::testing::{facts, policy, request};

const DOCUMENT: &str = "
version: 1
capabilities:
  chat: {default: true}
  code: {keywords: [code]}
  vision: {keywords: [picture]}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat, code], models: [{name: m}]}
routes:
  - {name: coder, match: {models: [coder]}, capability: code}
  - {name: streams, match: {stream: true}}
";

fn decided(
    model: &str,
    asked: Option<&str>,
    text: &str,
) -> Result<(String, String, CapabilitySource), Undecided> {
    let policy = policy(DOCUMENT);
    let headers = HeaderMap::new();
    let request = RequestContext { model, ..request(&headers) };
    let asked = asked.map(|name| policy.find_capability(name).unwrap());
    let (classifier, texts) = (Classifier::new(&policy, None), || vec![Cow::Borrowed(text)]);
    let facts = Facts::new(request, &policy, &classifier, asked, &texts, &NoFacts);
    let decided = decide(&Rules::new(&policy), &facts)?;
    let pool = &policy.pools[decided.pool.index()];
    assert_eq!((pool.route, pool.capability), (decided.route, decided.classification.capability));
    let route = policy.routes[decided.route.index()].name.clone();
    let capability = policy.capabilities[pool.capability.index()].name.clone();
    Ok((route, capability, decided.classification.source))
}

fn expect(
    route: &str,
    capability: &str,
    source: CapabilitySource,
) -> Result<(String, String, CapabilitySource), Undecided> {
    Ok((route.to_owned(), capability.to_owned(), source))
}

#[test]
fn the_text_says_what_is_needed() {
    assert_eq!(decided("x", None, "some code"), expect("streams", "code", CapabilitySource::Keyword));
    assert_eq!(decided("x", None, "hello"), expect("streams", "chat", CapabilitySource::Default));
}

#[test]
fn the_client_knows_better_and_the_route_best() {
    assert_eq!(decided("x", Some("chat"), "some code"), expect("streams", "chat", CapabilitySource::Caller));
    assert_eq!(decided("coder", Some("chat"), "hello"), expect("coder", "code", CapabilitySource::Route));
}

#[test]
fn a_guess_gives_way_where_nobody_can_do_it_and_what_was_asked_for_does_not() {
    assert_eq!(decided("x", None, "a picture"), expect("streams", "chat", CapabilitySource::Default));
    let refused = decided("x", Some("vision"), "hello");
    assert_eq!(refused, Err(Undecided::NoBackend { route: RouteId(1), capability: CapabilityId(2) }));
}

#[test]
fn without_a_route_there_is_no_decision() {
    let policy = policy(DOCUMENT);
    let headers = HeaderMap::new();
    let request = RequestContext { model: "x", stream: false, ..request(&headers) };
    let undecided = facts(&policy, request, &[], |facts| decide(&Rules::new(&policy), facts).unwrap_err());
    assert_eq!(undecided, Undecided::NoRoute);
}
