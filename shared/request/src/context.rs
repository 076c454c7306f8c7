//! The routing context of a request.

use std::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use penstock_decision::context::RequestContext;
use penstock_providers::view::View;

use crate::api::Api;

/// The protocol of calls that are all about sound.
const SPEECH: &str = "openai-audio";

/// Where and when a request arrives.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Address of the peer.
    pub client_ip: IpAddr,
    /// The request's id.
    pub request_id: &'a str,
    /// Seconds since 1970 UTC.
    pub unix_seconds: u64,
    /// The proxy's zone.
    pub zone: &'a str,
    /// The proxy's region.
    pub region: &'a str,
    /// The proxy's id.
    pub node: &'a str,
}

/// What rules see of every call. Of a call of a known protocol they see the path as that protocol documents it, without
/// what varies from call to call; of any other as it is.
#[must_use]
pub fn context<'a>(api: &Api<'_>, head: &'a Parts, origin: &Origin<'a>) -> RequestContext<'a> {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let generic = api.is_generic();
    RequestContext {
        method: if generic { head.method.as_str() } else { "POST" },
        path: if generic { head.uri.path() } else { api.label() },
        host: host.or(head.uri.authority().map(Authority::as_str)).unwrap_or_default(),
        headers: &head.headers,
        client_ip: origin.client_ip,
        protocol: api.protocol(),
        model: "",
        stream: false,
        message_count: 0,
        system_prompt: false,
        prompt_tokens: 0,
        max_tokens: 0,
        temperature: None,
        tools: 0,
        images: false,
        audio: false,
        json_schema: false,
        user: "",
        session: "",
        request_id: origin.request_id,
        unix_seconds: origin.unix_seconds,
        zone: origin.zone,
        region: origin.region,
        node: origin.node,
    }
}

/// The context with what the body says.
#[must_use]
pub fn with_view<'a>(context: RequestContext<'a>, view: &'a View<'_>) -> RequestContext<'a> {
    RequestContext {
        model: view.model.as_deref().unwrap_or_default(),
        stream: view.stream,
        message_count: view.message_count as u32,
        system_prompt: view.system_prompt,
        prompt_tokens: view.estimated_prompt_tokens(),
        max_tokens: view.max_tokens.unwrap_or(0),
        temperature: view.temperature,
        tools: view.tools as u32,
        images: view.images,
        audio: view.audio || context.protocol == SPEECH,
        json_schema: view.json_schema,
        user: view.user.as_deref().unwrap_or_default(),
        session: view.session.as_deref().unwrap_or_default(),
        ..context
    }
}
