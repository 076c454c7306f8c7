//! The demo's services: one simulated service per backend of the demo policy, and where each of them listens.
//!
//! Addresses are kept in a file in the data folder, for `penstock demo fault` and for the next start. When a port is
//! taken, a free one is used and the policy is changed accordingly.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use penstock_model::{DEMO_POLICY, Policy};
use penstock_sim::{Latency, Running, ServiceConfig};

use crate::failure::{Failure, chain};

/// Service name to address.
pub(crate) type Addresses = BTreeMap<String, SocketAddr>;

/// Where the demo keeps its state, under a data folder: apart from that of a policy of one's own.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("demo")
}

fn file(data_dir: &Path) -> PathBuf {
    folder(data_dir).join("services.json")
}

/// Running services.
pub(crate) struct Services {
    running: Vec<Running>,
    /// Where they are.
    pub(crate) addresses: Addresses,
    /// Where the demo policy says they are.
    planned: Addresses,
    /// Where they were when the demo ran last over this folder; where the policy says when it never ran.
    before: Addresses,
}

impl Services {
    /// Starts every service where it was last time or where the policy says, else on a free port.
    pub(crate) async fn start(data_dir: &Path) -> Result<Self, Failure> {
        let policy =
            penstock_model::load(DEMO_POLICY).policy.expect("the demo policy is valid: it has a test");
        let planned = planned(&policy);
        let before = read(data_dir).unwrap_or_else(|_| planned.clone());
        let mut services = Self { running: Vec::new(), addresses: Addresses::new(), planned, before };
        for (index, backend) in policy.backends.iter().enumerate() {
            let models = policy.targets.iter().filter(|target| target.backend.index() == index);
            let models = models.map(|target| target.model.clone()).collect();
            let listen = services.before.get(&backend.name).copied().unwrap_or_else(any_port);
            let running = start(&backend.name, models, index as u64, listen).await?;
            services.addresses.insert(backend.name.clone(), running.addr());
            services.running.push(running);
        }
        write(data_dir, &services.addresses)?;
        Ok(services)
    }

    /// The demo policy with each service's address where it is now.
    pub(crate) fn policy(&self) -> String {
        relocate(DEMO_POLICY, &self.planned, &self.addresses)
    }

    /// The same for what the store holds since the last run; `None` when nothing has moved.
    pub(crate) fn relocated(&self, document: &str) -> Option<String> {
        let text = relocate(document, &self.before, &self.addresses);
        (text != document).then_some(text)
    }

    /// Ends them.
    pub(crate) async fn shutdown(self) {
        for running in self.running {
            running.shutdown().await;
        }
    }
}

/// Puts each service's new address in the place of its old one. All at once: one may be now where another was.
fn relocate(document: &str, from: &Addresses, to: &Addresses) -> String {
    let base = |address: &SocketAddr| format!("http://{address}/");
    let mut text = document.to_owned();
    for (name, address) in from {
        text = text.replace(&base(address), &format!("\u{0}{name}\u{0}"));
    }
    for (name, address) in to {
        text = text.replace(&format!("\u{0}{name}\u{0}"), &base(address));
    }
    text
}

/// One service, on a free port where `listen` is taken. It answers as briskly as a small hosted model, half a second for a
/// short text, so that a fault of two seconds is plain to see.
async fn start(name: &str, models: Vec<String>, seed: u64, listen: SocketAddr) -> Result<Running, Failure> {
    let config = ServiceConfig {
        models,
        listen,
        seed,
        latency: Latency::LogNormal { median: Duration::from_millis(20), sigma: 0.5 },
        first_token: Duration::from_millis(100),
        tokens_per_second: 100.0,
        answer_tokens: 40,
        ..ServiceConfig::new(name)
    };
    match penstock_sim::start(config.clone()).await {
        Ok(running) => Ok(running),
        Err(_) => penstock_sim::start(ServiceConfig { listen: any_port(), ..config })
            .await
            .map_err(|error| Failure::Start { part: "a simulated service", detail: chain(&error) }),
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Where the policy says each backend is.
fn planned(policy: &Policy) -> Addresses {
    let address = |backend: &penstock_model::policy::Backend| {
        Some((backend.name.clone(), backend.address.authority.parse().ok()?))
    };
    policy.backends.iter().filter_map(address).collect()
}

/// The addresses of the demo that runs, or ran last, over this data folder.
pub(crate) fn read(data_dir: &Path) -> Result<Addresses, Failure> {
    let path = file(data_dir);
    let text = std::fs::read(&path);
    let parsed = text.and_then(|text| serde_json::from_slice(&text).map_err(std::io::Error::from));
    parsed.map_err(|source| match source.kind() {
        ErrorKind::NotFound => Failure::Setting {
            what: format!("no demo has run over {}", data_dir.display()),
            advice: "start it with `penstock up`; if it has a --data-dir, give the same here".to_owned(),
        },
        _ => Failure::File { path, source },
    })
}

fn write(data_dir: &Path, addresses: &Addresses) -> Result<(), Failure> {
    let path = file(data_dir);
    let text = serde_json::to_vec_pretty(addresses).expect("names and addresses are JSON");
    std::fs::write(&path, text).map_err(|source| Failure::File { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(pairs: &[(&str, &str)]) -> Addresses {
        pairs.iter().map(|(name, address)| ((*name).to_owned(), address.parse().unwrap())).collect()
    }

    #[test]
    fn services_that_change_places_keep_their_policies() {
        let before = addresses(&[("a", "127.0.0.1:1"), ("b", "127.0.0.1:2")]);
        let now = addresses(&[("a", "127.0.0.1:2"), ("b", "127.0.0.1:3")]);
        let document = "a: http://127.0.0.1:1/v1\nb: http://127.0.0.1:2/v1\nc: http://127.0.0.1:22/v1\n";
        assert_eq!(
            relocate(document, &before, &now),
            "a: http://127.0.0.1:2/v1\nb: http://127.0.0.1:3/v1\nc: http://127.0.0.1:22/v1\n"
        );
        assert_eq!(relocate(document, &before, &before), document);
    }

    #[test]
    fn every_backend_of_the_demo_policy_has_a_place() {
        let policy = penstock_model::load(DEMO_POLICY).policy.unwrap();
        assert_eq!(planned(&policy).len(), 6);
    }
}
