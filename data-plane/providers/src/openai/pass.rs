//! The body of a chat request whose client and service both speak this dialect: the client's bytes but for the few
//! members that differ by service.

use std::ops::Range;

use bytes::Bytes;
use penstock_model::vendor::{MaxTokens, StreamUsage};

use super::chat::members::Members;
use crate::dialect::TargetFacts;
use crate::exchange::Field;
use crate::json::span_of;
use crate::splice::{Edits, ModelName, SplicedBody, replace_model};
use crate::view::View;

/// Where in a body the members stand that may have to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    model: Option<Range<usize>>,
    stream_options: Option<Range<usize>>,
    /// `max_tokens` and `max_completion_tokens`.
    limits: [Option<Range<usize>>; 2],
    /// A stream whose usage the client has not asked for.
    silent_stream: bool,
}

impl From<&View<'_>> for Spans {
    fn from(view: &View<'_>) -> Self {
        Self {
            model: view.model_span.clone(),
            stream_options: view.stream_options_span.clone(),
            limits: view.limit_spans.clone(),
            silent_stream: view.stream && !view.include_usage,
        }
    }
}

impl Spans {
    /// Is the service to be asked for a usage report that the client did not ask for? Then
    /// [`SseWatch::hiding_usage`](super::SseWatch::hiding_usage) is to watch the stream.
    #[must_use]
    pub fn asks_for_usage(&self, target: &TargetFacts<'_>) -> bool {
        self.silent_stream && target.vendor.parameters.stream_usage == StreamUsage::Option
    }
}

/// The body for a target. `model` is the target's, made ready. Every byte that need not change stays, and stays where it
/// is in memory.
///
/// # Errors
/// When both output limits are given and differ (TR-05).
pub fn body(
    body: &Bytes,
    spans: &Spans,
    target: &TargetFacts<'_>,
    model: &ModelName,
) -> Result<SplicedBody, Field> {
    let vendor = target.vendor;
    let limits = [spans.limits[0].as_ref(), spans.limits[1].as_ref()];
    let plain = vendor.body.is_empty()
        && !vendor.model_in_path
        && !spans.asks_for_usage(target)
        && limits_may_stay(limits, target.max_tokens_name);
    if plain {
        return Ok(replace_model(body, spans.model.clone(), model));
    }
    let mut edits = Edits::new(body);
    match (&spans.model, vendor.model_in_path) {
        (Some(span), true) => {
            edits.remove(span);
        }
        (None, true) => {}
        (span, false) => {
            edits.model(span.clone(), model);
        }
    }
    limit(&mut edits, body, limits, target.max_tokens_name)?;
    if spans.asks_for_usage(target) {
        ask_for_usage(&mut edits, body, spans.stream_options.as_ref())?;
    }
    if !vendor.body.is_empty() {
        let members = members(body, 0..body.len())?;
        for (name, value) in &vendor.body {
            let value = value.to_string();
            match members.iter().find(|(member, _)| member == name) {
                Some((_, span)) => edits.replace(span.clone(), value),
                None => edits.insert(name, value.as_bytes()),
            };
        }
    }
    Ok(edits.apply())
}

fn limits_may_stay(limits: [Option<&Range<usize>>; 2], takes: MaxTokens) -> bool {
    match limits {
        [None, None] => true,
        [Some(_), None] => takes != MaxTokens::MaxCompletionTokens,
        [None, Some(_)] => takes != MaxTokens::MaxTokens,
        [Some(_), Some(_)] => false,
    }
}

/// Leaves one limit, under a name that the deployment takes.
fn limit(
    edits: &mut Edits,
    body: &Bytes,
    limits: [Option<&Range<usize>>; 2],
    takes: MaxTokens,
) -> Result<(), Field> {
    match (limits, takes) {
        ([Some(old), Some(new)], takes) => {
            if body[old.clone()] != body[new.clone()] {
                let reason = "differs from `max_completion_tokens`: give one of them";
                return Err(Field::new("max_tokens", reason));
            }
            edits.remove(if takes == MaxTokens::MaxTokens { new } else { old });
        }
        ([Some(old), None], MaxTokens::MaxCompletionTokens) => {
            rename(edits, body, old, "max_completion_tokens")?;
        }
        ([None, Some(new)], MaxTokens::MaxTokens) => {
            rename(edits, body, new, "max_tokens")?;
        }
        _ => {}
    }
    Ok(())
}

/// Renames a member, in place of one that is `null`.
fn rename(edits: &mut Edits, body: &Bytes, value: &Range<usize>, name: &str) -> Result<(), Field> {
    if let Some(null) = find(body, name)? {
        edits.remove(&null);
    }
    edits.rename(value, name);
    Ok(())
}

/// Adds `include_usage` to the options of the stream, and keeps the client's other ones (SSE-05).
fn ask_for_usage(edits: &mut Edits, body: &Bytes, options: Option<&Range<usize>>) -> Result<(), Field> {
    const ASK: &str = "{\"include_usage\":true}";
    let Some(span) = options else {
        match find(body, "stream_options")? {
            Some(null) => edits.replace(null, ASK),
            None => edits.insert("stream_options", ASK.as_bytes()),
        };
        return Ok(());
    };
    let own = members(body, span.clone())?;
    match own.iter().find(|(name, _)| name == "include_usage") {
        Some((_, value)) => edits.replace(value.clone(), "true"),
        None => {
            let comma = if own.is_empty() { "" } else { "," };
            edits.replace(span.start..span.start + 1, format!("{{\"include_usage\":true{comma}"))
        }
    };
    Ok(())
}

/// The value of a member that the view says nothing of: of nearly all bodies its name alone tells that it is not there.
fn find(body: &Bytes, name: &str) -> Result<Option<Range<usize>>, Field> {
    if memchr::memmem::find(body, name.as_bytes()).is_none() {
        return Ok(None);
    }
    let members = members(body, 0..body.len())?;
    Ok(members.into_iter().find(|(member, _)| member == name).map(|(_, span)| span))
}

/// Names and values of the members of an object that stands in the body.
fn members(body: &Bytes, object: Range<usize>) -> Result<Vec<(String, Range<usize>)>, Field> {
    let text = str::from_utf8(&body[object]).map_err(|_| Field::new("", "the body is not UTF-8"))?;
    let members = Members::read(text, "stream_options")?.0;
    Ok(members.into_iter().map(|(name, raw)| (name.into_owned(), span_of(body, raw.get()))).collect())
}

#[cfg(test)]
mod tests {
    use penstock_model::vendor::{Parameters, Vendor};

    use super::*;
    use crate::openai::view::chat;

    fn vendor(max_tokens: MaxTokens) -> Vendor {
        let mut vendor = Vendor::find("openai").unwrap().clone();
        vendor.parameters = Parameters { max_tokens, ..Parameters::default() };
        vendor.body.clear();
        vendor
    }

    fn sent(text: &str, vendor: &Vendor) -> Result<String, Field> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let spans = Spans::from(&chat(&bytes).unwrap());
        let max_tokens_name = vendor.parameters.max_tokens;
        let target = TargetFacts { vendor, model: "m", max_tokens_name, default_max_tokens: 1 };
        let spliced = body(&bytes, &spans, &target, &ModelName::new("m"))?;
        Ok(String::from_utf8(spliced.into_segments().flatten().collect()).unwrap())
    }

    #[test]
    fn the_usage_of_a_stream_is_asked_for_beside_the_clients_options_sse_05() {
        let vendor = vendor(MaxTokens::AsGiven);
        for (given, expected) in [
            (r#"{"model":"m","messages":[]}"#, r#"{"model":"m","messages":[]}"#),
            (
                r#"{"model":"m","messages":[],"stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"model":"m","messages":[],"stream":true}"#,
            ),
            (
                r#"{"model":"x","messages":[],"stream":true,"stream_options":{"include_usage":false , "y":1}}"#,
                r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true , "y":1}}"#,
            ),
            (
                r#"{"model":"x","messages":[],"stream":true,"stream_options":{"y":1.0}}"#,
                r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true,"y":1.0}}"#,
            ),
            (
                r#"{"model":"x","messages":[],"stream":true,"stream_options":{}}"#,
                r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"model":"x","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#,
                r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ] {
            assert_eq!(sent(given, &vendor).unwrap(), expected);
        }
        let body = |options: &str| {
            format!(
                r#"{{"model":"m","messages":[{{"x":"stream_options"}}],"stream":true,"stream_options":{options}}}"#
            )
        };
        assert_eq!(sent(&body("null"), &vendor).unwrap(), body("{\"include_usage\":true}"));
    }

    #[test]
    fn the_limit_arrives_once_under_a_name_that_the_deployment_takes_tr_05() {
        let body = |members: &str| format!(r#"{{"model":"m",{members},"messages":[]}}"#);
        let (old, new) = (r#""max_tokens":64"#, r#""max_completion_tokens":64"#);
        let both = format!("{old},{new}");
        for (takes, given, expected) in [
            (MaxTokens::AsGiven, old, old),
            (MaxTokens::AsGiven, new, new),
            (MaxTokens::AsGiven, both.as_str(), new),
            (MaxTokens::MaxTokens, old, old),
            (MaxTokens::MaxTokens, new, old),
            (MaxTokens::MaxTokens, both.as_str(), old),
            (MaxTokens::MaxTokens, r#""max_tokens":null,"max_completion_tokens":64"#, old),
            (MaxTokens::MaxCompletionTokens, old, new),
            (MaxTokens::MaxCompletionTokens, new, new),
            (MaxTokens::MaxCompletionTokens, both.as_str(), new),
        ] {
            assert_eq!(sent(&body(given), &vendor(takes)).unwrap(), body(expected), "{takes:?} {given}");
        }
        let differ = body(r#""max_tokens":64,"max_completion_tokens":65"#);
        for takes in [MaxTokens::AsGiven, MaxTokens::MaxTokens, MaxTokens::MaxCompletionTokens] {
            assert_eq!(sent(&differ, &vendor(takes)).unwrap_err().field, "max_tokens");
        }
    }

    #[test]
    fn a_vendors_fixed_fields_replace_the_clients_and_the_model_may_be_in_the_path() {
        let mut vendor = vendor(MaxTokens::AsGiven);
        vendor.model_in_path = true;
        vendor.body.insert("version".to_owned(), "v1".into());
        let expected = r#"{"version":"v1","messages":[]}"#;
        assert_eq!(sent(r#"{"model":"x","messages":[]}"#, &vendor).unwrap(), expected);
        assert_eq!(sent(r#"{"messages":[]}"#, &vendor).unwrap(), expected);
        assert_eq!(sent(r#"{"version":2,"messages":[],"model":"x"}"#, &vendor).unwrap(), expected);
    }

    #[test]
    fn unknown_fields_and_numbers_arrive_as_they_were_written_tr_09() {
        let rest = r#""messages":[],"stream":true,"enable_thinking":false,"x_new":{"big":12345678901234567890,"e":1.50e+3}"#;
        let sent = sent(&format!(r#"{{"model":"x",{rest}}}"#), &vendor(MaxTokens::AsGiven)).unwrap();
        assert!(sent.ends_with(&format!(r#""model":"m",{rest}}}"#)), "{sent}");
    }
}
