//! Where settings come from.

use std::path::Path;

use crate::penstock;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn flags_win_over_variables_variables_over_the_file_and_the_file_over_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "control.yaml",
        "grpc_listen: 0.0.0.0:1\nhttp_listen: 0.0.0.0:2\nstore: etcd://a:2379\nlog: warn\n",
    );
    let ended = penstock(
        &["control", "--dump-config", "--config", &file, "--listen", "127.0.0.1:10"],
        &[
            ("PENSTOCK_GRPC_LISTEN", "127.0.0.1:20"),
            ("PENSTOCK_HTTP_LISTEN", "127.0.0.1:20"),
            ("PENSTOCK_OTLP", "http://user:secret@collector:4317"),
            ("XDG_STATE_HOME", "/state"),
        ],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(
        ended.out,
        "data_dir: /state/penstock  # default\n\
         policy_name: default  # default\n\
         grpc_listen: 127.0.0.1:10  # flag\n\
         http_listen: 127.0.0.1:20  # environment\n\
         store: etcd://a:2379  # file\n\
         otlp: http://***@collector:4317  # environment\n\
         trace_ratio: 1  # default\n\
         log: warn  # file\n\
         log_format: pretty  # default\n"
    );
}

#[test]
fn a_wrong_setting_is_refused_wherever_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = write(folder.path(), "unknown.yaml", "grpc_lisen: 0.0.0.0:1\n");
    let ended = penstock(&["control", "--check", "--config", &unknown], &[]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("\"grpc_lisen\"") && ended.err.contains("--dump-config"), "{}", ended.err);
    let wrong = write(folder.path(), "wrong.yaml", "grpc_listen: nowhere\n");
    assert_eq!(penstock(&["control", "--check", "--config", &wrong], &[]).code, 2);
    assert_eq!(penstock(&["control", "--check"], &[("PENSTOCK_STORE", "redis://a:1")]).code, 2);
    assert_eq!(penstock(&["control", "--check", "--config", "no-such-file"], &[]).code, 1);
}

#[test]
fn check_reads_everything_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "good.yaml", penstock_model::DEMO_POLICY);
    let data = folder.path().join("data");
    let check = |more: &[&str]| {
        penstock(&[&["control", "--check", "--data-dir", data.to_str().unwrap()], more].concat(), &[])
    };
    let ended = check(&["--initial-policy", &good]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "the settings are valid\n"));
    assert!(!data.exists(), "check creates nothing");

    let bad = write(folder.path(), "bad.yaml", "version: 1\n");
    let ended = check(&["--initial-policy", &bad]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("bad.yaml has "), "{}", ended.err);
    let ended = check(&["--otlp", "collector:4317"]);
    assert!(ended.code == 1 && ended.err.contains("http://HOST:PORT"), "{ended:?}");
    let ended = check(&["--log", "penstock=loud"]);
    assert!(ended.code == 1 && ended.err.contains("penstock=loud"), "{ended:?}");
}
