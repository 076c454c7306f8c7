//! The calls whose bodies are forms with files (`multipart/form-data`): transcriptions, translations, and the editing of
//! images.
//!
//! RFC 2046, section 5.1, and RFC 7578, read strictly, so that no two readers can see different models in one body: lines
//! end with CRLF, every part has one `Content-Disposition` with one plain `name`, no field that we look at occurs twice,
//! and the closing delimiter is there. Files are skipped, not copied: the cost is one search for the delimiter.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memmem::Finder;

use self::part::{Part, disposition};
use crate::json::{InvalidBody, JsonStr};
use crate::splice::{self, SplicedBody};
use crate::view::{Role, View};

mod part;
#[cfg(test)]
mod tests;

/// Most parts of a form. OpenAI takes at most 16 images and a dozen fields.
const MAX_PARTS: usize = 128;

/// Longest headers of one part.
const MAX_HEAD: usize = 8 << 10;

/// A form, as far as routing looks into it.
#[derive(Debug, Clone)]
pub struct Form<'a> {
    /// What it asks. [`View::model_span`] is that of the plain value: change it by [`Self::replace_model`] only.
    pub view: View<'a>,
    boundary: Cow<'a, str>,
    /// Where the first delimiter stands.
    start: usize,
}

impl Form<'_> {
    /// The body with its model set to `model`; where it has none, a part is put in front of the others. `body` is what
    /// this was read from. `model` holds no line ends.
    #[must_use]
    pub fn replace_model(&self, body: &Bytes, model: &str) -> SplicedBody {
        if let Some(span) = self.view.model_span.clone() {
            return splice::replace(body, span, Bytes::copy_from_slice(model.as_bytes()));
        }
        let boundary = &self.boundary;
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n");
        splice::replace(body, self.start..self.start, part.into())
    }
}

/// Reads a form. `content_type` is the header of this name, with its boundary. Of the parts, `model`, `prompt`, `stream`
/// and `user` are looked at; files of an image type are images.
///
/// # Errors
/// When the body is no such form (see the module's documentation), has more than 128 parts or a head of more than 8 KiB,
/// or when one of these fields is not UTF-8 or occurs twice.
pub fn form<'a>(body: &'a [u8], content_type: &'a str) -> Result<Form<'a>, InvalidBody> {
    let wrong = |reason: &str, at: usize| InvalidBody::wrong_shape(reason, body, at.min(body.len()));
    let boundary = boundary(content_type)
        .ok_or_else(|| wrong("the content type is not multipart/form-data with a boundary", 0))?;
    let parts =
        Parts::new(body, &boundary).ok_or_else(|| wrong("the form does not begin with its boundary", 0))?;
    let start = parts.start;
    let mut view = View { message_count: 1, include_usage: true, ..View::default() };
    let mut seen = [false; FIELDS.len()];
    for (count, part) in parts.enumerate() {
        let part = part.map_err(|at| wrong("a part of the form has no head or no end", at))?;
        if count == MAX_PARTS {
            return Err(wrong(&format!("more than {MAX_PARTS} parts"), part.value.start));
        }
        let head = disposition(part.head).ok_or_else(|| {
            wrong("a part of the form has no proper `Content-Disposition`", part.value.start)
        })?;
        if head.is_image {
            view.push_image();
        }
        let Some(field) = FIELDS.iter().position(|field| *field == head.name) else { continue };
        if std::mem::replace(&mut seen[field], true) {
            return Err(wrong(&format!("`{}` occurs twice", FIELDS[field]), part.value.start));
        }
        let text = str::from_utf8(&body[part.value.clone()])
            .map_err(|_| wrong(&format!("`{}` is not UTF-8", FIELDS[field]), part.value.start))?;
        take(&mut view, FIELDS[field], text, part.value);
    }
    Ok(Form { view, boundary, start })
}

/// The fields that are looked at.
const FIELDS: [&str; 4] = ["model", "prompt", "stream", "user"];

fn take<'a>(view: &mut View<'a>, field: &str, text: &'a str, span: Range<usize>) {
    match field {
        "model" => {
            view.model = Some(Cow::Borrowed(text));
            view.model_span = Some(span);
        }
        "prompt" => view.push_text(0, Role::User, JsonStr::plain(text)),
        "stream" => view.stream = text.eq_ignore_ascii_case("true") || text == "1",
        _ => view.user = Some(Cow::Borrowed(text)),
    }
}

/// The boundary of a `multipart/form-data` content type: 1 to 70 characters (RFC 2046, section 5.1.1).
fn boundary(content_type: &str) -> Option<Cow<'_, str>> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = part::parameters(parameters)?
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("boundary"))
        .map(|(_, value)| value)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    let sound =
        (1..=70).contains(&boundary.len()) && !boundary.ends_with(' ') && boundary.bytes().all(allowed);
    sound.then_some(boundary)
}

/// The parts of a body, one after the other. Gives the place of what is wrong as an error, once.
struct Parts<'a> {
    body: &'a [u8],
    /// Finds `\r\n--boundary`.
    delimiter: Finder<'static>,
    start: usize,
    /// Behind the last delimiter; `None` when all is read.
    next: Option<usize>,
}

/// What follows the boundary in a delimiter.
enum Tail {
    /// A part, which begins here.
    Part(usize),
    /// Nothing more.
    Close,
}

impl<'a> Parts<'a> {
    fn new(body: &'a [u8], boundary: &str) -> Option<Self> {
        let delimiter = Finder::new(&format!("\r\n--{boundary}")).into_owned();
        let mut parts = Self { body, delimiter, start: 0, next: None };
        // The first delimiter has no line end before it, unless there is a preamble.
        let opening = &parts.delimiter.needle()[2..];
        let (start, tail) = match body.strip_prefix(opening).and_then(|_| parts.tail(opening.len())) {
            Some(tail) => (0, tail),
            None => parts.delimiter_after(0).map(|(at, tail)| (at + 2, tail))?,
        };
        parts.start = start;
        if let Tail::Part(at) = tail {
            parts.next = Some(at);
        }
        Some(parts)
    }

    /// The next delimiter from `from` on: where it begins and what follows it.
    fn delimiter_after(&self, mut from: usize) -> Option<(usize, Tail)> {
        loop {
            let at = from + self.delimiter.find(&self.body[from..])?;
            let behind = at + self.delimiter.needle().len();
            match self.tail(behind) {
                Some(tail) => return Some((at, tail)),
                // Text that begins like the delimiter.
                None => from = behind,
            }
        }
    }

    /// What stands behind a boundary; `None` when it goes on with other characters.
    fn tail(&self, at: usize) -> Option<Tail> {
        let rest = &self.body[at..];
        if rest.starts_with(b"--") {
            return Some(Tail::Close);
        }
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        rest[padding..].starts_with(b"\r\n").then_some(Tail::Part(at + padding + 2))
    }

    fn read(&mut self, at: usize) -> Result<Part<'a>, usize> {
        let rest = &self.body[at..];
        let window = &rest[..rest.len().min(MAX_HEAD)];
        let head = memchr::memmem::find(window, b"\r\n\r\n").ok_or(at)?;
        // A head that ends beyond the part is none.
        if self.delimiter.find(&rest[..head]).is_some() {
            return Err(at);
        }
        let value = at + head + 4;
        let (end, tail) = self.delimiter_after(value).ok_or(at)?;
        self.next = match tail {
            Tail::Part(next) => Some(next),
            Tail::Close => None,
        };
        Ok(Part { head: &rest[..head], value: value..end })
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next.take()?;
        Some(self.read(at))
    }
}
