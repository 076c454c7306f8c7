//! `penstock policy …`.

use std::path::PathBuf;

use penstock_proto::admin::v1::{
    ApplyPolicyResponse, GetPolicyVersionResponse, ListPolicyVersionsResponse, PolicyVersion,
};
use penstock_proto::fleet::v1::{Problem, Severity};
use prost::Message;
use tonic::{Code, Status};

use crate::penstock;
use crate::server::{Control, Script, node};

/// The demo policy in a file.
fn document(folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, penstock_model::DEMO_POLICY).unwrap();
    file
}

fn stored(version: u64) -> Option<Result<ApplyPolicyResponse, Status>> {
    let version = PolicyVersion { version, ..PolicyVersion::default() };
    Some(Ok(ApplyPolicyResponse { version: Some(version), ..ApplyPolicyResponse::default() }))
}

fn apply(control: &Control, more: &[&str]) -> crate::Ended {
    let folder = tempfile::tempdir().unwrap();
    let file = document(&folder);
    let arguments = [&["policy", "apply", file.to_str().unwrap(), "--server", &control.url], more].concat();
    penstock(&arguments, &[("USER", "ann")])
}

#[test]
fn apply_waits_until_every_connected_node_serves_the_version() {
    let gone = penstock_proto::admin::v1::Node { connected: false, ..node("p3", 3, 0) };
    let control = Control::start(Script {
        change: stored(4),
        nodes: [
            vec![node("p1", 3, 0), node("p2", 3, 0), gone.clone()],
            vec![node("p1", 4, 0), node("p2", 3, 0), gone.clone()],
            vec![node("p1", 4, 0), node("p2", 4, 0), gone],
        ]
        .into(),
        ..Script::default()
    });
    let ended = apply(&control, &["-m", "两个聊天服务", "--expected-version", "3"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.out.starts_with("version 4 is stored\nversion 4 is served by 2 of 2 nodes after "),
        "{ended:?}"
    );
    let asked = control.asked(|script| script.applied.clone());
    assert_eq!(asked[0].message, "两个聊天服务");
    assert_eq!(asked[0].author, "ann");
    assert_eq!(asked[0].expected_version, Some(3));
    assert_eq!(asked[0].policy, "default");
    assert_eq!(asked[0].document, penstock_model::DEMO_POLICY.as_bytes());
}

#[test]
fn apply_says_which_nodes_refused_the_version_and_why() {
    let mut refusing = node("p2", 3, 4);
    refusing.nack_problems = vec![Problem {
        path: "/routes/0/condition".to_owned(),
        line: 12,
        column: 3,
        message: "there is no field `headerz`".to_owned(),
        ..Problem::default()
    }];
    let control = Control::start(Script {
        change: stored(4),
        nodes: [vec![node("p1", 4, 0), refusing]].into(),
        ..Script::default()
    });
    let ended = apply(&control, &[]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("p2 12:3 /routes/0/condition: there is no field `headerz`"), "{}", ended.err);
    assert!(
        ended.err.contains("refused by p2") && ended.err.contains("penstock policy rollback"),
        "{}",
        ended.err
    );
}

#[test]
fn apply_stops_waiting_and_says_how_far_it_came() {
    let control = Control::start(Script {
        change: stored(4),
        nodes: [vec![node("p1", 4, 0), node("p2", 3, 0)]].into(),
        ..Script::default()
    });
    let ended = apply(&control, &["--wait", "100ms"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("served by only 1 of 2 nodes after 100ms"), "{}", ended.err);
    let control = Control::start(Script { change: stored(4), ..Script::default() });
    assert_eq!(apply(&control, &["--wait", "0s"]).out, "version 4 is stored\n");
    assert!(apply(&control, &[]).out.ends_with("version 4 waits for proxies: none is connected\n"));
}

/// CP-08: the one who was slower is told, and what to do.
#[test]
fn a_conflict_says_who_won_and_how_to_go_on() {
    let won = Status::aborted("version 5 was stored by bob");
    let control = Control::start(Script { change: Some(Err(won)), ..Script::default() });
    let ended = apply(&control, &["--expected-version", "4"]);
    assert_eq!(ended.code, 1);
    assert_eq!(
        ended.err,
        "error: someone else was faster, nothing was changed: version 5 was stored by bob\n\
         hint:  get the newest with `penstock policy show`, make your change to it, and apply that\n"
    );
}

#[test]
fn a_store_that_is_gone_says_that_traffic_goes_on() {
    let gone = Status::unavailable("etcd does not answer");
    let control = Control::start(Script { change: Some(Err(gone)), ..Script::default() });
    let ended = apply(&control, &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("etcd does not answer") && ended.err.contains("proxies serve on"),
        "{}",
        ended.err
    );
}

#[test]
fn a_document_with_errors_is_not_even_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, penstock_model::DEMO_POLICY.replace("zone: zone-a", "zne: zone-a")).unwrap();
    let control = Control::start(Script { change: stored(4), ..Script::default() });
    let ended = penstock(&["policy", "apply", file.to_str().unwrap(), "--server", &control.url], &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("there is no field `zne`") && ended.err.contains("has 3 errors"),
        "{}",
        ended.err
    );
    assert!(control.asked(|script| script.applied.is_empty()));
}

#[test]
fn what_only_the_control_plane_finds_is_shown_in_the_document_as_well() {
    let problem = Problem {
        path: "/version".to_owned(),
        line: 8,
        column: 1,
        message: "this control plane does not know version 1".to_owned(),
        severity: Severity::Error.into(),
        ..Problem::default()
    };
    let details = ApplyPolicyResponse { problems: vec![problem], ..ApplyPolicyResponse::default() };
    let status = Status::with_details(Code::InvalidArgument, "1 error", details.encode_to_vec().into());
    let control = Control::start(Script { change: Some(Err(status)), ..Script::default() });
    let ended = apply(&control, &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("does not know version 1") && ended.err.contains("8 │ version: 1"),
        "{}",
        ended.err
    );
}

#[test]
fn an_answer_without_a_version_is_a_refusal() {
    let problem = Problem { message: "too new".to_owned(), ..Problem::default() };
    let response = ApplyPolicyResponse { problems: vec![problem], ..ApplyPolicyResponse::default() };
    let control = Control::start(Script { change: Some(Ok(response)), ..Script::default() });
    let ended = apply(&control, &[]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert!(ended.err.contains("too new") && ended.err.contains("has 1 error"), "{}", ended.err);
}

#[test]
fn rollback_names_the_version_it_went_back_to() {
    let version = PolicyVersion { version: 6, restored_from: 3, ..PolicyVersion::default() };
    let response = ApplyPolicyResponse { version: Some(version), ..ApplyPolicyResponse::default() };
    let control = Control::start(Script {
        change: Some(Ok(response)),
        nodes: [vec![node("p1", 6, 0)]].into(),
        ..Script::default()
    });
    let ended = penstock(&["policy", "rollback", "3", "--server", &control.url, "--author", "bob"], &[]);
    assert!(ended.out.starts_with("version 6 is stored, with the content of version 3\n"), "{ended:?}");
    assert!(ended.out.contains("is served by 1 of 1 node after"), "{ended:?}");
    let asked = control.asked(|script| script.rolled_back.clone());
    assert_eq!((asked[0].to_version, asked[0].author.as_str()), (3, "bob"));
}

#[test]
fn show_prints_the_document_as_it_was_applied() {
    let document = "# 注释\nversion: 1\n".to_owned();
    let version = GetPolicyVersionResponse {
        version: Some(PolicyVersion { version: 3, ..PolicyVersion::default() }),
        document: document.clone().into_bytes(),
    };
    let control = Control::start(Script { version, ..Script::default() });
    assert_eq!(penstock(&["policy", "show", "--server", &control.url], &[]).out, document);
    let ended = penstock(&["policy", "show", "3", "-o", "json", "--server", &control.url], &[]);
    let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (value["document"].as_str(), value["version"]["version"].as_u64()),
        (Some(document.as_str()), Some(3))
    );
}

#[test]
fn a_listing_comes_as_table_json_or_yaml() {
    let versions = ListPolicyVersionsResponse {
        versions: vec![PolicyVersion { version: 7, stable: true, ..PolicyVersion::default() }],
        stable_version: 7,
    };
    let control = Control::start(Script { versions, ..Script::default() });
    let list = |format: &str| penstock(&["policy", "list", "-o", format, "--server", &control.url], &[]).out;
    assert!(list("table").starts_with("VERSION  STABLE"), "{}", list("table"));
    let json: serde_json::Value = serde_json::from_str(&list("json")).unwrap();
    assert_eq!(json["versions"][0]["version"], 7);
    let yaml: serde_json::Value = serde_yaml_ng::from_str(&list("yaml")).unwrap();
    assert_eq!(yaml, json);
}

#[test]
fn validate_needs_no_control_plane_and_tells_programs_every_problem() {
    let folder = tempfile::tempdir().unwrap();
    let good = document(&folder);
    let ended = penstock(&["policy", "validate", good.to_str().unwrap()], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (0, format!("{} is valid\n", good.display()).as_str()));

    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, "{\"version\": 2}").unwrap();
    let ended = penstock(&["policy", "validate", bad.to_str().unwrap(), "-o", "json"], &[]);
    assert_eq!(ended.code, 1);
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["valid"], false);
    assert!(report["problems"].as_array().is_some_and(|problems| problems.len() > 1), "{report}");

    let missing = penstock(&["policy", "validate", "no-such-file.yaml"], &[]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("no-such-file.yaml"), "{}", missing.err);
}
