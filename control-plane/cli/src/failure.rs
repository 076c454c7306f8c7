//! What can go wrong for whoever types a command: one line that says what happened, one that says what to do.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::language::Language;

/// Why a command ended with exit code 1.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection to the control plane.
    Unreachable { server: String, detail: String },
    /// The control plane answers, its store does not.
    StoreDown { detail: String },
    /// Another writer was faster.
    Conflict { detail: String },
    /// There is no such thing.
    NotFound { detail: String },
    /// Any other refusal of the control plane.
    Refused { detail: String },
    /// The document has errors; they have been printed.
    InvalidPolicy { file: String, errors: usize },
    /// Nodes refused the version; their reasons have been printed.
    Nacked { version: u64, nodes: Vec<String> },
    /// Not every node serves the version yet.
    Unserved { version: u64, served: usize, nodes: usize, waited: Duration },
    /// A file could not be read or written.
    File { path: PathBuf, source: std::io::Error },
    /// A setting is wrong.
    Setting { what: String, advice: String },
    /// A port is taken, or the address is not ours.
    Listen { address: SocketAddr, flag: &'static str, source: std::io::Error },
    /// A part did not start, for another reason.
    Start { part: &'static str, detail: String },
}

impl Failure {
    /// A setting that is wrong, with what to do about it in the error itself.
    pub(crate) fn setting(error: &dyn Error) -> Self {
        Self::Setting { what: chain(error), advice: String::new() }
    }

    /// What happened.
    pub(crate) fn what(&self, language: Language) -> String {
        let text = |english: String, chinese: String| language.pick(english, chinese);
        match self {
            Self::Unreachable { server, detail } => text(
                format!("cannot reach the control plane at {server}: {detail}"),
                format!("无法连接控制面 {server}：{detail}"),
            ),
            Self::StoreDown { detail } => text(
                format!("the control plane's store is not available: {detail}"),
                format!("控制面的存储不可用：{detail}"),
            ),
            Self::Conflict { detail } => text(
                format!("someone else was faster, nothing was changed: {detail}"),
                format!("他人已抢先修改，未作任何更改：{detail}"),
            ),
            Self::NotFound { detail } | Self::Refused { detail } => detail.clone(),
            Self::InvalidPolicy { file, errors } => text(
                format!("{file} has {errors} {}", plural(*errors, "error", "errors")),
                format!("{file} 有 {errors} 个错误"),
            ),
            Self::Nacked { version, nodes } => text(
                format!("version {version} is stored, but refused by {}", nodes.join(", ")),
                format!("版本 {version} 已保存，但被以下节点拒绝：{}", nodes.join("、")),
            ),
            Self::Unserved { version, served, nodes, waited } => {
                let waited = humantime::format_duration(*waited);
                text(
                    format!(
                        "version {version} is stored, but served by only {served} of {nodes} nodes after {waited}"
                    ),
                    format!("版本 {version} 已保存，但 {waited} 后仅有 {served}/{nodes} 个节点生效"),
                )
            }
            Self::File { path, source } => format!("{}: {source}", path.display()),
            Self::Setting { what, .. } => what.clone(),
            Self::Listen { address, source, .. } => {
                text(format!("cannot listen on {address}: {source}"), format!("无法监听 {address}：{source}"))
            }
            Self::Start { part, detail } => {
                text(format!("{part} did not start: {detail}"), format!("{part} 启动失败：{detail}"))
            }
        }
    }

    /// What to do about it; empty when that is plain from what happened.
    pub(crate) fn advice(&self, language: Language) -> String {
        let text = |english: &str, chinese: &str| language.pick(english, chinese).to_owned();
        match self {
            Self::Unreachable { .. } => text(
                "start one with `penstock up`, or name another with --server or PENSTOCK_SERVER",
                "用 `penstock up` 启动一个，或用 --server / PENSTOCK_SERVER 指定地址",
            ),
            Self::StoreDown { .. } => text(
                "proxies serve on with the policy they have; when the store is back, run the command again",
                "代理继续使用现有策略；存储恢复后请重新执行该命令",
            ),
            Self::Conflict { .. } => text(
                "get the newest with `penstock policy show`, make your change to it, and apply that",
                "用 `penstock policy show` 取得最新版本，在其上修改后再应用",
            ),
            Self::NotFound { .. } | Self::Refused { .. } | Self::File { .. } | Self::Start { .. } => {
                String::new()
            }
            Self::InvalidPolicy { .. } => text(
                "correct them; docs/reference/policy.md describes every field",
                "请修正；docs/reference/policy.md 说明了每个字段",
            ),
            Self::Nacked { .. } => text(
                "these nodes serve on with what they had; `penstock policy rollback` undoes the change",
                "这些节点继续使用旧版本；`penstock policy rollback` 可撤销本次更改",
            ),
            Self::Unserved { .. } => text(
                "the others take it when they can; `penstock node list` shows which they are",
                "其余节点会尽快生效；`penstock node list` 可查看是哪些节点",
            ),
            Self::Setting { advice, .. } => advice.clone(),
            Self::Listen { flag, .. } => language.pick(
                format!("choose another address with {flag}, or stop what uses it"),
                format!("用 {flag} 换一个地址，或停止占用它的进程"),
            ),
        }
    }

    /// Both, as they are printed.
    pub(crate) fn render(&self, language: Language) -> String {
        let (error, hint) = language.pick(("error: ", "hint:  "), ("错误：", "提示："));
        let advice = self.advice(language);
        let advice = if advice.is_empty() { advice } else { format!("{hint}{advice}\n") };
        format!("{error}{}\n{advice}", self.what(language))
    }
}

/// An error and everything below it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// The word for `count` things.
pub(crate) fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_and_what_to_do_in_both_languages() {
        let failure = Failure::Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            flag: "--listen",
            source: std::io::Error::other("Address already in use"),
        };
        assert_eq!(
            failure.render(Language::English),
            "error: cannot listen on 127.0.0.1:8080: Address already in use\n\
             hint:  choose another address with --listen, or stop what uses it\n"
        );
        assert_eq!(
            failure.render(Language::Chinese),
            "错误：无法监听 127.0.0.1:8080：Address already in use\n\
             提示：用 --listen 换一个地址，或停止占用它的进程\n"
        );
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        let error = penstock_telemetry::otlp::Error::Endpoint { endpoint: "x".to_owned() };
        assert_eq!(chain(&error).matches("4317").count(), 1);
    }
}
