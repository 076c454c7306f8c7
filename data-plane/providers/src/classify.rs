//! What an error means: the one place that says it.
//!
//! Status codes do not separate "slow down", "come back never" and "the house is on fire": at least five vendors send all
//! three as 429. So the first of these that matches decides:
//!
//! 1. the rules of the vendor's file, in their order;
//! 2. the rules common to all vendors ([`common_errors`]);
//! 3. the status, or the one that a numeric code in the body stands for.
//!
//! The rules are data: `shared/model/vendors/*.yaml` and `shared/model/errors.yaml`.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use penstock_model::Vendor;
use penstock_model::outcome::Outcome;
use penstock_model::vendor::{ErrorRule, Meaning, common_errors};
use serde::de::IgnoredAny;

use crate::rate_limit::{RateLimitHint, bounded};
use crate::vendor_error::VendorError;

/// An error, classified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// What is to be done about it.
    pub meaning: Meaning,
    /// How the attempt ended.
    pub outcome: Outcome,
    /// What it says of the key's limits.
    pub limit: RateLimitHint,
    /// What the vendor says went wrong. When the outcome is [`Outcome::CredentialRejected`] its message is about our
    /// account and not for the client.
    pub error: VendorError,
}

/// Names that mean the client's fault when there is no status to say so, inside a stream that began as 200.
const CLIENT_NAMES: &[&str] = &[
    "invalid_request_error",
    "BadRequestError",
    "not_found_error",
    "request_too_large",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
];

/// Says what `error` means, which `vendor` sent with `status` and `headers`. Inside a stream, or in a 200, there is no
/// status; pass the one that the dialect says it stands for, where it does.
#[must_use]
pub fn classify(
    vendor: &Vendor,
    status: Option<StatusCode>,
    headers: &HeaderMap,
    mut error: VendorError,
    now: SystemTime,
) -> Classified {
    if error.code.is_none() {
        error.code = aws_type(headers).or_else(|| error.kind.as_deref().and_then(aws_name));
    }
    let mut rules = vendor.errors.iter().chain(common_errors());
    let rule = rules.find(|rule| applies(rule, status, headers, &error));
    let meaning = rule.map_or_else(|| by_status(status, &error), |rule| rule.means);
    let mut limit = match meaning {
        Meaning::RateLimited => RateLimitHint::of_rate_limit(headers, &error, now),
        _ => RateLimitHint::of_headers(headers, now),
    };
    let usual = rule.and_then(|rule| rule.wait).map(|seconds| bounded(Duration::from_secs(seconds.into())));
    limit.wait = limit.wait.or(usual);
    Classified { meaning, outcome: outcome(meaning, status), limit, error }
}

/// The failure that an answer with a status of success is nevertheless; `None` when it is none. `body` must be complete:
/// what is no whole JSON object is taken for broken.
#[must_use]
pub fn classify_success(vendor: &Vendor, body: &[u8]) -> Option<Classified> {
    let classify = |error| classify(vendor, None, &HeaderMap::new(), error, SystemTime::UNIX_EPOCH);
    if !is_json_object(body) {
        let broken = classify(VendorError::default());
        return Some(Classified { outcome: Outcome::InvalidResponse, ..broken });
    }
    VendorError::in_band(body).map(classify)
}

fn is_json_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
        && str::from_utf8(body).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// What `error`, which came without a status, means with vendors in general.
pub(crate) fn in_general(error: &VendorError) -> Outcome {
    let rule = common_errors().iter().find(|rule| applies(rule, None, &HeaderMap::new(), error));
    outcome(rule.map_or_else(|| by_status(None, error), |rule| rule.means), None)
}

fn applies(rule: &ErrorRule, status: Option<StatusCode>, headers: &HeaderMap, error: &VendorError) -> bool {
    let says_when = || headers.contains_key(RETRY_AFTER) || headers.contains_key("retry-after-ms");
    let names_it = || rule.codes.iter().any(|code| error.names().any(|name| covers(code, name)));
    let says_it = |text: &String| error.message.as_deref().is_some_and(|message| contains(message, text));
    rule.status.is_none_or(|code| status.is_some_and(|status| status.as_u16() == code))
        && (rule.codes.is_empty() || names_it())
        && rule.message.as_ref().is_none_or(says_it)
        && rule.retry_after.is_none_or(|expected| says_when() == expected)
}

/// The type in Amazon's header.
fn aws_type(headers: &HeaderMap) -> Option<String> {
    headers.get("x-amzn-errortype")?.to_str().ok().and_then(aws_name)
}

/// The bare name in `com.amazon.coral#ThrottlingException:http://…`, or nothing when it has none of these additions.
fn aws_name(text: &str) -> Option<String> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let name = name.rsplit_once('#').map_or(name, |(_, name)| name).trim();
    let sound = (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    sound.then(|| name.to_owned())
}

/// What no rule says. Without a status it is the one that a code stands for; failing that, the service's fault.
fn by_status(status: Option<StatusCode>, error: &VendorError) -> Meaning {
    let coded = || error.names().find_map(|name| name.parse().ok()).filter(|code| (400..600).contains(code));
    let blames_client = |name: &str| CLIENT_NAMES.iter().any(|known| covers(known, name));
    let Some(status) = status.map(|status| status.as_u16()).or_else(coded) else {
        return if error.names().any(blames_client) { Meaning::Client } else { Meaning::ServerError };
    };
    match status {
        401..=403 => Meaning::Credential,
        // 408 and 424 report a model that took too long or broke, not a fault of the request.
        408 | 424 => Meaning::ServerError,
        429 => Meaning::RateLimited,
        400..500 => Meaning::Client,
        503 | 529 => Meaning::Overloaded,
        _ => Meaning::ServerError,
    }
}

fn outcome(meaning: Meaning, status: Option<StatusCode>) -> Outcome {
    match meaning {
        Meaning::RateLimited => Outcome::RateLimited,
        Meaning::Overloaded => Outcome::Overloaded,
        // A redirect is not followed: it would carry the credential to another host.
        Meaning::ServerError if status.is_some_and(is_odd) => Outcome::InvalidResponse,
        Meaning::ServerError => Outcome::ServerError,
        Meaning::Credential => Outcome::CredentialRejected,
        Meaning::Client | Meaning::TooLong => Outcome::ClientError,
        Meaning::ContentFilter => Outcome::ContentFiltered,
    }
}

/// Is it neither a success nor an error?
fn is_odd(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 200..300 | 400..600)
}

/// Is `name` the code `known`, or a sub-code of it?
fn covers(known: &str, name: &str) -> bool {
    name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
        && matches!(name.as_bytes().get(known.len()), None | Some(b'.'))
}

/// Does `message` hold `text`, ASCII letters of either case being alike?
fn contains(message: &str, text: &str) -> bool {
    message.to_ascii_lowercase().contains(&text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
