use http::{HeaderMap, HeaderValue};

use super::*;
use crate::context::RequestContext;
use crate::testing::{facts, policy, request};

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

fn matched(policy: &Policy, request: &RequestContext<'_>, texts: &[&str]) -> RouteMatch {
    facts(policy, *request, texts, |facts| {
        let rules = Rules::new(policy);
        let matched = rules.match_route(facts);
        assert_eq!(matched.route, rules.scan(facts), "with the index and without");
        matched
    })
}

fn route_of(policy: &Policy, request: &RequestContext<'_>) -> String {
    let matched = matched(policy, request, &[]);
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
        "hour('Asia/Shanghai') == 21 && weekday('Pacific/Kiritimati') == 3 && date('UTC') == date",
        "now.getMinutes() == 5 && now > timestamp('2026-12-01T13:00:00Z') && date == '2026-12-01'",
        "temperature == 1.0 && !audio && !json_schema && session == '' && bucket >= 0 && bucket < 100",
        "language == 'other' && capability == 'chat' && capability_confidence == 0.0",
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
    let matched = matched(&policy, &RequestContext { max_tokens: 0, ..request(&none) }, &[]);
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
    let matched = matched(&policy, &request(&HeaderMap::new()), &[]);
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

#[test]
fn a_condition_whose_parts_fail_is_false_where_another_part_is() {
    let policy = with_routes("  - {name: one, condition: \"100 / max_tokens > 1 && user != 'u-1'\"}");
    let none = HeaderMap::new();
    assert_eq!(route_of(&policy, &RequestContext { max_tokens: 0, ..request(&none) }), "rest");
}

#[test]
fn every_typed_matcher_looks_at_its_field() {
    let none = HeaderMap::new();
    let good = RequestContext {
        host: "AI.Example:8443",
        session: "s-1",
        images: true,
        audio: true,
        json_schema: true,
        client_ip: "::ffff:10.1.2.3".parse().unwrap(),
        ..request(&none)
    };
    let risk = headers(&[("x-biz-type", "risk_control")]);
    let bad = |change: fn(&mut RequestContext<'_>)| {
        let mut bad = good;
        change(&mut bad);
        bad
    };
    for (matchers, bad) in [
        ("methods: [GET, POST]", bad(|bad| bad.method = "PUT")),
        ("hosts: [\"*.example\"]", bad(|bad| bad.host = "ai.example.com")),
        ("users: [\"u-*\"]", bad(|bad| bad.user = "v-1")),
        ("networks: [10.0.0.0/8]", bad(|bad| bad.client_ip = "11.0.0.1".parse().unwrap())),
        ("tools: true", bad(|bad| bad.tools = 0)),
        ("images: true", bad(|bad| bad.images = false)),
        ("audio: true", bad(|bad| bad.audio = false)),
        ("json_schema: true", bad(|bad| bad.json_schema = false)),
        ("prompt_tokens: {min: 1200, max: 1200}", bad(|bad| bad.prompt_tokens = 1_201)),
        ("max_tokens: {max: 256}", bad(|bad| bad.max_tokens = 257)),
        ("time: {zone: Asia/Shanghai, from: \"21:00\", to: \"21:06\"}", bad(|bad| bad.unix_seconds += 60)),
    ] {
        let policy = with_routes(&format!("  - {{name: one, match: {{{matchers}}}}}"));
        assert_eq!(route_of(&policy, &good), "one", "{matchers}");
        assert_eq!(route_of(&policy, &bad), "rest", "{matchers}");
    }
    let policy = with_routes("  - {name: one, match: {biz_types: [risk_control]}}");
    assert_eq!(route_of(&policy, &RequestContext { headers: &risk, ..good }), "one");
    assert_eq!(route_of(&policy, &good), "rest");
}

#[test]
fn a_language_and_a_capability_are_those_of_the_text() {
    let head =
        HEAD.replace("{chat: {default: true}}", "{chat: {default: true}, code: {keywords: [code, 代码]}}");
    let policy = policy(&format!(
        "{head}  - {{name: zh-code, match: {{languages: [zh], capabilities: [code]}}}}
  - {{name: code, match: {{capabilities: [code]}}}}
  - {{name: sure, condition: \"capability_confidence > 0.9\"}}
  - name: rest"
    ));
    let none = HeaderMap::new();
    for (text, expected) in
        [("写代码", "zh-code"), ("some code", "code"), ("你好", "rest"), ("hello", "rest")]
    {
        let matched = matched(&policy, &request(&none), &[text]);
        assert_eq!(policy.routes[matched.route.unwrap().index()].name, expected, "{text}");
    }
}

/// The example of the guide: the line of business by day goes to one service, and at night to another.
#[test]
fn a_line_of_business_goes_elsewhere_at_night() {
    let policy = with_routes(
        "  - {name: by-day, match: {biz_types: [risk_control], time: {zone: Asia/Shanghai, from: \"08:00\", to: \"18:00\"}}}
  - {name: at-night, condition: \"biz_type == 'risk_control' && !(hour('Asia/Shanghai') >= 8 && hour('Asia/Shanghai') < 18)\"}",
    );
    let risk = headers(&[("x-biz-type", "risk_control")]);
    // Midnight in Shanghai, 1 December 2026.
    let midnight = 1_796_054_400;
    for hour in 0..24 {
        let request = RequestContext { unix_seconds: midnight + hour * 3_600, ..request(&risk) };
        let expected = if (8..18).contains(&hour) { "by-day" } else { "at-night" };
        assert_eq!(route_of(&policy, &request), expected, "at {hour}");
    }
    assert_eq!(route_of(&policy, &request(&HeaderMap::new())), "rest");
}
