//! What a share is at least, given few observations.

/// Lower end of the Wilson score interval of a share: `hits` out of `total`, at `z` standard deviations (1.96: 97.5 %
/// one-sided). 0 without observations.
///
/// Wilson, Probable inference, JASA 1927.
#[must_use]
pub fn wilson_lower(hits: f64, total: f64, z: f64) -> f64 {
    if total <= 0.0 {
        return 0.0;
    }
    let share = hits / total;
    let z2 = z * z;
    let centre = share + z2 / (2.0 * total);
    let margin = z * (share * (1.0 - share) / total + z2 / (4.0 * total * total)).sqrt();
    ((centre - margin) / (1.0 + z2 / total)).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_agrees_with_the_published_example() {
        // 81 of 263: (0.2553, 0.3662); Newcombe, Statistics in Medicine 1998, table I, method 3.
        assert!((wilson_lower(81.0, 263.0, 1.959_964) - 0.2553).abs() < 5e-5);
        assert_eq!(wilson_lower(0.0, 0.0, 1.96), 0.0);
        assert_eq!(wilson_lower(0.0, 20.0, 1.96), 0.0);
    }

    proptest! {
        #[test]
        fn it_is_below_the_share_and_rises_with_evidence(hits in 1_u32..50, extra in 0_u32..50) {
            let (hits, total) = (f64::from(hits), f64::from(hits + extra));
            let once = wilson_lower(hits, total, 1.96);
            let tenfold = wilson_lower(10.0 * hits, 10.0 * total, 1.96);
            prop_assert!(once <= hits / total && once < tenfold && tenfold <= hits / total);
        }
    }
}
