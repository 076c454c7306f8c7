//! The head of a part.

use std::borrow::Cow;
use std::ops::Range;

/// A part as it stands in the body.
pub(super) struct Part<'a> {
    /// Its headers, without the empty line.
    pub(super) head: &'a [u8],
    /// Where its value stands.
    pub(super) value: Range<usize>,
}

/// What a part's head says.
pub(super) struct Disposition<'a> {
    /// The field's name.
    pub(super) name: Cow<'a, str>,
    /// Is it a file of an image type?
    pub(super) is_image: bool,
}

/// Reads a head; `None` when it does not say one name in one way.
pub(super) fn disposition(head: &[u8]) -> Option<Disposition<'_>> {
    let head = str::from_utf8(head).ok()?;
    let mut found = None;
    let mut is_image = false;
    for line in head.split("\r\n") {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-disposition") {
            let (kind, rest) = value.split_once(';')?;
            if found.is_some() || !kind.trim().eq_ignore_ascii_case("form-data") {
                return None;
            }
            found = Some(field_name(rest)?);
        } else if name.eq_ignore_ascii_case("content-type") {
            let kind = value.trim_start();
            is_image |= kind.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("image/"));
        }
    }
    Some(Disposition { name: found?, is_image })
}

/// The one plain `name` among the parameters; `name*` is forbidden in forms (RFC 7578, section 4.2).
fn field_name(rest: &str) -> Option<Cow<'_, str>> {
    let mut name = None;
    for (key, value) in parameters(rest)? {
        if key.eq_ignore_ascii_case("name*") {
            return None;
        }
        if key.eq_ignore_ascii_case("name") {
            if name.is_some() {
                return None;
            }
            name = Some(value);
        }
    }
    name
}

/// `a=b; c="d"`: the parameters of a header's value. `None` when they are not of this form.
pub(super) fn parameters(mut rest: &str) -> Option<Vec<(&str, Cow<'_, str>)>> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(found);
        }
        let (key, after) = rest.split_once('=')?;
        let (value, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (Cow::Borrowed(after[..end].trim()), &after[end..])
            }
        };
        found.push((key.trim(), value));
        let after = after.trim_start();
        rest = after.strip_prefix(';').unwrap_or(after);
        if rest.len() == after.len() && !rest.is_empty() {
            return None;
        }
    }
}

/// A quoted string, from behind its opening quote, and what follows it.
fn unquote(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
    if text.as_bytes()[end] == b'"' {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            // Only quotes and backslashes are escaped: some clients send Windows paths as they are.
            '\\' if text[at + 1..].starts_with(['"', '\\']) => value.push(chars.next()?.1),
            other => value.push(other),
        }
    }
    None
}
