//! Which headers may pass a proxy that stands between two parties who do not know each other.
//!
//! Both directions use an allow-list: a header that nobody thought of stays here. Generic services are the exception: what
//! their clients need to tell them nobody can know, so that all may pass but what is known to be none of their business. The framing headers (`content-length`,
//! `transfer-encoding`) belong to each hop and are set by whoever sends; `host`, the credential and the user agent are the
//! proxy's own. `accept-encoding` is not passed on either, so that services answer uncompressed: usage and errors are
//! read from the bytes as they pass.

use http::header::{self, HeaderMap, HeaderName};

/// From client to service. Whatever identifies the client to us (`authorization`, cookies, `x-api-key`, `api-key`,
/// `x-goog-api-key`, `x-penstock-*`, `openai-organization`, forwarding headers) is not in it, nor anything hop-by-hop.
static REQUEST: [HeaderName; 8] = [
    header::CONTENT_TYPE,
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("x-client-request-id"),
];

/// From service to client. Rate-limit headers are not in it: they tell the limits of our account, which the client
/// would take for its own.
static RESPONSE: [HeaderName; 10] = [
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CACHE_CONTROL,
    header::RETRY_AFTER,
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("openai-model"),
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
];

/// The client's headers that may reach a service.
#[must_use]
pub fn forward_request_headers(client: &HeaderMap) -> HeaderMap {
    pick(client, &REQUEST)
}

/// The service's headers that may reach the client.
#[must_use]
pub fn forward_response_headers(service: &HeaderMap) -> HeaderMap {
    pick(service, &RESPONSE)
}

/// What a generic service is not told: who the client is to us, and how it came here. Names that begin with `x-penstock-`
/// or `x-forwarded-` are not either.
const NOT_FOR_SERVICES: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "openai-organization",
    "openai-project",
    "forwarded",
    "x-real-ip",
    "via",
    "user-agent",
    "host",
    "expect",
];

/// What a client is not told of a generic service. Names that begin with `x-penstock-` or `x-ratelimit-` are not either.
const NOT_FOR_CLIENTS: &[&str] = &["set-cookie", "server", "via", "alt-svc", "x-powered-by"];

/// What is meant for one hop only, or is said anew on each: RFC 9110 sections 6.4, 6.6, 7.6 and 11.7.
const HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "content-length",
];

/// The client's headers that may reach a generic service. What the client can decode is its own business there, since
/// the answer passes as it is.
#[must_use]
pub fn generic_request_headers(client: &HeaderMap) -> HeaderMap {
    let told = |name: &str| !NOT_FOR_SERVICES.contains(&name) && !name.starts_with("x-forwarded-");
    all_but(client, told)
}

/// A generic service's headers that may reach the client.
#[must_use]
pub fn generic_response_headers(service: &HeaderMap) -> HeaderMap {
    let told = |name: &str| !NOT_FOR_CLIENTS.contains(&name) && !name.starts_with("x-ratelimit-");
    all_but(service, told)
}

fn all_but(from: &HeaderMap, told: impl Fn(&str) -> bool) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(from.len());
    for (name, value) in from {
        let text = name.as_str();
        if told(text) && !HOP.contains(&text) && !text.starts_with("x-penstock-") {
            passed.append(name.clone(), value.clone());
        }
    }
    drop_of_connection(from, &mut passed);
    passed
}

fn pick(from: &HeaderMap, allowed: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::with_capacity(allowed.len());
    for name in allowed {
        for value in from.get_all(name) {
            picked.append(name.clone(), value.clone());
        }
    }
    drop_of_connection(from, &mut picked);
    picked
}

/// RFC 9110 section 7.6.1: what `connection` names was meant for this hop only.
fn drop_of_connection(from: &HeaderMap, passed: &mut HeaderMap) {
    for value in from.get_all(header::CONNECTION) {
        for name in value.to_str().unwrap_or_default().split(',') {
            passed.remove(name.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn names(map: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn credentials_cookies_and_hop_headers_never_reach_a_service_sec_03() {
        let client = headers(&[
            ("authorization", "Bearer gw-SENTINEL"),
            ("x-api-key", "gw-SENTINEL"),
            ("api-key", "gw-SENTINEL"),
            ("x-goog-api-key", "gw-SENTINEL"),
            ("cookie", "s=1"),
            ("proxy-authorization", "x"),
            ("x-forwarded-for", "10.0.0.9"),
            ("connection", "x-secret-hop, Accept-Language"),
            ("x-secret-hop", "1"),
            ("accept-language", "zh"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("transfer-encoding", "chunked"),
            ("content-length", "4"),
            ("accept-encoding", "gzip"),
            ("x-penstock-request-id", "r"),
            ("openai-organization", "org"),
            ("anthropic-beta", "b1"),
            ("content-type", "application/json"),
        ]);
        assert_eq!(names(&forward_request_headers(&client)), ["anthropic-beta", "content-type"]);
    }

    #[test]
    fn cookies_limits_and_the_accounts_name_never_reach_a_client_sec_03() {
        let service = headers(&[
            ("content-type", "text/event-stream"),
            ("set-cookie", "a=b"),
            ("openai-organization", "acme"),
            ("x-ratelimit-remaining-requests", "3"),
            ("server", "envoy"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("retry-after", "7"),
            ("x-request-id", "req_1"),
            ("connection", "X-Request-Id"),
        ]);
        assert_eq!(names(&forward_response_headers(&service)), ["content-type", "retry-after"]);
    }

    #[test]
    fn a_generic_service_sees_what_is_its_own_and_no_credential_sec_03() {
        let client = headers(&[
            ("authorization", "Bearer gw-SENTINEL"),
            ("cookie", "s=1"),
            ("x-forwarded-for", "10.0.0.9"),
            ("x-penstock-request-id", "r"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("content-length", "4"),
            ("x-biz-type", "risk"),
            ("accept-encoding", "gzip"),
            ("content-type", "text/csv"),
        ]);
        assert_eq!(
            names(&generic_request_headers(&client)),
            ["accept-encoding", "content-type", "x-biz-type"]
        );
    }

    #[test]
    fn a_client_sees_what_a_generic_service_says_but_cookies_and_limits_sec_03() {
        let service = headers(&[
            ("set-cookie", "a=b"),
            ("server", "envoy"),
            ("x-ratelimit-remaining", "3"),
            ("x-penstock-backend", "mine"),
            ("transfer-encoding", "chunked"),
            ("etag", "1"),
            ("x-model-version", "7"),
        ]);
        assert_eq!(names(&generic_response_headers(&service)), ["etag", "x-model-version"]);
    }

    #[test]
    fn a_repeated_header_keeps_all_its_values() {
        let client = headers(&[("anthropic-beta", "a"), ("anthropic-beta", "b")]);
        let passed = forward_request_headers(&client);
        assert_eq!(passed.get_all("anthropic-beta").iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
