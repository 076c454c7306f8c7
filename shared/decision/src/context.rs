//! What a route's condition may look at: the fields of [`penstock_model::policy::CONTEXT_FIELDS`].

use std::net::IpAddr;
use std::sync::OnceLock;

use cel::common::types::{CelBool, CelInt, CelMap, CelMapKey, CelString};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use http::HeaderMap;

/// Header that names the caller's line of business.
const BIZ_TYPE: &str = "x-biz-type";

/// A request as rules see it. Everything is borrowed; nothing is computed before a condition asks for it.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// `Host` header or `:authority`.
    pub host: &'a str,
    /// Of a header that comes several times, rules see the first; one that is no UTF-8 they do not see.
    pub headers: &'a HeaderMap,
    /// Address of the peer.
    pub client_ip: IpAddr,
    /// `openai-chat`, `openai-embeddings` or `invoke`.
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
    /// Tools the request declares.
    pub tools: u32,
    /// Does a message hold an image?
    pub images: bool,
    /// The request's `user` field, empty when absent.
    pub user: &'a str,
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

/// A [`RequestContext`] as CEL variables, each made when a condition names it.
pub(crate) struct Variables<'a> {
    context: RequestContext<'a>,
    /// Made once per request, and only for conditions that use headers.
    headers: OnceLock<CelMap<'a>>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(context: RequestContext<'a>) -> Self {
        Self { context, headers: OnceLock::new() }
    }

    fn headers(&self) -> &CelMap<'a> {
        self.headers.get_or_init(|| {
            let context = self.context;
            let entry = |name: &'a http::HeaderName| -> Option<(CelMapKey<'a>, Box<dyn Val + 'a>)> {
                let value = context.header(name.as_str())?;
                Some((CelMapKey::String(name.as_str().into()), Box::new(CelString::from(value))))
            };
            let entries: std::collections::HashMap<_, _> = context.headers.keys().filter_map(entry).collect();
            entries.into()
        })
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let text = |value: &'b str| CowVal::owned(CelString::from(value));
        let int = |value: u64| CowVal::owned(CelInt::from(i64::try_from(value).unwrap_or(i64::MAX)));
        let bool = |value: bool| CowVal::owned(CelBool::from(value));
        let context = &self.context;
        Some(match variable {
            "method" => text(context.method),
            "path" => text(context.path),
            "host" => text(context.host),
            "headers" => CowVal::Borrowed(self.headers()),
            "client_ip" => CowVal::owned(CelString::from(context.client_ip.to_string())),
            "protocol" => text(context.protocol),
            "model" => text(context.model),
            "stream" => bool(context.stream),
            "message_count" => int(context.message_count.into()),
            "system_prompt" => bool(context.system_prompt),
            "prompt_tokens" => int(context.prompt_tokens),
            "max_tokens" => int(context.max_tokens),
            "tools" => int(context.tools.into()),
            "images" => bool(context.images),
            "user" => text(context.user),
            "biz_type" => text(context.header(BIZ_TYPE).unwrap_or_default()),
            "hour" => int(context.hour().into()),
            "weekday" => int(context.weekday().into()),
            "zone" => text(context.zone),
            "region" => text(context.region),
            "node" => text(context.node),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use penstock_model::policy::CONTEXT_FIELDS;

    use super::*;
    use crate::testing::request;

    #[test]
    fn every_field_of_the_reference_page_has_a_value_of_its_type() {
        let headers = HeaderMap::new();
        let variables = Variables::new(request(&headers));
        for (name, kind, _) in CONTEXT_FIELDS {
            let value = variables.resolve(name).unwrap_or_else(|| panic!("{name} has no value"));
            let found = value.get_type().name().to_owned();
            assert_eq!(found, kind.split('(').next().unwrap(), "{name}");
        }
        assert!(variables.resolve("tenant").is_none());
    }

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
