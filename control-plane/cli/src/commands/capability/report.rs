//! What `penstock capability test` finds out.

use penstock_decision::capability::CapabilitySource;
use penstock_decision::capability::measure::{self, BINS, Judged, Tally};
use penstock_model::policy::CapabilityId;
use serde::Serialize;

use super::Subject;

/// A text with what it is.
#[derive(Debug, Clone)]
pub(crate) struct Labelled {
    pub(crate) text: String,
    pub(crate) capability: CapabilityId,
    pub(crate) language: String,
}

/// How well a policy tells its capabilities apart. Shares are 0..1; absent where there is nothing to divide by.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The file, or the name and version at the control plane.
    pub(crate) policy: String,
    /// The checksum of the trained model; empty without one.
    pub(crate) model: String,
    pub(crate) texts: usize,
    pub(crate) accuracy: Option<f64>,
    /// The expected calibration error over the bins of `calibration`.
    pub(crate) calibration_error: f64,
    /// Share of texts that keywords or the model claimed; the others were given to the default capability.
    pub(crate) covered: f64,
    /// Accuracy among those.
    pub(crate) accuracy_covered: Option<f64>,
    pub(crate) sources: Vec<Part>,
    pub(crate) languages: Vec<Part>,
    pub(crate) capabilities: Vec<Capability>,
    /// `confusion[truth][found]`, in the order of `capabilities`.
    pub(crate) confusion: Vec<Vec<usize>>,
    pub(crate) calibration: Vec<Bin>,
    pub(crate) wrong: Vec<Wrong>,
}

/// The texts that have something in common.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) texts: usize,
    pub(crate) accuracy: Option<f64>,
    pub(crate) calibration_error: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Capability {
    pub(crate) name: String,
    pub(crate) texts: usize,
    pub(crate) precision: Option<f64>,
    pub(crate) recall: Option<f64>,
    /// The smallest probability with which the model is believed; absent when it does not know the capability.
    pub(crate) threshold: Option<f64>,
}

/// The texts with a confidence above `from`, up to `to`.
#[derive(Debug, Serialize)]
pub(crate) struct Bin {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) texts: usize,
    pub(crate) confidence: f64,
    pub(crate) accuracy: Option<f64>,
}

/// A text that was taken for something else.
#[derive(Debug, Serialize)]
pub(crate) struct Wrong {
    pub(crate) capability: String,
    pub(crate) found: String,
    pub(crate) source: &'static str,
    pub(crate) confidence: f64,
    pub(crate) text: String,
}

impl Report {
    pub(crate) fn new(subject: &Subject, texts: &[Labelled]) -> Self {
        let judge = |text: &Labelled| Judged {
            truth: text.capability,
            found: subject.classifier.classify([text.text.as_str()]),
        };
        let judged: Vec<Judged> = texts.iter().map(judge).collect();
        let covered = measure::covered(&judged);
        let count = subject.policy.capabilities.len();
        Self {
            policy: subject.origin.clone(),
            model: subject.model.clone(),
            texts: judged.len(),
            accuracy: Tally::of(&judged, |_| true).accuracy(),
            calibration_error: measure::calibration_error(&judged),
            covered: covered.texts as f64 / judged.len().max(1) as f64,
            accuracy_covered: covered.accuracy(),
            sources: sources(&judged),
            languages: languages(&judged, texts),
            capabilities: (0..count)
                .map(|index| capability(subject, &judged, CapabilityId(index as u32)))
                .collect(),
            confusion: measure::confusion(&judged, count),
            calibration: calibration(&judged),
            wrong: wrong(subject, &judged, texts),
        }
    }
}

fn part(name: &str, judged: &[Judged]) -> Part {
    Part {
        name: name.to_owned(),
        texts: judged.len(),
        accuracy: Tally::of(judged, |_| true).accuracy(),
        calibration_error: measure::calibration_error(judged),
    }
}

fn sources(judged: &[Judged]) -> Vec<Part> {
    let of = |source: CapabilitySource| -> Vec<Judged> {
        judged.iter().filter(|one| one.found.source == source).copied().collect()
    };
    let sources = [CapabilitySource::Keyword, CapabilitySource::Model, CapabilitySource::Default];
    sources
        .into_iter()
        .map(|source| part(source.as_str(), &of(source)))
        .filter(|part| part.texts > 0)
        .collect()
}

fn languages(judged: &[Judged], texts: &[Labelled]) -> Vec<Part> {
    let names: std::collections::BTreeSet<&str> = texts.iter().map(|text| text.language.as_str()).collect();
    let of = |name: &str| -> Vec<Judged> {
        let pairs = judged.iter().zip(texts).filter(|(_, text)| text.language == name);
        pairs.map(|(one, _)| *one).collect()
    };
    names.into_iter().filter(|name| !name.is_empty()).map(|name| part(name, &of(name))).collect()
}

fn capability(subject: &Subject, judged: &[Judged], id: CapabilityId) -> Capability {
    let name = subject.policy.capabilities[id.index()].name.clone();
    let (precision, recall) = measure::precision_and_recall(judged, id);
    let classes =
        subject.classifier.model().map(penstock_decision::classifier::Model::classes).unwrap_or_default();
    let class = classes.iter().find(|class| class.name == name);
    Capability {
        texts: Tally::of(judged, |one| one.truth == id).texts,
        precision,
        recall,
        threshold: class.map(|class| f64::from(class.threshold)),
        name,
    }
}

fn calibration(judged: &[Judged]) -> Vec<Bin> {
    let edge = |index: usize| index as f64 / BINS as f64;
    let bins = measure::bins(judged).into_iter().enumerate().filter(|(_, bin)| bin.tally.texts > 0);
    bins.map(|(index, bin)| Bin {
        from: edge(index),
        to: edge(index + 1),
        texts: bin.tally.texts,
        confidence: bin.confidence,
        accuracy: bin.tally.accuracy(),
    })
    .collect()
}

fn wrong(subject: &Subject, judged: &[Judged], texts: &[Labelled]) -> Vec<Wrong> {
    let name = |id: CapabilityId| subject.policy.capabilities[id.index()].name.clone();
    let wrong = judged.iter().zip(texts).filter(|(one, _)| one.found.capability != one.truth);
    wrong
        .map(|(one, text)| Wrong {
            capability: name(one.truth),
            found: name(one.found.capability),
            source: one.found.source.as_str(),
            confidence: one.found.confidence,
            text: text.text.clone(),
        })
        .collect()
}
