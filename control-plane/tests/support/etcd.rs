//! A real etcd, started, killed and started again.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Three members.
pub(crate) struct Cluster {
    members: Vec<EtcdProcess>,
}

impl Cluster {
    /// Starts it and waits until every member answers.
    pub(crate) async fn start() -> Self {
        let mut members: Vec<_> = (1..=3).map(EtcdProcess::member).collect();
        let all: Vec<_> = members.iter().map(EtcdProcess::as_peer).collect();
        for member in &mut members {
            member.cluster = all.join(",");
            member.child = Some(member.spawn());
        }
        for member in &mut members {
            member.answers().await;
        }
        Self { members }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.iter().map(EtcdProcess::url).collect()
    }

    /// The member keeps its connections and does nothing any more.
    pub(crate) fn freeze(&self, member: usize) {
        let id = self.members[member].child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }
}

/// One member with its data in a temporary folder. Killed when dropped.
pub(crate) struct EtcdProcess {
    name: String,
    /// All members with their peer addresses.
    cluster: String,
    folder: TempDir,
    client_port: u16,
    peer_port: u16,
    child: Option<Child>,
}

impl EtcdProcess {
    /// Starts it and waits until it answers.
    pub(crate) async fn start() -> Self {
        let mut process = Self::stopped();
        process.restart().await;
        process
    }

    /// Prepares one that is not running yet.
    pub(crate) fn stopped() -> Self {
        let mut process = Self::member(1);
        process.cluster = process.as_peer();
        process
    }

    fn member(number: u32) -> Self {
        Self {
            name: format!("n{number}"),
            cluster: String::new(),
            folder: tempfile::tempdir().unwrap(),
            client_port: super::free_port(),
            peer_port: super::free_port(),
            child: None,
        }
    }

    fn as_peer(&self) -> String {
        format!("{}=http://127.0.0.1:{}", self.name, self.peer_port)
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.client_port
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Kills it with its data: what comes next is an empty store at the same address.
    pub(crate) fn wipe(&mut self) {
        self.kill();
        self.folder = tempfile::tempdir().unwrap();
    }

    /// Starts it on the data it has and waits until it answers.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        self.child = Some(self.spawn());
        self.answers().await;
    }

    async fn answers(&mut self) {
        super::within("etcd to answer", async {
            while self.client().await.get("ready?", None).await.is_err() {
                let exited = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
                assert!(exited.is_none(), "etcd ended with {exited:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Forgets all history before the newest revision.
    pub(crate) async fn compact(&self) {
        let mut client = self.client().await;
        let newest = client.get("any", None).await.unwrap().header().unwrap().revision();
        client.compact(newest, None).await.unwrap();
    }

    /// A connection beside the one under test.
    pub(crate) async fn client(&self) -> etcd_client::Client {
        Box::pin(etcd_client::Client::connect([self.url()], None)).await.unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "the build tells the tests where etcd is")]
    fn spawn(&self) -> Child {
        let program = std::env::var("ETCD").unwrap_or_else(|_| "etcd".to_owned());
        let url = self.url();
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        Command::new(&program)
            .arg(format!("--name={}", self.name))
            .arg(format!("--data-dir={}", self.folder.path().display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster={}", self.cluster))
            .args(["--logger=zap", "--log-level=error"])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "these tests need a real etcd, and `{program}` cannot be started ({error}): install it (Debian, \
                     Ubuntu: apt-get install etcd-server) or name the program in the variable ETCD; `make test` does \
                     both"
                )
            })
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
