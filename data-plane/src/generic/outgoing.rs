//! The request for a generic service: as it came, or as the adapter says.

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Uri};
use penstock_model::adapter::{Adapter, Client, Unfit};
use penstock_model::vendor::{Call, Wire};
use penstock_providers::exchange::{Dropped, Field, Unwritable};
use penstock_providers::headers::generic_request_headers;
use penstock_providers::splice::SplicedBody;

use super::{is_plain, is_repeatable};
use crate::ask::Ask;
use crate::outgoing::Outgoing;
use crate::table::Target;
use crate::upstream::Upload;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is particular to a request for a generic service.
pub(crate) struct Generic {
    /// Where it reshapes the answer.
    pub(super) adapter: Option<Arc<Adapter>>,
    pub(super) method: Method,
    /// Is the body the adapter's, and thus JSON?
    body_is_ours: bool,
    /// Of a gRPC call: what the client may still be sending.
    pub(crate) upload: Option<Upload>,
}

/// Makes the request of `ask` for a generic service.
///
/// # Errors
/// When it is none of its calls, or its adapter makes nothing of it; another service may.
pub(crate) fn outgoing(ask: &Ask<'_>, target: &Target) -> Result<Outgoing, Unwritable> {
    let unsupported = |field: &str, reason: String| Unwritable::Unsupported(Field::new(field, reason));
    if (ask.call == Call::Grpc) != (target.vendor.wire == Wire::Grpc) {
        let reason = format!("this is no call for {}", target.vendor.title);
        return Err(unsupported("content-type", reason));
    }
    let adapter = target.adapter.as_ref();
    let answer_adapter = adapter.filter(|adapter| adapter.reshapes_response());
    if answer_adapter.is_some() && ask.view.stream {
        return Err(unsupported("stream", "its answer is reshaped as a whole".to_owned()));
    }
    let (mut path, mut body) = (None, None);
    if let Some(adapter) = adapter {
        let reshaped = adapter.request(&client(ask, target)).map_err(|unfit| match unfit {
            Unfit::Body(reason) => Unwritable::Wrong(Field::new("body", format!("no JSON: {reason}"))),
            Unfit::Template { place, reason } => unsupported(&place, reason),
        })?;
        (path, body) = (reshaped.path, reshaped.body);
    }
    let body_is_ours = body.is_some();
    let method = adapter.and_then(|adapter| adapter.method.as_ref()).unwrap_or(ask.method);
    let uri = uri(target, path.as_deref().unwrap_or(ask.path_and_query));
    Ok(Outgoing {
        method: method.clone(),
        uri: uri.ok_or_else(|| unsupported("path", "it cannot be part of a URL".to_owned()))?,
        body: SplicedBody::whole(body.map_or_else(|| ask.body.clone(), Into::into)),
        generic: Some(Generic {
            adapter: answer_adapter.cloned(),
            method: method.clone(),
            body_is_ours,
            upload: ask.upload.clone(),
        }),
        translation: None,
        hides_usage: false,
        dropped: Dropped::default(),
    })
}

/// What templates see of the client.
pub(super) fn client<'a>(ask: &'a Ask<'_>, target: &'a Target) -> Client<'a> {
    Client { body: ask.body, model: &target.state.model, headers: ask.headers }
}

/// The path behind the one of the backend's address. HTTP/2 wants to know the rest as well.
fn uri(target: &Target, path_and_query: &str) -> Option<Uri> {
    let address = &target.upstream.address;
    let path_and_query: PathAndQuery = format!("{}{path_and_query}", address.path).try_into().ok()?;
    if !is_plain(path_and_query.path()) {
        return None;
    }
    if target.vendor.wire == Wire::Http {
        return Some(Uri::from(path_and_query));
    }
    let scheme = if address.tls { Scheme::HTTPS } else { Scheme::HTTP };
    let uri = Uri::builder().scheme(scheme).authority(address.authority.as_str());
    uri.path_and_query(path_and_query).build().ok()
}

impl Generic {
    /// May it be sent again when nobody knows what became of it?
    pub(crate) fn is_repeatable(&self) -> bool {
        match &self.upload {
            Some(upload) => upload.is_repeatable(),
            None => is_repeatable(&self.method),
        }
    }

    /// The client's headers, as far as they are for the service.
    pub(crate) fn headers(&self, client: &HeaderMap) -> HeaderMap {
        let mut headers = generic_request_headers(client);
        if self.body_is_ours {
            headers.insert(CONTENT_TYPE, JSON);
            headers.remove(CONTENT_ENCODING);
        }
        if self.adapter.is_some() {
            headers.remove(ACCEPT_ENCODING);
        }
        headers
    }
}
