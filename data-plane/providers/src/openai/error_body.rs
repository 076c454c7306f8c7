//! Error bodies: writing ours, and reading theirs in whatever shape they come.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::json::clip;

/// Longest message that is taken over from a service.
pub const MAX_MESSAGE: usize = 2 << 10;

/// Longest body that is looked at; no error message of use is longer.
const MAX_BODY: usize = 64 << 10;

/// Longest code or type that is taken over.
const MAX_NAME: usize = 128;

/// An error in OpenAI's shape: `{"error":{"message":…,"type":…,"param":…,"code":…}}`.
#[must_use]
pub fn build(kind: &str, code: &str, message: &str, param: Option<&str>) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: &'a str,
    }
    let body = Body { error: Error { message, r#type: kind, param, code } };
    serde_json::to_vec(&body).expect("strings always serialise").into()
}

/// What a service says about its failure, fit to be shown to a client: no markup, no addresses, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's code, a number as text.
    pub code: Option<String>,
    /// The vendor's `type`.
    pub kind: Option<String>,
    /// A sentence for people; `None` when there is none worth showing.
    pub message: Option<String>,
}

impl VendorError {
    /// Reads an error body of any shape: OpenAI's, `{"error":"…"}`, FastAPI's `detail`, flat `{"message":…}`, Baidu's
    /// `error_msg`, plain text. An HTML page or nothing gives an empty error.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let body = &body[..body.len().min(MAX_BODY)];
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value, 2),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let json = text.trim_start().starts_with(['{', '[', '"']);
                let message = text.lines().find(|line| !line.trim().is_empty()).filter(|_| !json);
                Self { message: message.and_then(presentable), ..Self::default() }
            }
        }
    }

    /// `nested` bounds how often a message that is itself a JSON error is opened.
    pub(crate) fn from_value(value: &Value, nested: u8) -> Self {
        let error = match value {
            Value::Object(object) => object.get("error").filter(|error| !error.is_null()).unwrap_or(value),
            other => other,
        };
        let field = |names: &[&str]| names.iter().find_map(|name| error.get(name).filter(|v| !v.is_null()));
        let code = field(&["code", "error_code"]).and_then(name);
        let kind = field(&["type", "status"]).and_then(name);
        let message = match error {
            Value::String(text) => Some(text.as_str()),
            Value::Object(_) => {
                field(&["message", "msg", "error_msg", "detail", "errors"]).and_then(sentence)
            }
            _ => None,
        };
        if let Some(text) = message.filter(|text| nested > 0 && text.trim_start().starts_with('{'))
            && let Ok(inner) = serde_json::from_str::<Value>(text)
        {
            let inner = Self::from_value(&inner, nested - 1);
            return Self { code: code.or(inner.code), kind: kind.or(inner.kind), message: inner.message };
        }
        Self { code, kind, message: message.and_then(presentable) }
    }

    /// Takes `secret`, the credential that the service was called with, out of the message, should it be quoted there.
    pub fn redact(&mut self, secret: &str) {
        if let Some(message) = &mut self.message
            && !secret.is_empty()
            && message.contains(secret)
        {
            *message = message.replace(secret, "[redacted]");
        }
    }
}

fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(clip(text, MAX_NAME).to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a message that may also be a list of objects with a message (FastAPI).
fn sentence(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => sentence(items.first()?),
        Value::Object(object) => object.get("msg").or_else(|| object.get("message"))?.as_str(),
        _ => None,
    }
}

/// `text` without stack trace, control characters and addresses, and not too long; `None` for markup and for nothing.
fn presentable(text: &str) -> Option<String> {
    let text = clip(text.trim(), MAX_MESSAGE);
    if text.starts_with('<') || text.to_ascii_lowercase().contains("<html") {
        return None;
    }
    let traced = |line: &&str| line.starts_with("Traceback") || line.trim_start().starts_with("at ");
    let lines: Vec<&str> = text.lines().take_while(|line| !traced(line)).collect();
    let plain: String = lines.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let shown = clip(&without_addresses(&plain), MAX_MESSAGE).trim().to_owned();
    (!shown.is_empty()).then_some(shown)
}

/// Every `scheme://…` replaced.
fn without_addresses(text: &str) -> String {
    const MARK: &str = "[address]";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme =
            rest[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let after = &rest[at + 3..];
        let end = after
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | ','))
            .unwrap_or(after.len());
        out.push_str(scheme);
        out.push_str(MARK);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(body: &str) -> Option<String> {
        VendorError::read(body.as_bytes()).message
    }

    #[test]
    fn the_useful_sentence_is_found_in_every_shape_tr_16() {
        for body in [
            r#"{"error":{"message":"prompt too long","code":"ctx"}}"#,
            r#"{"error":"prompt too long"}"#,
            r#"{"detail":"prompt too long"}"#,
            r#"{"detail":[{"msg":"prompt too long"}]}"#,
            r#"{"message":"prompt too long"}"#,
            "prompt too long",
            r#"{"error_code":336003,"error_msg":"prompt too long"}"#,
            r#"{"error":{"message":"{\"error\":{\"message\":\"prompt too long\"}}"}}"#,
            r#""prompt too long""#,
        ] {
            assert_eq!(message(body).as_deref(), Some("prompt too long"), "{body}");
        }
    }

    #[test]
    fn a_page_and_an_empty_body_give_no_message_tr_16() {
        let page = format!("<!DOCTYPE html><html>{}</html>", "x".repeat(2 << 20));
        for body in
            [page.as_str(), "", "  \n", "{}", r#"{"error":{"message":"<html>504</html>"}}"#, r#"{"error":"#]
        {
            assert_eq!(message(body), None);
        }
    }

    #[test]
    fn addresses_and_traces_stay_inside_tr_16() {
        let shown = message(
            r#"{"error":"cannot reach http://10.0.0.7:8000/v1 (see https://x.example/docs).\nTraceback (most recent call last):\n File"}"#,
        );
        assert_eq!(shown.as_deref(), Some("cannot reach [address] (see [address])."));
    }

    #[test]
    fn at_most_two_kilobytes_are_copied_tr_16() {
        let long = "好".repeat(5000);
        let shown = message(&format!(r#"{{"message":"{long}"}}"#)).unwrap();
        assert!(shown.len() <= MAX_MESSAGE && shown.len() > MAX_MESSAGE - 4);
    }

    #[test]
    fn a_credential_quoted_by_the_service_is_taken_out_sec_01() {
        let mut error = VendorError::read(br#"{"error":{"message":"bad key SENTINEL-7f3a!"}}"#);
        error.redact("SENTINEL-7f3a");
        assert_eq!(error.message.as_deref(), Some("bad key [redacted]!"));
    }

    #[test]
    fn our_own_error_has_openais_shape() {
        let body = build("invalid_request_error", "invalid_json", "say \"please\"", None);
        let expected = r#"{"error":{"message":"say \"please\"","type":"invalid_request_error","param":null,"code":"invalid_json"}}"#;
        assert_eq!(body, expected.as_bytes());
    }

    proptest! {
        #[test]
        fn whatever_a_service_says_is_bounded_and_harmless(body in prop::collection::vec(any::<u8>(), 0..512), text in any::<String>()) {
            let _ = VendorError::read(&body);
            let shown = message(&serde_json::json!({"error": {"message": format!("{text} https://{text} {text}")}}).to_string());
            if let Some(shown) = shown {
                prop_assert!(!shown.contains("://") && !shown.chars().any(char::is_control) && shown.len() <= MAX_MESSAGE);
            }
        }
    }
}
