//! Holds the route table, and builds the next one when the policy, the live state or its age changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use parking_lot::Mutex;
use penstock_decision::capability::{self, Classifier};
use penstock_decision::classifier::{Model, Unusable, checksum};
use penstock_decision::plan::Plans;
use penstock_decision::rules::Rules;
use penstock_model::live::LiveState;
use penstock_model::{Policy, Problem, Severity, Snapshot};
use penstock_proto::fleet::v1::Snapshot as WireSnapshot;
use tracing::{info, warn};

use crate::clock::{Clock, Moment};
use crate::facts::Places;
use crate::fleet::{Held, Serving};
use crate::google::Tokens;
use crate::lkg;
use crate::secrets::Secrets;
use crate::table::{Registry, RouteTable};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Holder {
    /// What requests load.
    pub(crate) table: ArcSwapOption<RouteTable>,
    clock: Clock,
    data_dir: PathBuf,
    secrets: Secrets,
    state: Mutex<State>,
    from_disk: AtomicBool,
    connected: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    registry: Registry,
    live: Option<(LiveState, Moment)>,
    rejected: u64,
}

impl Holder {
    pub(crate) fn new(clock: Clock, data_dir: PathBuf, secrets: Secrets) -> Self {
        Self {
            table: ArcSwapOption::empty(),
            clock,
            data_dir,
            secrets,
            state: Mutex::default(),
            from_disk: AtomicBool::new(false),
            connected: AtomicBool::new(false),
        }
    }

    /// Takes the snapshot on disk, if there is a good one.
    pub(crate) fn take_from_disk(&self) {
        let snapshot = match lkg::read(&self.data_dir) {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return,
            Err(reason) => {
                let reason: &dyn std::error::Error = &reason;
                warn!(reason, "the snapshot on disk is of no use");
                return;
            }
        };
        match compile(&snapshot) {
            Ok(compiled) => {
                info!(version = snapshot.version, "serving the policy on disk until a control plane answers");
                self.swap(compiled);
                self.from_disk.store(true, Relaxed);
            }
            Err(problems) => warn!(problems = problems.len(), "the policy on disk is not valid any more"),
        }
    }

    /// Plans anew: the live state is older now, a key may have changed.
    pub(crate) fn refresh(&self) {
        if let Some(table) = self.table.load_full() {
            self.swap(Compiled {
                snapshot: table.snapshot.clone(),
                rules: Arc::clone(&table.rules),
                places: Arc::clone(&table.places),
                classifier: Arc::clone(&table.classifier),
                capability_model: Arc::clone(&table.capability_model),
            });
        }
    }

    /// The access tokens of Google's service accounts.
    pub(crate) fn google(&self) -> &Tokens {
        &self.secrets.google
    }

    /// Serving from disk, unconfirmed?
    pub(crate) fn is_from_disk(&self) -> bool {
        self.from_disk.load(Relaxed)
    }

    /// Is there a control plane at the other end?
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Snapshots refused since the start.
    pub(crate) fn rejected(&self) -> u64 {
        self.state.lock().rejected
    }

    /// Age of the live state in milliseconds; `None` when none ever came.
    pub(crate) fn live_age_ms(&self, now: Moment) -> Option<u64> {
        self.state.lock().live.as_ref().map(|(_, came)| now.micros_since(*came) / 1_000)
    }

    /// Makes a table of what was compiled and the newest live state, and swaps it in.
    fn swap(&self, compiled: Compiled) {
        let Compiled { snapshot, rules, places, classifier, capability_model } = compiled;
        let mut state = self.state.lock();
        let now = self.clock.now();
        let live = state.live.as_ref().map(|(live, came)| (live, now.since(*came)));
        let plans = Plans::new(&snapshot.policy, live);
        let nodes = live.map_or(1, |(live, _)| live.nodes).max(1);
        let targets = state.registry.targets(&snapshot.policy, &self.secrets);
        let answers = state.registry.answers(&snapshot.policy);
        let retry_budgets = state.registry.retry_budgets(&snapshot.policy);
        let version = HeaderValue::from(snapshot.version);
        let table = RouteTable {
            rules,
            classifier,
            capability_model,
            plans,
            places,
            targets,
            retry_budgets,
            answers,
            nodes,
            version,
            snapshot,
        };
        self.table.store(Some(Arc::new(table)));
    }
}

/// What stays the same from one policy version to the next.
struct Compiled {
    snapshot: Snapshot,
    rules: Arc<Rules>,
    places: Arc<Places>,
    classifier: Arc<Classifier>,
    capability_model: Arc<str>,
}

fn compile(wire: &WireSnapshot) -> Result<Compiled, Vec<Problem>> {
    let document = std::str::from_utf8(&wire.document)
        .map_err(|_| vec![problem("", "the document is not UTF-8".to_owned())])?;
    if penstock_model::content_hash(document) != wire.content_hash {
        return Err(vec![problem("", "the document does not match its hash".to_owned())]);
    }
    let snapshot = Snapshot::load(&wire.policy, wire.version, &wire.lineage, document)?;
    let model = capability_model(&wire.capability_model, &snapshot.policy)
        .map_err(|message| vec![problem("/capabilities", message)])?;
    let capability_model = if model.is_some() { checksum(&wire.capability_model) } else { String::new() };
    let classifier = Arc::new(Classifier::new(&snapshot.policy, model));
    let (rules, places) = (Arc::new(Rules::new(&snapshot.policy)), Places::new(&snapshot.policy));
    Ok(Compiled { snapshot, rules, places, classifier, capability_model: capability_model.into() })
}

/// The model that came with a policy. One of a newer build is left aside, so that a fleet of two builds takes policies;
/// one that was damaged on its way, or belongs to another policy, is a reason to refuse all that came with it.
fn capability_model(bytes: &[u8], policy: &Policy) -> Result<Option<Model>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    match Model::decode(bytes) {
        Ok(model) => capability::fit(policy, &model).map(|_| Some(model)).map_err(|error| error.to_string()),
        Err(error @ Unusable::Newer { .. }) => {
            warn!(%error, "the capability model is left aside; keywords and the default go on");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

fn problem(path: &str, message: String) -> Problem {
    let (path, hint) = (path.to_owned(), String::new());
    Problem { path, line: 0, column: 0, message, hint, severity: Severity::Error }
}

impl Serving for Holder {
    fn held(&self) -> Held {
        self.table.load().as_ref().map_or_else(Held::default, |table| Held {
            version: table.snapshot.version,
            hash: table.snapshot.content_hash.clone(),
            lineage: table.snapshot.lineage.clone(),
            capability_model: table.capability_model.as_ref().to_owned(),
        })
    }

    fn take(&self, wire: WireSnapshot) -> Result<(), Vec<Problem>> {
        let held = self.held();
        if held.lineage == wire.lineage && wire.version < held.version {
            // A control plane that lags behind its store; a rollback would be a new version.
            let message = format!("version {} is older than {}, which is served", wire.version, held.version);
            return Err(vec![problem("", message)]);
        }
        match compile(&wire) {
            Ok(compiled) => {
                self.swap(compiled);
                self.from_disk.store(false, Relaxed);
                if let Err(error) = lkg::write(&self.data_dir, &wire) {
                    warn!(%error, "the snapshot cannot be kept on disk; serving it all the same");
                }
                Ok(())
            }
            Err(problems) => {
                self.state.lock().rejected += 1;
                Err(problems)
            }
        }
    }

    fn connected(&self, connected: bool) {
        self.connected.store(connected, Relaxed);
    }

    fn live(&self, live: LiveState) {
        self.state.lock().live = Some((live, self.clock.now()));
        self.from_disk.store(false, Relaxed);
        self.refresh();
    }
}
