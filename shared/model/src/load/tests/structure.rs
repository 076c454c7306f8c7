//! Fields that are unknown, missing, or of the wrong kind.

use super::*;

#[test]
fn an_unknown_field_is_an_error_at_its_key_with_the_likely_name() {
    let problem = error(&small("    credential: env", "    credentials: env"));
    assert_eq!((&*problem.path, problem.line, problem.column), ("/backends/two/credentials", 14, 5));
    assert_eq!(problem.message, "there is no field `credentials`");
    assert_eq!(problem.hint, "did you mean `credential`?");

    let problem = error(&small("  - name: default", "  - {name: default, plan: x}"));
    assert!(problem.hint.starts_with("known here: name, match, condition"), "{problem}");
}

#[test]
fn a_missing_field_is_reported_where_it_belongs() {
    let problem = error(&small("    capabilities: {chat: 0.5}\n", ""));
    assert_eq!((&*problem.path, problem.line), ("/backends/two/capabilities", 11));
    assert_eq!(problem.message, "the field `capabilities` is missing");
    assert!(!problem.hint.is_empty());
}

#[test]
fn a_field_of_the_wrong_kind_says_what_is_wanted() {
    for (from, to, path, message) in [
        ("[代码, code]", "代码", "/capabilities/code/keywords", "must be a list, not text"),
        (
            "chat: {default: true}",
            "chat: {default: true}\n  empty:",
            "/capabilities/empty",
            "must be a map, not empty",
        ),
        ("[chat, code]", "chat", "/backends/one/capabilities", "must be a list or a map, not text"),
        ("{chat: 0.5}", "{chat: high}", "/backends/two/capabilities/chat", "must be a number, not text"),
        ("[{name: large}]", "[large]", "/backends/two/models/0", "must be a map, not text"),
        (
            "{name: small}",
            "{name: small, price: 3}",
            "/backends/one/models/1/price",
            "must be a map, not a number",
        ),
    ] {
        let problem = error(&small(from, to));
        assert_eq!((&*problem.path, &*problem.message), (path, message));
    }
}

#[test]
fn a_price_as_a_number_is_refused_because_binary_fractions_lose_money() {
    let problem = error(&small("{name: small}", "{name: small, price: {input: 0.15, output: \"1\"}}"));
    assert_eq!(problem.path, "/backends/one/models/1/price/input");
    assert_eq!((&*problem.message, &*problem.hint), ("must be text, not a number", "for example \"0.15\""));
}

#[test]
fn a_choice_lists_what_there_is() {
    let problem = error(&format!("{SMALL}scoring: {{preset: qualty}}\n"));
    assert_eq!(problem.message, "must be one of `classic`, `quality`");
    assert_eq!(problem.hint, "did you mean `quality`?");
}

#[test]
fn numbers_have_bounds() {
    for (line, path, message) in [
        ("scoring: {sharpness: 5}", "/scoring/sharpness", "must be at most 4"),
        ("scoring: {floor: -0.1}", "/scoring/floor", "must be at least 0"),
        ("breaker: {failure_ratio: 0}", "/breaker/failure_ratio", "must be at least 0.05"),
        ("breaker: {probes: 4294967296}", "/breaker/probes", "must be at most 100"),
    ] {
        let problem = error(&format!("{SMALL}{line}\n"));
        assert_eq!((&*problem.path, &*problem.message), (path, message));
    }
    for (to, path) in [
        ("{name: default, retry: {attempts: 6}}", "/routes/0/retry/attempts"),
        ("{name: default, targets: [{backend: one, weight: -1}]}", "/routes/0/targets/0/weight"),
    ] {
        assert_eq!(error(&small("name: default", to)).path, path);
    }
}

#[test]
fn what_follows_from_a_broken_part_is_not_reported() {
    // The backends are unknown: nothing can be said about targets.
    let problem = error(
        &small("backends:", "backend:").replace("name: default", "{name: default, targets: [{backend: x}]}"),
    );
    assert_eq!(problem.path, "/backend");
}

#[test]
fn what_has_nothing_to_do_with_a_broken_part_is_reported_with_it() {
    let document =
        small("provider: openai\n    base_url: http://127", "provider: openia\n    base_url: ftp://127")
            .replace("name: default", "{name: default, targets: [{backend: three}], condition: modle == ''}");
    let paths: Vec<String> = problems(&document).into_iter().map(|problem| problem.path).collect();
    assert_eq!(
        paths,
        [
            "/backends/one/provider",
            "/backends/one/base_url",
            "/routes/0/targets/0/backend",
            "/routes/0/condition"
        ]
    );
}

#[test]
fn endless_problems_are_cut_short() {
    let routes: String = (0..3_000).map(|index| format!("  - {{name: r{index}, x: 1}}\n")).collect();
    let problems = problems(&small("  - name: default\n", &routes));
    assert_eq!(problems.len(), 1_001);
    assert!(problems.iter().any(|problem| problem.message == "there are 2000 more problems"));
}
