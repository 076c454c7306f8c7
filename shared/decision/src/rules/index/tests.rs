use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue};
use penstock_model::Policy;
use proptest::prelude::*;

use crate::context::RequestContext;
use crate::rules::Rules;
use crate::testing::{facts, policy, request};

/// Matchers over values that requests have as well.
fn matcher() -> impl Strategy<Value = String> {
    let model = prop::sample::select(vec!["gpt-4o", "gpt-4*", "gpt-*", "*-mini", "q*n", "*", "qwen", "g*o"]);
    let list = |name: &'static str, values: Vec<&'static str>| {
        prop::collection::vec(prop::sample::select(values), 1..3)
            .prop_map(move |values| format!("{name}: [\"{}\"]", values.join("\", \"")))
    };
    prop_oneof![
        prop::collection::vec(model, 1..3)
            .prop_map(|models| format!("models: [\"{}\"]", models.join("\", \""))),
        list("biz_types", vec!["risk", "ocr", "r*"]),
        list("users", vec!["u-1", "u-*", "*1", "长*"]),
        list("methods", vec!["GET", "POST"]),
        list("hosts", vec!["*.example", "ai.example"]),
        list("capabilities", vec!["chat", "code"]),
        list("languages", vec!["zh", "en", "other"]),
        list("networks", vec!["10.0.0.0/8", "10.1.0.0/16", "127.0.0.1", "::/0"]),
        prop_oneof![Just("acme"), Just("ac*"), Just("*")]
            .prop_map(|x| format!("headers: {{x-tenant: \"{x}\"}}")),
        any::<bool>().prop_map(|wanted| format!("stream: {wanted}")),
        any::<bool>().prop_map(|wanted| format!("tools: {wanted}")),
        (0..4_u32, 0..4_u32).prop_map(|(a, b)| format!(
            "prompt_tokens: {{min: {}, max: {}}}",
            a.min(b),
            a.max(b)
        )),
        (1..=100_u32).prop_map(|percent| format!("percent: {percent}")),
        (0..24_u32, 0..24_u32).prop_map(|(from, more)| {
            format!(
                "time: {{zone: Asia/Shanghai, from: \"{from:02}:00\", to: \"{:02}:30\"}}",
                (from + more) % 24
            )
        }),
    ]
}

fn part_of_condition() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "model == 'gpt-4o'",
        "model in ['qwen', 'gpt-4o-mini']",
        "model.startsWith('gpt-')",
        "model != 'qwen'",
        "headers['x-tenant'] == 'acme'",
        "headers['x-tenant'].startsWith('ac')",
        "stream",
        "!stream",
        "prompt_tokens > 1",
        "2 >= prompt_tokens",
        "prompt_tokens in [1, 3]",
        "user == 'u-1' || stream",
        "hour('Asia/Shanghai') >= 12",
        "language == 'zh'",
        "capability == 'code'",
        "capability_confidence > 0.5",
        "client_ip == '10.1.0.1'",
        "100 / prompt_tokens > 40",
        "biz_type != ''",
    ])
}

fn route() -> impl Strategy<Value = String> {
    let matchers = prop::collection::vec(matcher(), 0..4);
    let parts = prop::collection::vec(part_of_condition(), 0..3);
    (matchers, parts).prop_map(|(matchers, parts)| {
        // Each matcher once.
        let mut seen = Vec::new();
        let first = |matcher: &String| {
            let name = matcher.split(':').next().unwrap_or_default().to_owned();
            let new = !seen.contains(&name);
            seen.push(name);
            new
        };
        let matchers: Vec<String> = matchers.into_iter().filter(first).collect();
        let mut route = format!("match: {{{}}}", matchers.join(", "));
        if !parts.is_empty() {
            write!(route, ", condition: \"{}\"", parts.join(" && ")).unwrap();
        }
        route
    })
}

fn compiled(routes: &[String]) -> Policy {
    let mut document = "version: 1
capabilities: {chat: {default: true}, code: {keywords: [code, 代码]}}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat, code], models: [{name: m}]}
routes:
"
    .to_owned();
    for (index, route) in routes.iter().enumerate() {
        writeln!(document, "  - {{name: r{index}, {route}}}").unwrap();
    }
    policy(&document)
}

#[derive(Debug, Clone)]
struct Asked {
    model: &'static str,
    user: &'static str,
    method: &'static str,
    host: &'static str,
    client: &'static str,
    headers: [Option<&'static str>; 2],
    text: &'static str,
    stream: bool,
    numbers: (u64, u32, u64),
}

fn asked() -> impl Strategy<Value = Asked> {
    let one_of = |values: &'static [&'static str]| prop::sample::select(values);
    let header = |values: &'static [&'static str]| prop::option::of(prop::sample::select(values));
    (
        one_of(&["gpt-4o", "gpt-4o-mini", "gpt-5", "qwen", "qn", ""]),
        one_of(&["u-1", "u-2", "长短", ""]),
        one_of(&["GET", "POST", "PUT"]),
        one_of(&["ai.example", "AI.example:80", "other"]),
        one_of(&["10.1.0.1", "10.2.0.1", "127.0.0.1", "2001:db8::1", "::ffff:10.1.0.1"]),
        [header(&["acme", "ac", "x"]), header(&["risk", "ocr", ""])],
        one_of(&["some code", "写代码", "hello", "你好", ""]),
        any::<bool>(),
        (0..5_u64, 0..2_u32, 0..7 * 24_u64),
    )
        .prop_map(|(model, user, method, host, client, headers, text, stream, numbers)| Asked {
            model,
            user,
            method,
            host,
            client,
            headers,
            text,
            stream,
            numbers,
        })
}

fn check(policy: &Policy, rules: &Rules, asked: &Asked) -> Result<(), TestCaseError> {
    let mut headers = HeaderMap::new();
    for (name, value) in ["x-tenant", "x-biz-type"].into_iter().zip(asked.headers) {
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    let (prompt_tokens, tools, hour) = asked.numbers;
    let request = RequestContext {
        model: asked.model,
        user: asked.user,
        method: asked.method,
        host: asked.host,
        client_ip: asked.client.parse().unwrap(),
        stream: asked.stream,
        prompt_tokens,
        tools,
        unix_seconds: 1_796_130_300 + hour * 3_600,
        request_id: asked.text,
        ..request(&headers)
    };
    facts(policy, request, &[asked.text], |facts| {
        prop_assert_eq!(rules.match_route(facts).route, rules.scan(facts));
        Ok(())
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_a_look_at_every_route_finds(
        routes in prop::collection::vec(route(), 1..150),
        requests in prop::collection::vec(asked(), 40),
    ) {
        let policy = compiled(&routes);
        let rules = Rules::new(&policy);
        for asked in &requests {
            check(&policy, &rules, asked)?;
        }
    }
}

#[test]
fn more_values_than_a_table_tells_apart_are_still_told_apart() {
    let routes: Vec<String> = (0..1_000)
        .map(|index| {
            let long = "x".repeat(60);
            format!("match: {{models: [\"{long}{index}-*\"], prompt_tokens: {{min: {index}, max: {index}}}}}")
        })
        .collect();
    let policy = compiled(&routes);
    let rules = Rules::new(&policy);
    let headers = HeaderMap::new();
    for index in [0, 1, 63, 64, 500, 999] {
        let model = format!("{}{index}-a", "x".repeat(60));
        let request = RequestContext { model: &model, prompt_tokens: index, ..request(&headers) };
        let route = facts(&policy, request, &[], |facts| rules.match_route(facts).route.unwrap());
        assert_eq!(route.index() as u64, index);
        let wrong = RequestContext { prompt_tokens: index + 1, ..request };
        assert_eq!(facts(&policy, wrong, &[], |facts| rules.match_route(facts).route), None);
    }
}

#[test]
fn more_fields_than_are_indexed_are_still_looked_at() {
    let routes: Vec<String> = (0..100).map(|index| format!("match: {{headers: {{x-{index}: a}}}}")).collect();
    let policy = compiled(&routes);
    let rules = Rules::new(&policy);
    for index in [0_usize, 63, 64, 99] {
        let mut headers = HeaderMap::new();
        let name = http::HeaderName::try_from(format!("x-{index}")).unwrap();
        headers.insert(name.clone(), HeaderValue::from_static("a"));
        let route = facts(&policy, request(&headers), &[], |facts| rules.match_route(facts).route);
        assert_eq!(route.map(|route| route.index()), Some(index));
        headers.insert(name, HeaderValue::from_static("b"));
        assert_eq!(facts(&policy, request(&headers), &[], |facts| rules.match_route(facts).route), None);
    }
}
