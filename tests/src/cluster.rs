//! A whole Penstock made of real processes: one control plane, some proxies, simulated services beside them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::client;
use crate::process::{Process, free_port, local, penstock, until};

/// How long a process may take to be ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The shipped binary with `arguments`, run to its end, off the runtime's threads.
pub async fn run(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(penstock()?);
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    Ok(output)
}

/// Like [`run`], but its failure is an error; returns what it printed.
pub async fn run_ok(arguments: &[&str]) -> Result<String> {
    let output = run(arguments).await?;
    ensure!(
        output.status.success(),
        "penstock {}: {}\n{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `penstock up` with the demo: both planes and six simulated services.
#[derive(Debug)]
pub struct Demo {
    process: Process,
    /// Where clients send their calls.
    pub traffic: SocketAddr,
    /// The proxy's admin port.
    pub admin: SocketAddr,
    /// The control plane's HTTP port.
    pub http: SocketAddr,
    grpc: SocketAddr,
    data: PathBuf,
}

impl Demo {
    /// Starts it on free ports and waits until it is ready.
    pub async fn start(folder: &Path, more: &[&str]) -> Result<Self> {
        let [traffic, admin, grpc, http] =
            [free_port()?, free_port()?, free_port()?, free_port()?].map(local);
        let data = folder.join("demo");
        let mut command = Command::new(penstock()?);
        command.arg("up").arg("--data-dir").arg(&data);
        command.args(["--listen", &traffic.to_string(), "--admin-listen", &admin.to_string()]);
        command.args(["--grpc-listen", &grpc.to_string(), "--http-listen", &http.to_string()]);
        command.args(more);
        let process = Process::start("up", command, folder)?;
        let demo = Self { process, traffic, admin, http, grpc, data };
        ready("the demo", admin).await.with_context(|| demo.process.output())?;
        Ok(demo)
    }

    /// `penstock ARGUMENTS --server …` against this one.
    pub async fn command(&self, arguments: &[&str]) -> Result<String> {
        let server = format!("http://{}", self.grpc);
        run_ok(&[arguments, &["--server", &server]].concat()).await
    }

    /// `penstock demo fault SERVICE SPEC`.
    pub async fn fault(&self, service: &str, spec: &str) -> Result<String> {
        let data = self.data.to_string_lossy();
        run_ok(&["demo", "fault", service, spec, "--data-dir", &data]).await
    }
}

/// One control plane.
#[derive(Debug)]
pub struct Control {
    process: Option<Process>,
    folder: PathBuf,
    store: String,
    initial_policy: PathBuf,
    grpc: SocketAddr,
    /// Its HTTP port.
    pub http: SocketAddr,
}

impl Control {
    /// Starts one over `store` (`embedded` or `etcd://…`) and waits until it is ready.
    pub async fn start(folder: &Path, store: &str, policy: &str) -> Result<Self> {
        let initial_policy = folder.join("initial.yaml");
        std::fs::write(&initial_policy, policy)?;
        let mut control = Self {
            process: None,
            folder: folder.to_owned(),
            store: store.to_owned(),
            initial_policy,
            grpc: local(free_port()?),
            http: local(free_port()?),
        };
        control.launch()?;
        ready("the control plane", control.http).await.with_context(|| control.output())?;
        Ok(control)
    }

    /// Starts it (again) on the same ports over the same data, without waiting.
    pub fn launch(&mut self) -> Result<()> {
        let mut command = Command::new(penstock()?);
        command.args(["control", "--store", &self.store]);
        command.arg("--data-dir").arg(self.folder.join("control"));
        command.arg("--initial-policy").arg(&self.initial_policy);
        command.args(["--listen", &self.grpc.to_string(), "--http-listen", &self.http.to_string()]);
        self.process = Some(Process::start("control", command, &self.folder)?);
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Waits until it is ready.
    pub async fn ready(&self) -> Result<()> {
        ready("the control plane", self.http).await
    }

    /// What it printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.as_ref().map(Process::output).unwrap_or_default()
    }

    /// As proxies and commands take it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// `penstock ARGUMENTS --server …`, which must succeed.
    pub async fn command(&self, arguments: &[&str]) -> Result<String> {
        run_ok(&[arguments, &["--server", &self.url()]].concat()).await
    }

    /// `penstock ARGUMENTS --server …`, which may fail.
    pub async fn try_command(&self, arguments: &[&str]) -> Result<Output> {
        run(&[arguments, &["--server", &self.url()]].concat()).await
    }
}

/// One proxy.
#[derive(Debug)]
pub struct Proxy {
    process: Option<Process>,
    folder: PathBuf,
    name: String,
    control: String,
    more: Vec<String>,
    /// Where clients send their calls.
    pub traffic: SocketAddr,
    /// Its admin port.
    pub admin: SocketAddr,
}

impl Proxy {
    /// Starts one and waits until it has a policy.
    pub async fn start(folder: &Path, name: &str, control: &str, more: &[&str]) -> Result<Self> {
        let mut proxy = Self {
            process: None,
            folder: folder.to_owned(),
            name: name.to_owned(),
            control: control.to_owned(),
            more: more.iter().map(|&argument| argument.to_owned()).collect(),
            traffic: local(free_port()?),
            admin: local(free_port()?),
        };
        proxy.launch()?;
        proxy.ready().await?;
        Ok(proxy)
    }

    /// Starts it (again) on the same ports over the same data, without waiting.
    pub fn launch(&mut self) -> Result<()> {
        let mut command = Command::new(penstock()?);
        command.args(["proxy", "--control", &self.control, "--node-id", &self.name, "--workers", "1"]);
        command.arg("--data-dir").arg(self.folder.join(&self.name));
        command.args(["--listen", &self.traffic.to_string(), "--admin-listen", &self.admin.to_string()]);
        command.args(["--access-log", "off"]).args(&self.more);
        self.process = Some(Process::start(&self.name, command, &self.folder)?);
        Ok(())
    }

    /// Waits until it has a policy.
    pub async fn ready(&self) -> Result<()> {
        ready(&self.name, self.admin).await.with_context(|| self.output())
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// What it printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.as_ref().map(Process::output).unwrap_or_default()
    }
}

async fn ready(who: &str, admin: SocketAddr) -> Result<()> {
    until(&format!("{who} is ready"), PATIENCE, async || {
        client::get(admin, "/ready").await.is_ok_and(|answer| answer.status == 200)
    })
    .await
}
