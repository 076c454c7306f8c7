//! An etcd that goes away, falls silent, forgets, or is another one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::{Duration, Instant};

use penstock_control_plane::store::{Error, Etcd, Event, Reason, Store, Timing, Txn};
use support::etcd::{Cluster, EtcdProcess};
use support::proxy::Proxy;
use support::replica::Replica;

/// Short, so that a dead stream is noticed within a second.
const TIMING: Timing = Timing {
    call: Duration::from_secs(2),
    progress: Duration::from_millis(200),
    silence: Duration::from_millis(1000),
};

async fn etcd(url: String) -> Etcd {
    Etcd::connect(&[url], TIMING).await.unwrap()
}

async fn put(store: &dyn Store, key: &str, value: &str) {
    store.commit(Txn::default().put(key, value.to_owned())).await.unwrap();
}

#[tokio::test]
async fn calls_to_an_etcd_that_is_gone_fail_at_once_and_work_again_when_it_is_back() {
    let mut process = EtcdProcess::start().await;
    let store = etcd(process.url()).await;
    put(&store, "/a", "1").await;
    process.kill();
    let asked = Instant::now();
    let read = store.get("/a").await;
    assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
    let write = store.commit(Txn::default().put("/a", "2")).await;
    assert!(matches!(write, Err(Error::Unavailable(_) | Error::Unconfirmed(_))), "{write:?}");
    assert!(asked.elapsed() < 4 * TIMING.call, "bounded by the deadline of each call");
    process.restart().await;
    put(&store, "/a", "3").await;
    assert_eq!(store.get("/a").await.unwrap().unwrap().value.as_ref(), b"3");
}

#[tokio::test]
async fn a_store_that_does_not_answer_fails_the_call_at_its_deadline() {
    let process = EtcdProcess::start().await;
    let proxy = Proxy::to(process.port()).await;
    let store = etcd(proxy.url()).await;
    put(&store, "/a", "1").await;
    proxy.silence();
    let asked = Instant::now();
    let write = store.commit(Txn::default().put("/a", "2")).await;
    assert!(matches!(write, Err(Error::Unconfirmed(_))), "it may have been made: {write:?}");
    assert!(asked.elapsed() < 3 * TIMING.call);
}

#[tokio::test]
async fn a_watch_outlives_a_killed_etcd_and_misses_nothing() {
    let mut process = EtcdProcess::start().await;
    let store = etcd(process.url()).await;
    put(&store, "/p/1", "a").await;
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.until("/p/1", "a").await;
    process.restart().await;
    put(&store, "/p/2", "b").await;
    watch.until("/p/2", "b").await;
    assert_eq!(watch.resyncs, [Reason::Opened], "history was there, nothing had to be read anew");
}

#[tokio::test]
async fn an_etcd_that_starts_late_is_found() {
    let mut process = EtcdProcess::stopped();
    let store = etcd(process.url()).await;
    let mut watch = Replica::new(store.watch("/p/", None));
    assert!(matches!(store.get("/a").await, Err(Error::Unavailable(_))));
    process.restart().await;
    put(&store, "/p/1", "a").await;
    watch.until("/p/1", "a").await;
}

/// CP-01: the watch is away while changes are made and their history is dropped.
#[tokio::test]
async fn a_watch_that_was_cut_off_during_a_compaction_reads_everything_once() {
    let process = EtcdProcess::start().await;
    let proxy = Proxy::to(process.port()).await;
    let (watched, direct) = (etcd(proxy.url()).await, etcd(process.url()).await);
    for key in 0..10 {
        put(&direct, &format!("/p/{key}"), "old").await;
    }
    let mut watch = Replica::new(watched.watch("/p/", None));
    watch.catch_up(&direct, "/p/").await;
    proxy.cut();
    for key in 0..40 {
        put(&direct, &format!("/p/{}", key + 100), "new").await;
    }
    for key in 0..10 {
        direct.commit(Txn::default().delete(format!("/p/{key}"))).await.unwrap();
    }
    process.compact().await;
    proxy.heal();
    watch.catch_up(&direct, "/p/").await;
    assert_eq!(watch.state.len(), 40);
    assert_eq!(watch.resyncs, [Reason::Opened, Reason::Compacted]);
}

/// CP-02, CP-03: the stream dies without a word; what happened meanwhile is not lost.
#[tokio::test]
async fn a_silent_watch_is_replaced_and_delivers_what_it_missed() {
    let process = EtcdProcess::start().await;
    let proxy = Proxy::to(process.port()).await;
    let (watched, direct) = (etcd(proxy.url()).await, etcd(process.url()).await);
    put(&direct, "/p/0", "a").await;
    let mut watch = Replica::new(watched.watch("/p/", None));
    watch.until("/p/0", "a").await;
    while watch.step().await != Event::Progress {}
    proxy.silence();
    for key in 1..=3 {
        put(&direct, &format!("/p/{key}"), "b").await;
    }
    tokio::time::sleep(2 * TIMING.silence).await;
    proxy.heal();
    let healed = Instant::now();
    watch.catch_up(&direct, "/p/").await;
    assert!(healed.elapsed() < Duration::from_secs(15));
    assert_eq!(watch.state.len(), 4);
    assert_eq!(watch.resyncs, [Reason::Opened], "the history was there: {:?}", watch.resyncs);
}

/// CP-02: a quiet prefix beside a busy one whose history is dropped all the time.
#[tokio::test]
async fn a_quiet_watch_is_not_read_anew_when_others_are_compacted() {
    let process = EtcdProcess::start().await;
    let proxy = Proxy::to(process.port()).await;
    let (watched, direct) = (etcd(proxy.url()).await, etcd(process.url()).await);
    put(&direct, "/p/0", "a").await;
    let mut watch = Replica::new(watched.watch("/p/", None));
    watch.until("/p/0", "a").await;
    for turn in 0..20 {
        put(&direct, "/busy", &turn.to_string()).await;
    }
    process.compact().await;
    // The answer about progress counts once the next one is there.
    for _ in 0..3 {
        while watch.step().await != Event::Progress {}
    }
    proxy.cut();
    proxy.heal();
    put(&direct, "/p/1", "b").await;
    watch.until("/p/1", "b").await;
    assert_eq!(watch.resyncs, [Reason::Opened]);
}

#[tokio::test]
async fn an_etcd_that_lost_its_data_is_noticed() {
    let mut process = EtcdProcess::start().await;
    let store = etcd(process.url()).await;
    for turn in 0..10 {
        put(&store, "/p/1", &turn.to_string()).await;
    }
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.until("/p/1", "9").await;
    process.wipe();
    process.restart().await;
    put(&store, "/p/2", "new").await;
    watch.until("/p/2", "new").await;
    assert_eq!(watch.resyncs, [Reason::Opened, Reason::Replaced]);
    assert_eq!(watch.state.len(), 1);
}

#[tokio::test]
async fn a_member_that_is_gone_is_left_for_the_next_one() {
    let process = EtcdProcess::start().await;
    let nobody = format!("http://127.0.0.1:{}", support::free_port());
    let store = Etcd::connect(&[nobody, process.url()], TIMING).await.unwrap();
    let mut watch = Replica::new(store.watch("/p/", None));
    put(&store, "/p/1", "a").await;
    watch.until("/p/1", "a").await;
    assert_eq!(store.get("/p/1").await.unwrap().unwrap().value.as_ref(), b"a");
}

/// CP-03: the member in use stops answering, its connection stays open.
#[tokio::test]
async fn a_watch_moves_on_when_its_member_of_a_cluster_freezes() {
    let cluster = Cluster::start().await;
    let store = Etcd::connect(&cluster.urls(), TIMING).await.unwrap();
    put(&store, "/p/1", "a").await;
    let mut watch = Replica::new(store.watch("/p/", None));
    watch.until("/p/1", "a").await;
    while watch.step().await != Event::Progress {}
    cluster.freeze(0);
    let others = Etcd::connect(&cluster.urls()[1..], TIMING).await.unwrap();
    let write = async || others.commit(Txn::default().put("/p/2", "b")).await.ok();
    support::eventually("a new leader", write).await;
    let written = Instant::now();
    watch.until("/p/2", "b").await;
    assert!(written.elapsed() < Duration::from_secs(15), "{:?}", written.elapsed());
    assert_eq!(watch.resyncs, [Reason::Opened]);
    put(&store, "/p/3", "c").await;
    watch.until("/p/3", "c").await;
}

#[tokio::test]
async fn a_value_over_the_limit_of_etcd_is_called_too_large() {
    let process = EtcdProcess::start().await;
    let store = etcd(process.url()).await;
    let written = store.commit(Txn::default().put("/a", vec![b'x'; 1_600_000])).await;
    assert!(matches!(written, Err(Error::TooLarge(_))), "{written:?}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_with_an_example() {
    let refused = Etcd::connect(&["http://a b".to_owned()], TIMING).await.unwrap_err();
    assert!(refused.to_string().contains("http://127.0.0.1:2379"), "{refused}");
    assert!(Etcd::connect(&[], TIMING).await.is_err());
    let tls = Etcd::connect(&["https://etcd:2379".to_owned()], TIMING).await.unwrap_err();
    assert!(matches!(tls, Error::Tls { .. }), "{tls:?}");
}
