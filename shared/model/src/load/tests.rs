mod coverage;
mod generic;
mod matchers;
mod meaning;
mod pools;
mod random;
mod service;
mod structure;
mod text;

use super::*;
use crate::{DEMO_POLICY, Severity};

/// A document that loads, to be broken by tests.
const SMALL: &str = "\
version: 1
capabilities:
  chat: {default: true}
  code: {keywords: [代码, code]}
backends:
  one:
    provider: openai
    base_url: http://127.0.0.1:8000/v1
    capabilities: [chat, code]
    models: [{name: large}, {name: small}]
  two:
    provider: openai
    base_url: https://two.example.com/v1
    credential: env:TWO_KEY
    capabilities: {chat: 0.5}
    models: [{name: large}]
routes:
  - name: default
";

/// `SMALL` with one piece of text replaced.
fn small(from: &str, to: &str) -> String {
    assert_eq!(SMALL.matches(from).count(), 1, "{from:?} should be there once");
    SMALL.replace(from, to)
}

/// The policy of a document without errors.
fn policy(document: &str) -> Policy {
    let loaded = load(document);
    loaded.policy.unwrap_or_else(|| panic!("refused: {:#?}", loaded.problems))
}

/// Path, message and place of each problem; there must be some.
fn problems(document: &str) -> Vec<Problem> {
    let loaded = load(document);
    assert!(!loaded.problems.is_empty(), "no problem found in {document}");
    let refused = loaded.problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(loaded.policy.is_none(), refused, "errors refuse a document, and nothing else does");
    loaded.problems
}

/// The one error of a document.
fn error(document: &str) -> Problem {
    let mut problems = problems(document);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = problems.remove(0);
    assert_eq!(problem.severity, Severity::Error, "{problem}");
    problem
}

/// The one warning of a document.
fn warning(document: &str) -> Problem {
    let mut problems = problems(document);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = problems.remove(0);
    assert_eq!(problem.severity, Severity::Warning, "{problem}");
    problem
}

#[test]
fn the_demo_policy_and_the_small_one_have_no_problems() {
    assert_eq!(load(DEMO_POLICY).problems, []);
    assert_eq!(load(SMALL).problems, []);
}

/// CP-04: a version with many mistakes is refused, each of them with its path and place; what is right in it is not
/// blamed, nothing is applied by half.
#[test]
fn cp_04_every_mistake_of_a_policy_is_reported_at_once_with_its_path() {
    let mut document = String::from(
        "\
version: 1
capabilities:
  chat: {default: true}
backends:
  good:
    provider: openai
    base_url: http://127.0.0.1:8000/v1
    capabilities: [chat]
    models: [{name: m}]
  newer:
    provider: telepathy
    base_url: http://127.0.0.1:8001/v1
    capabilities: [chat]
    models: [{name: m}]
routes:
",
    );
    for index in 0..15 {
        document += &format!("  - {{name: fine-{index}, match: {{models: [m{index}]}}}}\n");
    }
    document += "  - {name: regex, condition: \"model.matches('(')\"}\n";
    document += "  - {name: weights, match: {models: [a]}, targets: [{backend: good, weight: 0}]}\n";
    document += "  - {name: missing, match: {models: [b]}, targets: [{backend: gone}]}\n";
    document += "  - {name: negative, match: {models: [c]}, timeouts: {total: -1s}}\n";
    document += "  - {name: enumeration, match: {models: [d]}, retry: {attempts: 3, backoff: exponential}}\n";

    let found: Vec<(String, u32)> =
        problems(&document).into_iter().map(|problem| (problem.path, problem.line)).collect();
    let expected = [
        ("/backends/newer/provider", 11),
        ("/routes/15/condition", 31),
        ("/routes/16/targets", 32),
        ("/routes/17/targets/0/backend", 33),
        ("/routes/18/timeouts/total", 34),
        ("/routes/19/retry/backoff", 35),
    ];
    assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));

    // The good change after it is taken.
    policy(SMALL);
}

#[test]
fn a_policy_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&policy(SMALL));
}

#[test]
fn a_snapshot_holds_the_policy_or_all_its_problems() {
    let snapshot = crate::Snapshot::load("default", 7, "lineage", SMALL).unwrap();
    assert_eq!((&*snapshot.name, snapshot.version, &*snapshot.lineage), ("default", 7, "lineage"));
    assert_eq!(snapshot.content_hash, crate::content_hash(SMALL));
    assert_eq!(snapshot.policy.routes.len(), 1);

    let problems =
        crate::Snapshot::load("default", 7, "lineage", &small("version: 1", "version: 2")).unwrap_err();
    assert_eq!(problems[0].path, "/version");
}

#[test]
fn targets_pools_and_capabilities_are_found_by_name() {
    let policy = policy(SMALL);
    let target = policy.find_target("one", "small").unwrap();
    assert_eq!(policy.target_key(target), ("one", "small"));
    assert_eq!(policy.find_target("two", "small"), None);
    let pool = policy.find_pool("default", "chat").unwrap();
    assert_eq!(policy.pools[pool.index()].candidates.len(), 2);
    assert_eq!(policy.find_pool("default", "paint"), None);
    assert_eq!(policy.find_capability("chat"), Some(policy.default_capability));
}

#[test]
fn every_policy_of_the_guide_loads() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut checked = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let page = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for document in blocks.filter(|block| block.starts_with("version: 1")) {
            assert_eq!(load(document).problems, [], "{document}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}
