//! Which headers may pass a proxy that stands between two parties who do not know each other.
//!
//! Both directions use an allow-list: a header that nobody thought of stays here. The framing headers (`content-length`,
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

fn pick(from: &HeaderMap, allowed: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::with_capacity(allowed.len());
    for name in allowed {
        for value in from.get_all(name) {
            picked.append(name.clone(), value.clone());
        }
    }
    // RFC 9110 section 7.6.1: what `connection` names was meant for this hop only.
    for value in from.get_all(header::CONNECTION) {
        for name in value.to_str().unwrap_or_default().split(',') {
            picked.remove(name.trim());
        }
    }
    picked
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
    fn a_repeated_header_keeps_all_its_values() {
        let client = headers(&[("anthropic-beta", "a"), ("anthropic-beta", "b")]);
        let passed = forward_request_headers(&client);
        assert_eq!(passed.get_all("anthropic-beta").iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
