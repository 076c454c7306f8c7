//! Times, durations, shares and money.

use std::time::{Duration, SystemTime};

/// `2026-12-01 09:30:12Z`; `-` for zero.
pub(crate) fn instant(unix_ms: i64) -> String {
    match u64::try_from(unix_ms) {
        Ok(ms) if ms > 0 => {
            humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
                .to_string()
                .replace('T', " ")
        }
        _ => "-".to_owned(),
    }
}

/// `12s ago`; `-` for zero. Clocks that differ never give a negative age.
pub(crate) fn ago(unix_ms: i64, now_unix_ms: i64) -> String {
    if unix_ms == 0 {
        return "-".to_owned();
    }
    let seconds = (now_unix_ms - unix_ms).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s ago"),
        120..7200 => format!("{}m ago", seconds / 60),
        7200..172_800 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// `0.42 ms`, `180 ms`, `2.50 s`.
pub(crate) fn micros(us: u64) -> String {
    seconds(us as f64 / 1e6)
}

/// The same, of seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        10.0..1000.0 => format!("{ms:.0} ms"),
        _ => format!("{seconds:.2} s"),
    }
}

/// The same; `-` for zero, which stands for "not known".
pub(crate) fn known_seconds(value: f64) -> String {
    if value > 0.0 { seconds(value) } else { "-".to_owned() }
}

/// `98.5 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `0.0123 USD`; `-` where no price is known.
pub(crate) fn money(nanos: i64, currency: &str) -> String {
    if currency.is_empty() {
        return "-".to_owned();
    }
    format!("{:.4} {currency}", nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_ages_read_as_people_write_them() {
        assert_eq!(instant(1_796_117_412_345), "2026-12-01 09:30:12Z");
        assert_eq!(instant(0), "-");
        assert_eq!(ago(1_000, 4_000), "3s ago");
        assert_eq!(ago(5_000, 4_000), "0s ago");
        assert_eq!(ago(1, 7_200_001), "2h ago");
        assert_eq!(ago(0, 4_000), "-");
    }

    #[test]
    fn durations_keep_three_digits() {
        assert_eq!(micros(420), "0.42 ms");
        assert_eq!(micros(180_000), "180 ms");
        assert_eq!(micros(2_500_000), "2.50 s");
        assert_eq!(known_seconds(0.0), "-");
    }

    #[test]
    fn money_without_a_price_is_unknown_and_not_free() {
        assert_eq!(money(12_300_000, "USD"), "0.0123 USD");
        assert_eq!(money(0, ""), "-");
    }
}
