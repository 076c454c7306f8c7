//! `penstock demo fault`.

use std::time::Duration;

use penstock_sim::{Fault, ServiceConfig};
use tokio::runtime::Runtime;

use crate::penstock;

#[test]
fn a_fault_reaches_the_service_and_is_cleared() {
    let runtime = Runtime::new().unwrap();
    let service = runtime.block_on(penstock_sim::start(ServiceConfig::new("chat-a"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("demo")).unwrap();
    let known = serde_json::json!({"chat-a": service.addr(), "gone": "127.0.0.1:9"}).to_string();
    std::fs::write(folder.path().join("demo/services.json"), known).unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let fault =
        |service: &str, spec: &str| penstock(&["demo", "fault", service, spec, "--data-dir", data_dir], &[]);

    let ended = fault("chat-a", "latency=2s,errors=0.5");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.out.starts_with("chat-a at 127.0.0.1:") && ended.out.ends_with(": latency=2s,errors=0.5\n"),
        "{ended:?}"
    );
    let expected = Fault { latency: Some(Duration::from_secs(2)), errors: Some(0.5), ..Fault::default() };
    assert_eq!(service.handle().fault(), expected);
    assert_eq!(fault("chat-a", "clear").code, 0);
    assert_eq!(service.handle().fault(), Fault::default());

    let ended = fault("chat-z", "clear");
    assert!(ended.code == 1 && ended.err.contains("it has chat-a, gone"), "{ended:?}");
    let ended = fault("gone", "clear");
    assert!(ended.code == 1 && ended.err.contains("does not answer"), "{ended:?}");
    let ended = fault("chat-a", "slow");
    assert!(ended.code == 2 && ended.err.contains("known are latency=2s"), "{ended:?}");
}

#[test]
fn without_a_demo_it_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let ended =
        penstock(&["demo", "fault", "chat-a", "hang", "--data-dir", folder.path().to_str().unwrap()], &[]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("no demo has run over") && ended.err.contains("penstock up"), "{ended:?}");
}
