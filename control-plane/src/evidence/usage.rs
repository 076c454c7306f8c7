//! Attempts, tokens and money of one target over the last minute.

use penstock_proto::fleet::v1::Row;
use penstock_stats::SecondRing;

/// Sums over some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) attempts: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Nano-units of `currency`.
    pub(crate) cost_nanos: i64,
    /// Empty when nothing was paid.
    pub(crate) currency: String,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Usage {
    seconds: SecondRing<Counts, 60>,
    /// Of the newest costs.
    currency: String,
    /// Costs of earlier seconds are in another currency.
    currency_since: u64,
}

#[derive(Debug, Default)]
struct Counts {
    attempts: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_nanos: i64,
}

impl Usage {
    pub(super) fn add(&mut self, row: &Row, second: u64) {
        if !row.currency.is_empty() && row.currency != self.currency {
            self.currency.clone_from(&row.currency);
            self.currency_since = second;
            if let Some(counts) = self.seconds.slot(second) {
                counts.cost_nanos = 0;
            }
        }
        if let Some(counts) = self.seconds.slot(second) {
            counts.attempts += row.attempts;
            counts.input_tokens += row.input_tokens;
            counts.output_tokens += row.output_tokens;
            counts.cost_nanos = counts.cost_nanos.saturating_add(row.cost_nanos);
        }
    }

    pub(super) fn minute(&self, now: u64) -> Used {
        let mut used = Used { currency: self.currency.clone(), ..Used::default() };
        for (age, counts) in self.seconds.last(now, 60) {
            used.attempts += counts.attempts;
            used.input_tokens += counts.input_tokens;
            used.output_tokens += counts.output_tokens;
            if now - age >= self.currency_since {
                used.cost_nanos = used.cost_nanos.saturating_add(counts.cost_nanos);
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paid(currency: &str, cost_nanos: i64) -> Row {
        Row { attempts: 1, currency: currency.to_owned(), cost_nanos, ..Row::default() }
    }

    #[test]
    fn usage_is_that_of_the_last_minute() {
        let mut usage = Usage::default();
        for second in 0..100 {
            usage.add(&Row { input_tokens: 10, output_tokens: 2, ..paid("USD", 5) }, second);
        }
        let used = usage.minute(99);
        assert_eq!((used.attempts, used.input_tokens, used.output_tokens), (60, 600, 120));
        assert_eq!((used.cost_nanos, used.currency.as_str()), (300, "USD"));
        assert_eq!(usage.minute(158).attempts, 1);
        assert_eq!(usage.minute(159).attempts, 0);
    }

    #[test]
    fn money_of_two_currencies_is_not_added_up() {
        let mut usage = Usage::default();
        usage.add(&paid("USD", 100), 0);
        usage.add(&paid("USD", 100), 5);
        usage.add(&paid("CNY", 700), 5);
        usage.add(&paid("", 0), 6);
        let used = usage.minute(6);
        assert_eq!((used.cost_nanos, used.currency.as_str(), used.attempts), (700, "CNY", 4));
    }
}
