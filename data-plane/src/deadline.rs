//! When a request's time is up: what the route allows, or less where the client says so.

use std::time::Duration;

use http::HeaderMap;
use penstock_providers::exchange::Field;

use crate::clock::Moment;
use crate::error::Refusal;

/// Where a client says how long it will wait.
const TIMEOUT: &str = "x-request-timeout";

/// The deadline of a request that arrived at `started` on a route that allows `total`.
///
/// # Errors
/// When the client's own limit cannot be read: it would rather know than wait for longer than it meant.
pub(crate) fn deadline(headers: &HeaderMap, started: Moment, total: Duration) -> Result<Moment, Refusal> {
    let wait = match headers.get(TIMEOUT) {
        None => total,
        Some(value) => value.to_str().ok().and_then(parse).ok_or_else(wrong)?.min(total),
    };
    Ok(Moment(started.0 + wait.as_micros() as u64))
}

fn wrong() -> Refusal {
    Refusal::InvalidField(Field::new(TIMEOUT, "is a time above zero: 250ms, 2s, 1m, or seconds as a number"))
}

/// `250ms`, `1.5s`, `2m`; a number alone is seconds.
fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match &text[unit_at..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    let seconds = text[..unit_at].trim_end().parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_of_route_and_client_counts() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(TIMEOUT, value.parse().unwrap());
            deadline(&headers, Moment(1_000), Duration::from_secs(10)).ok().map(|at| at.0 - 1_000)
        };
        assert_eq!(deadline(&HeaderMap::new(), Moment(0), Duration::from_secs(10)).unwrap().0, 10_000_000);
        assert_eq!(of("250ms"), Some(250_000));
        assert_eq!(of("1.5"), Some(1_500_000));
        assert_eq!(of("2 s"), Some(2_000_000));
        assert_eq!(of("1m"), Some(10_000_000));
        assert_eq!(of("1e300"), None);
        for bad in ["", "0", "-1", "soon", "1h", "nan", "inf", "0ms", "1 s s"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
