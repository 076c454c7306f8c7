//! What a client asks: its body, looked at once, and read as a whole only for a service of another dialect.

use std::cell::OnceCell;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use penstock_model::vendor::{Call, Wire};
use penstock_providers::exchange::{Field, Request};
use penstock_providers::json::InvalidBody;
use penstock_providers::openai::extra::Form;
use penstock_providers::view::View;
use penstock_request::{Api, Look, look};

use crate::answer::protocol;
use crate::upstream::Upload;

/// See the module's documentation.
pub(crate) struct Ask<'a> {
    /// The call as the client made it.
    pub(crate) call: Call,
    /// The client's protocol, where it is a conversation: only then can it be translated.
    pub(crate) wire: Option<Wire>,
    pub(crate) body: &'a Bytes,
    pub(crate) view: View<'a>,
    /// The body, where it is a form (`multipart/form-data`); else it is JSON.
    pub(crate) form: Option<Form<'a>>,
    /// As the client has them.
    pub(crate) method: &'a Method,
    pub(crate) path_and_query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// The body, where the client may still be sending it while the service answers; then the other is empty.
    pub(crate) upload: Option<Upload>,
    path_model: Option<&'a str>,
    request: OnceCell<Result<Box<Request>, Field>>,
}

impl<'a> Ask<'a> {
    /// Looks at the body of a call.
    ///
    /// # Errors
    /// When it is not what the protocol allows, as far as routing needs to know.
    pub(crate) fn read(api: &'a Api<'a>, head: &'a Parts, body: &'a Bytes) -> Result<Self, InvalidBody> {
        let Look { call, wire, path_model, view, form } = look(api, &head.headers, body)?;
        Ok(Self { wire, path_model, view, form, ..Self::generic(call, head, body) })
    }

    /// A call of no protocol: nothing is known of its body.
    pub(crate) fn generic(call: Call, head: &'a Parts, body: &'a Bytes) -> Self {
        Self {
            call,
            wire: None,
            body,
            view: View::default(),
            form: None,
            method: &head.method,
            path_and_query: head.uri.path_and_query().map_or("/", PathAndQuery::as_str),
            headers: &head.headers,
            upload: None,
            path_model: None,
            request: OnceCell::new(),
        }
    }

    /// The conversation, read as a whole the first time that a target needs it.
    pub(crate) fn request(&self) -> Result<&Request, &Field> {
        let read = || {
            let wire = self.wire.unwrap_or(Wire::Openai);
            protocol(wire).read_request(self.body, self.path_model, self.view.stream).map(Box::new)
        };
        self.request.get_or_init(read).as_ref().map(AsRef::as_ref)
    }
}
