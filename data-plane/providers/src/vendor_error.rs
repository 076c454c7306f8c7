//! Reads what a service says about its failure, in whatever shape it comes.
//!
//! | shape | who |
//! |---|---|
//! | `{"error":{"message","type","param","code"}}` | OpenAI, Azure, DeepSeek, Ark, Moonshot, vLLM, Zhipu, Qianfan |
//! | `{"type":"error","error":{"type","message","details"}}` | Anthropic |
//! | `{"error":{"code","message","status","details":[…]}}`, at times within a list | Google |
//! | `{"message"}` or `{"Message"}`, the type in a header or in `__type` | AWS |
//! | `{"message","id"}` | Cohere |
//! | `{"object":"error","message","type","code"}` | Mistral, older vLLM |
//! | `{"code","message","request_id"}` | DashScope |
//! | `{"error_code","error_msg"}` | Qianfan, old |
//! | `{"detail":…}` | FastAPI: Mistral and many of one's own |
//! | `{"error":"text"}`, plain text | Ollama, and others |

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::clip;
use crate::rate_limit;

/// Longest message that is taken over from a service.
pub const MAX_MESSAGE: usize = 2 << 10;

/// Longest body that is looked at; no error message of use is longer.
const MAX_BODY: usize = 64 << 10;

/// Longest code or type that is taken over.
const MAX_NAME: usize = 128;

/// What a service says about its failure, fit to be shown to a client: no markup, no addresses, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorError {
    /// The vendor's code, a number as text.
    pub code: Option<String>,
    /// The vendor's `type`, or Google's `status`.
    pub kind: Option<String>,
    /// A code finer than `code`: of Azure's `innererror`, of Anthropic's `details`, the reason in Google's.
    pub reason: Option<String>,
    /// A sentence for people; `None` when there is none worth showing.
    pub message: Option<String>,
    /// How long the vendor wants to be left alone, where the body says it: Google's `RetryInfo`, or a day where the quota
    /// that was exceeded is a daily one. Not capped.
    pub retry_delay: Option<Duration>,
}

impl VendorError {
    /// Reads an error body of any shape. An HTML page or nothing gives an empty error.
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

    /// The error that a JSON object sent with status 200, whole or as one event of a stream, reports at its top level.
    pub(crate) fn in_band(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Top<'a> {
            #[serde(borrow)]
            error: Option<&'a RawValue>,
            #[serde(borrow)]
            error_code: Option<&'a RawValue>,
        }
        // Nearly every answer is without: do not parse it to find that out.
        memchr::memmem::find(json, b"\"error")?;
        let top: Top<'_> = serde_json::from_slice(json).ok()?;
        let says_so = |value: &&RawValue| !matches!(value.get(), "\"\"" | "{}" | "[]" | "false" | "0");
        top.error.filter(says_so).or(top.error_code.filter(says_so))?;
        Some(Self::read(json))
    }

    /// Its names, the finest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.reason, &self.code, &self.kind].into_iter().flatten().map(String::as_str)
    }

    /// `nested` bounds how often a message that is itself a JSON error is opened.
    pub(crate) fn from_value(value: &Value, nested: u8) -> Self {
        // Google's streams that are not SSE are lists.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = match value {
            Value::Object(object) => object.get("error").filter(|error| !error.is_null()).unwrap_or(value),
            other => other,
        };
        let field = |names: &[&str]| names.iter().find_map(|name| error.get(name).filter(|v| !v.is_null()));
        let code = field(&["code", "error_code"]).and_then(name);
        let kind = field(&["type", "status", "__type", "error_type"]).and_then(name);
        let (reason, retry_delay) = details(error);
        let message = match error {
            Value::String(text) => Some(text.as_str()),
            Value::Object(_) => {
                field(&["message", "Message", "msg", "error_msg", "detail", "errors"]).and_then(sentence)
            }
            _ => None,
        };
        if let Some(text) = message.filter(|text| nested > 0 && text.trim_start().starts_with('{'))
            && let Ok(inner) = serde_json::from_str::<Value>(text)
        {
            let inner = Self::from_value(&inner, nested - 1);
            return Self {
                code: code.or(inner.code),
                kind: kind.or(inner.kind),
                reason: reason.or(inner.reason),
                message: inner.message,
                retry_delay: retry_delay.or(inner.retry_delay),
            };
        }
        Self { code, kind, reason, message: message.and_then(presentable), retry_delay }
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

/// The finer code, and the wait that is asked for.
fn details(error: &Value) -> (Option<String>, Option<Duration>) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let list = match &error["details"] {
        Value::Array(list) => list.as_slice(),
        object => return (name(&object["error_code"]).or_else(|| name(&error["innererror"]["code"])), None),
    };
    let reason = list.iter().find_map(|detail| name(&detail["reason"]));
    let daily = list
        .iter()
        .flat_map(|detail| detail["violations"].as_array().into_iter().flatten())
        .any(|violation| violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay")));
    // Half a minute is what `RetryInfo` says of a daily quota, too.
    let stated = || list.iter().find_map(|detail| rate_limit::duration(detail["retryDelay"].as_str()?));
    (reason, if daily { Some(DAY) } else { stated() })
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
        Value::Object(object) => {
            sentence(["msg", "message", "detail"].iter().find_map(|name| object.get(*name))?)
        }
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
            r#"{"Message":"prompt too long"}"#,
            r#"{"message":"prompt too long","id":"c1"}"#,
            r#"{"code":"InvalidParameter","message":"prompt too long","request_id":"r"}"#,
            r#"{"object":"error","message":{"detail":[{"type":"x","loc":["body"],"msg":"prompt too long"}]},"code":null}"#,
            r#"[{"error":{"code":400,"message":"prompt too long","status":"INVALID_ARGUMENT"}}]"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt too long"},"request_id":"r"}"#,
            "prompt too long",
            r#"{"error_code":336003,"error_msg":"prompt too long"}"#,
            r#"{"error":{"message":"{\"error\":{\"message\":\"prompt too long\"}}"}}"#,
            r#""prompt too long""#,
        ] {
            assert_eq!(message(body).as_deref(), Some("prompt too long"), "{body}");
        }
    }

    #[test]
    fn codes_types_and_finer_codes_are_kept_apart() {
        let names = |body: &str| {
            let error = VendorError::read(body.as_bytes());
            [error.code, error.kind, error.reason].map(Option::unwrap_or_default)
        };
        for (body, expected) in [
            (r#"{"error":{"code":"c","type":"t"}}"#, ["c", "t", ""]),
            (r#"{"error":{"code":1302}}"#, ["1302", "", ""]),
            (r#"{"error":{"code":"a","innererror":{"code":"b"}}}"#, ["a", "", "b"]),
            (r#"{"type":"error","error":{"type":"t","details":{"error_code":"x"}}}"#, ["", "t", "x"]),
            (
                r#"{"error":{"code":400,"status":"S","details":[{"@type":"a"},{"@type":"b","reason":"R"}]}}"#,
                ["400", "S", "R"],
            ),
            (r#"{"__type":"ThrottlingException","message":"m"}"#, ["", "ThrottlingException", ""]),
            (r#"{"error":"e","error_type":"validation"}"#, ["", "", ""]),
            (r#"{"error_code":18,"error_msg":"m"}"#, ["18", "", ""]),
        ] {
            assert_eq!(names(body), expected, "{body}");
        }
    }

    #[test]
    fn googles_wait_is_read_and_a_daily_quota_waits_for_a_day() {
        let wait = |details: &str| {
            VendorError::read(format!(r#"{{"error":{{"code":429,"details":{details}}}}}"#).as_bytes())
                .retry_delay
        };
        let info = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}"#;
        let quota = |id: &str| {
            format!(
                r#"{{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaId":"{id}"}}]}}"#
            )
        };
        assert_eq!(wait(&format!("[{info}]")), Some(Duration::from_millis(34_500)));
        let minute = quota("GenerateRequestsPerMinutePerProjectPerModel");
        assert_eq!(wait(&format!("[{minute},{info}]")), Some(Duration::from_millis(34_500)));
        let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        assert_eq!(wait(&format!("[{day},{info}]")), Some(Duration::from_secs(86_400)));
        assert_eq!(wait("[]"), None);
        assert_eq!(wait(r#"[{"retryDelay":"soon"},7]"#), None);
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
