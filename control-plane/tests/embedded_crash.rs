//! `kill -9` in the middle of writes: nothing that was confirmed is lost, and no repair is needed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use penstock_control_plane::store::{Embedded, Error, List, Store, Txn};

/// Set: this process is the one to be killed, and writes to the store at this path.
const CHILD: &str = "PENSTOCK_TEST_WRITER";

/// Prints the number of each write once it is confirmed. Does nothing unless started by the test below.
#[test]
#[expect(clippy::disallowed_methods, reason = "how a test tells its child process what it is")]
fn writer() {
    let Ok(path) = std::env::var(CHILD) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Embedded::open(path.into()).await.unwrap();
        let start = store.get("/count").await.unwrap();
        let mut count: u64 = start.map_or(0, |entry| String::from_utf8_lossy(&entry.value).parse().unwrap());
        loop {
            count += 1;
            let txn = Txn::default().put(format!("/entries/{count:08}"), vec![b'x'; 2000]);
            store.commit(txn.put("/count", count.to_string())).await.unwrap();
            println!("wrote {count}");
        }
    });
}

#[tokio::test]
async fn nothing_that_was_confirmed_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut confirmed = 0;
        let mut seen = 0;
        while seen < 20 * round {
            let line = lines.next().expect("the writer goes on").unwrap();
            if let Some((_, number)) = line.split_once("wrote ") {
                confirmed = number.parse::<u64>().unwrap();
                seen += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some((_, number)) = line.split_once("wrote ") {
                confirmed = number.parse().unwrap_or(confirmed);
            }
        }
        let store = Embedded::open(path.clone()).await.unwrap();
        let count = store.get("/count").await.unwrap().unwrap();
        let count: u64 = String::from_utf8_lossy(&count.value).parse().unwrap();
        let all = List { prefix: "/entries/".to_owned(), limit: usize::MAX, ..List::default() };
        let page = store.list(&all).await.unwrap();
        assert!(count >= confirmed, "confirmed {confirmed}, found {count}");
        assert_eq!(page.entries.len() as u64, count, "both halves of every transaction or none");
        assert_eq!(page.revision, count);
    }
}

#[tokio::test]
async fn a_store_that_another_process_uses_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let _open = Embedded::open(path.clone()).await.unwrap();
    let refused = Embedded::open(path).await.unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused:?}");
    assert!(refused.to_string().contains("stop it, or choose another --data-dir"));
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(&path, "something else entirely").unwrap();
    let refused = Embedded::open(path.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::Open { .. }), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "something else entirely");
}
