use http::HeaderMap;

use penstock_model::Policy;

use super::*;
use crate::context::RequestContext;
use crate::rules::Rules;
use crate::testing::{facts, policy, request};

const HEAD: &str = "
version: 1
capabilities: {chat: {default: true}}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}
routes:
";

const ROUTES: &str = "
  - {name: others, match: {stream: false}}
  - {name: embed, match: {paths: [/v1/embeddings], models: [gpt-*]}}
  - {name: qwen, match: {models: [qwen*]}}
  - {name: acme, match: {headers: {accept: \"*\", x-tenant: acme}}}
  - {name: long, condition: \"prompt_tokens > 100000\"}
  - {name: broken, condition: \"1 / (tools - 1) == 1\"}
";

fn missed(policy: &Policy, request: &RequestContext<'_>) -> (Option<RouteId>, Missed) {
    facts(policy, *request, &[], |facts| {
        let rules = Rules::new(policy);
        let matched = rules.match_route(facts);
        let missed = match matched.route {
            Some(route) => Missed::before(route, facts, &matched.failed),
            None => Missed::all(&rules, facts),
        };
        (matched.route, missed)
    })
}

fn named(policy: &Policy, missed: &Missed) -> Vec<(String, &'static str)> {
    missed.iter().map(|(id, miss)| (policy.routes[id.index()].name.clone(), miss.as_str())).collect()
}

#[test]
fn each_route_tells_the_first_demand_that_was_not_met_whether_another_matched_or_none() {
    let mut headers = HeaderMap::new();
    headers.insert("accept", "x".parse().unwrap());
    let request = request(&headers);
    let expected = [
        ("others", "stream"),
        ("embed", "path"),
        ("qwen", "model"),
        ("acme", "header"),
        ("long", "prompt_tokens"),
        ("broken", "condition_failed"),
    ]
    .map(|(name, miss)| (name.to_owned(), miss));
    for rest in ["  - name: rest", ""] {
        let policy = policy(&format!("{HEAD}{ROUTES}{rest}"));
        let (route, missed) = missed(&policy, &request);
        assert_eq!(route.is_some(), !rest.is_empty());
        assert_eq!((named(&policy, &missed), missed.more), (expected.to_vec(), 0));
    }
}

#[test]
fn only_the_nearest_routes_are_noted_and_the_others_counted() {
    let many: String =
        (0..20).map(|n| format!("  - {{name: r{n}, match: {{models: [no-{n}]}}}}\n")).collect();
    let policy = policy(&format!("{HEAD}{many}  - name: rest"));
    let headers = HeaderMap::new();
    let (_, missed) = missed(&policy, &request(&headers));
    assert_eq!(missed.more, 12);
    let names: Vec<_> = named(&policy, &missed).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, (12..20).map(|n| format!("r{n}")).collect::<Vec<_>>());
}

#[test]
fn a_route_matches_exactly_when_nothing_is_missed() {
    let policy = policy(&format!("{HEAD}{ROUTES}"));
    let rules = Rules::new(&policy);
    let mut headers = HeaderMap::new();
    headers.insert("accept", "x".parse().unwrap());
    headers.insert("x-tenant", "acme".parse().unwrap());
    let base = request(&headers);
    for stream in [false, true] {
        for model in ["gpt-4", "qwen-3", ""] {
            for prompt_tokens in [1, 200_000] {
                let request = RequestContext { stream, model, prompt_tokens, ..base };
                facts(&policy, request, &[], |facts| {
                    let mut ids = (0..policy.routes.len() as u32).map(RouteId);
                    let first = ids.find(|&id| rules.why_not(facts, id).is_none());
                    assert_eq!(first, rules.match_route(facts).route, "{request:?}");
                });
            }
        }
    }
    let (_, said) = facts(&policy, base, &[], |facts| rules.why_not(facts, RouteId(5)).unwrap());
    assert!(said.contains("zero"), "{said}");
}
