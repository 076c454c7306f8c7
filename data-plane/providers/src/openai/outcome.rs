//! What an answer means for its target: one table for status codes, one for the names that say more than the status.
//!
//! Status codes do not separate "slow down", "come back never" and "the house is on fire": several services send all
//! three as 429. So a known code or type in the body wins over the status.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use penstock_model::outcome::Outcome;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::error_body::VendorError;
use crate::retry_after;

/// An answer, classified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// What it means.
    pub outcome: Outcome,
    /// How long the vendor wants to be left alone, at most [`retry_after::CAP`].
    pub retry_after: Option<Duration>,
    /// What the vendor says went wrong; empty for a good answer. When the outcome is
    /// [`Outcome::CredentialRejected`] its message is about our account and not for the client.
    pub error: VendorError,
}

/// Codes and types that mean the same under any status. A name also covers its own sub-codes: `Throttling` stands for
/// `Throttling.RateQuota` too. Compared without regard to case.
const BY_NAME: &[(Outcome, &[&str])] = &[
    (
        Outcome::CredentialRejected,
        &[
            // OpenAI
            "insufficient_quota",
            "invalid_api_key",
            "credit_balance_exhausted",
            "billing_hard_limit_reached",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
            // Moonshot, DashScope
            "exceeded_current_quota_error",
            "AllocationQuota.FreeTierOnly",
            "Arrearage",
            // Ark
            "AccountOverdueError",
            "AccessDenied",
            "QuotaExceeded",
            // Zhipu: credentials, arrears
            "1000",
            "1001",
            "1002",
            "1003",
            "1004",
            "1110",
            "1111",
            "1112",
            "1113",
            "1220",
            // Anthropic's words, used by some OpenAI-shaped services
            "authentication_error",
            "permission_error",
            "billing_error",
        ],
    ),
    (
        Outcome::Overloaded,
        &[
            "server_is_overloaded",
            "engine_overloaded_error",
            "ServerOverloaded",
            "overloaded_error",
            "overloaded",
            "insufficient_system_resource",
            // Zhipu: platform, model
            "1305",
            "1312",
            // Qianfan, old: busy
            "336100",
        ],
    ),
    (
        Outcome::RateLimited,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_reached_error",
            "slow_down",
            "rpm_rate_limit_exceeded",
            "tpm_rate_limit_exceeded",
            "RateLimitExceeded",
            "Throttling",
            // Zhipu: concurrency, frequency, daily, plan windows
            "1302",
            "1303",
            "1304",
            "1308",
            "1310",
            // Qianfan, old: queries per second and per minute
            "18",
            "336501",
            "336502",
        ],
    ),
    (Outcome::ServerError, &["1234", "network_error"]),
];

/// Names that mean the client's fault when there is no status to say so, inside a stream that began as 200.
const CLIENT_NAMES: &[&str] = &[
    "invalid_request_error",
    "context_length_exceeded",
    "content_filter",
    "content_policy_violation",
    "DataInspectionFailed",
    "1301",
];

/// Classifies a whole answer. `body` may be cut to some tens of kilobytes when the status is no success; a successful
/// one must be complete, or it is taken for broken.
#[must_use]
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Classified {
    if status.is_success() {
        return classify_success(body);
    }
    let error = VendorError::read(body);
    let outcome = by_name(&error).unwrap_or_else(|| by_status(status.as_u16()));
    Classified { outcome, retry_after: retry_after::from_headers(headers, now), error }
}

/// A 200 can still be an error object, or no JSON.
fn classify_success(body: &[u8]) -> Classified {
    let answer = |outcome, error| Classified { outcome, retry_after: None, error };
    if !is_json_object(body) {
        return answer(Outcome::InvalidResponse, VendorError::default());
    }
    match in_band(body) {
        Some((outcome, error)) => answer(outcome, error),
        None => answer(Outcome::Ok, VendorError::default()),
    }
}

fn is_json_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
        && str::from_utf8(body).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// The error that a JSON object sent with status 200, whole or as one event of a stream, reports at its top level.
pub(crate) fn in_band(json: &[u8]) -> Option<(Outcome, VendorError)> {
    #[derive(Deserialize)]
    struct Top<'a> {
        #[serde(borrow)]
        error: Option<&'a RawValue>,
        #[serde(borrow)]
        error_code: Option<&'a RawValue>,
    }
    // Nearly every answer is without: do not parse it to find that out.
    memchr::memmem::find(json, b"\"error")?;
    let top: Top<'_> = serde_json::from_slice(json).ok()?;
    let says_so = |value: &&RawValue| !matches!(value.get(), "\"\"" | "{}" | "[]" | "false" | "0");
    top.error.filter(says_so).or(top.error_code.filter(says_so))?;
    let error = VendorError::read(json);
    Some((named_or_server_error(&error), error))
}

/// The outcome of an error that comes without a status of its own.
pub(crate) fn named_or_server_error(error: &VendorError) -> Outcome {
    let names = || [error.code.as_deref(), error.kind.as_deref()].into_iter().flatten();
    let status = names().find_map(|name| name.parse().ok()).filter(|code| (400..600).contains(code));
    by_name(error)
        .or_else(|| status.map(by_status))
        .or_else(|| names().any(|name| CLIENT_NAMES.contains(&name)).then_some(Outcome::ClientError))
        .unwrap_or(Outcome::ServerError)
}

fn by_name(error: &VendorError) -> Option<Outcome> {
    [error.code.as_deref(), error.kind.as_deref()].into_iter().flatten().find_map(|name| {
        BY_NAME
            .iter()
            .find(|(_, names)| names.iter().any(|known| covers(known, name)))
            .map(|(outcome, _)| *outcome)
    })
}

fn covers(known: &str, name: &str) -> bool {
    match name.get(..known.len()) {
        Some(start) => {
            start.eq_ignore_ascii_case(known) && matches!(name.as_bytes().get(known.len()), None | Some(b'.'))
        }
        None => false,
    }
}

fn by_status(status: u16) -> Outcome {
    match status {
        401..=403 => Outcome::CredentialRejected,
        // 408 and 424 report a model that took too long or broke, not a fault of the request.
        408 | 424 => Outcome::ServerError,
        429 => Outcome::RateLimited,
        400..500 => Outcome::ClientError,
        503 | 529 => Outcome::Overloaded,
        500..600 => Outcome::ServerError,
        // A redirect is not followed: it would carry the credential to another host.
        _ => Outcome::InvalidResponse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, body: &str) -> Outcome {
        let status = StatusCode::from_u16(status).unwrap();
        classify(status, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH).outcome
    }

    #[test]
    fn the_status_decides_when_the_body_says_nothing_more() {
        for (status, expected) in [
            (400, Outcome::ClientError),
            (401, Outcome::CredentialRejected),
            (402, Outcome::CredentialRejected),
            (403, Outcome::CredentialRejected),
            (404, Outcome::ClientError),
            (408, Outcome::ServerError),
            (413, Outcome::ClientError),
            (422, Outcome::ClientError),
            (424, Outcome::ServerError),
            (429, Outcome::RateLimited),
            (500, Outcome::ServerError),
            (502, Outcome::ServerError),
            (503, Outcome::Overloaded),
            (504, Outcome::ServerError),
            (529, Outcome::Overloaded),
            (302, Outcome::InvalidResponse),
            (999, Outcome::InvalidResponse),
        ] {
            for body in ["", "<html>x</html>", r#"{"error":{"message":"m","type":"t","code":null}}"#] {
                assert_eq!(outcome(status, body), expected, "{status} {body}");
            }
        }
    }

    #[test]
    fn the_three_meanings_of_429_are_told_apart() {
        let of = |code: &str| outcome(429, &format!(r#"{{"error":{{"message":"m","code":{code}}}}}"#));
        assert_eq!(of(r#""rate_limit_exceeded""#), Outcome::RateLimited);
        assert_eq!(of(r#""1302""#), Outcome::RateLimited);
        assert_eq!(of(r#""RateLimitExceeded.EndpointTPMExceeded""#), Outcome::RateLimited);
        assert_eq!(of(r#""insufficient_quota""#), Outcome::CredentialRejected);
        assert_eq!(of(r#""1113""#), Outcome::CredentialRejected);
        assert_eq!(of(r#""ServerOverloaded""#), Outcome::Overloaded);
        assert_eq!(of(r#"1305"#), Outcome::Overloaded);
        let by_type = r#"{"error":{"message":"m","type":"insufficient_quota","code":null}}"#;
        assert_eq!(outcome(429, by_type), Outcome::CredentialRejected);
        assert_eq!(of(r#""ThrottlingX""#), Outcome::RateLimited, "an unknown name leaves it to the status");
    }

    #[test]
    fn a_success_must_be_a_whole_json_object_without_an_error() {
        assert_eq!(outcome(200, r#"{"choices":[],"error":null}"#), Outcome::Ok);
        assert_eq!(outcome(200, r#"{"choices":[],"x":{"error":{"code":1}}}"#), Outcome::Ok);
        assert_eq!(outcome(200, r#"{"choices":[],"error":"","error_code":0}"#), Outcome::Ok);
        assert_eq!(outcome(200, r#"{"choices":["#), Outcome::InvalidResponse);
        assert_eq!(outcome(200, "garbage"), Outcome::InvalidResponse);
        assert_eq!(outcome(200, ""), Outcome::InvalidResponse);
        assert_eq!(outcome(200, r#"{"error":{"message":"queue full","code":503}}"#), Outcome::Overloaded);
        assert_eq!(outcome(200, r#"{"error_code":336501,"error_msg":"limit"}"#), Outcome::RateLimited);
        assert_eq!(outcome(200, r#"{"error":"boom"}"#), Outcome::ServerError);
        assert_eq!(outcome(200, r#"{"error":{"type":"invalid_request_error"}}"#), Outcome::ClientError);
    }

    #[test]
    fn the_vendors_wait_and_words_are_handed_on() {
        let headers =
            [(http::header::RETRY_AFTER, http::HeaderValue::from_static("7"))].into_iter().collect();
        let body = br#"{"error":{"message":"busy","type":"requests","code":"rate_limit_exceeded"}}"#;
        let classified = classify(StatusCode::TOO_MANY_REQUESTS, &headers, body, SystemTime::UNIX_EPOCH);
        assert_eq!(classified.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(classified.error.message.as_deref(), Some("busy"));
    }

    #[test]
    fn no_name_stands_in_the_table_twice() {
        let mut names: Vec<_> = BY_NAME.iter().flat_map(|(_, names)| *names).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
