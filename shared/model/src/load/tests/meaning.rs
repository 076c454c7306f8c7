//! Values that have the right kind and make no sense.

use super::*;

#[test]
fn names_are_fit_for_metrics_urls_and_command_lines() {
    for bad in ["Default", "a b", "-a", "\"\"", "名字", &"a".repeat(64)] {
        assert_eq!(error(&small("name: default", &format!("name: {bad}"))).path, "/routes/0/name", "{bad}");
    }
    policy(&small("name: default", "name: 0.a-b_c"));
    assert_eq!(error(&small("  two:\n", "  TWO:\n")).path, "/backends/TWO");
    assert_eq!(first_error("  code: {keywords", "  co/de: {keywords"), "/capabilities/co~1de");
}

/// The path of the first error when `from` becomes `to`.
fn first_error(from: &str, to: &str) -> String {
    let problems = problems(&small(from, to));
    let first = problems.iter().find(|problem| problem.severity == Severity::Error);
    first.map(|problem| problem.path.clone()).unwrap_or_default()
}

#[test]
fn what_is_referred_to_must_exist() {
    for (from, to, path, hint) in [
        ("[chat, code]", "[chat, cod]", "/backends/one/capabilities/1", "did you mean `code`?"),
        (
            "name: default",
            "{name: default, capability: paint}",
            "/routes/0/capability",
            "there are chat, code",
        ),
        (
            "name: default",
            "{name: default, targets: [{backend: tow}]}",
            "/routes/0/targets/0/backend",
            "did you mean `two`?",
        ),
        (
            "name: default",
            "{name: default, targets: [{backend: one, model: huge}]}",
            "/routes/0/targets/0/model",
            "there are large, small",
        ),
    ] {
        let problems = problems(&small(from, to));
        let problem = problems.iter().find(|problem| problem.severity == Severity::Error).unwrap();
        assert_eq!((&*problem.path, &*problem.hint), (path, hint));
    }
}

#[test]
fn exactly_one_capability_is_the_default() {
    assert_eq!(error(&small("{default: true}", "{}")).path, "/capabilities");
    let problem = error(&small("{keywords: [代码, code]}", "{default: true}"));
    assert_eq!(
        (&*problem.path, &*problem.message),
        ("/capabilities/code/default", "`chat` is the default already")
    );
}

#[test]
fn keywords_are_lower_case_and_each_capability_has_its_own() {
    let loaded = policy(&small("[代码, code]", "[代码, ' CODE ', Übung]"));
    assert_eq!(loaded.capabilities[1].keywords, ["代码", "code", "übung"]);
    assert_eq!(error(&small("[代码, code]", "[代码, ' ']")).path, "/capabilities/code/keywords/1");
    let problem = warning(&small("{default: true}", "{default: true, keywords: [Code]}"));
    assert_eq!(
        (&*problem.path, &*problem.message),
        ("/capabilities/code/keywords/1", "this is also a keyword of `chat`")
    );
    assert_eq!(warning(&small("[代码, code]", "[代码, 代码]")).path, "/capabilities/code/keywords/1");
}

#[test]
fn a_capability_that_no_backend_has_is_worth_a_warning() {
    assert_eq!(warning(&small("[chat, code]", "[chat]")).path, "/capabilities/code");
}

#[test]
fn capability_matches_are_from_0_to_1() {
    assert_eq!(error(&small("{chat: 0.5}", "{chat: 1.5}")).path, "/backends/two/capabilities/chat");
    assert_eq!(error(&small("{chat: 0.5}", "{chat: -0.5}")).path, "/backends/two/capabilities/chat");
    assert_eq!(policy(SMALL).backends[1].capability_match, [0.5, 0.0]);
}

#[test]
fn a_bad_address_is_placed() {
    let problem = error(&small("https://two.example.com/v1", "two.example.com/v1"));
    assert_eq!((&*problem.path, problem.line, problem.column), ("/backends/two/base_url", 13, 15));
}

#[test]
fn a_credential_is_a_reference_and_a_key_is_never_repeated() {
    for secret in [
        "sk-abcdef0123456789",
        "env:sk-abcdef0123456789",
        "Bearer sk-abcdef0123456789",
        "file:sk-abcdef0123456789",
    ] {
        let problem = error(&small("env:TWO_KEY", secret));
        assert_eq!(problem.path, "/backends/two/credential");
        assert!(!problem.to_string().contains("abcdef"), "{problem}");
        assert!(problem.hint.contains("env:") || problem.hint.contains("file:"), "{problem}");
    }
    use crate::policy::Credential;
    let credential = |to: &str| policy(&small("env:TWO_KEY", to)).backends[1].credential.clone();
    assert_eq!(credential("env:TWO_KEY"), Some(Credential::Env("TWO_KEY".to_owned())));
    assert_eq!(credential("file:/run/secrets/two"), Some(Credential::File("/run/secrets/two".to_owned())));
    assert_eq!(policy(SMALL).backends[0].credential, None);
}

#[test]
fn models_are_named_once() {
    assert_eq!(error(&small("{name: small}", "{name: large}")).path, "/backends/one/models/1/name");
    assert_eq!(first_error("[{name: large}]", "[]"), "/backends/two/models");
    assert_eq!(error(&small("{name: small}", "{name: \"a\\nb\"}")).path, "/backends/one/models/1/name");
}

#[test]
fn prices_are_exact_and_in_one_currency() {
    let priced = |price: &str| small("{name: small}", &format!("{{name: small, price: {price}}}"));
    let loaded = policy(&priced("{input: \"0.15\", output: \"0.6\"}"));
    let price = loaded.targets[1].price.as_ref().unwrap();
    assert_eq!((price.input, price.cached_input, price.output), (150_000_000, 150_000_000, 600_000_000));
    assert_eq!(loaded.targets[0].price, None);

    let path = "/backends/one/models/1/price";
    assert_eq!(error(&priced("{input: \"-1\", output: \"0\"}")).path, format!("{path}/input"));
    assert_eq!(error(&priced("{input: \"1\", output: 1.0.0}")).path, format!("{path}/output"));
    assert_eq!(
        error(&priced("{input: \"1\", output: \"1\", currency: usd}")).path,
        format!("{path}/currency")
    );
    let two = priced("{input: \"1\", output: \"1\"}")
        .replace("[{name: large}]", "[{name: large, price: {input: \"1\", output: \"1\", currency: CNY}}]");
    assert_eq!(error(&two).message, "other prices are in USD");
}

#[test]
fn durations_and_sizes_are_checked_where_they_stand() {
    for (to, path) in [
        ("{name: default, timeouts: {connect: -1s}}", "/routes/0/timeouts/connect"),
        ("{name: default, timeouts: {idle: 0s}}", "/routes/0/timeouts/idle"),
        ("{name: default, timeouts: {first_token: \"5\"}}", "/routes/0/timeouts/first_token"),
    ] {
        assert_eq!(error(&small("name: default", to)).path, path);
    }
    assert_eq!(error(&format!("{SMALL}limits: {{body: 8}}")).message, "must be text, not a number");
    assert_eq!(error(&format!("{SMALL}limits: {{body: 8mb}}")).path, "/limits/body");
    assert_eq!(error(&format!("{SMALL}breaker: {{ramp: soon}}")).path, "/breaker/ramp");
    assert_eq!(error(&format!("{SMALL}breaker: {{open: 10s, open_max: 5s}}")).path, "/breaker");
}

#[test]
fn a_timeout_beyond_the_total_is_worth_a_warning() {
    let problem = warning(&small("name: default", "{name: default, timeouts: {first_token: 3m}}"));
    assert_eq!(problem.path, "/routes/0/timeouts/first_token");
}

#[test]
fn routes_have_names_of_their_own() {
    let problem =
        error(&small("  - name: default", "  - {name: default, match: {models: [a]}}\n  - name: default"));
    assert_eq!((&*problem.path, problem.line), ("/routes/1/name", 19));
}

#[test]
fn a_policy_without_routes_or_backends_is_refused() {
    assert_eq!(error(&small("routes:\n  - name: default\n", "routes: []\n")).path, "/routes");
    let nothing = "version: 1\ncapabilities: {}\nbackends: {}\nroutes: []\n";
    let paths: Vec<String> = problems(nothing).into_iter().map(|problem| problem.path).collect();
    assert_eq!(paths, ["/capabilities", "/backends", "/routes"]);
}

#[test]
fn a_route_below_one_that_takes_everything_is_never_reached() {
    let document = small("  - name: default", "  - {name: all, match: {paths: [\"*\"]}}\n  - name: default");
    let problem = warning(&document);
    assert_eq!((&*problem.path, problem.line), ("/routes/1", 19));
    for narrow in
        ["match: {paths: [/v1/*]}", "match: {stream: false}", "match: {headers: {a: b}}", "condition: stream"]
    {
        policy(&small("  - name: default", &format!("  - {{name: narrow, {narrow}}}\n  - name: default")));
        assert_eq!(
            load(&small("  - name: default", &format!("  - {{name: narrow, {narrow}}}\n  - name: default")))
                .problems,
            []
        );
    }
}

#[test]
fn matchers_that_could_never_match_are_refused() {
    for (matchers, path) in [
        ("{paths: [v1/chat]}", "/routes/0/match/paths/0"),
        ("{paths: [\"/v1?x=1\"]}", "/routes/0/match/paths/0"),
        ("{models: [\"\"]}", "/routes/0/match/models/0"),
        ("{headers: {\"x tenant\": a}}", "/routes/0/match/headers/x tenant"),
        ("{headers: {x-a: a, X-A: b}}", "/routes/0/match/headers/x-a"),
    ] {
        assert_eq!(
            error(&small("name: default", &format!("{{name: default, match: {matchers}}}"))).path,
            path
        );
    }
    let policy = policy(&small("name: default", "{name: default, match: {headers: {X-Tenant: acme*}}}"));
    let [demand] = policy.routes[0].constraints.as_slice() else { panic!("one header") };
    assert_eq!(demand.field.to_string(), "header x-tenant");
    assert!(demand.accepts.text("acme-1"));
}

#[test]
fn examples_are_trimmed_and_kept_once() {
    let with = |examples: &str| small("{default: true}", &format!("{{default: true, examples: {examples}}}"));
    let repeated = format!(
        "{}\n",
        with("[\" hello \", 你好]")
            .replace("keywords: [代码, code]", "keywords: [代码], examples: [fix, hello]")
    );
    let problem = warning(&repeated);
    assert_eq!(problem.path, "/capabilities/code/examples/1");
    assert_eq!(policy(&repeated).capabilities[0].examples, ["hello", "你好"]);
    for bad in ["\"  \"".to_owned(), "x".repeat(5_000)] {
        let examples = format!("{{default: true, examples: [ok, {bad}]}}");
        assert_eq!(first_error("{default: true}", &examples), "/capabilities/chat/examples/1");
    }
}

#[test]
fn examples_that_teach_little_are_warned_of() {
    let code = |more: &str| {
        small("{keywords: [代码, code]}", &format!("{{keywords: [code], examples: [fix it]}}{more}"))
    };
    let alone = warning(&code(""));
    assert_eq!(alone.path, "/capabilities/code/examples");
    assert!(alone.message.contains("nothing to learn"), "{alone}");
    let without_default =
        code("\n  draw: {examples: [paint it]}").replace("[chat, code]", "[chat, code, draw]");
    let problem = warning(&without_default);
    assert_eq!(problem.path, "/capabilities/chat");
    assert!(problem.hint.contains("the default is for"), "{problem}");
    policy(&without_default);
}
