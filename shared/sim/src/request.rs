//! Checks a request as strictly as the real service does.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;
use serde_json::value::RawValue;

use crate::reject::Rejection;

/// A chat request that can be answered.
#[derive(Debug)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: Cow<'a, str>,
    /// The messages as they stand in the body.
    pub(crate) messages: &'a str,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: Option<u32>,
    /// Texts only, and nothing asked for that changes what the answer is like.
    pub(crate) plain: bool,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    stream: Option<&'a RawValue>,
    #[serde(borrow)]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    top_p: Option<&'a RawValue>,
    #[serde(borrow)]
    n: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    user: Option<&'a RawValue>,
    #[serde(borrow)]
    response_format: Option<&'a RawValue>,
    #[serde(borrow)]
    stop: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow)]
    enable_thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    parallel_tool_calls: Option<&'a RawValue>,
}

impl Body<'_> {
    /// Is none of the fields there that change what the answer is like?
    fn is_plain(&self) -> bool {
        let special = [
            self.tools,
            self.response_format,
            self.stop,
            self.reasoning_effort,
            self.enable_thinking,
            self.thinking,
            self.tool_choice,
            self.parallel_tool_calls,
        ];
        special.iter().all(Option::is_none)
    }
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_calls: Option<Vec<IgnoredAny>>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Reads the body as a JSON object. Numbers must fit what JSON parsers agree on, strings must be UTF-8.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Rejection> {
    let could_not =
        |why: String| Rejection::request(format!("We could not parse the JSON body of your request: {why}"));
    let text = str::from_utf8(body).map_err(|error| could_not(error.to_string()))?;
    if !text.trim_start().starts_with('{') {
        return Err(could_not("expected an object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| could_not(error.to_string()))
}

/// One parameter as a `T`; `None` when it is absent or `null`.
pub(crate) fn typed<'a, T: Deserialize<'a>>(
    param: &'static str,
    value: Option<&'a RawValue>,
) -> Result<Option<T>, Rejection> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_str(value.get()).map_err(|error| {
        Rejection::param(param, Some("invalid_type"), format!("Invalid type for '{param}': {error}."))
    })
}

/// The model, which must be one of `models`.
pub(crate) fn model<'a>(value: Option<&'a RawValue>, models: &[String]) -> Result<Cow<'a, str>, Rejection> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(Text(model)) = typed("model", value)? else {
        return Err(Rejection::request("you must provide a model parameter"));
    };
    if models.iter().any(|known| *known == model) { Ok(model) } else { Err(Rejection::unknown_model(&model)) }
}

/// Checks a chat request.
pub(crate) fn chat<'a>(body: &'a [u8], models: &[String]) -> Result<ChatRequest<'a>, Rejection> {
    let body: Body<'a> = parse(body)?;
    let model = model(body.model, models)?;
    let messages = body.messages.ok_or_else(|| Rejection::missing("messages"))?;
    let plain = check_messages(messages)? && body.is_plain();
    let stream = typed("stream", body.stream)?.unwrap_or(false);
    let options: Option<StreamOptions> = typed("stream_options", body.stream_options)?;
    if options.is_some() && !stream {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Rejection::param("stream_options", None, message));
    }
    range("temperature", body.temperature, 0.0, 2.0)?;
    range("top_p", body.top_p, 0.0, 1.0)?;
    if typed::<u32>("n", body.n)?.is_some_and(|n| n != 1) {
        return Err(Rejection::param("n", Some("unsupported_value"), "This service gives one choice."));
    }
    let tools: Option<Vec<IgnoredAny>> = typed("tools", body.tools)?;
    if tools.is_some_and(|tools| tools.is_empty()) {
        return Err(Rejection::param("tools", Some("empty_array"), "Invalid 'tools': empty array."));
    }
    typed::<String>("user", body.user)?;
    let include_usage = options.and_then(|options| options.include_usage).unwrap_or(false);
    let max_tokens = max_tokens(body.max_tokens, body.max_completion_tokens)?;
    Ok(ChatRequest { model, messages: messages.get(), stream, include_usage, max_tokens, plain })
}

fn max_tokens(old: Option<&RawValue>, new: Option<&RawValue>) -> Result<Option<u32>, Rejection> {
    let old = typed("max_tokens", old)?;
    let new = typed("max_completion_tokens", new)?;
    if old.is_some() && new.is_some() {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Rejection::param("max_tokens", None, message));
    }
    let limit = new.or(old);
    if limit == Some(0) {
        let code = Some("integer_below_min_value");
        return Err(Rejection::param("max_tokens", code, "Expected a value of at least 1."));
    }
    Ok(limit)
}

fn range(param: &'static str, value: Option<&RawValue>, from: f64, to: f64) -> Result<(), Rejection> {
    let number: Option<Number> = match value {
        Some(value) => typed(param, Some(value))?,
        None => None,
    };
    match number.as_ref().and_then(Number::as_f64) {
        Some(number) if !(from..=to).contains(&number) => {
            let message = format!("Invalid '{param}': expected a value from {from} to {to}.");
            Err(Rejection::param(param, Some("decimal_out_of_range"), message))
        }
        _ => Ok(()),
    }
}

/// Are all of them plain texts?
fn check_messages(messages: &RawValue) -> Result<bool, Rejection> {
    let messages: Vec<Message<'_>> = typed("messages", Some(messages))?.unwrap_or_default();
    if messages.is_empty() {
        let message = "Invalid 'messages': empty array.";
        return Err(Rejection::param("messages", Some("empty_array"), message));
    }
    let mut plain = true;
    for (index, message) in messages.iter().enumerate() {
        let fail = |field: &str, what: &str| {
            let param = format!("messages[{index}].{field}");
            let text = format!("Invalid value for '{param}': {what}.");
            Err(Rejection::param(param, Some("invalid_value"), text))
        };
        let role = message.role.as_deref().unwrap_or_default();
        if !["system", "developer", "user", "assistant", "tool", "function"].contains(&role) {
            return fail("role", "expected system, developer, user, assistant, tool or function");
        }
        if role == "tool" && message.tool_call_id.is_none() {
            return fail("tool_call_id", "a tool message names the call that it answers");
        }
        plain &= role != "tool"
            && message.tool_calls.is_none()
            && message.content.is_some_and(|content| content.get().starts_with('"'));
        match message.content {
            None if role == "assistant" && message.tool_calls.is_some() => {}
            None => return fail("content", "expected a string or an array of parts, got null"),
            Some(content) if content.get().starts_with('"') => {}
            Some(content) if parts_are_good(content) => {}
            Some(_) => return fail("content", "expected a string or an array of parts"),
        }
    }
    Ok(plain)
}

fn parts_are_good(content: &RawValue) -> bool {
    let Ok(parts) = serde_json::from_str::<Vec<Part<'_>>>(content.get()) else { return false };
    let is_text = |part: &Part<'_>| part.text.is_some_and(|text| text.get().starts_with('"'));
    !parts.is_empty() && parts.iter().all(|part| part.r#type != "text" || is_text(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> Result<ChatRequest<'_>, Rejection> {
        chat(body.as_bytes(), &["m".to_owned()])
    }

    #[test]
    fn a_good_request_passes_with_fields_that_nobody_knows() {
        let body = r#"{"model":"m","messages":[
            {"role":"system","content":"s"},
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:"}}]},
            {"role":"assistant","content":null,"tool_calls":[{}]},
            {"role":"tool","tool_call_id":"t","content":"half \ud83d"}],
            "stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":5,"temperature":0.5,
            "n":1,"user":"u","enable_thinking":false,"x":{"big":12345678901234567890}}"#;
        let request = check(body).unwrap();
        assert!(request.stream && request.include_usage);
        assert_eq!(request.max_tokens, Some(5));
        assert!(request.messages.starts_with('[') && request.messages.ends_with(']'));
    }

    #[test]
    fn each_mistake_is_refused_as_the_real_service_does() {
        const GOOD: &str = r#""messages":[{"role":"user","content":"hi"}]"#;
        let cases = [
            ("", 400, None, None),
            ("[]", 400, None, None),
            ("{", 400, None, None),
            (r#"{"model":"m"}"#, 400, Some("messages"), Some("missing_required_parameter")),
            (r#"{"model":"m","messages":"hi"}"#, 400, Some("messages"), Some("invalid_type")),
            (r#"{"model":"m","messages":[]}"#, 400, Some("messages"), Some("empty_array")),
            (
                r#"{"model":"m","messages":[{"role":"wizard","content":"a"}]}"#,
                400,
                Some("messages[0].role"),
                Some("invalid_value"),
            ),
            (
                r#"{"model":"m","messages":[{"role":"user"}]}"#,
                400,
                Some("messages[0].content"),
                Some("invalid_value"),
            ),
            (
                r#"{"model":"m","messages":[{"role":"user","content":5}]}"#,
                400,
                Some("messages[0].content"),
                Some("invalid_value"),
            ),
            (
                r#"{"model":"m","messages":[{"role":"tool","content":"a"}]}"#,
                400,
                Some("messages[0].tool_call_id"),
                Some("invalid_value"),
            ),
        ];
        for (body, status, param, code) in cases {
            let rejection = check(body).unwrap_err();
            let got = (rejection.status.as_u16(), rejection.param.as_deref(), rejection.code);
            assert_eq!(got, (status, param, code), "{body}");
        }
        for (field, param) in [
            (r#""model":"m","stream":"yes""#, "stream"),
            (r#""model":"m","stream_options":{"include_usage":true}"#, "stream_options"),
            (r#""model":"m","max_tokens":0"#, "max_tokens"),
            (r#""model":"m","max_tokens":1.5"#, "max_tokens"),
            (r#""model":"m","max_tokens":1,"max_completion_tokens":2"#, "max_tokens"),
            (r#""model":"m","temperature":3"#, "temperature"),
            (r#""model":"m","n":2"#, "n"),
            (r#""model":"m","tools":[]"#, "tools"),
            (r#""model":"m","user":5"#, "user"),
            (r#""model":5"#, "model"),
        ] {
            let rejection = check(&format!("{{{field},{GOOD}}}")).unwrap_err();
            assert_eq!(
                (rejection.status.as_u16(), rejection.param.as_deref()),
                (400, Some(param)),
                "{field}"
            );
        }
    }

    #[test]
    fn a_model_that_it_does_not_have_is_not_found() {
        let rejection =
            check(r#"{"model":"other","messages":[{"role":"user","content":"hi"}]}"#).unwrap_err();
        assert_eq!((rejection.status.as_u16(), rejection.code), (404, Some("model_not_found")));
        assert_eq!(check(r#"{"messages":[]}"#).unwrap_err().status.as_u16(), 400);
    }
}
