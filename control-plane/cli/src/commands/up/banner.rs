//! What `penstock up` tells people when everything runs, in English and Chinese.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use crate::demo::Addresses;

/// The control plane that commands look for when none is named.
const DEFAULT_GRPC: &str = "127.0.0.1:7070";

/// What runs where.
#[derive(Debug)]
pub(super) struct Banner<'a> {
    /// How the program was called.
    pub(super) program: &'a str,
    pub(super) traffic: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) grpc: SocketAddr,
    pub(super) http: SocketAddr,
    /// The data folder, where it is not the platform's.
    pub(super) data_dir: Option<&'a Path>,
    pub(super) version: u64,
    /// Of the demo.
    pub(super) services: Option<&'a Addresses>,
}

impl Banner<'_> {
    pub(super) fn render(&self) -> String {
        let Self { traffic, admin, grpc, http, version, .. } = self;
        let mut text = format!(
            "\nPenstock {} is running with policy version {version}. Ctrl-C stops it.\n\
             Penstock 已启动，当前策略版本 {version}。按 Ctrl-C 停止。\n\n\
             \x20 http://{traffic}   applications send their calls here / 应用入口\n\
             \x20 http://{http}   control plane: JSON API, /metrics / 控制面\n\
             \x20 http://{grpc}   control plane: gRPC, for commands and proxies / 命令与代理连接\n\
             \x20 http://{admin}   proxy: /ready, /metrics / 代理管理\n",
            env!("CARGO_PKG_VERSION")
        );
        if let Some(services) = self.services {
            let services: Vec<_> =
                services.iter().map(|(name, address)| format!("{name} :{}", address.port())).collect();
            let _ = writeln!(text, "\nSimulated services / 模拟服务: {}", services.join(", "));
        }
        text.push_str("\nTry in another terminal / 在另一个终端试试:\n\n");
        self.suggestions(&mut text);
        text.push('\n');
        text
    }

    fn suggestions(&self, text: &mut String) {
        let Self { program, traffic, .. } = self;
        let server = self.server();
        if self.services.is_none() {
            let _ = write!(
                text,
                "  curl -s http://{traffic}/v1/chat/completions \\\n    \
                 -d '{{\"model\": \"auto\", \"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}]}}'\n  \
                 {program} backend list{server}\n  {program} policy list{server}\n"
            );
            return;
        }
        for prompt in ["帮我写一个快速排序算法", "请总结这篇文章的核心要点", "你好今天天气怎么样"]
        {
            let _ = writeln!(text, "  curl -s http://{traffic}/api/invoke -d '{{\"prompt\": \"{prompt}\"}}'");
        }
        let data_dir =
            self.data_dir.map(|folder| format!(" --data-dir {}", folder.display())).unwrap_or_default();
        let _ = write!(
            text,
            "  {program} backend list{server}\n  \
             {program} demo fault chat-a latency=2s{data_dir}\n  \
             {program} demo fault chat-a clear{data_dir}\n  \
             {program} policy list{server}\n"
        );
    }

    fn server(&self) -> String {
        let grpc = self.grpc.to_string();
        if grpc == DEFAULT_GRPC { String::new() } else { format!(" --server http://{grpc}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn the_demo_says_what_to_try_in_commands_that_work_as_they_stand() {
        let services =
            Addresses::from([("chat-a".to_owned(), at(18_081)), ("chat-b".to_owned(), at(18_082))]);
        let banner = Banner {
            program: "target/release/penstock",
            traffic: at(8080),
            admin: at(9901),
            grpc: at(7070),
            http: at(7080),
            data_dir: None,
            version: 1,
            services: Some(&services),
        };
        let expected = "
Penstock 0.1.0 is running with policy version 1. Ctrl-C stops it.
Penstock 已启动，当前策略版本 1。按 Ctrl-C 停止。

  http://127.0.0.1:8080   applications send their calls here / 应用入口
  http://127.0.0.1:7080   control plane: JSON API, /metrics / 控制面
  http://127.0.0.1:7070   control plane: gRPC, for commands and proxies / 命令与代理连接
  http://127.0.0.1:9901   proxy: /ready, /metrics / 代理管理

Simulated services / 模拟服务: chat-a :18081, chat-b :18082

Try in another terminal / 在另一个终端试试:

  curl -s http://127.0.0.1:8080/api/invoke -d '{\"prompt\": \"帮我写一个快速排序算法\"}'
  curl -s http://127.0.0.1:8080/api/invoke -d '{\"prompt\": \"请总结这篇文章的核心要点\"}'
  curl -s http://127.0.0.1:8080/api/invoke -d '{\"prompt\": \"你好今天天气怎么样\"}'
  target/release/penstock backend list
  target/release/penstock demo fault chat-a latency=2s
  target/release/penstock demo fault chat-a clear
  target/release/penstock policy list

";
        assert_eq!(banner.render(), expected);
    }

    #[test]
    fn other_ports_and_folders_appear_in_the_commands() {
        let services = Addresses::from([("chat-a".to_owned(), at(18_081))]);
        let banner = Banner {
            program: "penstock",
            traffic: at(8081),
            admin: at(9902),
            grpc: at(7071),
            http: at(7081),
            data_dir: Some(Path::new("/tmp/demo")),
            version: 3,
            services: Some(&services),
        };
        let text = banner.render();
        assert!(text.contains("  penstock policy list --server http://127.0.0.1:7071\n"), "{text}");
        assert!(text.contains("  penstock demo fault chat-a clear --data-dir /tmp/demo\n"), "{text}");
        let own = Banner { services: None, ..banner }.render();
        assert!(own.contains("/v1/chat/completions") && !own.contains("demo fault"), "{own}");
    }
}
