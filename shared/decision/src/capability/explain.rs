//! Why a text was taken for what it was taken for.

use std::collections::HashMap;

use penstock_model::policy::CapabilityId;

use super::{Classification, Classifier};

/// All that went into a classification. Slow: for people.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What came out.
    pub classification: Classification,
    /// Every keyword in the text, with the capability it stands for.
    pub keywords: Vec<(String, CapabilityId)>,
    /// What the model says of each capability that it knows, the likeliest first; empty without a model.
    pub guesses: Vec<Guess>,
    /// What spoke most for the model's first guess, and against it, the strongest first.
    pub grams: Vec<Gram>,
}

/// What the model says of one capability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// Which.
    pub capability: CapabilityId,
    /// 0..1; those of all capabilities sum to 1.
    pub probability: f64,
    /// The smallest probability with which the model is believed.
    pub threshold: f64,
}

/// A piece of a text and what it speaks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    /// As it stands in the text.
    pub text: String,
    /// What it adds to the logit of the capability, less what it adds to the mean of the others; negative when it speaks
    /// against it.
    pub weight: f64,
}

impl Classifier {
    /// Explains what [`Classifier::classify`] makes of a single turn; `grams` is how many pieces of it are named.
    #[must_use]
    pub fn explain(&self, text: &str, grams: usize) -> Explanation {
        let hits = self.keywords.find(text);
        let mut keywords: Vec<(String, CapabilityId)> = Vec::new();
        for id in hits.ids() {
            keywords.push((self.keywords.text(id).to_owned(), self.keywords.capability(id)));
        }
        let mut guesses = self.guesses(text);
        guesses.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let winner = guesses.first().map(|guess| guess.capability);
        Explanation {
            classification: self.classify([text]),
            keywords,
            grams: winner.map_or_else(Vec::new, |winner| self.strongest(text, winner, grams)),
            guesses,
        }
    }

    fn guesses(&self, text: &str) -> Vec<Guess> {
        let Some(model) = &self.model else { return Vec::new() };
        let probabilities = model.probabilities(text);
        let classes = self.classes.iter().zip(model.classes()).zip(probabilities.as_slice());
        let guess =
            |((capability, class), probability): ((&CapabilityId, &crate::classifier::Class), &f32)| Guess {
                capability: *capability,
                probability: f64::from(*probability),
                threshold: f64::from(class.threshold),
            };
        classes.map(guess).collect()
    }

    fn strongest(&self, text: &str, winner: CapabilityId, count: usize) -> Vec<Gram> {
        let class = self.classes.iter().position(|capability| *capability == winner);
        let Some((model, class)) = self.model.as_ref().zip(class) else { return Vec::new() };
        let mut weights: HashMap<&str, f64> = HashMap::new();
        for (piece, weight) in model.contributions(text, class) {
            *weights.entry(piece).or_default() += weight;
        }
        let mut grams: Vec<Gram> =
            weights.into_iter().map(|(text, weight)| Gram { text: text.to_owned(), weight }).collect();
        grams.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()).then_with(|| a.text.cmp(&b.text)));
        grams.truncate(count);
        grams
    }
}
