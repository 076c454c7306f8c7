//! Durations and sizes as documents write them.

use std::time::Duration;

use crate::problem::Finding;

/// The longest duration anything in a policy may have.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest size anything in a policy may have.
const LARGEST: u64 = 1 << 30;

/// Reads `250ms`, `2s`, `1m 30s`: above zero, at most a day.
pub(crate) fn duration(text: &str) -> Result<Duration, Finding> {
    let invalid = |message: String| Finding::new(message, "write a number and a unit: 250ms, 2s, 1m");
    let duration =
        humantime::parse_duration(text).map_err(|_| invalid("not a duration above zero".to_owned()))?;
    if duration.is_zero() {
        return Err(invalid("a duration must be above zero".to_owned()));
    }
    if duration > LONGEST {
        return Err(invalid("a duration must be at most 24h".to_owned()));
    }
    Ok(duration)
}

/// Reads `8MiB`, `512KiB`, `1000000B`: above zero, at most 1 GiB. In bytes.
pub(crate) fn size(text: &str) -> Result<usize, Finding> {
    let invalid = |message: &str| Finding::new(message, "write a whole number and a unit: 512KiB, 8MiB");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor: u64 = match text[unit_at..].trim_start() {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "" => return Err(invalid("a size needs a unit")),
        _ => return Err(invalid("not a size")),
    };
    let number: u64 = text[..unit_at].parse().map_err(|_| invalid("not a size"))?;
    match number.checked_mul(factor) {
        Some(0) => Err(invalid("a size must be above zero")),
        Some(bytes) if bytes <= LARGEST => {
            usize::try_from(bytes).map_err(|_| invalid("the size is too large"))
        }
        _ => Err(invalid("a size must be at most 1GiB")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_above_zero() {
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(duration("1m 30s").unwrap(), Duration::from_secs(90));
        for bad in ["", "5", "-1s", "0s", "s", "1 fortnight", "25h", "99999999999999999999s", "1e3s", "秒"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_binary_or_decimal_as_their_unit_says() {
        assert_eq!(size("8MiB").unwrap(), 8 << 20);
        assert_eq!(size("8MB").unwrap(), 8_000_000);
        assert_eq!(size("1 KiB").unwrap(), 1_024);
        for bad in
            ["", "8", "MiB", "-1MiB", "0B", "1.5MiB", "2GiB", "8mib", "99999999999999999999MiB", "８MiB"]
        {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }
}
