//! Multinomial logistic regression by stochastic gradient descent, the same to the last bit on every machine.
//!
//! Chance is a hash of a seed, and the exponential function is our own: those of platforms differ in their last digits.

/// One example: which of the known features it has, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Indices of features that the fit knows, each once.
    pub(super) features: Vec<u32>,
    /// The value of each of them: 1 / √(number of features, unknown ones included).
    pub(super) value: f32,
    pub(super) class: usize,
    /// How much it counts.
    pub(super) weight: f32,
}

/// The size of the problem and how to go about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Problem {
    pub(super) features: usize,
    pub(super) classes: usize,
    pub(super) epochs: u32,
    pub(super) rate: f32,
    pub(super) decay: f32,
    pub(super) seed: u64,
}

/// Weights by feature and class, and a bias for each class.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    pub(super) table: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Weights {
    fn zero(problem: &Problem) -> Self {
        Self { table: vec![0.0; problem.features * problem.classes], bias: vec![0.0; problem.classes] }
    }

    /// The logits of a row.
    pub(super) fn logits(&self, row: &Row) -> Vec<f32> {
        let mut logits = vec![0.0; self.bias.len()];
        self.logits_into(row, &mut logits);
        logits
    }

    fn logits_into(&self, row: &Row, logits: &mut [f32]) {
        logits.fill(0.0);
        for &feature in &row.features {
            let weights = &self.table[feature as usize * logits.len()..][..logits.len()];
            logits.iter_mut().zip(weights).for_each(|(logit, weight)| *logit += weight);
        }
        for (logit, bias) in logits.iter_mut().zip(&self.bias) {
            *logit = *logit * row.value + bias;
        }
    }

    fn step(&mut self, row: &Row, slopes: &[f32], rate: f32) {
        for &feature in &row.features {
            let weights = &mut self.table[feature as usize * slopes.len()..][..slopes.len()];
            weights.iter_mut().zip(slopes).for_each(|(weight, slope)| *weight -= rate * row.value * slope);
        }
        self.bias.iter_mut().zip(slopes).for_each(|(bias, slope)| *bias -= 0.1 * rate * slope);
    }

    fn all(&mut self) -> impl Iterator<Item = &mut f32> {
        self.table.iter_mut().chain(&mut self.bias)
    }

    fn shrink(&mut self, factor: f32) {
        self.all().for_each(|weight| *weight *= factor);
    }

    fn add(&mut self, other: &Self) {
        let others = other.table.iter().chain(&other.bias);
        self.all().zip(others).for_each(|(weight, other)| *weight += other);
    }
}

/// Fits weights to rows. The result is the mean of the weights after each epoch of the second half, which is steadier
/// than any of them.
pub(super) fn fit<'a>(rows: impl Iterator<Item = &'a Row>, problem: &Problem) -> Weights {
    let rows: Vec<&Row> = rows.collect();
    let mut weights = Weights::zero(problem);
    let mut mean = Weights::zero(problem);
    let mut logits = vec![0.0; problem.classes];
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for epoch in 0..problem.epochs {
        let rate = problem.rate / (1.0 + epoch as f32 / 8.0);
        let chance = |row: &usize| hash(problem.seed ^ u64::from(epoch) << 32 ^ *row as u64);
        order.sort_unstable_by_key(chance);
        for &index in &order {
            let row = rows[index];
            weights.logits_into(row, &mut logits);
            softmax(&mut logits);
            logits[row.class] -= 1.0;
            weights.step(row, &logits, rate * row.weight);
        }
        weights.shrink(1.0 / (1.0 + problem.decay * rate));
        if epoch >= problem.epochs / 2 {
            mean.add(&weights);
        }
    }
    mean.shrink(1.0 / (problem.epochs - problem.epochs / 2) as f32);
    mean
}

/// Logits to probabilities.
pub(super) fn softmax(values: &mut [f32]) {
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|value| *value = exp(*value - top));
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
}

/// e to the power of `x`, for x ≤ 0, within a millionth: 2^n by the exponent's bits, the rest by its Taylor series.
fn exp(x: f32) -> f32 {
    if x < -80.0 {
        return 0.0;
    }
    let n = (x * std::f32::consts::LOG2_E).round();
    let r = x - n * std::f32::consts::LN_2;
    let series =
        1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    series * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

/// SplitMix64's finaliser: a number that looks drawn.
pub(super) fn hash(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
