//! What a request says of itself.

use std::net::IpAddr;

use http::HeaderMap;

/// A request as rules see it: what is at hand without any work. What takes some is in [`crate::facts::Facts`].
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// `Host` header or `:authority`, as it came.
    pub host: &'a str,
    /// Of a header that comes several times, rules see the first; one that is no UTF-8 they do not see.
    pub headers: &'a HeaderMap,
    /// Address of the peer.
    pub client_ip: IpAddr,
    /// See `protocol` in [`penstock_model::policy::CONTEXT_FIELDS`].
    pub protocol: &'a str,
    /// The model the client asked for, empty when it named none.
    pub model: &'a str,
    /// Does the client want a stream?
    pub stream: bool,
    /// Messages of the conversation.
    pub message_count: u32,
    /// Is there a system or developer message?
    pub system_prompt: bool,
    /// Estimate of the prompt's tokens.
    pub prompt_tokens: u64,
    /// The client's limit on output tokens, 0 when not given.
    pub max_tokens: u64,
    /// Sampling temperature, `None` when not given.
    pub temperature: Option<f64>,
    /// Tools the request declares.
    pub tools: u32,
    /// Does a message hold an image?
    pub images: bool,
    /// Is there sound in a message, or wanted in the answer?
    pub audio: bool,
    /// Must the answer follow a JSON Schema?
    pub json_schema: bool,
    /// The end user, as the body names it, empty when absent.
    pub user: &'a str,
    /// The conversation, as the body names it, empty when absent. Rules see the header `x-session-id` where there is one.
    pub session: &'a str,
    /// The request's id, which the bucket of a request without a session is drawn from.
    pub request_id: &'a str,
    /// When the request arrived, seconds since 1970 UTC.
    pub unix_seconds: u64,
    /// The proxy's zone.
    pub zone: &'a str,
    /// The proxy's region.
    pub region: &'a str,
    /// The proxy's id.
    pub node: &'a str,
}

impl<'a> RequestContext<'a> {
    /// The first value of a header; `None` when there is none or it is no UTF-8.
    #[must_use]
    pub fn header(&self, lower_case_name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.headers.get(lower_case_name)?.as_bytes()).ok()
    }

    /// 0 to 23, UTC.
    #[must_use]
    pub fn hour(&self) -> u32 {
        (self.unix_seconds / 3_600 % 24) as u32
    }

    /// 1 = Monday to 7 = Sunday, UTC.
    #[must_use]
    pub fn weekday(&self) -> u32 {
        // 1970 began on a Thursday, which is 4.
        ((self.unix_seconds / 86_400 + 3) % 7 + 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn hours_and_weekdays_are_those_of_the_calendar() {
        let headers = HeaderMap::new();
        let at = |unix_seconds| {
            let context = RequestContext { unix_seconds, ..request(&headers) };
            (context.hour(), context.weekday())
        };
        // Tuesday, 1 December 2026, 13:05:00
        assert_eq!(at(1_796_130_300), (13, 2));
        assert_eq!(at(0), (0, 4));
        assert_eq!(at(4 * 86_400 - 1), (23, 7));
        assert_eq!(at(4 * 86_400), (0, 1));
    }
}
