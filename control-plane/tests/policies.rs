//! Applying and rolling back, over gRPC.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;

use penstock_control_plane::store::{Embedded, Store, Txn, keys};
use penstock_control_plane::{Error, StoreConfig, start};
use penstock_proto::admin::v1::{
    ApplyPolicyRequest, GetPolicyVersionRequest, ListAuditRequest, RollbackPolicyRequest,
    ValidatePolicyRequest,
};
use support::control::{Control, code, config, document};
use tonic::Code;

/// A document with two errors, both with a path.
const BROKEN: &str = "version: 1\ncapabilities: {chat: {default: true}}\nbackends: {a: {provider: openai, base_url: \
                      'ftp://x', capabilities: [chat], models: [{name: m}]}}\nroutes: [{name: r, targets: [{backend: nobody}]}]\n";

fn request(document: &str) -> ApplyPolicyRequest {
    ApplyPolicyRequest {
        document: document.as_bytes().to_vec(),
        author: "tester".to_owned(),
        ..ApplyPolicyRequest::default()
    }
}

async fn rollback(control: &Control, to_version: u64) -> Result<u64, tonic::Status> {
    let request = RollbackPolicyRequest {
        to_version,
        author: "undoer".to_owned(),
        message: "back".to_owned(),
        ..RollbackPolicyRequest::default()
    };
    let response = control.policy.clone().rollback_policy(request).await?.into_inner();
    Ok(response.version.unwrap().version)
}

async fn text(control: &Control, version: u64) -> String {
    let request = GetPolicyVersionRequest { version, ..GetPolicyVersionRequest::default() };
    let found = control.policy.clone().get_policy_version(request).await.unwrap().into_inner();
    String::from_utf8(found.document).unwrap()
}

#[tokio::test]
async fn every_apply_makes_a_higher_version_and_keeps_the_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    assert_eq!(control.version_of(&document("one")).await, 1);
    assert_eq!(control.version_of(&document("two")).await, 2);
    assert_eq!(text(&control, 1).await, document("one"));
    assert_eq!(text(&control, 0).await, document("two"), "0 is the stable one");
    let versions = control.versions().await;
    let listed: Vec<_> = versions.iter().map(|version| (version.version, version.stable)).collect();
    assert_eq!(listed, [(2, true), (1, false)]);
    assert_eq!(versions[0].content_hash, penstock_model::content_hash(&document("two")));
    assert_eq!(versions[0].author, "tester");
}

#[tokio::test]
async fn the_document_that_is_stable_already_makes_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let again = control.apply(&document("one")).await.unwrap();
    assert!(again.unchanged);
    assert_eq!(again.version.unwrap().version, 1);
    assert_eq!(control.versions().await.len(), 1);
}

#[tokio::test]
async fn a_document_with_errors_is_not_stored_and_all_its_problems_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("good")).await;
    let refused = control.apply(BROKEN).await.unwrap();
    assert!(refused.version.is_none());
    let paths: BTreeSet<_> = refused.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert!(paths.contains("/backends/a/base_url"), "{paths:?}");
    assert!(paths.contains("/routes/0/targets/0/backend"), "{paths:?}");
    assert!(refused.problems.iter().all(|problem| problem.line > 0));
    assert_eq!(control.versions().await.len(), 1);
    let request = ValidatePolicyRequest { document: BROKEN.as_bytes().to_vec(), ..Default::default() };
    let validated = control.policy.clone().validate_policy(request).await.unwrap().into_inner();
    assert_eq!(validated.problems, refused.problems);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let checked =
        control.apply_as(ApplyPolicyRequest { dry_run: true, ..request(&document("x")) }).await.unwrap();
    assert!(checked.version.is_none() && checked.problems.is_empty());
    assert!(control.versions().await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_a_policy_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let large = format!("{}# {}", document("large"), "x".repeat(1 << 20));
    let too_large = control.apply(&large).await.unwrap_err();
    assert_eq!((too_large.code(), code(&too_large)), (Code::InvalidArgument, "policy_too_large"));
    assert!(too_large.message().contains("1048576"), "{}", too_large.message());
    // Within the limit as text, over it as JSON.
    let quotes = format!("{}# {}", document("quotes"), "\"".repeat(900 << 10));
    let too_large = control.apply(&quotes).await.unwrap_err();
    assert_eq!(code(&too_large), "policy_too_large");
    let binary = ApplyPolicyRequest { document: vec![0xff, 0xfe], ..ApplyPolicyRequest::default() };
    let binary = control.apply_as(binary).await.unwrap_err();
    assert_eq!((binary.code(), code(&binary)), (Code::InvalidArgument, "invalid_argument"));
    let other = ApplyPolicyRequest { policy: "other".to_owned(), ..request(&document("x")) };
    let other = control.apply_as(other).await.unwrap_err();
    assert_eq!((other.code(), code(&other)), (Code::NotFound, "policy_unknown"));
    let author = ApplyPolicyRequest { author: "a".repeat(300), ..request(&document("x")) };
    assert_eq!(code(&control.apply_as(author).await.unwrap_err()), "invalid_argument");
    assert!(control.versions().await.is_empty());
}

/// CP-08: two writers start from the same version.
#[tokio::test]
async fn a_change_made_from_an_old_version_is_refused_and_told_who_won() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("base")).await;
    let from_one = |note: &str, author: &str| ApplyPolicyRequest {
        expected_version: Some(1),
        author: author.to_owned(),
        ..request(&document(note))
    };
    control.apply_as(from_one("a", "alice")).await.unwrap();
    let late = control.apply_as(from_one("b", "bob")).await.unwrap_err();
    assert_eq!((late.code(), code(&late)), (Code::Aborted, "policy_conflict"));
    assert!(late.message().contains("version 2 by alice"), "{}", late.message());
    assert_eq!(text(&control, 0).await, document("a"));
}

/// CP-08: 20 writers in parallel, each trying again after a conflict: all effects are there in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_parallel_writers_who_retry_lose_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let control = std::sync::Arc::new(Control::embedded(&folder).await);
    control.version_of(&document("base")).await;
    let writers = (0..20).map(|writer| {
        let control = control.clone();
        tokio::spawn(async move {
            let mut conflicts = 0;
            loop {
                let stable = control.versions().await[0].version;
                let changed = format!("{}# writer {writer}\n", text(&control, stable).await);
                let change = ApplyPolicyRequest { expected_version: Some(stable), ..request(&changed) };
                match control.apply_as(change).await {
                    Ok(_) => return conflicts,
                    Err(status) => {
                        assert_eq!(code(&status), "policy_conflict", "{status:?}");
                        conflicts += 1;
                    }
                }
            }
        })
    });
    let conflicts: Vec<i32> =
        futures_util::future::join_all(writers).await.into_iter().map(Result::unwrap).collect();
    assert!(conflicts.iter().sum::<i32>() > 0, "they did run into each other");
    let last = text(&control, 0).await;
    for writer in 0..20 {
        assert!(last.contains(&format!("# writer {writer}\n")), "the change of writer {writer} is lost");
    }
    let numbers: Vec<u64> = control.versions().await.iter().map(|version| version.version).collect();
    assert_eq!(numbers, (1..=21).rev().collect::<Vec<_>>(), "one version per change, none left out");
}

/// CP-08: a reply is lost and the call is sent again, also at the same moment.
#[tokio::test]
async fn repeated_calls_with_one_idempotency_key_make_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("base")).await;
    let change = ApplyPolicyRequest { idempotency_key: "k1".to_owned(), ..request(&document("changed")) };
    let calls = (0..10).map(|_| control.apply_as(change.clone()));
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(outcome.unwrap().version.unwrap().version, 2);
    }
    control.version_of(&document("later")).await;
    assert_eq!(
        control.apply_as(change).await.unwrap().version.unwrap().version,
        2,
        "also after other changes"
    );
    assert_eq!(control.versions().await.len(), 3);
    let back = RollbackPolicyRequest {
        to_version: 1,
        idempotency_key: "k2".to_owned(),
        ..RollbackPolicyRequest::default()
    };
    for _ in 0..3 {
        let version =
            control.policy.clone().rollback_policy(back.clone()).await.unwrap().into_inner().version;
        assert_eq!(version.unwrap().version, 4);
    }
}

/// CP-07.
#[tokio::test]
async fn a_rollback_makes_a_new_version_with_exactly_the_content_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    for note in ["v1", "v2", "v3", "v4"] {
        control.version_of(&document(note)).await;
    }
    let before = control.versions().await;
    for (to, made) in [(1, 5), (3, 6), (2, 7), (2, 8)] {
        assert_eq!(rollback(&control, to).await.unwrap(), made);
        assert_eq!(text(&control, made).await, document(&format!("v{to}")));
        let newest = control.versions().await.remove(0);
        assert_eq!((newest.version, newest.restored_from, newest.stable), (made, to, true));
        assert_eq!(newest.content_hash, penstock_model::content_hash(&document(&format!("v{to}"))));
        assert_eq!((newest.author.as_str(), newest.message.as_str()), ("undoer", "back"));
    }
    let after = control.versions().await;
    for (old, new) in before.iter().zip(&after[4..]) {
        assert_eq!(
            (old.version, &old.content_hash),
            (new.version, &new.content_hash),
            "history is as it was"
        );
    }
}

/// CP-07: without a target, the version before the stable one; and where there is none.
#[tokio::test]
async fn a_rollback_without_a_target_takes_the_version_before() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let nothing = rollback(&control, 0).await.unwrap_err();
    assert_eq!((nothing.code(), code(&nothing)), (Code::NotFound, "policy_version_not_found"));
    control.version_of(&document("v1")).await;
    let first = rollback(&control, 0).await.unwrap_err();
    assert_eq!(code(&first), "policy_version_not_found");
    control.version_of(&document("v2")).await;
    assert_eq!(rollback(&control, 0).await.unwrap(), 3);
    assert_eq!(text(&control, 0).await, document("v1"));
    let unknown = rollback(&control, 9).await.unwrap_err();
    assert!(unknown.message().contains("versions are 1 to 3"), "{}", unknown.message());
}

/// CP-07: while version 5 is being written.
#[tokio::test]
async fn a_rollback_and_an_apply_at_the_same_moment_leave_one_of_the_two_whole() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    for note in ["v1", "v2"] {
        control.version_of(&document(note)).await;
    }
    for round in 0..10 {
        let applied = document(&format!("round {round}"));
        let (apply, back) = tokio::join!(control.apply(&applied), rollback(&control, 1));
        let stable = text(&control, 0).await;
        match (apply, back) {
            (Ok(_), Err(lost)) => {
                assert_eq!(code(&lost), "policy_conflict");
                assert_eq!(stable, applied);
            }
            (Err(lost), Ok(_)) => {
                assert_eq!(code(&lost), "policy_conflict");
                assert_eq!(stable, document("v1"));
            }
            (Ok(apply), Ok(back)) => {
                let apply = apply.version.unwrap().version;
                assert_ne!(apply, back, "one after the other");
                assert_eq!(stable, if apply > back { applied } else { document("v1") });
            }
            (Err(a), Err(b)) => panic!("both lost: {a:?}, {b:?}"),
        }
    }
}

/// CP-07: a version of an older build that this one refuses, put there past the API.
#[tokio::test]
async fn a_rollback_to_a_version_that_does_not_validate_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let control = Control::embedded(&folder).await;
    for note in ["v1", "v2"] {
        control.version_of(&document(note)).await;
    }
    control.shutdown().await;
    let store = Embedded::open(path).await.unwrap();
    let key = keys::version("default", 1);
    let mut record: serde_json::Value =
        serde_json::from_slice(&store.get(&key).await.unwrap().unwrap().value).unwrap();
    record["document"] = BROKEN.into();
    store.commit(Txn::default().put(&key, record.to_string())).await.unwrap();
    drop(store);
    let control = Control::embedded(&folder).await;
    let request = RollbackPolicyRequest { to_version: 1, ..RollbackPolicyRequest::default() };
    let refused = control.policy.clone().rollback_policy(request).await.unwrap().into_inner();
    assert!(refused.version.is_none());
    assert!(refused.problems.iter().any(|problem| problem.path == "/backends/a/base_url"));
    assert_eq!(control.versions().await.len(), 2);
}

#[tokio::test]
async fn every_change_leaves_an_audit_entry_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    for note in ["v1", "v2"] {
        control.version_of(&document(note)).await;
    }
    rollback(&control, 1).await.unwrap();
    control.apply(BROKEN).await.unwrap();
    let entries =
        control.state.clone().list_audit(ListAuditRequest::default()).await.unwrap().into_inner().entries;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.action.as_str(), entry.actor.as_str(), entry.from_version, entry.to_version))
        .collect();
    let wanted = [
        ("policy.rollback", "undoer", 2, 3),
        ("policy.apply", "tester", 1, 2),
        ("policy.apply", "tester", 0, 1),
    ];
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn the_initial_policy_becomes_version_one_of_an_empty_store_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreConfig::Embedded(folder.path().join("store.redb"));
    let mut settings = config(store);
    settings.initial_policy = Some(document("first"));
    let control = Control::start(settings.clone()).await;
    let first = support::eventually("version 1", async || control.versions().await.pop()).await;
    assert_eq!(
        (first.version, first.author.as_str(), first.message.as_str()),
        (1, "penstock", "initial policy")
    );
    control.version_of(&document("second")).await;
    control.shutdown().await;
    settings.initial_policy = Some(document("another first"));
    let control = Control::start(settings).await;
    support::eventually("readiness", async || {
        let answer = support::http::get(control.running.http_addr(), "/ready").await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(control.versions().await.len(), 2);
    assert_eq!(text(&control, 0).await, document("second"));
}

#[tokio::test]
async fn a_control_plane_does_not_start_with_an_initial_policy_that_has_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = config(StoreConfig::Embedded(folder.path().join("store.redb")));
    settings.initial_policy = Some(BROKEN.to_owned());
    let Err(Error::InitialPolicy { problems }) = start(settings).await else { panic!() };
    assert!(problems.len() >= 2);
}

#[tokio::test]
async fn a_control_plane_does_not_start_with_a_name_that_would_break_keys() {
    for name in ["", "a/b", "Default", "ü", &"x".repeat(65)] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = config(StoreConfig::Embedded(folder.path().join("store.redb")));
        settings.policy_name = name.to_owned();
        let Err(error) = start(settings).await else { panic!("{name:?}") };
        assert!(error.to_string().contains("a-z, 0-9"), "{error}");
    }
}

#[tokio::test]
async fn a_control_plane_does_not_start_on_a_port_that_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = config(StoreConfig::Embedded(folder.path().join("store.redb")));
    settings.grpc_listen = taken.local_addr().unwrap();
    let Err(error) = start(settings).await else { panic!() };
    assert!(error.to_string().contains("--grpc-listen"), "{error}");
}
