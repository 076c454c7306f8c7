//! The trained model, and what it makes of a text.

use serde::{Deserialize, Serialize};

use super::features::{Recipe, Seen, excerpt};

/// The most classes: the most capabilities that a policy can have.
pub(super) const MAX_CLASSES: usize = 256;

/// A linear model: for each class a weight per bucket. Trained by [`super::train`], carried in a form of its own (`artefact.rs`).
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub(super) trained_from: String,
    pub(super) recipe: Recipe,
    pub(super) classes: Vec<Class>,
    /// Logits per unit of a weight, temperature included.
    pub(super) scale: f32,
    /// One row per bucket; of each row one weight per class, then zeros up to `stride`.
    pub(super) table: Vec<i8>,
    pub(super) stride: usize,
}

/// One of the things a text can be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The capability's name.
    pub name: String,
    /// Its logit for a text without features, temperature included.
    pub bias: f32,
    /// The smallest probability with which it is believed.
    pub threshold: f32,
}

/// What the model makes of a text: a probability for each class.
#[derive(Debug, Clone)]
pub struct Probabilities {
    values: [f32; MAX_CLASSES],
    classes: usize,
}

impl Probabilities {
    /// One for each class, in the order of [`Model::classes`]; they sum to 1.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        &self.values[..self.classes]
    }

    /// The likeliest class among those that `eligible` admits, and its probability.
    #[must_use]
    pub fn best(&self, eligible: impl Fn(usize) -> bool) -> Option<(usize, f32)> {
        let candidates = self.as_slice().iter().copied().enumerate().filter(|(class, _)| eligible(*class));
        // The first of several equal ones.
        candidates.fold(None, |best, candidate| match best {
            Some((_, probability)) if probability >= candidate.1 => best,
            _ => Some(candidate),
        })
    }
}

/// Rows are as long as a vector register likes.
pub(super) fn stride(classes: usize) -> usize {
    classes.next_multiple_of(8)
}

impl Model {
    /// What it tells apart.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The hash of the examples and settings that it was trained from: see [`super::Examples::hash`].
    #[must_use]
    pub fn trained_from(&self) -> &str {
        &self.trained_from
    }

    /// How likely `text` is of each class. About 1.8 KB of it are looked at; nothing is allocated.
    #[must_use]
    pub fn probabilities(&self, text: &str) -> Probabilities {
        let mut sums = [0_i32; MAX_CLASSES];
        let mut seen = Seen::new();
        let mut features = 0_u32;
        for part in excerpt(text) {
            self.recipe.visit(part, |bucket, _| {
                if seen.insert(bucket) {
                    features += 1;
                    let row = &self.table[bucket * self.stride..][..self.stride];
                    for (sums, weights) in sums.chunks_exact_mut(8).zip(row.chunks_exact(8)) {
                        for (sum, weight) in sums.iter_mut().zip(weights) {
                            *sum += i32::from(*weight);
                        }
                    }
                }
            });
        }
        // The square root makes long and short texts comparable.
        let unit = self.scale / (features.max(1) as f32).sqrt();
        let mut values = [0.0; MAX_CLASSES];
        for ((value, class), sum) in values.iter_mut().zip(&self.classes).zip(&sums) {
            *value = class.bias + unit * *sum as f32;
        }
        softmax(&mut values[..self.classes.len()]);
        Probabilities { values, classes: self.classes.len() }
    }
}

/// For people: what each piece of a text speaks for.
impl Model {
    /// Every feature of `text`, once, with what it adds to the logit of `class`, less what it adds to the mean of the
    /// other classes.
    pub(crate) fn contributions<'t>(&self, text: &'t str, class: usize) -> Vec<(&'t str, f64)> {
        let mut seen = Seen::new();
        let mut found = Vec::new();
        for part in excerpt(text) {
            self.recipe.visit(part, |bucket, span| {
                if seen.insert(bucket) {
                    let row = &self.table[bucket * self.stride..][..self.classes.len()];
                    let sum: f64 = row.iter().map(|weight| f64::from(*weight)).sum();
                    let own = f64::from(row[class]);
                    found.push((&part[span], own - (sum - own) / (row.len() - 1) as f64));
                }
            });
        }
        let unit = f64::from(self.scale) / (found.len().max(1) as f64).sqrt();
        found.iter_mut().for_each(|(_, weight)| *weight *= unit);
        found
    }
}

fn softmax(values: &mut [f32]) {
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|value| *value = (*value - top).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
}
