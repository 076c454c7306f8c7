//! `penstock up`: both planes and the demo, as a newcomer meets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{Ended, penstock};

/// Nothing here takes longer than this, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `penstock up` on free ports.
struct Up {
    child: Child,
    banner: String,
}

impl Up {
    fn start(data_dir: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command.args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--workers", "1"]);
        command.args(["--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--log", "warn"]);
        command.arg("--data-dir").arg(data_dir).args(more).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut banner = String::new();
        // The banner is printed at once when everything runs; this line ends it.
        while !banner.contains("policy list") {
            banner.push_str(&lines.next().expect("it runs").unwrap());
            banner.push('\n');
        }
        Self { child, banner }
    }

    /// The address in the banner's line that says this.
    fn address(&self, what: &str) -> String {
        let line = self.banner.lines().find(|line| line.contains(what)).expect("the banner names it");
        line.trim().trim_start_matches("http://").split(' ').next().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Ended {
        let server = format!("http://{}", self.address("gRPC"));
        penstock(&[arguments, &["--server", &server]].concat(), &[])
    }

    /// As `curl -d` sends it, which calls everything a form.
    fn curl(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address("applications")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: penstock\r\nconnection: close\r\ncontent-length: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// SIGTERM, and its exit code.
    fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_demo_answers_the_first_calls_and_ends_at_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    for (prompt, service) in [
        ("帮我写一个快速排序算法", "code-"),
        ("请总结这篇文章的核心要点", "summarize-"),
        ("你好今天天气怎么样", "chat-"),
    ] {
        let answer = up.curl("/api/invoke", &serde_json::json!({"prompt": prompt}).to_string());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(&format!("x-penstock-backend: {service}")), "{answer}");
    }
    let hello = r#"{"model": "auto", "messages": [{"role": "user", "content": "Hello!"}]}"#;
    let answer = up.curl("/v1/chat/completions", hello);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let nodes = up.command(&["node", "list"]);
    assert!(nodes.out.contains("connected"), "{nodes:?}");
    let data_dir = folder.path().to_str().unwrap();
    let fault = penstock(&["demo", "fault", "chat-a", "latency=2s", "--data-dir", data_dir], &[]);
    assert_eq!(fault.code, 0, "{fault:?}");
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn the_demo_comes_back_with_its_policy_wherever_its_services_are_now() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    let changed = folder.path().join("changed.yaml");
    let document = up.command(&["policy", "show"]).out.replace("preset: classic", "preset: quality");
    std::fs::write(&changed, document).unwrap();
    assert_eq!(up.command(&["policy", "apply", changed.to_str().unwrap()]).code, 0);
    assert_eq!(up.stop(), Some(0));

    let services = std::fs::read_to_string(folder.path().join("demo/services.json")).unwrap();
    let services: serde_json::Value = serde_json::from_str(&services).unwrap();
    let was = services["chat-a"].as_str().unwrap();
    // When this fails, another demo has it, which is as good.
    let _taken = TcpListener::bind(was);
    let up = Up::start(folder.path(), &[]);
    let document = up.command(&["policy", "show"]).out;
    assert!(document.contains("preset: quality"), "what was changed stays changed");
    assert!(!document.contains(&format!("http://{was}/")), "chat-a has moved");
    let versions = up.command(&["policy", "list"]).out;
    assert!(versions.contains("the demo's services have moved to free ports"), "{versions}");
    for _ in 0..8 {
        let answer = up.curl("/api/invoke", r#"{"prompt": "你好"}"#);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-penstock-attempts: 1"), "{answer}");
    }
}

#[test]
fn a_policy_of_ones_own_is_applied_at_each_start_when_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    let policy = |remark: &str| {
        format!(
            "# {remark}\nversion: 1\ncapabilities: {{chat: {{default: true}}}}\nbackends:\n  mine: {{provider: openai, \
             base_url: 'http://127.0.0.1:9/v1', capabilities: [chat], models: [{{name: m}}]}}\nroutes: [{{name: all}}]\n"
        )
    };
    let start = |remark: &str| {
        std::fs::write(&file, policy(remark)).unwrap();
        let up = Up::start(folder.path(), &["--policy", file.to_str().unwrap()]);
        let shown = up.command(&["policy", "show"]).out;
        assert!(shown.starts_with(&format!("# {remark}\n")), "{shown}");
        assert!(!up.banner.contains("demo fault"), "{}", up.banner);
        let versions = up.command(&["policy", "list", "-o", "json"]).out;
        assert_eq!(up.stop(), Some(0));
        let versions: serde_json::Value = serde_json::from_str(&versions).unwrap();
        versions["stableVersion"].as_u64()
    };
    assert_eq!(start("one"), Some(1));
    assert_eq!(start("one"), Some(1));
    assert_eq!(start("two"), Some(2));
}

#[test]
fn a_port_that_is_taken_is_named_with_the_flag_that_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin-listen", "--grpc-listen", "--http-listen"] {
        let mut arguments = vec!["up", "--data-dir", folder.path().to_str().unwrap()];
        for other in ["--listen", "--admin-listen", "--grpc-listen", "--http-listen"] {
            arguments.extend([other, if other == flag { &address } else { "127.0.0.1:0" }]);
        }
        let ended = penstock(&arguments, &[]);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.contains(&format!("cannot listen on {address}: ")), "{ended:?}");
        assert!(ended.err.contains(&format!("choose another address with {flag}, ")), "{ended:?}");
    }
}

#[test]
fn a_policy_with_errors_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    std::fs::write(&file, "version: 1\n").unwrap();
    let data = folder.path().join("data");
    let ended = penstock(
        &["up", "--policy", file.to_str().unwrap(), "--data-dir", data.to_str().unwrap()],
        &[("LC_ALL", "zh_CN.UTF-8")],
    );
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("个错误"), "{}", ended.err);
    assert!(!data.exists());
}
