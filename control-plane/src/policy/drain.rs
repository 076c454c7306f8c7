//! Backends out of service: a decision of an operator that holds across versions until it is undone.
//!
//! All of them are one entry of the store, so that a change of it is one transaction with its audit entry, and whoever
//! watches it always sees the whole. Every control plane watches it, and tells its proxies with the next live state.

use std::sync::Arc;

use penstock_model::Policy;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use ulid::Ulid;

use super::record::{Action, AuditRecord};
use super::service::{check_texts, json};
use super::{Error, Policies, query};
use crate::clock::unix_ms;
use crate::store::{self, Entry, Event, Txn, keys};

/// Writers that change it at the same time are let through one after the other, but not without end.
const TRIES: usize = 8;

/// What is out of service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) targets: Vec<DrainedTarget>,
}

/// One model of a backend, or all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DrainedTarget {
    pub(crate) backend: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

/// A change to it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) target: DrainedTarget,
    /// Out of service, or back?
    pub(crate) drain: bool,
    pub(crate) author: String,
    pub(crate) message: String,
}

impl Drained {
    /// Is this model of this backend out of service?
    pub(crate) fn contains(&self, backend: &str, model: &str) -> bool {
        let is_it = |target: &DrainedTarget| {
            target.backend == backend && target.model.as_deref().is_none_or(|drained| drained == model)
        };
        self.targets.iter().any(is_it)
    }

    /// After the change; `None` when there is nothing to do.
    fn changed(&self, change: &Change) -> Result<Option<Self>, Error> {
        let DrainedTarget { backend, model } = &change.target;
        let whole = self.targets.iter().any(|known| known.backend == *backend && known.model.is_none());
        let mut targets = self.targets.clone();
        match (change.drain, model) {
            (true, _) if whole => {}
            (false, Some(_)) if whole => return Err(Error::DrainedWhole { backend: backend.clone() }),
            (_, None) => targets.retain(|known| known.backend != *backend),
            (_, Some(_)) => targets.retain(|known| *known != change.target),
        }
        if change.drain && !whole {
            targets.push(change.target.clone());
            targets.sort_by(|one, other| (&one.backend, &one.model).cmp(&(&other.backend, &other.model)));
        }
        Ok((targets != self.targets).then_some(Self { targets }))
    }
}

impl Policies {
    /// Makes a change; `policy` is the stable one, if it can be read. Gives what is drained then, and whether that is new.
    #[tracing::instrument(name = "backend_drain", skip_all, fields(
        policy = %self.name, backend = change.target.backend, drain = change.drain,
    ))]
    pub(crate) async fn drain(
        &self,
        change: Change,
        policy: Option<&Policy>,
    ) -> Result<(Drained, bool), Error> {
        check_texts(&change.author, &change.message, "")?;
        if change.drain {
            check_target(&change.target, policy)?;
        }
        let key = keys::drained(&self.name);
        for _ in 0..TRIES {
            let entry = self.store.get(&key).await?;
            let revision = entry.as_ref().map(|entry| entry.revision);
            let known = read(&key, entry.as_ref())?;
            let Some(drained) = known.changed(&change)? else { return Ok((known, false)) };
            let audit = self.audit_of(&change);
            let txn = Txn::default()
                .when(&key, revision)
                .put(&key, json(&drained))
                .put(keys::audit(&audit.id), json(&audit));
            match self.store.commit(txn).await {
                Ok(_) => {
                    tracing::info!(
                        subject = audit.subject,
                        action = audit.action.as_str(),
                        "backend changed"
                    );
                    return Ok((drained, true));
                }
                Err(store::Error::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(store::Error::Conflict.into())
    }

    fn audit_of(&self, change: &Change) -> AuditRecord {
        let DrainedTarget { backend, model } = &change.target;
        AuditRecord {
            id: Ulid::new().to_string(),
            unix_ms: unix_ms(),
            actor: change.author.clone(),
            action: if change.drain { Action::Drain } else { Action::Undrain },
            policy: self.name.to_string(),
            from_version: 0,
            to_version: 0,
            message: change.message.clone(),
            subject: model.as_ref().map_or_else(|| backend.clone(), |model| format!("{backend}/{model}")),
        }
    }
}

/// What is not there cannot be drained: it would be a misspelt name. Bringing it back is always possible.
fn check_target(target: &DrainedTarget, policy: Option<&Policy>) -> Result<(), Error> {
    let Some(policy) = policy else { return Ok(()) };
    let missing = |what, name: &str| {
        let name = name.chars().take(64).collect();
        Err(Error::NoSuchTarget { what, name })
    };
    if !policy.backends.iter().any(|backend| backend.name == target.backend) {
        return missing("backend", &target.backend);
    }
    match &target.model {
        Some(model) if policy.find_target(&target.backend, model).is_none() => missing("model", model),
        _ => Ok(()),
    }
}

fn read(key: &str, entry: Option<&Entry>) -> Result<Drained, Error> {
    entry.map_or_else(|| Ok(Drained::default()), |entry| query::parse(key, &entry.value))
}

/// Watches what is drained, and publishes it. With the store away, what was last known holds.
pub(crate) struct Drains {
    pub(crate) policies: Policies,
    /// `None` until the store has been read.
    pub(crate) published: watch::Sender<Option<Arc<Drained>>>,
}

impl Drains {
    /// Runs until dropped.
    #[tracing::instrument(name = "drain_follower", skip_all)]
    pub(crate) async fn run(self) {
        let key = keys::drained(self.policies.name());
        let mut watch = self.policies.store.watch(&key, None);
        while let Some(event) = watch.next().await {
            let value = match event {
                Event::Progress => continue,
                Event::Changes { changes, .. } => match changes.into_iter().rfind(|change| change.key == key)
                {
                    Some(change) => change.value,
                    None => continue,
                },
                Event::Resync { entries, .. } => {
                    entries.into_iter().find(|entry| entry.key == key).map(|entry| entry.value)
                }
            };
            let drained = value.map_or_else(|| Ok(Drained::default()), |value| query::parse(&key, &value));
            self.publish(drained);
        }
    }

    fn publish(&self, read: Result<Drained, Error>) {
        if let Err(error) = &read {
            tracing::error!(error = error as &dyn std::error::Error, "cannot read what is drained");
        }
        self.published.send_if_modified(|known| {
            // What cannot be read does not change what was known.
            let drained = match (read, known.as_deref()) {
                (Err(_), Some(_)) => return false,
                (read, _) => read.unwrap_or_default(),
            };
            let new = known.as_deref() != Some(&drained);
            *known = Some(Arc::new(drained));
            new
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(backend: &str, model: Option<&str>, drain: bool) -> Change {
        let target = DrainedTarget { backend: backend.to_owned(), model: model.map(str::to_owned) };
        Change { target, drain, author: String::new(), message: String::new() }
    }

    fn after(changes: &[(&str, Option<&str>, bool)]) -> Drained {
        changes.iter().fold(Drained::default(), |drained, &(backend, model, drain)| {
            drained.changed(&change(backend, model, drain)).unwrap().unwrap_or(drained)
        })
    }

    #[test]
    fn a_backend_is_drained_with_all_its_models_or_with_one() {
        let drained = after(&[("a", Some("m"), true), ("b", None, true)]);
        assert!(drained.contains("a", "m") && !drained.contains("a", "n"));
        assert!(drained.contains("b", "whatever comes") && !drained.contains("c", "m"));
    }

    #[test]
    fn the_whole_takes_the_place_of_its_parts_and_all_of_it_comes_back() {
        let whole = after(&[("a", Some("m"), true), ("a", None, true), ("a", Some("n"), true)]);
        assert_eq!(whole, after(&[("a", None, true)]));
        assert_eq!(
            after(&[("a", Some("m"), true), ("a", None, true), ("a", None, false)]),
            Drained::default()
        );
        assert!(matches!(whole.changed(&change("a", Some("m"), false)), Err(Error::DrainedWhole { .. })));
    }

    #[test]
    fn what_is_so_already_changes_nothing() {
        let drained = after(&[("a", None, true)]);
        assert_eq!(drained.changed(&change("a", None, true)).unwrap(), None);
        assert_eq!(drained.changed(&change("b", None, false)).unwrap(), None);
    }
}
