//! Durations as a histogram whose bins grow geometrically (DDSketch with a fixed γ).
//!
//! Bin `i` counts values in (γ^(i-1), γ^i] milliseconds with γ = 1.02/0.98, so any quantile between 1 ms and 11 minutes is
//! known within 2 % of its value, whatever the distribution. γ is the same everywhere, hence two sketches merge by adding
//! their bins, and the order of merging does not matter.
//!
//! After Masson, Rim, Lee: DDSketch, VLDB 2019. Bins are dense and fixed; the paper's collapsing is not needed.

/// Number of bins. The last one holds everything above 10.6 minutes.
const BINS: usize = 336;
/// Relative accuracy α.
const ALPHA: f64 = 0.02;
const GAMMA: f64 = (1.0 + ALPHA) / (1.0 - ALPHA);

/// A mergeable histogram of durations with 2 % relative accuracy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    bins: [u32; BINS],
    count: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { bins: [0; BINS], count: 0 }
    }
}

/// Why a wire form was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// A gap without its count.
    OddLength,
    /// A bin beyond the last one.
    BinOutOfRange,
    /// A gap of zero after the first entry: the same bin twice.
    RepeatedBin,
    /// A bin that is listed although it is empty.
    EmptyBin,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::OddLength => "sketch has a gap without a count",
            Self::BinOutOfRange => "sketch has a bin beyond the last one",
            Self::RepeatedBin => "sketch lists a bin twice",
            Self::EmptyBin => "sketch lists an empty bin",
        })
    }
}

impl std::error::Error for WireError {}

impl Sketch {
    /// Adds one duration, in microseconds. Below 1 ms counts as 1 ms.
    pub fn record_us(&mut self, micros: u64) {
        let bin = bin_of(micros as f64 / 1_000.0);
        self.bins[bin] = self.bins[bin].saturating_add(1);
        self.count += 1;
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count += other.count;
    }

    /// How many durations it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Is there nothing in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The `q`-quantile in seconds, within 2 %; `None` when there is nothing to say. `q` is clamped to 0..1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        let rank = (q.clamp(0.0, 1.0) * last as f64).round() as u64;
        let mut seen = 0;
        for (bin, &count) in self.bins.iter().enumerate() {
            seen += u64::from(count);
            if seen > rank {
                return Some(value_of(bin) / 1_000.0);
            }
        }
        // Only when a bin has saturated, and then the answer is in the last one that has anything.
        self.bins.iter().rposition(|&count| count > 0).map(|bin| value_of(bin) / 1_000.0)
    }

    /// The wire form: for each bin that has something, its distance to the one before (the first: to bin 0), then its
    /// count.
    #[must_use]
    pub fn to_wire(&self) -> Vec<u32> {
        let mut wire = Vec::new();
        let mut previous = 0;
        for (bin, &count) in self.bins.iter().enumerate().filter(|&(_, &count)| count > 0) {
            wire.extend([(bin - previous) as u32, count]);
            previous = bin;
        }
        wire
    }

    /// Adds the durations of a wire form.
    ///
    /// # Errors
    /// When `wire` is not what [`Self::to_wire`] makes. Nothing was added then.
    pub fn merge_wire(&mut self, wire: &[u32]) -> Result<(), WireError> {
        self.merge(&Self::from_wire(wire)?);
        Ok(())
    }

    /// Reads the wire form.
    ///
    /// # Errors
    /// When `wire` is not what [`Self::to_wire`] makes.
    pub fn from_wire(wire: &[u32]) -> Result<Self, WireError> {
        let mut sketch = Self::default();
        let mut bin = 0_usize;
        let (pairs, rest) = wire.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(WireError::OddLength);
        }
        for (position, &[gap, count]) in pairs.iter().enumerate() {
            if gap == 0 && position > 0 {
                return Err(WireError::RepeatedBin);
            }
            if count == 0 {
                return Err(WireError::EmptyBin);
            }
            bin = bin.saturating_add(gap as usize);
            *sketch.bins.get_mut(bin).ok_or(WireError::BinOutOfRange)? = count;
            sketch.count += u64::from(count);
        }
        Ok(sketch)
    }
}

fn bin_of(millis: f64) -> usize {
    if millis <= 1.0 {
        return 0;
    }
    let bin = (millis.ln() / GAMMA.ln()).ceil();
    // The float is positive and small; the cast saturates in any case.
    (bin as usize).min(BINS - 1)
}

/// The value that is at most 2 % away from everything in the bin, in milliseconds.
fn value_of(bin: usize) -> f64 {
    2.0 * GAMMA.powi(bin as i32) / (GAMMA + 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(micros: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        for &value in micros {
            sketch.record_us(value);
        }
        sketch
    }

    fn merged(one: &Sketch, other: &Sketch) -> Sketch {
        let mut sum = one.clone();
        sum.merge(other);
        sum
    }

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(1_000_u64..600_000_000, 0..60)
    }

    proptest! {
        #[test]
        fn merging_is_commutative_and_associative(a in durations(), b in durations(), c in durations()) {
            let (a, b, c) = (sketch(&a), sketch(&b), sketch(&c));
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        }

        #[test]
        fn a_merged_sketch_is_the_sketch_of_all_values(a in durations(), b in durations()) {
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged(&sketch(&a), &sketch(&b)), sketch(&all));
        }

        #[test]
        fn every_quantile_is_within_two_per_cent(mut values in durations(), q in 0.0_f64..=1.0) {
            prop_assume!(!values.is_empty());
            let estimate = sketch(&values).quantile(q).unwrap();
            values.sort_unstable();
            let exact = values[(q * (values.len() - 1) as f64).round() as usize] as f64 / 1e6;
            prop_assert!((estimate - exact).abs() <= exact * (ALPHA + 1e-9), "{estimate} for {exact}");
        }

        #[test]
        fn the_wire_form_brings_back_the_same_sketch(values in proptest::collection::vec(any::<u64>(), 0..60)) {
            let sketch = sketch(&values);
            prop_assert_eq!(Sketch::from_wire(&sketch.to_wire()), Ok(sketch));
        }

        #[test]
        fn no_wire_form_makes_it_panic_and_what_it_takes_it_gives_back(wire in proptest::collection::vec(0_u32..400, 0..20)) {
            if let Ok(sketch) = Sketch::from_wire(&wire) {
                prop_assert_eq!(sketch.to_wire(), wire);
            }
        }
    }

    #[test]
    fn an_empty_sketch_has_no_quantiles() {
        assert_eq!(Sketch::default().quantile(0.5), None);
        assert_eq!(Sketch::default().to_wire(), Vec::<u32>::new());
    }

    #[test]
    fn values_outside_the_range_land_in_the_outermost_bins() {
        let sketch = sketch(&[0, 1, u64::MAX]);
        assert_eq!(sketch.count(), 3);
        assert!(sketch.quantile(0.0).unwrap() < 0.001);
        assert!(sketch.quantile(1.0).unwrap() > 600.0);
    }

    #[test]
    fn broken_wire_forms_are_refused_with_their_reason() {
        assert_eq!(Sketch::from_wire(&[3]), Err(WireError::OddLength));
        assert_eq!(Sketch::from_wire(&[336, 1]), Err(WireError::BinOutOfRange));
        assert_eq!(Sketch::from_wire(&[u32::MAX, 1, u32::MAX, 1]), Err(WireError::BinOutOfRange));
        assert_eq!(Sketch::from_wire(&[3, 1, 0, 1]), Err(WireError::RepeatedBin));
        assert_eq!(Sketch::from_wire(&[3, 0]), Err(WireError::EmptyBin));
    }

    #[test]
    fn a_refused_wire_form_adds_nothing() {
        let mut sketch = sketch(&[5_000]);
        assert!(sketch.merge_wire(&[3, 1, 400, 1]).is_err());
        assert_eq!(sketch.count(), 1);
        sketch.merge_wire(&[3, 4]).unwrap();
        assert_eq!(sketch.count(), 5);
        sketch.clear();
        assert!(sketch.is_empty());
    }
}
