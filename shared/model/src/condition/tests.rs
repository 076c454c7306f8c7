use proptest::prelude::*;

use super::*;

/// Compiles in a policy with one backend.
fn compiled(source: &str) -> Result<Condition, Vec<ConditionFinding>> {
    Condition::compile(source, &|name| match name {
        "a" | "a/m" => Ok(()),
        other => Err(Finding::new(format!("no {other}"), "")),
    })
}

fn findings(source: &str) -> Vec<(usize, String, String)> {
    let findings = compiled(source).expect_err("the condition should be refused");
    findings.into_iter().map(|at| (at.offset, at.finding.message, at.finding.hint)).collect()
}

#[test]
fn what_the_reference_page_promises_compiles() {
    for good in [
        "stream && headers[\"x-tenant\"] == \"acme\"",
        "has(headers.authorization) || model.startsWith('gpt-')",
        "hour >= 9 && hour < 18 && weekday <= 5",
        "headers.exists(name, name.startsWith(\"x-beta-\") && headers[name] == \"on\")",
        "biz_type in [\"risk\", \"ocr\"]",
        "prompt_tokens + max_tokens > 32000 && !images",
        "model.matches(\"^gpt-4(o|\\\\.1)\") && size(user) > 0",
        "string(hour) == '7' || prompt_tokens > 1.5",
        "type(model) == string",
        "headers['x-count'] == '3' && int(headers['x-count']) > 2",
        "user == '张三' || message_count == 1",
        "hour(\"Asia/Shanghai\") >= 8 && weekday('Europe/Berlin') < 6 && date('UTC') == '2026-12-01'",
        "now.getHours('Asia/Shanghai') < 8 && now > timestamp('2026-01-01T00:00:00Z')",
        "temperature > 0.5 && temperature <= 1.0 && capability_confidence < 0.3",
        "capability == 'code' && language in ['zh', 'ja'] && session != '' && bucket < 10",
        "audio || json_schema || !images",
        "backends[\"a\"].success_rate < 0.9 || backends.a.breaker == 'open'",
        "backends['a/m']['in_flight'] > 10 && has(backends.a.cost_per_1k_tokens)",
    ] {
        assert!(compiled(good).is_ok(), "{good}: {:?}", findings(good));
    }
}

#[test]
fn an_unknown_field_is_found_with_its_place_and_the_likely_name() {
    let found = findings("user == '张三' && modle == 'x' && tenant == 'y'");
    assert_eq!(found[0], (20, "there is no field `modle`".to_owned(), "did you mean `model`?".to_owned()));
    assert_eq!(found[1].1, "there is no field `tenant`");
}

#[test]
fn a_loop_variable_is_no_unknown_field_but_ends_with_its_loop() {
    assert!(compiled("[1, 2].exists(n, n == tools)").is_ok());
    assert_eq!(findings("[1, 2].exists(n, n == tools) && n == 1")[0].1, "there is no field `n`");
}

#[test]
fn a_syntax_error_is_found_with_its_place() {
    let found = findings("model == \"a\" &&\n  stream y");
    assert_eq!((found[0].0, found.len()), (25, 1));
    assert!(found[0].1.starts_with("not a CEL expression: "), "{}", found[0].1);
    assert!(!findings("model ==")[0].1.contains("NUM_FLOAT"));
    assert_eq!(findings("user == '张三' == y z")[0].0, 22);
}

#[test]
fn wrong_types_are_found_even_where_evaluation_would_not_reach() {
    for (bad, message) in [
        ("model", "the condition gives string, not bool"),
        ("message_count + 1", "the condition gives int, not bool"),
        ("!stream && message_count > '1'", "`>` does not work on int and string"),
        ("stream || !model", "`!` does not work on string"),
        ("stream == 'yes'", "bool never equals string"),
        ("model + 1 == 'x'", "cannot add string and int"),
        ("!stream && lower(model) == 'x'", "there is no function `lower`"),
        ("!stream && model.matches('(')", "`matches` fails: unclosed group"),
        ("model.startsWith(1)", "`startsWith` does not take string and int"),
    ] {
        assert_eq!(findings(bad)[0].1, message, "{bad}");
    }
}

#[test]
fn conditions_are_bounded() {
    assert!(findings(" ")[0].1.contains("empty"));
    assert!(findings(&vec!["stream"; 400].join(" && "))[0].1.contains("at most 2048 bytes"));
    assert!(findings(&format!("{}1 == 1", "1+".repeat(100)))[0].1.contains("nests more than"));
    assert!(compiled(&format!("{}stream{}", "(".repeat(500), ")".repeat(500))).is_err());
    let loops = |depth: usize| format!("{}stream{}", "[1].all(n, ".repeat(depth), ")".repeat(depth));
    assert!(compiled(&loops(2)).is_ok());
    assert!(findings(&loops(3))[0].1.contains("2 loops"));
    assert!(compiled(&vec!["stream"; 100].join(" && ")).is_ok(), "a long chain is not deep");
}

#[test]
fn backends_and_their_facts_must_exist() {
    for (bad, message, hint) in [
        ("backends.b.success_rate > 0.5", "no b", ""),
        ("[1].all(n, backends['a/x'].latency > 1.0)", "no a/x", ""),
        (
            "backends.a.sucess_rate > 0.5",
            "nothing called `sucess_rate` is known of a backend",
            "did you mean `success_rate`?",
        ),
        ("stream || backends[model].latency > 1.0", "a backend and a fact are missing", "for example"),
        ("size(backends) > 1", "a backend and a fact are missing", "for example"),
        ("backends.a.in_flight > '1'", "`>` does not work on int and string", ""),
    ] {
        let found = findings(bad);
        assert_eq!(found[0].1, message, "{bad}");
        assert!(found[0].2.starts_with(hint), "{bad}: {}", found[0].2);
    }
    // CEL has a selection where its last dot is.
    assert_eq!(findings("stream && backends.b.latency > 1.0")[0].0, 20);
}

#[test]
fn a_time_zone_that_there_is_not_is_found_with_its_place() {
    let found = findings("stream && hour('Asia/Shangai') > 8");
    assert_eq!((found[0].0, found[0].1.as_str()), (14, "`time zone` fails: there is no zone `Asia/Shangai`"));
    assert_eq!(findings("hour(8) > 8")[0].1, "`hour` does not take google.protobuf.Timestamp and int");
}

/// What becomes of a condition: its constraints as text, and how many parts are left.
fn split(source: &str) -> (Vec<String>, usize) {
    use crate::constraint::Accepts;
    let condition = compiled(source).unwrap_or_else(|_| panic!("{:?}", findings(source)));
    let constraint = |constraint: &Constraint| match &constraint.accepts {
        Accepts::Texts(patterns) => {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            format!("{}: {}", constraint.field, patterns.join(" "))
        }
        Accepts::Numbers(ranges) => {
            let end = |end: u128| if end == u128::MAX { "max".to_owned() } else { end.to_string() };
            let ranges: Vec<String> =
                ranges.iter().map(|range| format!("{}-{}", range.start(), end(*range.end()))).collect();
            format!("{}: {}", constraint.field, ranges.join(" "))
        }
    };
    (condition.constraints.iter().map(constraint).collect(), condition.rest.len())
}

#[test]
fn the_parts_that_compare_a_field_with_a_constant_are_taken_out() {
    for (source, expected) in [
        ("biz_type == 'risk'", "biz_type: risk"),
        ("'risk' == biz_type", "biz_type: risk"),
        ("model in ['a', 'b*']", "model: a b*"),
        ("model.startsWith('gpt-')", "model: gpt-*"),
        ("headers['x-tenant'] == 'acme'", "header x-tenant: acme"),
        ("headers.tenant in ['a']", "header tenant: a"),
        ("headers['x-tenant'].startsWith('ac')", "header x-tenant: ac*"),
        ("stream", "stream: 1-1"),
        ("!stream", "stream: 0-0"),
        ("stream == false", "stream: 0-0"),
        ("tools == 2", "tools: 2-2"),
        ("prompt_tokens > 100", "prompt_tokens: 101-max"),
        ("100 >= prompt_tokens", "prompt_tokens: 0-100"),
        ("max_tokens < 100", "max_tokens: 0-99"),
        ("max_tokens < 0", "max_tokens: "),
        ("hour in [8, 9]", "hour: 8-8 9-9"),
        ("client_ip == '0.0.0.1'", "client_ip: 281470681743361-281470681743361"),
        ("language == 'zh'", "language: zh"),
    ] {
        assert_eq!(split(source), (vec![expected.to_owned()], 0), "{source}");
    }
}

#[test]
fn a_conjunction_is_split_and_the_rest_stays_in_order() {
    let (constraints, rest) =
        split("biz_type == 'risk' && hour('Asia/Shanghai') >= 8 && (stream && user != 'x') && tools > 0");
    assert_eq!(constraints, ["biz_type: risk", "stream: 1-1", "tools: 1-max"]);
    assert_eq!(rest, 2);
}

#[test]
fn what_is_no_comparison_with_a_constant_stays_as_it_is() {
    for source in [
        "model == 'a' || model == 'b'",
        "model != 'a'",
        "model == user",
        "model.endsWith('x')",
        "'gpt-4'.startsWith(model)",
        "model in [user, 'a']",
        "prompt_tokens > -1",
        "prompt_tokens > 1.5",
        "message_count == 2u",
        "temperature == 1.0",
        "has(headers.authorization)",
        "client_ip == '10.0.0.001'",
        "client_ip == '::ffff:10.0.0.1'",
        "client_ip.startsWith('10.')",
        "!(model == 'a')",
        "headers['X-Tenant'] == 'acme'",
    ] {
        assert_eq!(split(source), (Vec::new(), 1), "{source}");
    }
}

proptest! {
    #[test]
    fn compiling_never_panics(source in "[a-z0-9 .,&|!=<>+*/%?:()\\[\\]{}'\"\\\\长-]{0,40}") {
        let _ = compiled(&source);
    }
}
