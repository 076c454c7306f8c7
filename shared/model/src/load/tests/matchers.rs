//! Matchers of routes: what they become, and what is wrong with them.

use super::*;

fn constraints(matchers: &str) -> Vec<String> {
    let policy = policy(&small("name: default", &format!("{{name: default, match: {matchers}}}")));
    policy.routes[0].constraints.iter().map(|constraint| constraint.field.to_string()).collect()
}

#[test]
fn every_matcher_becomes_a_demand_on_its_field() {
    for (matchers, field) in [
        ("{methods: [POST]}", "method"),
        ("{hosts: [\"*.example\", \"[::1]\"]}", "host"),
        ("{biz_types: [risk_control]}", "biz_type"),
        ("{users: [\"u-*\"]}", "user"),
        ("{capabilities: [chat]}", "capability"),
        ("{languages: [zh, ja]}", "language"),
        ("{tools: true}", "tools"),
        ("{images: false}", "images"),
        ("{audio: true}", "audio"),
        ("{json_schema: true}", "json_schema"),
        ("{prompt_tokens: {min: 1}}", "prompt_tokens"),
        ("{max_tokens: {max: 10}}", "max_tokens"),
        ("{networks: [10.0.0.0/8, \"2001:db8::/32\", 192.168.1.1]}", "client_ip"),
        ("{time: {zone: Asia/Shanghai, from: \"08:00\", to: \"18:00\"}}", "time in Asia/Shanghai"),
        ("{percent: 10}", "bucket"),
    ] {
        assert_eq!(constraints(matchers), [field], "{matchers}");
    }
}

#[test]
fn a_matcher_that_takes_every_value_is_none() {
    for matchers in [
        "{models: [a, \"*\"]}",
        "{percent: 100}",
        "{prompt_tokens: {}}",
        "{languages: [zh, en, ja, ko, other]}",
        "{biz_types: []}",
    ] {
        assert_eq!(constraints(matchers), Vec::<String>::new(), "{matchers}");
    }
    assert_eq!(
        constraints("{headers: {x-a: \"*\"}}"),
        ["header x-a"],
        "a header that is absent does not match"
    );
}

#[test]
fn matchers_that_make_no_sense_are_refused_with_their_place() {
    for (matchers, path, message) in [
        ("{methods: [post]}", "/methods/0", "not a method"),
        ("{hosts: [\"a.example:80\"]}", "/hosts/0", "hosts are matched without their port"),
        ("{hosts: [A.example]}", "/hosts/0", "not the name of a host"),
        ("{capabilities: [chta]}", "/capabilities/0", "there is no capability `chta` under capabilities"),
        ("{languages: [fr]}", "/languages/0", "must be one of `zh`, `en`, `ja`, `ko`, `other`"),
        ("{networks: [10.0.0.300]}", "/networks/0", "not a network"),
        ("{networks: [10.0.0.1/8]}", "/networks/0", "the address has bits beyond its prefix of 8"),
        ("{prompt_tokens: {min: 2, max: 1}}", "/prompt_tokens", "min is more than max"),
        ("{prompt_tokens: {least: 2}}", "/prompt_tokens/least", "there is no field `least`"),
        ("{percent: 0}", "/percent", "must be at least 1"),
        ("{time: {zone: Mars/Base}}", "/time/zone", "there is no such time zone"),
        ("{time: {from: \"8\"}}", "/time/from", "not a time of day"),
        ("{time: {weekdays: [noday]}}", "/time/weekdays", "`noday` is no weekday"),
    ] {
        let error = error(&small("name: default", &format!("{{name: default, match: {matchers}}}")));
        assert_eq!(
            (error.path.as_str(), error.message.as_str()),
            (format!("/routes/0/match{path}").as_str(), message),
            "{matchers}"
        );
        assert!(error.line > 0 && error.column > 0);
    }
}

#[test]
fn a_condition_that_compares_with_what_cannot_be_is_refused() {
    for (condition, message) in [
        ("capability == 'chta'", "there is no capability `chta` under capabilities"),
        ("language in ['zh', 'fr']", "there is no such language"),
        ("backends.oen.latency > 1.0", "there is no backend `oen` under backends"),
        ("backends['one/x'].latency > 1.0", "there is no model `x` of backend `one`"),
    ] {
        let error = error(&small("name: default", &format!("{{name: default, condition: \"{condition}\"}}")));
        assert_eq!(
            (error.path.as_str(), error.message.as_str()),
            ("/routes/0/condition", message),
            "{condition}"
        );
        assert!(error.line > 0 && error.column > 0);
    }
}

#[test]
fn tags_are_few_and_short() {
    let tagged = |tags: &str| small("name: default", &format!("{{name: default, tags: {tags}}}"));
    assert_eq!(policy(&tagged("[team-a, 风控]")).routes[0].tags, ["team-a", "风控"]);
    for (tags, path) in [
        ("[a, b, c, d, e, f, g, h, i]", "/routes/0/tags"),
        ("[\"a,b\"]", "/routes/0/tags/0"),
        ("[\"\"]", "/routes/0/tags/0"),
    ] {
        assert_eq!(error(&tagged(tags)).path, path, "{tags}");
    }
    assert!(load(&tagged(&format!("[{}]", "x".repeat(65)))).policy.is_none());
}
