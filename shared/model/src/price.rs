//! Money as whole numbers: prices in nano-units of a currency per million tokens, costs in nano-units.
//!
//! A nano-unit is 1e-9 of the currency's unit. Binary floats never touch money: prices are decimal strings in the
//! document and integers from there on.

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
    /// Cached input.
    pub cached_input: u64,
    /// Output.
    pub output: u64,
}

impl Price {
    /// What a call costs, in nano-units.
    ///
    /// `input` counts all input tokens, `cached` those of them the service had cached (as OpenAI reports them:
    /// `prompt_tokens` and `cached_tokens`), `output` the tokens of the answer. The sum is exact and rounded once, to
    /// the nearest nano-unit, halves up. A cost beyond `u64` is `u64::MAX`.
    #[must_use]
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> u64 {
        const MILLION: u128 = 1_000_000;
        let cached = cached.min(input);
        let product = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = product(input - cached, self.input)
            .saturating_add(product(cached, self.cached_input))
            .saturating_add(product(output, self.output));
        u64::try_from(sum.saturating_add(MILLION / 2) / MILLION).unwrap_or(u64::MAX)
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
            output: nanos(output),
        }
    }

    /// MET-03, the second reply.
    #[test]
    fn cached_tokens_are_counted_once_and_at_their_own_price() {
        assert_eq!(decimal(price("3.00", "0.30", "15.00").cost(2_510, 500, 100)), "0.00768");
    }

    #[test]
    fn costs_are_rounded_once_to_the_nearest_nano_unit() {
        let cheap = price("0.0005", "0", "0.0005");
        assert_eq!(cheap.cost(1, 0, 0), 1, "half a nano-unit rounds up");
        assert_eq!(cheap.cost(1, 0, 1), 1, "two halves are one, not two");
        assert_eq!(price("0.000499999", "0", "0").cost(1, 0, 0), 0);
    }

    #[test]
    fn more_cached_tokens_than_input_tokens_cost_no_more_than_the_input() {
        assert_eq!(price("1", "0.1", "0").cost(10, 99, 0), price("1", "0.1", "0").cost(10, 10, 0));
    }

    #[test]
    fn absurd_counts_saturate() {
        let dear =
            Price { currency: "USD".to_owned(), input: u64::MAX, cached_input: u64::MAX, output: u64::MAX };
        assert_eq!(dear.cost(u64::MAX, 1, u64::MAX), u64::MAX);
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
