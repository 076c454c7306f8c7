//! How long a vendor wants to be left alone (RFC 9110 section 10.2.3, and what vendors really send).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// The wait that the headers ask for, however long: [`crate::rate_limit`] bounds it. `retry-after-ms` wins over `retry-after`, being finer. A date
/// that has just passed means now. What cannot be read is no hint at all.
#[must_use]
pub fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(seconds).map(|millis| millis / 1000.0);
    millis.map(duration).or_else(|| text(RETRY_AFTER.as_str()).and_then(|value| parse(value, now)))
}

/// The value of one `retry-after` header: seconds, with a fraction or without, or an HTTP date.
#[must_use]
pub fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    if let Some(seconds) = seconds(value) {
        return Some(duration(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// A plain number, with a fraction or without.
pub(crate) fn seconds(value: &str) -> Option<f64> {
    // `f64::from_str` also takes "inf", "nan" and exponents, none of which a vendor means.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if digits { value.parse().ok() } else { None }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn wait(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        from_headers(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
    }

    fn date(offset: i64) -> String {
        let seconds = NOW.checked_add_signed(offset).unwrap();
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn every_form_of_retry_after_is_understood_res_01() {
        let ms = Duration::from_millis;
        assert_eq!(wait(&[("retry-after", "2")]), Some(ms(2000)));
        assert_eq!(wait(&[("retry-after", "0")]), Some(ms(0)));
        assert_eq!(wait(&[("retry-after", "1.5")]), Some(ms(1500)));
        assert_eq!(wait(&[("retry-after", &date(3))]), Some(ms(3000)));
        assert_eq!(wait(&[("retry-after", &date(-2))]), Some(ms(0)));
        assert_eq!(wait(&[("retry-after", "86400")]), Some(ms(86_400_000)));
        assert_eq!(wait(&[("retry-after", &date(86400))]), Some(ms(86_400_000)));
        assert_eq!(wait(&[("retry-after", "1"), ("retry-after-ms", "250")]), Some(ms(250)));
    }

    #[test]
    fn what_cannot_be_read_is_no_hint_res_01() {
        for value in ["-1", "soon", "", "inf", "NaN", "1e3", "1.2.3", "."] {
            assert_eq!(wait(&[("retry-after", value)]), None, "{value}");
        }
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after-ms", "x"), ("retry-after", "1")]), Some(Duration::from_secs(1)));
        let huge = "9".repeat(400);
        assert_eq!(wait(&[("retry-after", &huge)]), Some(Duration::MAX));
    }
}
