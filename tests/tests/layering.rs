//! Who may use whom, as `docs/architecture.md` draws it, and what the pure crates must do without.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Each crate of the workspace and the ones it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("penstock-proto", &[]),
    ("penstock-stats", &[]),
    ("penstock-model", &[]),
    ("penstock-telemetry", &["penstock-model", "penstock-stats"]),
    ("penstock-sim", &[]),
    ("penstock-decision", &["penstock-model", "penstock-stats"]),
    ("penstock-providers", &["penstock-model"]),
    ("penstock-request", &["penstock-model", "penstock-decision", "penstock-providers"]),
    (
        "penstock-data-plane",
        &[
            "penstock-proto",
            "penstock-model",
            "penstock-decision",
            "penstock-providers",
            "penstock-request",
            "penstock-stats",
            "penstock-telemetry",
        ],
    ),
    (
        "penstock-control-plane",
        &[
            "penstock-proto",
            "penstock-model",
            "penstock-decision",
            "penstock-providers",
            "penstock-request",
            "penstock-stats",
            "penstock-telemetry",
        ],
    ),
    (
        "penstock",
        &[
            "penstock-proto",
            "penstock-model",
            "penstock-decision",
            "penstock-stats",
            "penstock-telemetry",
            "penstock-sim",
            "penstock-data-plane",
            "penstock-control-plane",
        ],
    ),
    ("penstock-sim-routing", &["penstock-model", "penstock-decision", "penstock-stats"]),
    (
        "penstock-tests",
        &[
            "penstock-proto",
            "penstock-model",
            "penstock-decision",
            "penstock-providers",
            "penstock-stats",
            "penstock-telemetry",
            "penstock-sim",
            "penstock-data-plane",
            "penstock-control-plane",
            "penstock",
        ],
    ),
];

/// What tests inside a crate may use beside that: the simulated services.
const TESTS_MAY_USE: &str = "penstock-sim";

/// Crates that compute and do nothing else. Time and randomness are their arguments.
const PURE: &[&str] =
    &["penstock-model", "penstock-decision", "penstock-request", "penstock-stats", "penstock-providers"];

/// What a pure crate must not even bring along: runtimes, networks, telemetry pipelines.
const IMPURE: &[&str] =
    &["tokio", "mio", "socket2", "hyper", "hyper-util", "tonic", "axum", "opentelemetry_sdk"];

/// What a pure crate must not call.
const AMBIENT: &[&str] =
    &["Instant::now", "SystemTime::now", "Zoned::now", "Timestamp::now", "rand::rng", "std::env::var"];

#[test]
fn every_crate_uses_only_the_crates_below_it() -> Result<()> {
    let metadata = metadata()?;
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in members(&metadata)? {
        let name = text(package, "name")?;
        let Some(may_use) = allowed.get(name) else {
            bail!("{name} is new: say in MAY_USE what it may use");
        };
        for dependency in list(package, "dependencies")? {
            let used = text(dependency, "name")?;
            let for_tests = dependency["kind"] == "dev" && used == TESTS_MAY_USE;
            if allowed.contains_key(used) && !may_use.contains(&used) && !for_tests {
                wrong.push(format!("{name} must not use {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn pure_crates_bring_no_runtime_and_no_network() -> Result<()> {
    let metadata = metadata()?;
    let graph = Graph::new(&metadata)?;
    let mut wrong = Vec::new();
    for pure in PURE {
        for (package, path) in graph.reachable(pure)? {
            if IMPURE.contains(&package) {
                wrong.push(format!("{pure} brings {package}: {}", path.join(" > ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn pure_crates_read_no_clock_no_dice_and_no_environment() -> Result<()> {
    let metadata = metadata()?;
    let mut wrong = Vec::new();
    for package in members(&metadata)? {
        if PURE.contains(&text(package, "name")?) {
            let manifest = Path::new(text(package, "manifest_path")?);
            let source = manifest.parent().context("a manifest lies in a folder")?.join("src");
            find_calls(&source, &mut wrong)?;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn find_calls(folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_calls(&path, found)?;
            continue;
        }
        for (number, line) in std::fs::read_to_string(&path)?.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let calls = AMBIENT.iter().filter(|call| code.contains(**call));
            found.extend(calls.map(|call| format!("{}:{}: {call}", path.display(), number + 1)));
        }
    }
    Ok(())
}

/// What was resolved, without the edges that only tests need.
struct Graph<'a> {
    names: BTreeMap<&'a str, &'a str>,
    uses: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Value) -> Result<Self> {
        let mut names = BTreeMap::new();
        for package in list(metadata, "packages")? {
            names.insert(text(package, "id")?, text(package, "name")?);
        }
        let mut uses = BTreeMap::new();
        for node in list(&metadata["resolve"], "nodes")? {
            let mut used = Vec::new();
            for dependency in list(node, "deps")? {
                if list(dependency, "dep_kinds")?.iter().any(|kind| kind["kind"].is_null()) {
                    used.push(text(dependency, "pkg")?);
                }
            }
            uses.insert(text(node, "id")?, used);
        }
        Ok(Self { names, uses })
    }

    /// Everything below `root`, each with a way that leads there.
    fn reachable(&self, root: &str) -> Result<Vec<(&'a str, Vec<&'a str>)>> {
        let (start, name) =
            self.names.iter().find(|(_, name)| **name == root).context("the crate is there")?;
        let mut seen = BTreeSet::from([*start]);
        let mut open = vec![(*start, vec![*name])];
        let mut reached = Vec::new();
        while let Some((id, path)) = open.pop() {
            for &below in &self.uses[id] {
                if seen.insert(below) {
                    let name = self.names[below];
                    let path = [path.as_slice(), &[name]].concat();
                    reached.push((name, path.clone()));
                    open.push((below, path));
                }
            }
        }
        Ok(reached)
    }
}

fn metadata() -> Result<Value> {
    let cargo = |arguments: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("cargo runs")?;
        if !output.status.success() {
            bail!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    };
    let version = String::from_utf8(cargo(&["--version", "--verbose"])?)?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("cargo names its host")?;
    let json = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", host])?;
    Ok(serde_json::from_slice(&json)?)
}

fn members(metadata: &Value) -> Result<Vec<&Value>> {
    let ids = list(metadata, "workspace_members")?;
    Ok(list(metadata, "packages")?.iter().filter(|package| ids.contains(&package["id"])).collect())
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    value[field].as_array().with_context(|| format!("{field} is a list"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value[field].as_str().with_context(|| format!("{field} is text"))
}
