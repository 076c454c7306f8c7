//! Warnings of routes that are in the way of each other.

use super::*;

/// The warnings about these routes: path and message.
fn warnings(routes: &[&str]) -> Vec<(String, String)> {
    let routes: String =
        routes.iter().enumerate().map(|(index, route)| format!("  - {{name: r{index}{route}}}\n")).collect();
    let loaded = load(&small("  - name: default", &routes));
    assert!(loaded.policy.is_some(), "{:?}", loaded.problems);
    loaded.problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
}

fn never_reached(index: usize, rival: usize) -> (String, String) {
    (
        format!("/routes/{index}"),
        format!("never reached: the route `r{rival}` above takes every request that this one would"),
    )
}

fn overlaps(index: usize, rival: usize) -> (String, String) {
    (
        format!("/routes/{index}"),
        format!("overlaps the route `r{rival}` above: requests that fit both take that one"),
    )
}

#[test]
fn a_route_of_which_all_is_taken_above_is_never_reached() {
    for (above, below) in [
        (", match: {models: [gpt-*]}", ", match: {models: [gpt-4o, gpt-5*]}"),
        (", match: {models: [a, b]}", ", match: {models: [b], stream: true}"),
        (", match: {prompt_tokens: {min: 10}}", ", match: {prompt_tokens: {min: 20, max: 30}}"),
        (", match: {networks: [10.0.0.0/8]}", ", match: {networks: [10.1.0.0/16, 10.2.0.1]}"),
        (", match: {percent: 30}", ", match: {percent: 10}"),
        (", match: {biz_types: [x]}", ", condition: \"stream && biz_type == 'x' && user != 'y'\""),
        (", condition: \"user != 'y'\"", ", match: {stream: true}, condition: \"user != 'y'\""),
        (
            ", match: {time: {from: \"08:00\", to: \"18:00\"}}",
            ", match: {time: {from: \"09:00\", to: \"10:00\", weekdays: [mon]}}",
        ),
        (", match: {headers: {x-a: \"*\"}}", ", match: {headers: {X-A: b}}"),
        (", match: {languages: [zh, ja]}", ", match: {languages: [ja]}"),
    ] {
        assert_eq!(warnings(&[above, below]), [never_reached(1, 0)], "{above} before {below}");
        assert_eq!(warnings(&[below, above]), [], "{below} before {above}");
    }
    let (matcher, condition) = (", match: {models: [a]}", ", condition: \"model == 'a'\"");
    assert_eq!(warnings(&[matcher, condition]), [never_reached(1, 0)]);
    assert_eq!(warnings(&[condition, matcher]), [never_reached(1, 0)]);
}

#[test]
fn what_may_have_requests_of_its_own_is_left_alone() {
    for (above, below) in [
        (", match: {models: [a, b]}", ", match: {models: [a, c]}"),
        (", match: {models: [a]}, condition: \"user != 'y'\"", ", match: {models: [a]}"),
        (", match: {models: [a], stream: true}", ", match: {models: [a]}"),
        (", match: {headers: {x-a: \"*\"}}", ", match: {stream: true}"),
        (", match: {time: {zone: UTC, to: \"12:00\"}}", ", match: {time: {zone: Asia/Tokyo, to: \"11:00\"}}"),
        (", match: {max_tokens: {min: 5}}", ", match: {prompt_tokens: {min: 5}}"),
    ] {
        assert_eq!(warnings(&[above, below]), [], "{above} before {below}");
    }
}

#[test]
fn a_route_that_takes_everything_is_told_once() {
    let all = "never reached, like all below it: the route `r1` above takes every request";
    let routes = [", match: {stream: true}", ", match: {paths: [\"*\"], percent: 100}", "", ""];
    assert_eq!(warnings(&routes), [("/routes/2".to_owned(), all.to_owned())]);
    assert_eq!(warnings(&["", ""])[0].1, "never reached: the route `r0` above takes every request");
}

#[test]
fn routes_that_share_some_requests_and_lead_elsewhere_overlap() {
    let to =
        |backend: &str, matchers: &str| format!(", match: {{{matchers}}}, targets: [{{backend: {backend}}}]");
    let one = to("one", "models: [a, b], prompt_tokens: {max: 100}");
    let two = to("two", "models: [b, c], prompt_tokens: {min: 50}");
    assert_eq!(warnings(&[&one, &two]), [overlaps(1, 0)]);
    let same = to("one", "models: [b, c], prompt_tokens: {min: 50}");
    assert_eq!(warnings(&[&one, &same]), [], "whichever is taken, it leads to the same targets");
    let apart = to("two", "models: [b, c], prompt_tokens: {min: 101}");
    assert_eq!(warnings(&[&one, &apart]), []);
    let general = to("two", "models: [\"a*\", b], prompt_tokens: {max: 200}");
    assert_eq!(warnings(&[&one, &general]), [], "the special before the general is no accident");
    let other = to("two", "models: [b, c]");
    assert_eq!(warnings(&[&one, &other]), [], "nor is it where other fields are looked at");
}

#[test]
fn many_of_a_kind_are_told_as_one() {
    let mut routes = vec![", match: {models: [gpt-*]}".to_owned()];
    routes.extend((0..25).map(|index| format!(", match: {{models: [gpt-{index}]}}")));
    let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
    let found = warnings(&routes);
    assert_eq!(found.len(), 10);
    assert_eq!(found[0], never_reached(1, 0));
    assert!(found[9].1.ends_with("; the same is true of 15 more routes"), "{}", found[9].1);
}

#[test]
fn a_route_with_an_error_is_not_compared() {
    let loaded = load(&small(
        "  - name: default",
        "  - {name: a, match: {networks: [x], models: [m]}}\n  - {name: b, match: {models: [m]}}\n",
    ));
    let found: Vec<_> = loaded.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(found, ["/routes/0/match/networks/0"]);
}
