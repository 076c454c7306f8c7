//! From examples to a model.
//!
//! ```text
//! examples ─▶ features ─┬▶ fit on 4/5, five times ─▶ logits of the fifth left out ─▶ sharpness ─▶ thresholds
//!                       └▶ fit on all ───────────────────────────────────────────────────┴▶ i8 ─▶ model
//! ```
//!
//! The same examples and settings give the same model, to the last bit, on every machine.

use penstock_model::Policy;
use sha2::{Digest, Sha256};

use super::artefact::MAX_WEIGHTS;
use super::calibrate::{LeftOut, sharpness, thresholds};
use super::features::Recipe;
use super::fit::{Problem, Row, Weights, fit, hash};
use super::model::{Class, Model, stride};

/// Labelled texts: at least two classes, none of them empty.
#[derive(Debug, Clone)]
pub struct Examples<'a> {
    classes: Vec<(&'a str, Vec<&'a str>)>,
}

/// How to train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What the model sees of a text.
    pub recipe: Recipe,
    /// Times that each example is seen; fewer when there is very much to see.
    pub epochs: u32,
    /// Step size at the beginning.
    pub rate: f32,
    /// How strongly weights are drawn to zero after each epoch.
    pub decay: f32,
    /// Features that fewer examples have are left out.
    pub common: u32,
    /// What chance is drawn from.
    pub seed: u64,
}

impl Default for Settings {
    /// Chosen by cross-validation over the shipped set and on its development part; see ADR 11.
    fn default() -> Self {
        Self { recipe: Recipe::default(), epochs: 30, rate: 8.0, decay: 0.01, common: 3, seed: 1 }
    }
}

/// Grows when the same examples and settings give another model than before.
const TRAINER: u32 = 1;

/// Parts that the examples are divided into; each is left out once.
const FOLDS: usize = 5;

/// Multiplications that one fit may take: about a second.
const MAX_WORK: usize = 600_000_000;

impl<'a> Examples<'a> {
    /// The examples of a policy's capabilities. `None` when fewer than two have any: there is nothing to tell apart.
    #[must_use]
    pub fn of(policy: &'a Policy) -> Option<Self> {
        let capabilities = policy.capabilities.iter();
        Self::new(capabilities.map(|capability| {
            (capability.name.as_str(), capability.examples.iter().map(String::as_str).collect())
        }))
    }

    /// These classes, but for the empty ones. `None` when fewer than two are left.
    #[must_use]
    pub fn new(classes: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Option<Self> {
        let classes: Vec<_> = classes.into_iter().filter(|(_, texts)| !texts.is_empty()).collect();
        (classes.len() >= 2).then_some(Self { classes })
    }

    /// What a model of these examples and settings carries as [`Model::trained_from`]: lower-case hex of a SHA-256.
    #[must_use]
    pub fn hash(&self, settings: &Settings) -> String {
        let mut digest = Sha256::new();
        digest.update(format!("{TRAINER} {settings:?}"));
        for (name, texts) in &self.classes {
            for text in std::iter::once(name).chain(texts) {
                digest.update((text.len() as u64).to_le_bytes());
                digest.update(text);
            }
            digest.update(u64::MAX.to_le_bytes());
        }
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every text with the index of its class.
    fn texts(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let classes = self.classes.iter().enumerate();
        classes.flat_map(|(class, (_, texts))| texts.iter().map(move |text| (class, *text)))
    }
}

/// Trains a model. Takes a fraction of a second for a thousand examples, some seconds for as many as a policy can hold.
#[must_use]
pub fn train(examples: &Examples<'_>, settings: &Settings) -> Model {
    let data = Data::new(examples, settings);
    let weights = fit(data.rows.iter(), &data.problem);
    let left_out = data.cross_validate();
    let sharpness = sharpness(&left_out);
    let thresholds = thresholds(&left_out, sharpness, data.problem.classes);
    let class = |(class, (name, _)): (usize, &(&str, Vec<&str>))| Class {
        name: (*name).to_owned(),
        bias: weights.bias[class] * sharpness,
        threshold: thresholds[class],
    };
    let classes = examples.classes.iter().enumerate().map(class).collect();
    let (table, unit) = data.quantise(&weights);
    Model {
        trained_from: examples.hash(settings),
        recipe: data.recipe,
        classes,
        scale: unit * sharpness,
        table,
        stride: stride(data.problem.classes),
    }
}

/// Examples as the fit sees them.
struct Data {
    recipe: Recipe,
    /// Buckets that get weights, in order.
    buckets: Vec<usize>,
    rows: Vec<Row>,
    /// The part that each row is in.
    folds: Vec<usize>,
    problem: Problem,
}

impl Data {
    fn new(examples: &Examples<'_>, settings: &Settings) -> Self {
        let classes = examples.classes.len();
        let recipe = settings.recipe.for_classes(classes, MAX_WEIGHTS);
        let features: Vec<Vec<usize>> = examples.texts().map(|(_, text)| recipe.features(text)).collect();
        let mut counts = vec![0_u32; recipe.buckets()];
        features.iter().flatten().for_each(|bucket| counts[*bucket] += 1);
        let buckets: Vec<usize> =
            (0..recipe.buckets()).filter(|bucket| counts[*bucket] >= settings.common).collect();
        let total = features.len() as f32;
        let row = |((class, _), features): ((usize, &str), &Vec<usize>)| Row {
            features: features
                .iter()
                .filter_map(|bucket| buckets.binary_search(bucket).ok())
                .map(|index| index as u32)
                .collect(),
            value: 1.0 / (features.len().max(1) as f32).sqrt(),
            class,
            // The square root: rare classes count for more, yet not as much as frequent ones.
            weight: (total / (classes * examples.classes[class].1.len()) as f32).sqrt(),
        };
        let rows: Vec<Row> = examples.texts().zip(&features).map(row).collect();
        let work = rows.iter().map(|row| row.features.len() * classes * 2).sum::<usize>().max(1);
        let problem = Problem {
            features: buckets.len(),
            classes,
            epochs: settings.epochs.min((MAX_WORK / work) as u32).max(4),
            rate: settings.rate,
            decay: settings.decay,
            seed: settings.seed,
        };
        Self { recipe, folds: folds(examples, settings.seed), buckets, rows, problem }
    }

    fn cross_validate(&self) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        for fold in 0..FOLDS {
            let of = |inside: bool| {
                let rows = self.rows.iter().zip(&self.folds);
                rows.filter(move |(_, of)| (**of == fold) == inside).map(|(row, _)| row)
            };
            let weights = fit(of(false), &self.problem);
            left_out.extend(of(true).map(|row| LeftOut { logits: weights.logits(row), class: row.class }));
        }
        left_out
    }

    /// Weights as bytes by bucket, and what one unit of them is.
    fn quantise(&self, weights: &Weights) -> (Vec<i8>, f32) {
        let classes = self.problem.classes;
        let largest =
            weights.table.iter().fold(f32::MIN_POSITIVE, |largest, weight| largest.max(weight.abs()));
        let unit = largest / f32::from(i8::MAX);
        let stride = stride(classes);
        let mut table = vec![0; self.recipe.buckets() * stride];
        for (bucket, row) in self.buckets.iter().zip(weights.table.chunks_exact(classes)) {
            let cells = &mut table[bucket * stride..][..classes];
            cells.iter_mut().zip(row).for_each(|(cell, weight)| *cell = (weight / unit).round() as i8);
        }
        (table, unit)
    }
}

/// The part that each example is in. Each class is spread evenly over the parts.
fn folds(examples: &Examples<'_>, seed: u64) -> Vec<usize> {
    let mut folds = Vec::new();
    for (class, (_, texts)) in examples.classes.iter().enumerate() {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_unstable_by_key(|index| hash(seed ^ (class as u64) << 32 ^ *index as u64));
        let mut of_class = vec![0; texts.len()];
        order.into_iter().enumerate().for_each(|(place, index)| of_class[index] = place % FOLDS);
        folds.extend(of_class);
    }
    folds
}
