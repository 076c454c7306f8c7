//! What probabilities are worth: fitted on examples that the weights have not seen.

use super::fit::softmax;

/// The share of guesses above a threshold that should be right.
const PRECISION: f32 = 0.8;

/// The logits of an example by weights that were fitted without it, and what it is.
#[derive(Debug, Clone)]
pub(super) struct LeftOut {
    pub(super) logits: Vec<f32>,
    pub(super) class: usize,
}

impl LeftOut {
    fn probabilities(&self, sharpness: f32) -> Vec<f32> {
        let mut values: Vec<f32> = self.logits.iter().map(|logit| logit * sharpness).collect();
        softmax(&mut values);
        values
    }

    /// The likeliest class; the first of several.
    fn guess(&self) -> usize {
        let better = |best, class| if self.logits[class] > self.logits[best] { class } else { best };
        (1..self.logits.len()).fold(0, better)
    }
}

/// The factor on logits, the inverse of a temperature, that makes the left-out examples likeliest (Guo et al., *On
/// Calibration of Modern Neural Networks*, 2017). Their log-likelihood is concave in the factor; its slope,
/// Σ (logit of the truth − expected logit), crosses zero where it is largest.
pub(super) fn sharpness(left_out: &[LeftOut]) -> f32 {
    let slope = |factor: f32| -> f32 {
        let slope_of = |row: &LeftOut| {
            let probabilities = row.probabilities(factor);
            let expected: f32 =
                probabilities.iter().zip(&row.logits).map(|(probability, logit)| probability * logit).sum();
            row.logits[row.class] - expected
        };
        left_out.iter().map(slope_of).sum()
    };
    let (mut low, mut high) = (0.01, 10.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// For each class the smallest probability from which on its guesses are right often enough.
pub(super) fn thresholds(left_out: &[LeftOut], sharpness: f32, classes: usize) -> Vec<f32> {
    let mut guesses: Vec<Vec<(f32, bool)>> = vec![Vec::new(); classes];
    for row in left_out {
        let guess = row.guess();
        guesses[guess].push((row.probabilities(sharpness)[guess], guess == row.class));
    }
    guesses.into_iter().map(threshold).collect()
}

fn threshold(mut guesses: Vec<(f32, bool)>) -> f32 {
    guesses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut right, mut threshold) = (0, 1.0);
    for (before, (probability, correct)) in guesses.into_iter().enumerate() {
        right += u32::from(correct);
        // One right and one wrong guess more than were seen (Laplace): a single lucky one proves little.
        if (right + 1) as f32 >= PRECISION * (before + 3) as f32 {
            threshold = probability;
        }
    }
    threshold
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes; of those with this logit for the first, so many are of the first.
    fn left_out(groups: &[(f32, usize, usize)]) -> Vec<LeftOut> {
        let rows = |&(logit, first, second): &(f32, usize, usize)| {
            let of = move |class| LeftOut { logits: vec![logit, 0.0], class };
            std::iter::repeat_n(of(0), first).chain(std::iter::repeat_n(of(1), second))
        };
        groups.iter().flat_map(rows).collect()
    }

    #[test]
    fn sharpness_makes_the_probability_of_a_group_its_share() {
        for (first, second) in [(60, 40), (80, 20), (95, 5)] {
            let rows = left_out(&[(3.0, first, second)]);
            let probability = rows[0].probabilities(sharpness(&rows))[0];
            let share = first as f32 / (first + second) as f32;
            assert!((probability - share).abs() < 1e-3, "{probability} for {share}");
        }
    }

    #[test]
    fn a_threshold_is_where_precision_begins() {
        // Surely right above 2, half of the time at 1.
        let rows = left_out(&[(3.0, 50, 0), (2.0, 50, 0), (1.0, 100, 100)]);
        let found = thresholds(&rows, 1.0, 2);
        let at = |logit: f32| 1.0 / (1.0 + (-logit).exp());
        assert!((found[0] - at(2.0)).abs() < 1e-5 || found[0] > at(1.0) - 1e-5, "{found:?}");
        let precise = left_out(&[(1.0, 100, 5)]);
        assert!((thresholds(&precise, 1.0, 2)[0] - at(1.0)).abs() < 1e-5);
    }

    #[test]
    fn a_class_that_is_never_guessed_right_is_never_believed() {
        let rows = left_out(&[(2.0, 0, 30)]);
        assert_eq!(thresholds(&rows, 1.0, 2), [1.0, 1.0]);
    }
}
