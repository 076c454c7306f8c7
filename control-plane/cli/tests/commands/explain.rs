//! `penstock explain`, `penstock node list`, `penstock backend`.

use crate::penstock;
use crate::server::{Control, Decision, Script, node};

#[test]
fn explain_shows_a_record_and_says_when_there_is_none() {
    let decision = Decision { id: "01K".to_owned(), capability: "code".to_owned(), ..Decision::default() };
    let control = Control::start(Script { decision: Some(decision), ..Script::default() });
    let found = penstock(&["explain", "01K", "--server", &control.url], &[]);
    assert_eq!(found.code, 0, "{found:?}");
    assert!(found.out.contains("capability  code"), "{}", found.out);
    let missing = penstock(&["explain", "01X", "--server", &control.url], &[]);
    assert_eq!(
        (missing.code, missing.err.as_str()),
        (1, "error: no decision 01X among the last 0 of 0 nodes\n")
    );
}

#[test]
fn nodes_and_backends_are_listed() {
    let control = Control::start(Script { nodes: [vec![node("p1", 4, 0)]].into(), ..Script::default() });
    let nodes = penstock(&["node", "list", "--server", &control.url], &[]);
    assert!(nodes.out.lines().nth(1).is_some_and(|line| line.starts_with("p1")), "{}", nodes.out);
    let backends = penstock(&["backend", "list", "-o", "json"], &[("PENSTOCK_SERVER", &control.url)]);
    let json: serde_json::Value = serde_json::from_str(&backends.out).unwrap();
    assert!(json["targets"].as_array().is_some_and(Vec::is_empty), "{}", backends.out);
}

#[test]
fn draining_says_what_became_of_it_and_who_did_it() {
    let control = Control::start(Script::default());
    let arguments = ["backend", "drain", "a", "--model", "m", "-m", "new disks", "--server", &control.url];
    let drained = penstock(&arguments, &[("PENSTOCK_AUTHOR", "ann")]);
    assert_eq!(drained.out, "a/m is drained: it gets no new requests\ndrained now: a/m\n", "{drained:?}");
    let asked = control.asked(|script| script.drained[0].clone());
    assert_eq!((&*asked.author, &*asked.message), ("ann", "new disks"));
    let back = penstock(&["backend", "undrain", "a", "--server", &control.url], &[]);
    assert_eq!(back.out, "a was not drained\ndrained now: nothing\n", "{back:?}");
}
