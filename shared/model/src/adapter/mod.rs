//! Reshapes the calls of generic services, so that services with different formats look like one.
//!
//! A policy gives a template for the request, one for the response, and one for the path; what it does not give passes as
//! it is. A template is JSON as the other side is to get it, in which strings hold CEL expressions:
//!
//! - `"${request.user.id}"`, a whole string: the value, of whatever type it is.
//! - `"user ${request.user.id}"`, within a string: the value as text; `null` is nothing, lists and objects are JSON.
//! - `"${?request.note}"`: the value, but where there is none, or `null`, the member or element is left out.
//! - `"$${"` is a plain `${`.
//!
//! The path is text; each value in it is percent-encoded, as one segment.
//!
//! Expressions see `request` (the client's body), `model`, `headers` (the client's, by lower-case name) and, in the
//! response, `response` (the service's body). A plain path such as `request.user.id` is looked up rather than evaluated:
//! it costs next to nothing, and members keep their order. Anything else is CEL, whose maps have no order: their members
//! come out sorted. Numbers have 64 bits, integers exactly, others in binary: `0.10` comes out as `0.1`.
//!
//! Pure, and bounded: a template has at most [`MAX_NODES`] values and [`MAX_DEPTH`] levels, an expression
//! [`MAX_EXPRESSION`] bytes and two loops within each other, a body that is written [`MAX_WRITTEN`] bytes and the value
//! that crosses that line. How large a body that is read may be is up to the caller; two loops over it are quadratic.

mod expression;
mod path;
mod template;
mod value;

use std::cell::OnceCell;
use std::fmt;

use cel::Context;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::document;
use expression::Name;
use path::Path;
use template::Template;

/// Most values in a template, members and elements counted.
pub const MAX_NODES: usize = 1_000;
/// Most levels of a template.
pub const MAX_DEPTH: usize = 32;
/// Longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 2_048;
/// Largest body that is written, in bytes.
pub const MAX_WRITTEN: usize = 16 << 20;

/// Compiled templates.
#[derive(Debug, Default)]
pub struct Adapter {
    /// The method in place of the client's.
    pub method: Option<Method>,
    path: Option<Path>,
    request: Option<Template>,
    response: Option<Template>,
}

/// What the client sent.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// Its body; JSON of any kind.
    pub body: &'a [u8],
    /// The model as the service calls it; may be empty.
    pub model: &'a str,
    /// Its headers. Those with values that are no text, and all values of a name but the first, are not seen.
    pub headers: &'a HeaderMap,
}

/// What goes to the service in place of what the client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshaped {
    /// Path and query.
    pub path: Option<String>,
    /// The body, which is JSON.
    pub body: Option<Vec<u8>>,
}

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer of the string within the adapter: `/request/items/2`.
    pub place: String,
    /// How far into the string, in bytes.
    pub offset: usize,
    /// In a few words.
    pub reason: String,
}

/// Why a template makes nothing of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// A body that an expression asks for is no JSON.
    Body(String),
    /// An expression cannot be evaluated on it.
    Template {
        /// JSON pointer of the string within the adapter.
        place: String,
        /// In a few words.
        reason: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(reason) => write!(f, "no JSON: {reason}"),
            Self::Template { place, reason } => write!(f, "{place}: {reason}"),
        }
    }
}

impl Adapter {
    /// Compiles all templates.
    ///
    /// # Errors
    /// All that is wrong with them, each with its place.
    pub fn compile(source: &document::Adapter) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let asked = &[Name::Request, Name::Model, Name::Headers];
        let answered = &[Name::Request, Name::Model, Name::Headers, Name::Response];
        let method = source.method.as_deref().map(|name| method(name, &mut faults));
        let path = source.path.as_deref().map(|path| Path::compile(path, asked, &mut faults));
        let mut template = |root: &str, template: &Option<Value>, allowed: &[Name]| {
            template.as_ref().map(|template| Template::compile(root, template, allowed, &mut faults))
        };
        let request = template("/request", &source.request, asked);
        let response = template("/response", &source.response, answered);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self { method: method.flatten(), path: path.flatten(), request, response })
    }

    /// What goes to the service.
    ///
    /// # Errors
    /// When the client's body is no JSON, or an expression cannot be evaluated on it.
    pub fn request(&self, client: &Client<'_>) -> Result<Reshaped, Unfit> {
        let scope = Scope::new(client, None);
        let path = self.path.as_ref().map(|path| path.write(&scope)).transpose()?;
        let body = self.request.as_ref().map(|template| write(template, &scope)).transpose()?;
        Ok(Reshaped { path, body })
    }

    /// Is there a template for the response?
    #[must_use]
    pub fn reshapes_response(&self) -> bool {
        self.response.is_some()
    }

    /// The body for the client, made of the service's; `None` when that passes as it is.
    ///
    /// # Errors
    /// When a body is no JSON, or an expression cannot be evaluated on it.
    pub fn response(&self, client: &Client<'_>, answer: &[u8]) -> Result<Option<Vec<u8>>, Unfit> {
        self.response.as_ref().map(|template| write(template, &Scope::new(client, Some(answer)))).transpose()
    }
}

fn method(name: &str, faults: &mut Vec<Fault>) -> Option<Method> {
    let upper = name.bytes().all(|byte| byte.is_ascii_uppercase()) && name != "CONNECT";
    let method = Method::from_bytes(name.as_bytes()).ok().filter(|_| upper);
    if method.is_none() {
        let reason = "not a method: in capital letters, such as POST".to_owned();
        faults.push(Fault { place: "/method".to_owned(), offset: 0, reason });
    }
    method
}

fn write(template: &Template, scope: &Scope<'_>) -> Result<Vec<u8>, Unfit> {
    let mut body = Vec::new();
    if !template.write(scope, &mut body)? {
        body.extend_from_slice(b"null");
    }
    Ok(body)
}

/// Texts of others, in messages.
fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}

/// What expressions see. Bodies are parsed, and handed to CEL, when the first expression asks for them.
struct Scope<'a> {
    client: &'a Client<'a>,
    answer: Option<&'a [u8]>,
    request: OnceCell<Value>,
    response: OnceCell<Value>,
    cel: [OnceCell<cel::Value>; 4],
}

impl<'a> Scope<'a> {
    fn new(client: &'a Client<'a>, answer: Option<&'a [u8]>) -> Self {
        Self { client, answer, request: OnceCell::new(), response: OnceCell::new(), cel: Default::default() }
    }

    /// The value that a name stands for.
    fn json(&self, name: Name) -> Result<&Value, String> {
        let parse = |cell: &'_ OnceCell<Value>, body: &[u8]| -> Result<(), String> {
            if cell.get().is_none() {
                let value =
                    serde_json::from_slice(body).map_err(|error| clip(&error.to_string()).to_owned())?;
                let _ = cell.set(value);
            }
            Ok(())
        };
        match name {
            Name::Request => parse(&self.request, self.client.body)?,
            Name::Response => parse(&self.response, self.answer.unwrap_or_default())?,
            Name::Model | Name::Headers => {}
        }
        let cell = if name == Name::Response { &self.response } else { &self.request };
        Ok(cell.get().unwrap_or(&Value::Null))
    }

    /// The same for CEL; made once.
    fn cel(&self, name: Name) -> Result<cel::Value, String> {
        let cell = &self.cel[name as usize];
        if let Some(value) = cell.get() {
            return Ok(value.clone());
        }
        let value = match name {
            Name::Request | Name::Response => value::to_cel(self.json(name)?),
            Name::Model => cel::Value::from(self.client.model),
            Name::Headers => value::headers(self.client.headers),
        };
        Ok(cell.get_or_init(|| value).clone())
    }

    /// A context in which `names` have their values.
    fn context(&self, names: &[Name]) -> Result<Context<'static, 'static>, String> {
        let mut context = Context::default();
        for name in names {
            context.add_variable_from_value(name.as_str(), self.cel(*name)?);
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests;
