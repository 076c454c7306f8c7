//! Real processes: the shipped binary, etcd, an OpenTelemetry collector. Killed with -9 when dropped.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A child process that dies with its handle.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, its output in a file under `folder`.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = std::fs::File::options().create(true).append(true).open(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("start {name}"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// What it printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `kill -9`, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Did it end by itself?
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let output = self.output();
            let tail: Vec<_> = output.lines().rev().take(40).collect();
            tracing::error!(name = self.name, "last output of the process");
            for line in tail.into_iter().rev() {
                tracing::error!("{line}");
            }
        }
    }
}

/// A port that was free a moment ago. Only for processes that cannot take port 0 and say which they got.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Loopback with this port.
#[must_use]
pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The shipped binary, built by the same cargo with the same profile as this test.
pub fn penstock() -> Result<&'static Path> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BINARY.get_or_init(|| build_penstock().map_err(|error| format!("{error:#}")));
    match built {
        Ok(path) => Ok(path),
        Err(error) => bail!("{error}"),
    }
}

fn build_penstock() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let profile = test.parent().and_then(Path::parent).context("a test lies in target/PROFILE/deps")?;
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package", "penstock"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("the penstock binary does not build");
    }
    Ok(profile.join("penstock"))
}

/// A real etcd server with a folder of its own.
#[derive(Debug)]
pub struct Etcd {
    process: Option<Process>,
    folder: PathBuf,
    client: u16,
    peer: u16,
}

impl Etcd {
    /// Starts one and waits until it answers. The binary is `$ETCD`, else `etcd` on the path.
    pub async fn start(folder: &Path) -> Result<Self> {
        let mut etcd =
            Self { process: None, folder: folder.to_owned(), client: free_port()?, peer: free_port()? };
        etcd.restart().await?;
        Ok(etcd)
    }

    /// Its endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.client)
    }

    /// As `--store` takes it.
    #[must_use]
    pub fn store_url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.client)
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again over the same data.
    pub async fn restart(&mut self) -> Result<()> {
        let binary = option_env("ETCD").unwrap_or_else(|| "etcd".to_owned());
        let (client, peer) = (self.endpoint(), format!("http://127.0.0.1:{}", self.peer));
        let mut command = Command::new(binary);
        command.args(["--name", "n1", "--log-level", "error", "--logger", "zap"]);
        command.arg("--data-dir").arg(self.folder.join("etcd"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("n1={peer}")]);
        self.process = Some(
            Process::start("etcd", command, &self.folder)
                .context("no etcd server: run `make tools`, or set ETCD")?,
        );
        until("etcd answers", Duration::from_secs(20), async || {
            crate::client::get(local(self.client), "/health").await.is_ok_and(|answer| answer.status == 200)
        })
        .await
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no binary's main to hand the environment down")]
fn option_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The binary of the OpenTelemetry collector: `$ROTEL`, else `rotel-agent` on the path.
#[must_use]
pub fn rotel() -> String {
    option_env("ROTEL").unwrap_or_else(|| "rotel-agent".to_owned())
}

/// Waits until `condition` holds, asking every 20 ms; an error that names `what` after `patience`.
pub async fn until(what: &str, patience: Duration, condition: impl AsyncFn() -> bool) -> Result<()> {
    let held = tokio::time::timeout(patience, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    held.await.with_context(|| format!("waited {patience:?} in vain until {what}"))
}
