//! Sums in which old evidence fades.

/// What is left of a sum after `elapsed` with time constant `tau`, both in the same unit: e^(-elapsed/tau).
#[must_use]
pub fn decay(elapsed: f64, tau: f64) -> f64 {
    (-elapsed / tau).exp()
}

/// A weighted mean `num / den` whose evidence fades. `den` says how much of it there is, in samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Decayed {
    /// Sum of value × weight.
    pub num: f64,
    /// Sum of weights.
    pub den: f64,
}

impl Decayed {
    /// Adds a sum of values and how many there were.
    pub fn add(&mut self, sum: f64, count: f64) {
        self.num += sum;
        self.den += count;
    }

    /// Keeps the share `factor` of all evidence (see [`decay`]). The mean does not change.
    pub fn fade(&mut self, factor: f64) {
        self.num *= factor;
        self.den *= factor;
    }

    /// Scales the evidence down to at most `most` samples. The mean does not change, but new samples weigh more.
    pub fn cap(&mut self, most: f64) {
        if self.den > most {
            self.fade(most / self.den);
        }
    }

    /// The mean; `None` without evidence.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.den > 1e-9).then(|| self.num / self.den)
    }

    /// The mean with `count` more samples of `prior`.
    #[must_use]
    pub fn mean_with(&self, prior: f64, count: f64) -> f64 {
        (self.num + prior * count) / (self.den + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fading_and_capping_keep_the_mean_and_make_room_for_new_evidence() {
        let mut sum = Decayed::default();
        assert_eq!(sum.mean(), None);
        sum.add(200.0, 1_000.0);
        sum.cap(64.0);
        assert_eq!(sum.den, 64.0);
        assert!((sum.mean().unwrap() - 0.2).abs() < 1e-12);
        sum.add(128.0, 64.0);
        assert!((sum.mean().unwrap() - 1.1).abs() < 1e-12);
        sum.fade(decay(5.0, 5.0));
        assert!((sum.den - 128.0 / std::f64::consts::E).abs() < 1e-9);
        assert!((sum.mean().unwrap() - 1.1).abs() < 1e-12);
    }

    #[test]
    fn without_evidence_the_prior_stands() {
        assert!((Decayed::default().mean_with(0.7, 3.0) - 0.7).abs() < 1e-12);
    }
}
