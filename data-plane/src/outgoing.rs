//! The request for a service: the client's bytes with a few fields changed, or a body of its own.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use penstock_providers::aws::sign as aws;
use penstock_providers::dialect::{Dialect, dialect};
use penstock_providers::exchange::{Dropped, Field, Unwritable};
use penstock_providers::headers::forward_request_headers;
use penstock_providers::openai::pass;
use penstock_providers::splice::SplicedBody;

use crate::ask::Ask;
use crate::generic::{self, Generic};
use crate::table::{Shown, Target};
use crate::upstream::RequestBody;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// See the module's documentation.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) body: SplicedBody,
    /// For a service of no dialect.
    pub(crate) generic: Option<Generic>,
    /// How the answer is to be read; `None` when client and service speak the same.
    pub(crate) translation: Option<Translated>,
    /// Is the service asked for a usage report that the client did not ask for?
    pub(crate) hides_usage: bool,
    /// What the client asked for and the service will not see.
    pub(crate) dropped: Dropped,
}

/// The other side of a translated request.
pub(crate) struct Translated {
    pub(crate) dialect: &'static dyn Dialect,
    /// The tool that stands in for structured output.
    pub(crate) json_tool: Option<String>,
}

impl Outgoing {
    /// Makes the request of `ask` for a target. `strict`: nothing may be lost.
    ///
    /// # Errors
    /// When this target, or any, cannot carry it.
    pub(crate) fn new(ask: &Ask<'_>, target: &Target, strict: bool) -> Result<Self, Unwritable> {
        if let Some(uri) = target.uri(ask.call) {
            return passed(ask, target, uri.clone());
        }
        if target.vendor.wire.is_generic() {
            return generic::outgoing(ask, target);
        }
        let vendor = target.vendor;
        let facts = target.facts();
        let unsupported = || {
            let reason = format!("a service of {} has no such call", vendor.title);
            Unwritable::Unsupported(Field::new("path", reason))
        };
        let dialect = ask.wire.and_then(|_| dialect(vendor.wire)).ok_or_else(unsupported)?;
        let request = ask.request().map_err(|field| Unwritable::Wrong(field.clone()))?;
        let uri = target.uri(dialect.call(request, &facts)).ok_or_else(unsupported)?;
        let written = dialect.write_request(request, &facts)?;
        if let Some(lost) = written.dropped.fields().first().filter(|_| strict) {
            let reason = format!("{} has no such thing, and this route forbids leaving it out", vendor.title);
            return Err(Unwritable::Unsupported(Field::new(lost, reason)));
        }
        Ok(Self {
            method: Method::POST,
            generic: None,
            uri: uri.clone(),
            body: SplicedBody::whole(written.body),
            translation: Some(Translated { dialect, json_tool: written.json_tool }),
            hides_usage: false,
            dropped: written.dropped,
        })
    }

    /// Built anew for each try: nothing of an earlier one can leak into it (RES-13).
    pub(crate) fn request(&self, ask: &Ask<'_>, target: &Target) -> Request<RequestBody> {
        self.with(ask, target, RequestBody::from(self.body.clone()))
    }

    /// The same with a body of another kind.
    pub(crate) fn with<B>(&self, ask: &Ask<'_>, target: &Target, body: B) -> Request<B> {
        // What a client says of its own protocol means nothing in another.
        let mut headers = match &self.generic {
            Some(generic) => generic.headers(ask.headers),
            None if self.translation.is_some() => HeaderMap::with_capacity(8),
            None => forward_request_headers(ask.headers),
        };
        headers.insert(HOST, target.upstream.host.clone());
        if ask.form.is_none() && self.generic.is_none() {
            // The body has been read as JSON, whatever the client called it; services refuse it under another name.
            headers.insert(CONTENT_TYPE, JSON);
        }
        let of_streams: &[_] = if ask.view.stream { &target.stream_headers } else { &[] };
        for (name, value) in target.headers.iter().chain(of_streams) {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        match &target.credential {
            Shown::Not => {}
            Shown::Header(name, value) => {
                headers.insert(name, value.clone());
            }
            Shown::Signature(credentials, region) => self.sign(&mut headers, target, credentials, region),
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }
}

impl Outgoing {
    /// May it be sent again when nobody knows what became of it?
    pub(crate) fn is_repeatable(&self) -> bool {
        self.generic.as_ref().is_none_or(Generic::is_repeatable)
    }

    /// Signs the request, its body included (AWS signature version 4).
    fn sign(&self, headers: &mut HeaderMap, target: &Target, credentials: &aws::Credentials, region: &str) {
        let pieces: Vec<Bytes> = self.body.clone().into_segments().collect();
        let body: Vec<&[u8]> = pieces.iter().map(AsRef::as_ref).collect();
        let to_sign = aws::ToSign {
            method: "POST",
            path_and_query: self.uri.path_and_query().map_or("/", PathAndQuery::as_str),
            host: target.upstream.host.to_str().unwrap_or_default(),
            headers: &[("content-type", "application/json")],
            body: &body,
        };
        let scope = aws::Scope { region, service: "bedrock" };
        match aws::sign(&to_sign, credentials, &scope, SystemTime::now()) {
            Ok(signature) => headers.extend(signature),
            // Sent unsigned, it is refused with 403: the key is of no use.
            Err(error) => tracing::warn!(%error, backend = target.state.backend, "cannot be signed"),
        }
    }
}

fn passed(ask: &Ask<'_>, target: &Target, uri: Uri) -> Result<Outgoing, Unwritable> {
    let mut hides_usage = false;
    let body = match &ask.form {
        Some(form) => form.replace_model(ask.body, &target.state.model),
        None => {
            let facts = target.facts();
            let spans = pass::Spans::from(&ask.view);
            hides_usage = spans.asks_for_usage(&facts);
            pass::body(ask.body, &spans, &facts, &target.model).map_err(Unwritable::Wrong)?
        }
    };
    let method = Method::POST;
    let dropped = Dropped::default();
    Ok(Outgoing { method, uri, body, generic: None, hides_usage, translation: None, dropped })
}
