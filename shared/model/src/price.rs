//! Money as whole numbers: prices in nano-units of a currency per million tokens, costs in nano-units.
//!
//! A nano-unit is 1e-9 of the currency's unit. Binary floats never touch money: prices are decimal strings in the
//! document and integers from there on.

use crate::Usage;
use crate::problem::Finding;

/// Digits after the point that a price may have.
const DECIMALS: usize = 9;
/// Nano-units in one unit of a currency.
pub const NANOS: u64 = 1_000_000_000;

/// Nano-units of the currency per million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// ISO 4217.
    pub currency: String,
    /// Uncached input.
    pub input: u64,
    /// Input read from the service's cache.
    pub cached_input: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Input written to the cache for an hour.
    pub cache_write_1h: u64,
    /// Output.
    pub output: u64,
}

impl Price {
    /// What a call costs, in nano-units. The sum is exact and rounded once, to the nearest nano-unit, halves up; beyond
    /// `u64` it is `u64::MAX`.
    ///
    /// `None` when the input or the output is not known and is not free. What was read from or written to a cache is part
    /// of the input and has its own price; services leave these counts out when there was nothing, so that a missing one
    /// is zero. Audio is priced as text, images and searches not at all.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<u64> {
        const MILLION: u128 = 1_000_000;
        let needed = |count: Option<u64>, free: bool| count.or(free.then_some(0));
        let all_input_free = [self.input, self.cached_input, self.cache_write, self.cache_write_1h] == [0; 4];
        let mut left = needed(usage.input_tokens, all_input_free)?;
        // A part is never more than the whole.
        let mut part = |count: Option<u64>| {
            let part = count.unwrap_or(0).min(left);
            left -= part;
            part
        };
        let cached = part(usage.cached_input_tokens);
        let written = part(usage.cache_write_tokens);
        let written_1h = part(usage.cache_write_1h_tokens);
        let output = needed(usage.output_tokens, self.output == 0)?;
        let sum = [
            (left, self.input),
            (cached, self.cached_input),
            (written, self.cache_write),
            (written_1h, self.cache_write_1h),
            (output, self.output),
        ]
        .into_iter()
        .fold(0_u128, |sum, (tokens, price)| sum.saturating_add(u128::from(tokens) * u128::from(price)));
        Some(u64::try_from(sum.saturating_add(MILLION / 2) / MILLION).unwrap_or(u64::MAX))
    }
}

/// Nano-units as a decimal string, without trailing zeros: 150,000,000 is `0.15`.
#[must_use]
pub fn decimal(nanos: u64) -> String {
    let (units, fraction) = (nanos / NANOS, nanos % NANOS);
    if fraction == 0 {
        return units.to_string();
    }
    let digits = format!("{fraction:0DECIMALS$}");
    format!("{units}.{}", digits.trim_end_matches('0'))
}

/// Reads a decimal string, exactly. The reverse of [`decimal`].
pub(crate) fn nanos(text: &str) -> Result<u64, Finding> {
    let invalid =
        |message: &str| Finding::new(message, "write a plain decimal in quotes, for example \"0.15\"");
    let (units, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(units) || !digits(fraction) {
        return Err(invalid("not a price"));
    }
    if fraction.len() > DECIMALS {
        return Err(invalid("a price has at most 9 digits after the point"));
    }
    format!("{units}{fraction:0<DECIMALS$}").parse().map_err(|_| invalid("the price is too large"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(input: &str, cached_input: &str, output: &str) -> Price {
        let nanos = |text| nanos(text).unwrap();
        Price {
            currency: "USD".to_owned(),
            input: nanos(input),
            cached_input: nanos(cached_input),
            cache_write: nanos(input),
            cache_write_1h: nanos(input),
            output: nanos(output),
        }
    }

    fn usage(input: u64, cached: u64, output: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            cached_input_tokens: Some(cached),
            output_tokens: Some(output),
            ..Usage::default()
        }
    }

    #[test]
    fn cached_tokens_are_counted_once_and_at_their_own_price_met_03() {
        let openai = price("3.00", "0.30", "15.00").cost(&usage(2_510, 500, 100)).unwrap();
        assert_eq!(decimal(openai), "0.00768");
        let price = Price { cache_write: nanos("3.75").unwrap(), ..price("3.00", "0.30", "15.00") };
        let anthropic = Usage { cache_write_tokens: Some(2_000), ..usage(2_510, 500, 100) };
        assert_eq!(decimal(price.cost(&anthropic).unwrap()), "0.00918");
    }

    #[test]
    fn what_is_kept_for_an_hour_has_its_own_price() {
        let price = Price { cache_write_1h: nanos("6.00").unwrap(), ..price("3.00", "0.30", "15.00") };
        let usage =
            Usage { cache_write_tokens: Some(100), cache_write_1h_tokens: Some(200), ..usage(1_000, 0, 0) };
        assert_eq!(decimal(price.cost(&usage).unwrap()), "0.0036");
    }

    #[test]
    fn costs_are_rounded_once_to_the_nearest_nano_unit() {
        let cheap = price("0.0005", "0", "0.0005");
        assert_eq!(cheap.cost(&usage(1, 0, 0)), Some(1), "half a nano-unit rounds up");
        assert_eq!(cheap.cost(&usage(1, 0, 1)), Some(1), "two halves are one, not two");
        assert_eq!(price("0.000499999", "0", "0").cost(&usage(1, 0, 0)), Some(0));
    }

    #[test]
    fn unknown_counts_make_an_unknown_cost_unless_they_are_free() {
        let unknown_output = Usage { output_tokens: None, ..usage(10, 0, 0) };
        let unknown_input = Usage { input_tokens: None, ..usage(0, 5, 10) };
        assert_eq!(price("1", "1", "2").cost(&unknown_output), None);
        assert_eq!(price("1", "1", "2").cost(&unknown_input), None);
        assert_eq!(price("1", "1", "0").cost(&unknown_output), Some(10_000), "embeddings have no output");
        assert_eq!(price("0", "0", "2").cost(&unknown_input), Some(20_000));
        assert_eq!(price("0", "1", "2").cost(&unknown_input), None, "part of it may not be free");
        assert_eq!(price("0", "0", "0").cost(&Usage::default()), Some(0));
        let unsaid = Usage { cached_input_tokens: None, ..usage(10, 0, 0) };
        assert_eq!(price("1", "0", "0").cost(&unsaid), Some(10_000));
    }

    #[test]
    fn more_cached_tokens_than_input_tokens_cost_no_more_than_the_input() {
        let price = price("1", "0.1", "0");
        assert_eq!(price.cost(&usage(10, 99, 0)), price.cost(&usage(10, 10, 0)));
    }

    #[test]
    fn absurd_counts_saturate() {
        let most = u64::MAX;
        let dear = Price {
            currency: "USD".to_owned(),
            input: most,
            cached_input: most,
            cache_write: most,
            cache_write_1h: most,
            output: most,
        };
        assert_eq!(dear.cost(&usage(most, 1, most)), Some(most));
    }

    #[test]
    fn only_plain_decimals_are_prices() {
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1,5",
            "0.0000000001",
            "99999999999999999999",
            "０",
            " 1",
        ] {
            assert!(nanos(bad).is_err(), "{bad:?}");
        }
        assert_eq!(nanos("007.50").unwrap(), 7_500_000_000);
        assert_eq!(nanos("0").unwrap(), 0);
    }

    proptest! {
        #[test]
        fn a_price_survives_being_written_and_read(value: u64) {
            prop_assert_eq!(nanos(&decimal(value)).unwrap(), value);
        }

        #[test]
        fn reading_a_price_never_panics(text in ".*") {
            let _ = nanos(&text);
        }
    }
}
