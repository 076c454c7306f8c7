//! Names of a document and the indices they become.

use super::report::Report;
use super::source::escape;
use crate::document::{Backend, BackendCapabilities, Document};
use crate::policy::{BackendId, CapabilityId, TargetId};
use crate::problem::{Finding, did_you_mean};

/// Finds things by name. Indices follow the document's order, which is that of the policy's vectors when nothing is
/// refused.
pub(crate) struct Names<'a> {
    capabilities: Vec<&'a str>,
    backends: Vec<(&'a str, &'a Backend)>,
    /// Of each backend: the index of its first target.
    first_targets: Vec<u32>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        let backends: Vec<_> =
            document.backends.iter().map(|(name, backend)| (name.as_str(), backend)).collect();
        let mut next = 0;
        let first_target = |(_, backend): &(&str, &Backend)| {
            let first = next;
            next += backend.models.len() as u32;
            first
        };
        Self {
            capabilities: document.capabilities.keys().map(String::as_str).collect(),
            first_targets: backends.iter().map(first_target).collect(),
            backends,
        }
    }

    /// How many capabilities there are.
    pub(crate) fn capability_count(&self) -> usize {
        self.capabilities.len()
    }

    /// All backends, in order.
    pub(crate) fn backends(&self) -> impl Iterator<Item = BackendId> + use<> {
        (0..self.backends.len() as u32).map(BackendId)
    }

    /// A backend's document.
    pub(crate) fn backend(&self, id: BackendId) -> &'a Backend {
        self.backends[id.index()].1
    }

    /// How well a backend matches a capability, 0 to 1.
    pub(crate) fn capability_match(&self, backend: BackendId, capability: CapabilityId) -> f64 {
        let name = self.capabilities[capability.index()];
        match &self.backend(backend).capabilities {
            BackendCapabilities::List(list) => f64::from(u8::from(list.iter().any(|listed| listed == name))),
            BackendCapabilities::Graded(graded) => graded.get(name).copied().unwrap_or(0.0),
        }
    }

    /// Is it known which backend has which capability, with which weight? Not where the structure of one is broken.
    pub(crate) fn capabilities_are_known(&self, report: &Report) -> bool {
        let sound = |name: &str, field: &str| report.is_sound(&format!("/backends/{}/{field}", escape(name)));
        report.is_kept("/backends")
            && self.backends.iter().all(|(name, _)| sound(name, "capabilities") && sound(name, "weight"))
    }

    /// The target of a backend's model. `None` when it has no such model.
    pub(crate) fn target(&self, backend: BackendId, model: usize) -> Option<TargetId> {
        let first = *self.first_targets.get(backend.index())?;
        (model < self.backend(backend).models.len()).then(|| TargetId(first + model as u32))
    }

    /// The capability that the field at `path` names.
    pub(crate) fn find_capability(
        &self,
        path: &str,
        name: &str,
        report: &mut Report,
    ) -> Option<CapabilityId> {
        let found = self.capabilities.iter().position(|known| *known == name);
        if found.is_none() && report.is_kept("/capabilities") {
            report.error(
                path,
                unknown("capability", name, self.capabilities.iter().copied(), "under capabilities"),
            );
        }
        found.map(|index| CapabilityId(index as u32))
    }

    /// The backend that the field at `path` names.
    pub(crate) fn find_backend(&self, path: &str, name: &str, report: &mut Report) -> Option<BackendId> {
        let found = self.backends.iter().position(|(known, _)| *known == name);
        if found.is_none() && report.is_kept("/backends") {
            report.error(
                path,
                unknown("backend", name, self.backends.iter().map(|(name, _)| *name), "under backends"),
            );
        }
        found.map(|index| BackendId(index as u32))
    }

    /// Is there a backend, or a model of one as `backend/model`, of this name?
    pub(crate) fn check_target(&self, name: &str) -> Result<(), Finding> {
        let (backend, model) = name.split_once('/').map_or((name, None), |(name, model)| (name, Some(model)));
        let Some((_, found)) = self.backends.iter().find(|(known, _)| *known == backend) else {
            let known = self.backends.iter().map(|(name, _)| *name);
            return Err(unknown("backend", backend, known, "under backends"));
        };
        let known = found.models.iter().map(|model| model.name.as_str());
        match model.filter(|model| !known.clone().any(|known| known == *model)) {
            Some(model) => Err(unknown("model", model, known, &format!("of backend `{backend}`"))),
            None => Ok(()),
        }
    }

    /// The model of `backend` that the field at `path` names, as an index into its models.
    pub(crate) fn find_model(
        &self,
        path: &str,
        backend: BackendId,
        name: &str,
        report: &mut Report,
    ) -> Option<usize> {
        let (backend_name, backend) = self.backends[backend.index()];
        let found = backend.models.iter().position(|model| model.name == name);
        if found.is_none() && report.is_sound(&format!("/backends/{}/models", escape(backend_name))) {
            let known = backend.models.iter().map(|model| model.name.as_str());
            report.error(path, unknown("model", name, known, &format!("of backend `{backend_name}`")));
        }
        found
    }
}

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone, place: &str) -> Finding {
    const SHOWN: usize = 12;
    let hint = did_you_mean(name, known.clone()).unwrap_or_else(|| {
        let more = if known.clone().nth(SHOWN).is_some() { ", …" } else { "" };
        match known.take(SHOWN).collect::<Vec<_>>() {
            names if names.is_empty() => format!("there is none {place}"),
            names => format!("there are {}{more}", names.join(", ")),
        }
    });
    Finding::new(format!("there is no {kind} `{name}` {place}"), hint)
}

/// Checks a name that operators choose: it appears in metrics, logs, URLs and on command lines.
pub(crate) fn check_name(name: &str) -> Result<(), Finding> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || b"._-".contains(&byte);
    let good = name.len() <= 63 && name.bytes().next().is_some_and(plain) && name.bytes().all(inner);
    good.then_some(()).ok_or_else(|| {
        Finding::new(
            format!("`{}` is not a name", name.chars().take(80).collect::<String>()),
            "1 to 63 lower-case letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    })
}

/// Checks text that is sent or shown as it is: not empty, not endless, on one line.
pub(crate) fn check_text(text: &str) -> Result<(), Finding> {
    const MAX_BYTES: usize = 256;
    if text.trim().is_empty() {
        return Err(Finding::new(
            "must not be empty",
            "give it a value, or leave the field out where it is optional",
        ));
    }
    if text.len() > MAX_BYTES || text.chars().any(char::is_control) {
        return Err(Finding::new(format!("must be one line of at most {MAX_BYTES} bytes"), "shorten it"));
    }
    Ok(())
}
