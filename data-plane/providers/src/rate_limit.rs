//! How much of a rate limit is left, and how long to wait for more: one hint out of every form that vendors send.
//!
//! The first of these that can be read decides how long:
//!
//! 1. `retry-after-ms`, then `retry-after` ([`crate::retry_after`]);
//! 2. what the error's body says ([`VendorError::retry_delay`]);
//! 3. for a rate limit, a reset of no particular limit (`x-ratelimit-reset`, `ratelimit-reset`);
//! 4. for a rate limit, the resets of particular limits (`x-ratelimit-reset-requests`,
//!    `anthropic-ratelimit-input-tokens-reset`): the last of those that are used up, or the first of all when none says that
//!    it is.
//!
//! A reset is a number of seconds, a duration (`6m0s`, `120ms`), an instant (RFC 3339), or seconds or milliseconds since
//! 1970. Numbers below zero, limits of zero and anything else that makes no sense are ignored: Azure sends both.
//!
//! What comes out is at least [`FLOOR`] and at most [`CAP`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;

use crate::retry_after;
use crate::vendor_error::VendorError;

/// The shortest wait. A vendor that says zero has refused a request all the same; coming back in the same instant is what
/// it has just refused.
pub const FLOOR: Duration = Duration::from_millis(100);

/// The longest wait. Vendors have asked for days; a wrong header must not take a key away for longer than this. A quota
/// that really is used up until midnight costs one refused request an hour.
pub const CAP: Duration = Duration::from_secs(60 * 60);

/// A number of seconds above this is an instant, not a wait.
const EPOCH: f64 = 30.0 * 86_400.0;
/// And above this, an instant in milliseconds.
const EPOCH_MILLIS: f64 = 1e11;

/// What an answer says of the limits of the key it was asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimitHint {
    /// How long to leave it alone; `None` when it does not say.
    pub wait: Option<Duration>,
    /// Requests that are left: the fewest, where there are several limits.
    pub requests_left: Option<u64>,
    /// Tokens that are left: the fewest, where there are several limits.
    pub tokens_left: Option<u64>,
}

impl RateLimitHint {
    /// Reads the headers of an answer that is no rate limit. Resets are not waits then: they say when a limit that still
    /// has room will have all of it.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap, now: SystemTime) -> Self {
        Self { wait: retry_after::from_headers(headers, now).map(bounded), ..left(&limits(headers, now)) }
    }

    /// Reads the headers of a rate limit, and what its body says.
    #[must_use]
    pub fn of_rate_limit(headers: &HeaderMap, error: &VendorError, now: SystemTime) -> Self {
        let limits = limits(headers, now);
        let wait = retry_after::from_headers(headers, now).or(error.retry_delay).or_else(|| reset(&limits));
        Self { wait: wait.map(bounded), ..left(&limits) }
    }
}

/// `wait` within [`FLOOR`] and [`CAP`].
pub(crate) fn bounded(wait: Duration) -> Duration {
    wait.clamp(FLOOR, CAP)
}

/// One limit: its name is what is left of a header's name without the family and without what is stated.
#[derive(Debug, Default)]
struct Limit {
    name: String,
    limit: Option<f64>,
    remaining: Option<f64>,
    reset: Option<Duration>,
}

/// All limits that the headers tell of. Those of zero or less are nonsense.
fn limits(headers: &HeaderMap, now: SystemTime) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (name, value) in headers {
        let Some((family, rest)) = name.as_str().split_once("ratelimit") else { continue };
        let (Some(stated), Ok(value)) = (stated(rest), value.to_str()) else { continue };
        let value = value.trim();
        let name = format!("{family}{}", rest.replacen(stated, "", 1).replace('-', ""));
        let index = limits.iter().position(|limit| limit.name == name).unwrap_or_else(|| {
            limits.push(Limit { name, ..Limit::default() });
            limits.len() - 1
        });
        match stated {
            "reset" => limits[index].reset = instant_or_duration(value, now),
            "remaining" => limits[index].remaining = value.parse().ok().filter(|left| *left >= 0.0),
            _ => limits[index].limit = value.parse().ok(),
        }
    }
    limits.retain(|limit| limit.limit.is_none_or(|limit| limit > 0.0));
    limits
}

fn stated(name: &str) -> Option<&'static str> {
    let mut words = name.split('-');
    words.find_map(|word| ["reset", "remaining", "limit"].into_iter().find(|known| *known == word))
}

fn left(limits: &[Limit]) -> RateLimitHint {
    let fewest = |of: &str| {
        let left = limits.iter().filter(|limit| limit.name.contains(of)).filter_map(|limit| limit.remaining);
        left.reduce(f64::min).map(|left| left as u64)
    };
    RateLimitHint { wait: None, requests_left: fewest("requests"), tokens_left: fewest("tokens") }
}

fn reset(limits: &[Limit]) -> Option<Duration> {
    let is_particular = |limit: &&Limit| limit.name.contains("requests") || limit.name.contains("tokens");
    let general = limits.iter().filter(|limit| !is_particular(limit)).find_map(|limit| limit.reset);
    let used_up = || {
        let all = limits.iter().filter(|limit| limit.remaining == Some(0.0));
        all.filter_map(|limit| limit.reset).max()
    };
    general
        .or_else(used_up)
        .or_else(|| limits.iter().filter(is_particular).filter_map(|limit| limit.reset).min())
}

fn instant_or_duration(value: &str, now: SystemTime) -> Option<Duration> {
    let until = |instant: SystemTime| instant.duration_since(now).unwrap_or(Duration::ZERO);
    if let Some(number) = retry_after::seconds(value) {
        return match number {
            ..=EPOCH => Duration::try_from_secs_f64(number).ok(),
            ..=EPOCH_MILLIS => Some(until(UNIX_EPOCH + Duration::try_from_secs_f64(number).ok()?)),
            _ => {
                let since_1970 = Duration::try_from_secs_f64(number / 1000.0).ok()?;
                UNIX_EPOCH.checked_add(since_1970).map(until)
            }
        };
    }
    duration(value).or_else(|| humantime::parse_rfc3339_weak(value).ok().map(until))
}

/// Reads a duration as programs in Go print it, and as protobuf's JSON does: `6m0s`, `1h2m3.5s`, `120ms`, `34.07s`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c != '.' && !c.is_ascii_digit())?);
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn hint(headers: &[(&str, &str)]) -> RateLimitHint {
        let pair = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        RateLimitHint::of_rate_limit(&headers.iter().map(pair).collect(), &VendorError::default(), now)
    }

    fn wait(headers: &[(&str, &str)]) -> Option<u128> {
        hint(headers).wait.map(|wait| wait.as_millis())
    }

    #[test]
    fn every_form_of_reset_is_understood() {
        for (value, expected) in [
            ("1s", 1_000),
            ("6m0s", 360_000),
            ("120ms", 120),
            ("1h0m0s", 3_600_000),
            ("2m59.56s", 179_560),
            ("7.66s", 7_660),
            ("12", 12_000),
            ("0.5", 500),
            ("1800000042", 42_000),
            ("1800000042500", 42_500),
            ("2027-01-15T08:00:07Z", 7_000),
            ("2027-01-15T08:00:07.250Z", 7_250),
            ("0", 100),
            ("1799999990", 100),
            ("2027-01-15T07:59:00Z", 100),
            ("3d", 3_600_000),
            ("86400", 3_600_000),
        ] {
            assert_eq!(wait(&[("x-ratelimit-reset-requests", value)]), Some(expected), "{value}");
        }
        for nonsense in [
            "-1",
            "",
            "soon",
            "s",
            "5x",
            "1..2s",
            "NaN",
            "inf",
            "1e5",
            "6m0",
            "µ",
            "2027-13-01T00:00:00Z",
            "9999999999999999999999",
        ] {
            assert_eq!(wait(&[("x-ratelimit-reset-requests", nonsense)]), None, "{nonsense}");
        }
    }

    #[test]
    fn what_is_said_most_plainly_wins_res_01() {
        let all = [
            ("x-ratelimit-reset-tokens", "4s"),
            ("x-ratelimit-reset-requests", "3s"),
            ("x-ratelimit-reset", "5"),
            ("retry-after", "2"),
            ("retry-after-ms", "1500"),
        ];
        assert_eq!(wait(&all), Some(1_500));
        assert_eq!(wait(&all[..4]), Some(2_000));
        assert_eq!(wait(&all[..3]), Some(5_000));
        assert_eq!(wait(&all[..2]), Some(3_000), "the first, when none is known to be used up");
        assert_eq!(wait(&[("retry-after", "soon"), ("ratelimit-reset", "6")]), Some(6_000));
        assert_eq!(wait(&[]), None);
        let body = VendorError { retry_delay: Some(Duration::from_secs(9)), ..VendorError::default() };
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-ratelimit-reset"), 5.into())]);
        let both = RateLimitHint::of_rate_limit(&headers, &body, UNIX_EPOCH);
        assert_eq!(both.wait, Some(Duration::from_secs(9)));
    }

    #[test]
    fn the_limit_that_is_used_up_decides() {
        let headers = [
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "40s"),
        ];
        let hint = hint(&headers);
        assert_eq!(hint.wait, Some(Duration::from_secs(40)));
        assert_eq!((hint.requests_left, hint.tokens_left), (Some(7), Some(0)));
    }

    #[test]
    fn anthropics_mistrals_and_qianfans_limits_are_read() {
        let hint_of = hint;
        let hint = hint_of(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2027-01-15T08:00:01Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2027-01-15T08:00:30Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "8000"),
            ("anthropic-ratelimit-output-tokens-reset", "2027-01-15T08:00:00Z"),
        ]);
        assert_eq!(hint.wait, Some(Duration::from_secs(30)));
        assert_eq!((hint.requests_left, hint.tokens_left), (Some(49), Some(0)));

        let hint = hint_of(&[
            ("x-ratelimit-remaining-tokens-minute", "1200"),
            ("x-ratelimit-remaining-tokens-month", "900000"),
        ]);
        assert_eq!((hint.wait, hint.tokens_left), (None, Some(1_200)));

        let hint =
            hint_of(&[("X-Ratelimit-Limit-Requests", "300"), ("X-Ratelimit-Remaining-Requests", "299")]);
        assert_eq!(hint.requests_left, Some(299));
    }

    #[test]
    fn nonsense_is_ignored() {
        let hint = hint(&[
            ("x-ratelimit-limit-requests", "0"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "90s"),
            ("x-ratelimit-limit-tokens", "-1"),
            ("x-ratelimit-remaining-tokens", "-1"),
        ]);
        assert_eq!(hint, RateLimitHint::default());
    }

    #[test]
    fn resets_are_no_waits_when_the_answer_is_no_rate_limit() {
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static("x-ratelimit-reset-tokens"), HeaderValue::from_static("6m0s")),
            (HeaderName::from_static("x-ratelimit-remaining-tokens"), HeaderValue::from_static("12")),
        ]);
        let hint = RateLimitHint::of_headers(&headers, UNIX_EPOCH);
        assert_eq!((hint.wait, hint.tokens_left), (None, Some(12)));
    }

    proptest! {
        #[test]
        fn no_header_causes_a_panic_or_a_wait_out_of_bounds(value in "[ -~]{0,24}", name in 0..4_usize) {
            let name = ["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"][name];
            if let Some(wait) = hint(&[(name, &value)]).wait {
                prop_assert!((FLOOR..=CAP).contains(&wait));
            }
        }

        #[test]
        fn a_duration_is_read_as_it_is_written(hours in 0..20_u32, minutes in 0..60_u32, millis in 0..60_000_u32) {
            let text = format!("{hours}h{minutes}m{}.{:03}s", millis / 1000, millis % 1000);
            let expected = u128::from(hours * 3_600_000 + minutes * 60_000 + millis);
            prop_assert!(duration(&text).unwrap().as_millis().abs_diff(expected) <= 1);
        }
    }
}
