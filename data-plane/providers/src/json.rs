//! What the dialects need of JSON beyond serde: byte spans, lazy strings, a bound on depth.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

/// How deep a body may nest. Real requests, tool schemas included, stay below 30.
pub const MAX_DEPTH: usize = 128;

/// Longest error reason kept; serde quotes the offending value, which may be megabytes.
const MAX_REASON: usize = 200;

/// Why a request body cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line} column {column}")]
pub struct InvalidBody {
    /// Broken JSON, or good JSON of the wrong shape?
    pub kind: InvalidKind,
    /// What is wrong, in a few words. May quote the client's own value, never more than a few hundred bytes.
    pub reason: String,
    /// Line of the problem, from 1.
    pub line: usize,
    /// Column of the problem in bytes, from 1 (0: before the first byte of the line).
    pub column: usize,
}

/// The two ways in which a body can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidKind {
    /// Not JSON at all: a syntax error, bytes that are not UTF-8, nesting beyond [`MAX_DEPTH`], or a body cut short.
    NotJson,
    /// JSON, but a field that routing needs is missing, doubled, or has the wrong type.
    WrongShape,
}

impl InvalidBody {
    fn at(kind: InvalidKind, reason: impl Into<String>, body: &[u8], offset: usize) -> Self {
        let before = &body[..offset];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Self {
            kind,
            reason: reason.into(),
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: offset - line_start + 1,
        }
    }

    /// A field of the wrong shape, at its byte offset in the body.
    pub(crate) fn wrong_shape(reason: &str, body: &[u8], offset: usize) -> Self {
        Self::at(InvalidKind::WrongShape, reason, body, offset)
    }

    fn from_serde(error: &serde_json::Error) -> Self {
        let full = error.to_string();
        let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
        Self {
            kind: if error.is_data() { InvalidKind::WrongShape } else { InvalidKind::NotJson },
            reason: clip(reason, MAX_REASON).to_owned(),
            line: error.line(),
            column: error.column(),
        }
    }
}

/// The longest prefix of `text` of at most `max` bytes that ends on a character.
#[must_use]
pub fn clip(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Reads the whole body as one JSON object of type `T`, borrowing from it.
///
/// # Errors
/// When it is not UTF-8, not JSON to the last byte, nested too deep, not an object, or not a `T`.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, InvalidBody> {
    let text = str::from_utf8(body).map_err(|error| {
        InvalidBody::at(InvalidKind::NotJson, "bytes that are not UTF-8", body, error.valid_up_to())
    })?;
    if let Some(offset) = too_deep(body) {
        let reason = format!("nesting deeper than {MAX_DEPTH} levels");
        return Err(InvalidBody::at(InvalidKind::NotJson, reason, body, offset));
    }
    // A derived struct would also accept an array of its fields, in order, and names itself when it refuses others.
    if let Some(offset) = body.iter().position(|byte| !byte.is_ascii_whitespace())
        && body[offset] != b'{'
    {
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| InvalidBody::from_serde(&error))?;
        return Err(InvalidBody::at(InvalidKind::WrongShape, "the body must be a JSON object", body, offset));
    }
    serde_json::from_str(text).map_err(|error| InvalidBody::from_serde(&error))
}

/// Where nesting passes [`MAX_DEPTH`]. serde skips unknown values without recursion and hence without a limit of its
/// own; what we accept goes on to services that do recurse.
fn too_deep(body: &[u8]) -> Option<usize> {
    // Nearly every body has too few brackets to be deep: counting them costs far less than tracking strings.
    if memchr::memchr2_iter(b'{', b'[', body).take(MAX_DEPTH + 1).count() <= MAX_DEPTH {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'"' => at += string_length(&body[at..]) - 1,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Bytes of the string that starts at `bytes[0]`, both quotes included; all of `bytes` when it does not end.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// For `#[serde(deserialize_with)]`: keeps a value's bytes, `null` included, so that its span is known.
pub(crate) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// For `#[serde(deserialize_with)]`: a string; any other value, `null` included, is none. See [`JsonStr::decode`].
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    Ok(JsonStr::new(<&RawValue>::deserialize(deserializer)?).map(JsonStr::decode))
}

/// For `#[serde(deserialize_with)]`: a count, `12` or `12.0`; `null`, −1 and other nonsense are none.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(raw.strip_suffix(".0").unwrap_or(raw).parse().ok())
}

/// The same where any other value but `null` is an error.
pub(crate) fn strict_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    match JsonStr::new(raw) {
        Some(text) => Ok(Some(text.decode())),
        None if raw.get() == "null" => Ok(None),
        None => Err(serde::de::Error::custom("a string was expected")),
    }
}

/// The input from the value on, when `after_key` (what follows a member's name and its closing quote) starts with a
/// colon.
pub(crate) fn member_value(after_key: &[u8]) -> Option<&[u8]> {
    Some(after_key.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())
}

/// Where `part`, a slice of `body`, lies in it.
pub(crate) fn span_of(body: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - body.as_ptr() as usize;
    start..start + part.len()
}

/// A JSON string still in its quotes, decoded only when somebody asks; or a text that never had any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonStr<'a> {
    text: &'a str,
    plain: bool,
}

impl<'a> JsonStr<'a> {
    /// `raw` when it is a string.
    pub(crate) fn new(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('"').then_some(Self { text: raw.get(), plain: false })
    }

    /// A text from elsewhere than JSON.
    pub(crate) fn plain(text: &'a str) -> Self {
        Self { text, plain: true }
    }

    /// What stands between the quotes, escapes as they are.
    #[must_use]
    pub fn escaped(self) -> &'a str {
        if self.plain { self.text } else { &self.text[1..self.text.len() - 1] }
    }

    /// The text. Borrowed when it holds no escape; half of a surrogate pair, which cut emoji leave behind, becomes
    /// U+FFFD.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        if self.plain || memchr::memchr(b'\\', self.escaped().as_bytes()).is_none() {
            return Cow::Borrowed(self.escaped());
        }
        let mut deserializer = serde_json::Deserializer::from_str(self.text);
        // As bytes, because only then does serde_json let half surrogates through.
        let bytes = deserializer.deserialize_bytes(BytesVisitor).unwrap_or_default();
        Cow::Owned(
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        )
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(bytes.to_vec())
    }
}

/// `text` as a JSON string, quotes included.
#[must_use]
pub fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_string_without_escapes_is_borrowed_and_one_with_escapes_is_decoded() {
        let raw: Box<RawValue> = serde_json::from_str(r#""plain 你好""#).unwrap();
        assert!(matches!(JsonStr::new(&raw).unwrap().decode(), Cow::Borrowed("plain 你好")));
        let raw: Box<RawValue> = serde_json::from_str(r#""a\n\u4f60\ud83d\udeb2\"""#).unwrap();
        assert_eq!(JsonStr::new(&raw).unwrap().decode(), "a\n你🚲\"");
    }

    #[test]
    fn half_a_surrogate_pair_does_not_fail_the_request() {
        let raw: Box<RawValue> = serde_json::from_str(r#""cut \ud83d here""#).unwrap();
        let decoded = JsonStr::new(&raw).unwrap().decode();
        assert!(decoded.starts_with("cut \u{FFFD}") && decoded.ends_with(" here"), "{decoded}");
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit_and_refused_with_a_position_beyond_it() {
        let nest = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_object::<Value>(nest(MAX_DEPTH - 2).as_bytes()).is_ok());
        let error = parse_object::<Value>(nest(MAX_DEPTH).as_bytes()).unwrap_err();
        assert_eq!((error.kind, error.line, error.column), (InvalidKind::NotJson, 1, 5 + MAX_DEPTH));
        // A million levels neither overflow the stack nor take long.
        assert!(parse_object::<Value>("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn brackets_inside_strings_do_not_count_as_nesting() {
        let body = format!(r#"{{"a":"\"{}"}}"#, "[".repeat(1000));
        assert!(parse_object::<Value>(body.as_bytes()).is_ok());
    }

    #[test]
    fn a_body_that_is_not_an_object_or_not_utf8_is_refused_with_its_position() {
        let error = parse_object::<Value>(b" \n[1]").unwrap_err();
        assert_eq!((error.kind, error.line, error.column), (InvalidKind::WrongShape, 2, 1));
        let error = parse_object::<Value>(b"{\"a\":\n\"\xff\"}").unwrap_err();
        assert_eq!((error.kind, error.line, error.column), (InvalidKind::NotJson, 2, 2));
        let error = parse_object::<Value>(b"null").unwrap_err();
        assert_eq!(
            (error.kind, error.reason.as_str()),
            (InvalidKind::WrongShape, "the body must be a JSON object")
        );
        assert_eq!(parse_object::<Value>(b"").unwrap_err().kind, InvalidKind::NotJson);
        assert_eq!(parse_object::<Value>(b"hello").unwrap_err().kind, InvalidKind::NotJson);
        assert_eq!(parse_object::<Value>(b"{} x").unwrap_err().kind, InvalidKind::NotJson);
    }
}
