//! What can be read, and where things stand.

use super::*;

#[test]
fn json_is_read_as_yaml() {
    let json = r#"{"version": 1, "capabilities": {"chat": {"default": true}},
        "backends": {"one": {"provider": "openai", "base_url": "http:\/\/127.0.0.1:8000\/v1", "capabilities": ["chat"],
            "models": [{"name": "m\u00e9"}]}},
        "routes": [{"name": "default", "condition": "modle == \"x\""}]}"#;
    let problem = error(json);
    assert_eq!((&*problem.path, problem.line), ("/routes/0/condition", 4));
    assert!(
        problem.message.ends_with("(line 1, column 1 of the text)"),
        "escapes hide the column: {problem}"
    );

    let policy = policy(&json.replace("modle", "model"));
    assert_eq!(policy.targets[0].model, "mé");
    assert_eq!(policy.targets[0].model_json, "\"mé\"");
}

#[test]
fn text_that_is_no_yaml_is_reported_with_its_place() {
    let problem = error("version: 1\ncapabilities: [chat\nroutes: []\n");
    assert!(problem.message.starts_with("not YAML or JSON: "), "{problem}");
    assert_eq!(problem.line, 3, "{problem}");
    for bad in ["", "# nothing\n", "{", "\t- a", "a: b: c", "\u{0}", "'", "- &a [*a]"] {
        error(bad);
    }
}

#[test]
fn a_document_that_is_no_map_is_refused() {
    for bad in ["7", "routes", "[]", "null", "---\n"] {
        let problem = error(bad);
        assert_eq!(problem.path, "", "{problem}");
    }
}

#[test]
fn only_yaml_1_2_core_values_are_special() {
    // In YAML 1.1 `no` was false and `1_0` was 10.
    let document = small("models: [{name: large}, {name: small}]", "models: [{name: no}, {name: 1_0}]");
    assert_eq!(policy(&document).targets[0].model, "no");
    let document = small("  - name: default", "  - name: default\n    match: {stream: yes}");
    let problem = error(&document);
    assert_eq!(problem.message, "must be true or false, not text");
    assert_eq!(problem.hint, "write true or false, without quotes");
    let document = small("[{name: large}, {name: small}]", "[{name: 1e3}]");
    assert_eq!(error(&document).message, "must be text, not a number");
}

#[test]
fn whole_numbers_may_be_written_with_a_point() {
    let document = small("  - name: default", "  - name: default\n    retry: {attempts: 3.0}");
    assert_eq!(policy(&document).routes[0].attempts, 3);
    let document = small("  - name: default", "  - name: default\n    retry: {attempts: 2.5}");
    assert_eq!(error(&document).message, "must be a whole number, not a number");
}

#[test]
fn a_key_given_twice_is_an_error_at_the_second() {
    let problem = error(&small("  - name: default", "  - name: default\n    name: other"));
    assert_eq!((&*problem.path, problem.line, problem.column), ("/routes/0/name", 19, 5));
    assert_eq!(problem.message, "the key `name` is given twice");
}

#[test]
fn places_are_lines_and_columns_in_characters() {
    let problem = error(&small("[代码, code]}", "[代码, 5]}"));
    assert_eq!((&*problem.path, problem.line, problem.column), ("/capabilities/code/keywords/1", 4, 25));
    let problem = error(&small(
        "  - name: default",
        "  - {name: default, condition: \"user == '张' && modle == '1'\"}",
    ));
    assert_eq!((problem.line, problem.column), (18, 48));
}

#[test]
fn a_condition_over_several_lines_is_placed_within_itself() {
    let condition = |style: &str| {
        small(
            "name: default",
            &format!("name: default\n    condition: {style}\n      stream &&\n      modle == ''"),
        )
    };
    let problem = error(&condition("|"));
    assert_eq!((problem.line, problem.column), (21, 7));
    assert_eq!(problem.message, "there is no field `modle`");

    // Folding makes one line of it.
    let problem = error(&condition(">"));
    assert_eq!(problem.line, 20);
    assert_eq!(problem.message, "there is no field `modle` (line 1, column 11 of the text)");
}

#[test]
fn aliases_stand_for_what_they_name() {
    let document = "\
version: 1
capabilities: {chat: {default: true}}
backends:
  one: &one
    provider: openai
    base_url: http://127.0.0.1:8000/v1
    capabilities: [&chat chat]
    models: [{name: m}]
  two: *one
routes:
  - {name: default, timeouts: &slow {total: 5m}}
  - {name: other, match: {models: [x]}, capability: *chat, timeouts: *slow}
"
    .replace("{name: default,", "{name: default, match: {models: [y]},");
    let policy = policy(&document);
    assert_eq!(policy.backends[1].address, policy.backends[0].address);
    assert_eq!(policy.routes[1].timeouts.total.as_secs(), 300);
    assert_eq!(policy.routes[1].capability, Some(policy.default_capability));
}

#[test]
fn bombs_are_refused_quickly() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let previous = format!("*a{}", level - 1);
        laughs += &format!("a{level}: &a{level} [{}]\n", vec![previous; 10].join(", "));
    }
    assert!(error(&laughs).message.contains("values"), "{}", error(&laughs));

    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(error(&deep).message.contains("deep"));
    error(&"[".repeat(1_000_000));
    error(&format!("a:\n{}", (1..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>()));

    let long = format!("{SMALL}# {}", "x".repeat(source::MAX_BYTES));
    assert!(error(&long).message.contains("bytes"));
}

#[test]
fn tags_merge_keys_and_second_documents_are_refused() {
    assert!(error(&small("name: default", "name: !secret default")).message.contains("tags"));
    assert!(error(&small("  - name: default", "  - {<<: {name: default}}")).message.contains("merge keys"));
    assert!(error(&format!("{SMALL}---\n{SMALL}")).message.contains("more than one document"));
    assert!(error(&small("name: default", "[a]: default")).message.contains("a key must be text"));
    assert_eq!(policy(&small("name: default", "name: !!str default")).routes[0].name, "default");
}
