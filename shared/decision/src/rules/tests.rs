use http::{HeaderMap, HeaderValue};

use super::*;
use crate::testing::{policy, request};

const HEAD: &str = "
version: 1
capabilities: {chat: {default: true}}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}
routes:
";

/// A policy with these routes, and one at the end that takes everything.
fn with_routes(routes: &str) -> Policy {
    policy(&format!("{HEAD}{routes}\n  - name: rest"))
}

fn route_of(policy: &Policy, request: &RequestContext<'_>) -> String {
    let matched = Rules::default().match_route(policy, request);
    assert!(matched.failed.is_empty(), "{:?}", matched.failed);
    policy.routes[matched.route.expect("the last route takes everything").index()].name.clone()
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

#[test]
fn the_first_route_that_matches_decides() {
    let policy =
        with_routes("  - {name: one, match: {models: [gpt-4o*]}}\n  - {name: two, match: {models: [gpt-*]}}");
    let none = HeaderMap::new();
    let model = |model| RequestContext { model, ..request(&none) };
    assert_eq!(route_of(&policy, &model("gpt-4o-mini")), "one");
    assert_eq!(route_of(&policy, &model("gpt-5")), "two");
    assert_eq!(route_of(&policy, &model("qwen")), "rest");
}

#[test]
fn every_matcher_that_is_given_must_hold() {
    let policy = with_routes(
        "  - {name: all, match: {paths: [/v1/chat/*, /v1/x], models: [gpt-*], headers: {X-Tenant: acme*}, stream: true}}",
    );
    let acme = headers(&[("x-tenant", "acme-1")]);
    let good = request(&acme);
    assert_eq!(route_of(&policy, &good), "all");
    assert_eq!(route_of(&policy, &RequestContext { path: "/v1/x", ..good }), "all");
    let none = HeaderMap::new();
    for bad in [
        RequestContext { path: "/v1/embeddings", ..good },
        RequestContext { model: "qwen", ..good },
        RequestContext { stream: false, ..good },
        RequestContext { headers: &none, ..good },
        RequestContext { headers: &headers(&[("x-tenant", "other")]), ..good },
    ] {
        assert_eq!(route_of(&policy, &bad), "rest", "{bad:?}");
    }
}

#[test]
fn conditions_see_every_field_of_the_request() {
    let tenant = headers(&[("x-tenant", "acme"), ("x-biz-type", "risk"), ("x-beta-a", "on")]);
    for condition in [
        "method == 'POST' && path.startsWith('/v1/') && host == 'ai.example'",
        "headers['x-tenant'] == 'acme' && 'x-biz-type' in headers && !('cookie' in headers)",
        "headers.exists(name, name.startsWith('x-beta-') && headers[name] == 'on')",
        "size(headers) == 3 && has(headers.cookie) == false",
        "client_ip == '127.0.0.1' && protocol == 'openai-chat' && model.matches('^gpt-4')",
        "stream && message_count == 2 && system_prompt && !images",
        "prompt_tokens + max_tokens == 1456 && tools == 1 && user == 'u-1'",
        "biz_type == 'risk'",
        "hour == 13 && weekday == 2 && hour >= 9 && hour < 18 && weekday <= 5",
        "zone == 'zone-a' && region == 'eu' && node == 'node-1'",
    ] {
        let policy = with_routes(&format!("  - {{name: one, condition: \"{condition}\"}}"));
        assert_eq!(route_of(&policy, &request(&tenant)), "one", "{condition}");
    }
}

#[test]
fn a_condition_about_an_absent_header_does_not_match_and_is_no_failure() {
    let policy = with_routes("  - {name: one, condition: \"headers['x-tenant'] == 'acme'\"}");
    assert_eq!(route_of(&policy, &request(&HeaderMap::new())), "rest");
    assert_eq!(route_of(&policy, &request(&headers(&[("x-tenant", "acme")]))), "one");
}

#[test]
fn a_condition_that_cannot_be_evaluated_does_not_match_and_is_reported() {
    let policy = with_routes("  - {name: one, condition: \"100 / max_tokens > 1\"}");
    let none = HeaderMap::new();
    let matched = Rules::default().match_route(&policy, &RequestContext { max_tokens: 0, ..request(&none) });
    assert_eq!(matched.route, Some(RouteId(1)));
    let [failure] = matched.failed.as_slice() else { panic!("{:?}", matched.failed) };
    assert_eq!(failure.route, RouteId(0));
    assert!(failure.error.to_string().to_lowercase().contains("divi"), "{}", failure.error);
}

#[test]
fn a_condition_is_not_evaluated_where_a_matcher_has_failed_already() {
    let policy =
        with_routes("  - {name: one, match: {models: [other]}, condition: \"100 / max_tokens > 1\"}");
    let none = HeaderMap::new();
    assert_eq!(route_of(&policy, &RequestContext { max_tokens: 0, ..request(&none) }), "rest");
}

#[test]
fn without_a_route_that_matches_there_is_none() {
    let policy = policy(&format!("{HEAD}  - {{name: one, match: {{models: [other]}}}}"));
    let matched = Rules::default().match_route(&policy, &request(&HeaderMap::new()));
    assert_eq!(matched.route, None);
}

#[test]
fn a_header_that_is_no_text_is_as_good_as_absent() {
    let mut binary = HeaderMap::new();
    binary.insert("x-tenant", HeaderValue::from_bytes(b"\xff").unwrap());
    let policy = with_routes(
        "  - {name: one, match: {headers: {x-tenant: \"*\"}}}\n  - {name: two, condition: \"'x-tenant' in headers\"}",
    );
    assert_eq!(route_of(&policy, &request(&binary)), "rest");
}
