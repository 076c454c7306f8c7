//! What a request needs, by what it says.
//!
//! ```text
//! the last turn ─▶ keywords of one capability? ─────────────────────────────────────────▶ keyword
//!                  keywords of several? ─▶ the model, if it knows them, chooses among them ▶ model
//!                  no keywords? ─▶ the model, if it is sure enough ──────────────────────▶ model
//!                  ─▶ the same with the first turn ─▶ the default
//! ```
//!
//! Keywords are the operator's word, and come first. The model is trained from the policy's examples
//! ([`crate::classifier`]); without one, the keywords and the default do.

mod explain;
mod keywords;
pub mod measure;

use penstock_model::Policy;
use penstock_model::policy::CapabilityId;

pub use explain::{Explanation, Gram, Guess};

use crate::classifier::{Model, Probabilities};
use keywords::{Hits, Keywords};

/// What a request needs, and how that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classification {
    /// What it needs.
    pub capability: CapabilityId,
    /// 0..1: how likely that is right. 1 when it was told. By keywords: the winner's share of all different keywords
    /// found, times the share of the policy's own examples that keywords got right. By the model: its probability. When
    /// it was assumed: the model's probability for it, 0 without a model.
    pub confidence: f64,
    /// How it was found.
    pub source: CapabilitySource,
}

/// How a capability was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CapabilitySource {
    /// Words in the text.
    Keyword,
    /// The model that was trained from the policy's examples.
    Model,
    /// The client said so.
    Caller,
    /// The route says so.
    Route,
    /// Nothing said otherwise.
    Default,
}

impl CapabilitySource {
    /// Its name on the wire, in metrics and in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Model => "model",
            Self::Caller => "caller",
            Self::Route => "route",
            Self::Default => "default",
        }
    }
}

/// Keywords and model of a policy, ready for use.
#[derive(Debug)]
pub struct Classifier {
    keywords: Keywords,
    /// How often keywords are right, 0..1.
    trust: f64,
    model: Option<Model>,
    /// The capability of each class of the model.
    classes: Vec<CapabilityId>,
    default: CapabilityId,
}

/// A model that tells apart what the policy does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the capability model knows `{class}`, which the policy has not")]
pub struct Misfit {
    /// A class of the model.
    pub class: String,
}

/// The capability of each class of `model`.
///
/// # Errors
/// When the policy lacks one.
pub fn fit(policy: &Policy, model: &Model) -> Result<Vec<CapabilityId>, Misfit> {
    let classes = model.classes().iter();
    classes
        .map(|class| policy.find_capability(&class.name).ok_or_else(|| Misfit { class: class.name.clone() }))
        .collect()
}

impl Classifier {
    /// Compiles the keywords of `policy`. A model that does not [`fit`] it is left out.
    #[must_use]
    pub fn new(policy: &Policy, model: Option<Model>) -> Self {
        let keywords = Keywords::new(policy);
        let fitting = model.and_then(|model| Some((fit(policy, &model).ok()?, model)));
        let (classes, model) = fitting.unzip();
        Self {
            trust: trust(policy, &keywords),
            keywords,
            model,
            classes: classes.unwrap_or_default(),
            default: policy.default_capability,
        }
    }

    /// The trained model, where there is one.
    #[must_use]
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// What the request with these turns needs. The first turn that says anything decides, so the last one comes first.
    /// About 4 KiB of each are looked at.
    #[must_use]
    pub fn classify<'t>(&self, turns: impl IntoIterator<Item = &'t str>) -> Classification {
        let mut assumed = None;
        for turn in turns {
            let found = self.classify_turn(turn);
            if found.source != CapabilitySource::Default {
                return found;
            }
            assumed.get_or_insert(found);
        }
        assumed.unwrap_or_else(|| self.assume(0.0))
    }

    fn classify_turn(&self, text: &str) -> Classification {
        let hits = self.keywords.find(text);
        match hits.best() {
            Some((winner, share)) if share < 1.0 => self.choose(text, &hits, winner, share),
            Some((capability, _)) => self.by_keyword(capability, 1.0),
            None => self.guess(text),
        }
    }

    fn by_keyword(&self, capability: CapabilityId, share: f64) -> Classification {
        Classification { capability, confidence: share * self.trust, source: CapabilitySource::Keyword }
    }

    fn assume(&self, confidence: f64) -> Classification {
        Classification { capability: self.default, confidence, source: CapabilitySource::Default }
    }

    /// The likeliest of several capabilities whose keywords were found; by the model, if it knows all of them.
    fn choose(&self, text: &str, hits: &Hits, winner: CapabilityId, share: f64) -> Classification {
        let known = |capability| self.classes.contains(&capability);
        let Some(model) = self.model.as_ref().filter(|_| hits.capabilities().all(known)) else {
            return self.by_keyword(winner, share);
        };
        let probabilities = model.probabilities(text);
        let found = |class: usize| hits.has(self.classes[class]);
        let all = probabilities.as_slice().iter().enumerate();
        let total: f32 = all.filter(|(class, _)| found(*class)).map(|(_, probability)| probability).sum();
        match probabilities.best(found) {
            Some((class, probability)) if total > 0.0 => Classification {
                capability: self.classes[class],
                confidence: f64::from(probability / total) * self.trust,
                source: CapabilitySource::Model,
            },
            _ => self.by_keyword(winner, share),
        }
    }

    /// By the model alone, if it is sure enough.
    fn guess(&self, text: &str) -> Classification {
        let Some(model) = &self.model else { return self.assume(0.0) };
        let probabilities = model.probabilities(text);
        match probabilities.best(|_| true) {
            Some((class, probability)) if probability >= model.classes()[class].threshold => Classification {
                capability: self.classes[class],
                confidence: f64::from(probability),
                source: CapabilitySource::Model,
            },
            _ => self.assume(self.probability_of_default(&probabilities)),
        }
    }

    fn probability_of_default(&self, probabilities: &Probabilities) -> f64 {
        let class = self.classes.iter().position(|capability| *capability == self.default);
        class.map_or(0.0, |class| probabilities.as_slice()[class].into())
    }
}

/// Right matches that are taken for granted, so that a handful of examples does not say much.
const GRANTED: u32 = 10;

/// The share of the policy's examples whose keywords name the capability that they are an example of, among those that
/// have keywords of one capability.
fn trust(policy: &Policy, keywords: &Keywords) -> f64 {
    let (mut right, mut all) = (GRANTED, GRANTED);
    for (index, capability) in policy.capabilities.iter().enumerate() {
        for example in &capability.examples {
            if let Some((found, 1.0)) = keywords.find(example).best() {
                all += 1;
                right += u32::from(found.index() == index);
            }
        }
    }
    f64::from(right) / f64::from(all)
}

#[cfg(test)]
mod tests;
