//! Whatever comes in, the answer is a policy or problems.

use proptest::prelude::*;

use super::*;

/// What holds for every document.
fn check(document: &str) {
    let loaded = load(document);
    let refused = loaded.problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(loaded.policy.is_none(), refused);
    for problem in &loaded.problems {
        assert!(
            !problem.message.contains("a form that cannot be read"),
            "the schema is wider than the types: {document}"
        );
        assert!(problem.line as usize <= document.lines().count().max(1), "{problem}");
    }
    let Some(policy) = loaded.policy else { return };
    assert!(policy.default_capability.index() < policy.capabilities.len());
    for (index, route) in policy.routes.iter().enumerate() {
        for capability in 0..policy.capabilities.len() {
            let _ = policy.pool_for(
                crate::policy::RouteId(index as u32),
                crate::policy::CapabilityId(capability as u32),
            );
        }
        assert_eq!(route.pools.len(), policy.capabilities.len());
        let needed = route.capability.unwrap_or(policy.default_capability);
        assert!(route.pools[needed.index()].is_some(), "{} has nowhere to go", route.name);
    }
    for pool in &policy.pools {
        assert!(!pool.candidates.is_empty());
        assert_eq!(
            policy.pools[policy.routes[pool.route.index()].pools[pool.capability.index()].unwrap().index()],
            *pool
        );
        for candidate in &pool.candidates {
            assert!(candidate.weight > 0.0 && (0.0..=1.0).contains(&candidate.capability_match));
            assert!(policy.targets[candidate.target.index()].backend.index() < policy.backends.len());
        }
    }
}

/// Pieces that mean something to YAML, to JSON or to a policy.
const PIECES: &[&str] = &[
    "",
    "0",
    "-1",
    "1.5",
    ".inf",
    ".nan",
    "99999999999999999999",
    "null",
    "~",
    "true",
    "no",
    "[]",
    "{}",
    "[",
    "}",
    "&a",
    "*a",
    "!!int x",
    "\"",
    "'",
    ": ",
    "- ",
    "\n",
    "\t",
    "#",
    "|\n",
    ">",
    "? ",
    "<<: ",
    "---\n",
    "%YAML 1.1\n",
    "0s",
    "-1s",
    "5",
    "env:X",
    "sk-1",
    "http://",
    "\u{0}",
    "\u{feff}",
    "\u{2028}",
    "长",
    "chat",
    "openai",
    "stream && ",
    "((((",
    "1e400",
    "0x1F",
    "\r\n",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![proptest::sample::select(PIECES).prop_map(str::to_owned), ".{0,12}"]
}

/// The demo policy with pieces of it cut out and others put in.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (0.0..1.0f64, 0usize..30, piece());
    proptest::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = DEMO_POLICY.chars().collect();
        for (at, cut, piece) in edits {
            let from = (at * text.len() as f64) as usize;
            let to = (from + cut).min(text.len());
            text.splice(from..to, piece.chars());
        }
        text.into_iter().collect()
    })
}

/// Names that a policy has.
const NAMES: &str = "\
    version capabilities backends routes scoring breaker limits chat default keywords provider \
    base_url models name price input output match targets backend weight timeouts total condition \
    retry attempts";

/// A JSON value with the names a policy has, in places where they may not belong.
fn shuffled() -> impl Strategy<Value = serde_json::Value> {
    let names: Vec<&'static str> = NAMES.split_whitespace().collect();
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        piece().prop_map(serde_json::Value::from),
        proptest::sample::select(names.clone()).prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        let map = proptest::collection::vec((proptest::sample::select(names.clone()), inner.clone()), 0..8);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(serde_json::Value::from),
            map.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// The demo policy with one value replaced by any other.
fn grafted() -> impl Strategy<Value = String> {
    (0.0..1.0f64, shuffled()).prop_map(|(at, graft)| {
        let mut report = Report::default();
        let mut value = source::parse(DEMO_POLICY, &mut report).unwrap().value;
        let mut pointers = Vec::new();
        collect(&value, String::new(), &mut pointers);
        let pointer = &pointers[(at * pointers.len() as f64) as usize];
        *value.pointer_mut(pointer).unwrap() = graft;
        value.to_string()
    })
}

fn collect(value: &serde_json::Value, path: String, pointers: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect(item, format!("{path}/{index}"), pointers));
        }
        serde_json::Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, item)| collect(item, format!("{path}/{}", escape(name)), pointers));
        }
        _ => {}
    }
    pointers.push(path);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        check(&text);
    }

    #[test]
    fn any_sequence_of_yaml_pieces_is_answered(pieces in proptest::collection::vec(piece(), 0..40)) {
        check(&pieces.concat());
    }

    #[test]
    fn any_damaged_policy_is_answered(document in mutated()) {
        check(&document);
    }

    #[test]
    fn any_policy_with_a_foreign_part_is_answered(document in grafted()) {
        check(&document);
    }
}
