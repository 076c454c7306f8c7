//! Which targets a route may choose from.

use super::*;

/// The candidates of a route for a capability: backend, model, weight, match.
fn pool<'a>(policy: &'a Policy, route: &str, capability: &str) -> Vec<(&'a str, &'a str, f64, f64)> {
    let Some(pool) = policy.find_pool(route, capability) else { return Vec::new() };
    let pool = &policy.pools[pool.index()];
    let shown = |candidate: &crate::policy::Candidate| {
        let (backend, model) = policy.target_key(candidate.target);
        (backend, model, candidate.weight, candidate.capability_match)
    };
    pool.candidates.iter().map(shown).collect()
}

#[test]
fn without_targets_every_able_backend_takes_part_with_its_first_model() {
    let policy = policy(SMALL);
    assert_eq!(pool(&policy, "default", "chat"), [("one", "large", 1.0, 1.0), ("two", "large", 1.0, 0.5)]);
    assert_eq!(pool(&policy, "default", "code"), [("one", "large", 1.0, 1.0)]);
    assert_eq!(policy.routes[0].pools.len(), policy.capabilities.len());
}

#[test]
fn with_targets_the_able_ones_take_part_or_all_when_none_is_able() {
    let document = small(
        "name: default",
        "{name: default, targets: [{backend: two}, {backend: one, model: small, weight: 3}]}",
    );
    let listed = policy(&document);
    assert_eq!(pool(&listed, "default", "chat"), [("two", "large", 1.0, 0.5), ("one", "small", 3.0, 1.0)]);
    assert_eq!(pool(&listed, "default", "code"), [("one", "small", 3.0, 1.0)]);

    let listed = policy(&small("name: default", "{name: default, targets: [{backend: two}]}"));
    assert_eq!(pool(&listed, "default", "code"), [("two", "large", 1.0, 0.0)]);
}

#[test]
fn a_capability_of_the_route_is_its_only_pool() {
    let policy = policy(&small("name: default", "{name: default, capability: code}"));
    assert_eq!(policy.pools.len(), 1);
    assert_eq!(pool(&policy, "default", "code"), [("one", "large", 1.0, 1.0)]);
    assert_eq!(policy.routes[0].pools, [None, Some(crate::policy::PoolId(0))]);
}

#[test]
fn a_request_is_served_by_the_pool_of_the_route_of_its_capability_or_of_the_default() {
    let document = "\
version: 1
capabilities: {chat: {default: true}, code: {}, paint: {}}
backends:
  one: {provider: openai, base_url: http://h, capabilities: [chat, code], models: [{name: m}]}
routes:
  - {name: coding, match: {models: [coder]}, capability: code}
  - name: default
";
    assert_eq!(warning(document).path, "/capabilities/paint");
    let policy = policy(document);
    let served = |route: u32, capability: &str| {
        let pool =
            policy.pool_for(crate::policy::RouteId(route), policy.find_capability(capability).unwrap());
        policy.capabilities[policy.pools[pool.index()].capability.index()].name.as_str()
    };
    assert_eq!((served(0, "chat"), served(0, "paint")), ("code", "code"));
    assert_eq!((served(1, "chat"), served(1, "code"), served(1, "paint")), ("chat", "code", "chat"));
}

#[test]
fn weight_0_takes_a_target_out_before_anything_else() {
    let document =
        small("name: default", "{name: default, targets: [{backend: one, weight: 0}, {backend: two}]}");
    let listed = policy(&document);
    assert_eq!(pool(&listed, "default", "code"), [("two", "large", 1.0, 0.0)]);

    let drained =
        policy(&small("    capabilities: {chat: 0.5}", "    capabilities: {chat: 0.5}\n    weight: 0"));
    assert_eq!(pool(&drained, "default", "chat"), [("one", "large", 1.0, 1.0)]);
}

#[test]
fn a_route_without_any_candidate_is_refused() {
    let problem = error(&small("name: default", "{name: default, targets: [{backend: one, weight: 0}]}"));
    assert_eq!(
        (&*problem.path, &*problem.message),
        ("/routes/0/targets", "the weights of the targets add up to 0")
    );
    assert_eq!(error(&small("name: default", "{name: default, targets: []}")).path, "/routes/0/targets");

    let paths =
        |document: &str| problems(document).into_iter().map(|problem| problem.path).collect::<Vec<_>>();
    let nobody_chats = SMALL.replace("[chat, code]", "[code]").replace("{chat: 0.5}", "{code: 0.5}");
    assert_eq!(paths(&nobody_chats), ["/capabilities/chat", "/routes/0"]);
    let nobody_codes =
        small("[chat, code]", "[chat]").replace("name: default", "{name: default, capability: code}");
    assert_eq!(paths(&nobody_codes), ["/capabilities/code", "/routes/0/capability"]);
}

#[test]
fn a_target_is_listed_once() {
    let document =
        small("name: default", "{name: default, targets: [{backend: one}, {backend: one, model: large}]}");
    assert_eq!(error(&document).path, "/routes/0/targets/1");
}

#[test]
fn candidates_are_bounded() {
    let mut document = String::from("version: 1\ncapabilities:\n  chat: {default: true}\n");
    let names: Vec<String> = (0..100).map(|index| format!("c{index}")).collect();
    names.iter().for_each(|name| document += &format!("  {name}: {{}}\n"));
    document += "backends:\n";
    for index in 0..100 {
        document += &format!(
            "  b{index}: {{provider: openai, base_url: http://h, models: [{{name: m}}], capabilities: "
        );
        document += &format!("[chat, {}]}}\n", names.join(", "));
    }
    document += "routes:\n";
    (0..200)
        .for_each(|index| document += &format!("  - {{name: r{index}, match: {{models: [m{index}]}}}}\n"));
    let problem = error(&document);
    assert_eq!(
        (&*problem.path, problem.message.contains("2020000 candidates")),
        ("/routes", true),
        "{problem}"
    );
}

#[test]
fn a_residency_that_no_backend_of_the_route_has_is_refused() {
    let document = |residency: &str| {
        let backend = "    capabilities: {chat: 0.5}";
        small(backend, &format!("{backend}\n    residency: eu-west"))
            .replace("name: default", &format!("{{name: default, residency: [{residency}]}}"))
    };
    let policy = policy(&document("us, eu-*"));
    let resident = |candidate: &crate::policy::Candidate| candidate.resident;
    assert_eq!(policy.pools[0].candidates.iter().map(resident).collect::<Vec<_>>(), [false, true]);
    assert_eq!(error(&document("cn")).path, "/routes/0/residency");
}
