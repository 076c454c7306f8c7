//! Reshapes the calls of generic services, so that services with different formats look like one.
//!
//! A policy gives a template for the request and one for the response. A template is JSON as the other side is to get it,
//! in which strings hold CEL expressions:
//!
//! - `"${request.user.id}"`, a whole string: the value, of whatever type it is.
//! - `"user ${request.user.id}"`, within a string: the value as text; `null` is nothing, lists and objects are JSON.
//! - `"${?request.note}"`: the value, but where there is none, or `null`, the member or element is left out.
//! - `"$${"` is a plain `${`.
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
mod template;
mod value;

use std::cell::OnceCell;

use bytes::Bytes;
use cel::Context;
use http::HeaderMap;
use serde_json::Value;

use crate::exchange::Field;
use expression::Name;
use template::Template;

/// Most values in a template, members and elements counted.
pub const MAX_NODES: usize = 1_000;
/// Most levels of a template.
pub const MAX_DEPTH: usize = 32;
/// Longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 2_048;
/// Largest body that is written, in bytes.
pub const MAX_WRITTEN: usize = 16 << 20;

/// A pair of compiled templates.
#[derive(Debug)]
pub struct Adapter {
    request: Template,
    response: Template,
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

impl Adapter {
    /// Compiles both templates.
    ///
    /// # Errors
    /// All that is wrong with them, each with its place: `response.score`, `request.items[2]`.
    pub fn compile(request: &Value, response: &Value) -> Result<Self, Vec<Field>> {
        let mut problems = Vec::new();
        let asked = &[Name::Request, Name::Model, Name::Headers];
        let request = Template::compile("request", request, asked, &mut problems);
        let answered = &[Name::Request, Name::Model, Name::Headers, Name::Response];
        let response = Template::compile("response", response, answered, &mut problems);
        if problems.is_empty() { Ok(Self { request, response }) } else { Err(problems) }
    }

    /// The body for the service.
    ///
    /// # Errors
    /// When the client's body is no JSON, or an expression of the request's template cannot be evaluated on it; names the
    /// place in the template.
    pub fn request(&self, client: &Client<'_>) -> Result<Bytes, Field> {
        write(&self.request, &Scope::new(client, None))
    }

    /// The body for the client, made of the service's.
    ///
    /// # Errors
    /// As for the request. When it is the service's body that is no JSON, the field is `response`.
    pub fn response(&self, client: &Client<'_>, answer: &[u8]) -> Result<Bytes, Field> {
        write(&self.response, &Scope::new(client, Some(answer)))
    }
}

fn write(template: &Template, scope: &Scope<'_>) -> Result<Bytes, Field> {
    let mut body = Vec::new();
    if !template.write(scope, &mut body)? {
        body.extend_from_slice(b"null");
    }
    Ok(body.into())
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
    fn json(&self, name: Name) -> Result<&Value, Field> {
        let parse = |cell: &'_ OnceCell<Value>, body: &[u8]| -> Result<(), Field> {
            if cell.get().is_none() {
                let value = serde_json::from_slice(body).map_err(|error| {
                    let reason = error.to_string();
                    Field::new(name.as_str(), format!("no JSON: {}", crate::json::clip(&reason, 200)))
                })?;
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
    fn cel(&self, name: Name) -> Result<cel::Value, Field> {
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
    fn context(&self, names: &[Name]) -> Result<Context<'static, 'static>, Field> {
        let mut context = Context::default();
        for name in names {
            context.add_variable_from_value(name.as_str(), self.cel(*name)?);
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests;
