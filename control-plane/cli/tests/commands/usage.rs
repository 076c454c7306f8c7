//! Exit codes, help, languages.

use crate::penstock;

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    assert_eq!(penstock(&["polcy"], &[]).code, 2);
    assert_eq!(penstock(&["policy", "apply"], &[]).code, 2);
    assert_eq!(penstock(&[], &[]).code, 2);
    let help = penstock(&["policy", "apply", "--help"], &[]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("penstock policy apply policy.yaml -m"), "{}", help.out);
}

#[test]
fn a_control_plane_that_is_not_there_says_how_to_start_one_in_the_readers_language() {
    // Port 9 is reserved for discarding; nothing listens there.
    let arguments = ["policy", "list", "--server", "http://127.0.0.1:9"];
    let ended = penstock(&arguments, &[("LANG", "en_US.UTF-8")]);
    assert_eq!(ended.code, 1);
    assert_eq!(ended.out, "");
    assert!(
        ended.err.starts_with("error: cannot reach the control plane at http://127.0.0.1:9: "),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("`penstock up`"), "{}", ended.err);
    let ended = penstock(&arguments, &[("LANG", "zh_CN.UTF-8")]);
    assert!(ended.err.starts_with("错误：无法连接控制面 http://127.0.0.1:9："), "{}", ended.err);
}

#[test]
fn an_address_that_is_none_is_told_from_one_that_does_not_answer() {
    let ended = penstock(&["node", "list", "--server", "localhost:7070"], &[]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("write http://HOST:PORT"), "{}", ended.err);
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = penstock(&["completions", shell], &[]);
        for command in ["rollback", "explain", "completions"] {
            assert!(ended.out.contains(command), "{shell} knows {command}");
        }
    }
}
