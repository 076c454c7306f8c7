//! How good a classifier is, on labelled texts.
//!
//! Calibration is the expected calibration error over 15 bins of equal width (Guo et al., *On Calibration of Modern
//! Neural Networks*, 2017): the mean distance, weighted by size, between a bin's accuracy and its mean confidence.

use penstock_model::policy::CapabilityId;

use super::{CapabilitySource, Classification};

/// Bins of confidence.
pub const BINS: usize = 15;

/// A text that was classified, and what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// What it is.
    pub truth: CapabilityId,
    /// What it was taken for.
    pub found: Classification,
}

impl Judged {
    fn is_right(&self) -> bool {
        self.found.capability == self.truth
    }
}

/// How many there are, and how many of them are right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// All.
    pub texts: usize,
    /// Those taken for what they are.
    pub right: usize,
}

impl Tally {
    /// Counts those that `belongs` picks.
    #[must_use]
    pub fn of(judged: &[Judged], belongs: impl Fn(&Judged) -> bool) -> Self {
        let of_these = || judged.iter().filter(|one| belongs(one));
        Self { texts: of_these().count(), right: of_these().filter(|one| one.is_right()).count() }
    }

    /// The share of right ones, 0..1; `None` without any.
    #[must_use]
    pub fn accuracy(self) -> Option<f64> {
        (self.texts > 0).then(|| self.right as f64 / self.texts as f64)
    }
}

/// One bin of confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// Who fell into it.
    pub tally: Tally,
    /// Their mean confidence; 0 when there are none.
    pub confidence: f64,
}

/// The bins, from the lowest confidence to the highest.
#[must_use]
pub fn bins(judged: &[Judged]) -> [Bin; BINS] {
    std::array::from_fn(|bin| {
        let inside = |one: &Judged| ((one.found.confidence * BINS as f64) as usize).min(BINS - 1) == bin;
        let tally = Tally::of(judged, inside);
        let sum: f64 = judged.iter().filter(|one| inside(one)).map(|one| one.found.confidence).sum();
        Bin { tally, confidence: if tally.texts == 0 { 0.0 } else { sum / tally.texts as f64 } }
    })
}

/// The expected calibration error, 0..1; 0 without any texts.
#[must_use]
pub fn calibration_error(judged: &[Judged]) -> f64 {
    let error = |bin: &Bin| {
        let accuracy = bin.tally.accuracy().unwrap_or_default();
        (accuracy - bin.confidence).abs() * bin.tally.texts as f64
    };
    bins(judged).iter().map(error).sum::<f64>() / judged.len().max(1) as f64
}

/// `counts[truth][found]`, for this many capabilities.
#[must_use]
pub fn confusion(judged: &[Judged], capabilities: usize) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; capabilities]; capabilities];
    for one in judged {
        counts[one.truth.index()][one.found.capability.index()] += 1;
    }
    counts
}

/// Of those taken for `capability`, the share that is (precision); of those that are, the share that was taken for it
/// (recall). `None` where there are none.
#[must_use]
pub fn precision_and_recall(judged: &[Judged], capability: CapabilityId) -> (Option<f64>, Option<f64>) {
    let precision = Tally::of(judged, |one| one.found.capability == capability).accuracy();
    let recall = Tally::of(judged, |one| one.truth == capability).accuracy();
    (precision, recall)
}

/// Those that were found by keywords or by the model, not assumed: how many, and how good.
#[must_use]
pub fn covered(judged: &[Judged]) -> Tally {
    Tally::of(judged, |one| one.found.source != CapabilitySource::Default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(truth: u32, found: u32, confidence: f64, source: CapabilitySource) -> Judged {
        let found = Classification { capability: CapabilityId(found), confidence, source };
        Judged { truth: CapabilityId(truth), found }
    }

    fn some() -> Vec<Judged> {
        vec![
            judged(0, 0, 0.9, CapabilitySource::Model),
            judged(0, 1, 0.9, CapabilitySource::Model),
            judged(1, 1, 1.0, CapabilitySource::Keyword),
            judged(1, 0, 0.2, CapabilitySource::Default),
        ]
    }

    #[test]
    fn the_calibration_error_is_what_one_computes_by_hand() {
        // Bin 13 (0.87 to 0.93): half right at 0.9. Bin 14: right at 1.0. Bin 3: wrong at 0.2.
        let expected = (2.0 * 0.4 + 0.0 + 0.2) / 4.0;
        assert!((calibration_error(&some()) - expected).abs() < 1e-12);
        assert_eq!(calibration_error(&[]), 0.0);
        assert_eq!(bins(&some())[13].tally, Tally { texts: 2, right: 1 });
    }

    #[test]
    fn confusion_precision_recall_and_coverage_count_the_same_texts() {
        let some = some();
        assert_eq!(confusion(&some, 2), [[1, 1], [1, 1]]);
        assert_eq!(precision_and_recall(&some, CapabilityId(0)), (Some(0.5), Some(0.5)));
        assert_eq!(precision_and_recall(&some, CapabilityId(7)), (None, None));
        assert_eq!(covered(&some), Tally { texts: 3, right: 2 });
    }
}
