//! Writes turns as messages.

use std::borrow::Cow;

use penstock_model::vendor::{Parameters, ReasoningSwitch, Wire};
use serde::Serialize;
use serde_json::Value;

use super::part_writer::{self, WrittenPart};
use super::{answer_writer, reasoning};
use crate::exchange::shape::place;
use crate::exchange::{
    CacheHint, Dropped, Field, Part, Reasoning, Request, Role, Source, ToolCall, ToolResult, Turn, Unwritable,
};

/// What matters of the target here.
pub(super) struct Target<'a> {
    pub(super) parameters: &'a Parameters,
    /// Does it take `cache_control`?
    pub(super) cache_hints: bool,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<PastAudio<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WrittenCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<WrittenPart<'a>>),
}

#[derive(Serialize)]
struct PastAudio<'a> {
    id: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenCall<'a> {
    Function {
        id: &'a str,
        r#type: &'static str,
        function: Function<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_content: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Other(&'a Value),
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// A cache boundary.
#[derive(Serialize, Clone, Copy)]
pub(super) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl From<CacheHint> for CacheControl {
    fn from(hint: CacheHint) -> Self {
        let ttl = match hint {
            CacheHint::Default => None,
            CacheHint::FiveMinutes => Some("5m"),
            CacheHint::Hour => Some("1h"),
        };
        Self { r#type: "ephemeral", ttl }
    }
}

/// The messages of a request.
pub(super) fn write<'a>(
    request: &'a Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<Message<'a>>, Unwritable> {
    let mut writer = Writer { request, target, dropped, messages: Vec::with_capacity(request.turns.len()) };
    for (index, turn) in request.turns.iter().enumerate() {
        writer.turn(index, turn)?;
    }
    Ok(if target.parameters.merge_turns { merged(writer.messages) } else { writer.messages })
}

struct Writer<'a, 't> {
    request: &'a Request,
    target: &'t Target<'t>,
    dropped: &'t mut Dropped,
    messages: Vec<Message<'a>>,
}

impl<'a> Writer<'a, '_> {
    fn turn(&mut self, index: usize, turn: &'a Turn) -> Result<(), Unwritable> {
        let place = place(self.request, index);
        let role = match turn.role {
            Role::Developer if self.target.parameters.developer_role => "developer",
            Role::System | Role::Developer => "system",
            Role::User => return self.user(turn, &place),
            Role::Assistant => return self.assistant(turn, &place),
        };
        let parts = turn.parts.iter().enumerate();
        let content = parts.map(|(at, part)| self.part(part, &format!("{place}.content[{at}]")));
        let content = content.collect::<Result<Vec<_>, _>>()?;
        self.messages.push(Message { name: turn.name.as_deref(), ..message(role, Some(content)) });
        Ok(())
    }

    /// Results first, each in a message of its own: they have to follow their calls. What a result holds besides text has
    /// no place in its message and goes into the user's, before what the user says.
    fn user(&mut self, turn: &'a Turn, place: &str) -> Result<(), Unwritable> {
        let mut rest = Vec::new();
        let mut results = 0;
        for (at, part) in turn.parts.iter().enumerate() {
            let path = format!("{place}.content[{at}]");
            if let Part::ToolResult(result) = part {
                results += 1;
                rest.extend(self.result(result, &path)?);
            }
        }
        for (at, part) in turn.parts.iter().enumerate() {
            if !matches!(part, Part::ToolResult(_)) {
                rest.push(self.part(part, &format!("{place}.content[{at}]"))?);
            }
        }
        if results == 0 || !rest.is_empty() {
            self.messages.push(Message { name: turn.name.as_deref(), ..message("user", Some(rest)) });
        }
        Ok(())
    }

    /// Writes a result; what is left of it is for the user's message.
    fn result(&mut self, result: &'a ToolResult, path: &str) -> Result<Vec<WrittenPart<'a>>, Unwritable> {
        if result.is_error {
            self.dropped.add(format!("{path}.is_error"));
        }
        let (mut texts, mut rest) = (Vec::new(), Vec::new());
        for (at, part) in result.parts.iter().enumerate() {
            let written = self.part(part, &format!("{path}.content[{at}]"))?;
            if matches!(part, Part::Text(_)) { texts.push(written) } else { rest.push(written) }
        }
        if let Some(hint) = self.hint(result.cache)
            && let Some(last) = texts.last_mut()
        {
            last.mark(hint);
        }
        // Elsewhere the name is a field that readers fill in from the call.
        let name = result.name.as_deref().filter(|_| self.request.wire == Wire::Openai);
        self.messages.push(Message {
            name,
            tool_call_id: Some(&result.call_id),
            ..message("tool", Some(texts))
        });
        Ok(rest)
    }

    fn assistant(&mut self, turn: &'a Turn, place: &str) -> Result<(), Unwritable> {
        let mut message = message("assistant", None);
        message.name = turn.name.as_deref();
        let mut content = Vec::new();
        for (at, part) in turn.parts.iter().enumerate() {
            let path = format!("{place}.content[{at}]");
            match part {
                Part::Reasoning(block) => self.reasoning(block, &mut message),
                Part::ToolCall(call) => message.tool_calls.push(self.call(call)),
                Part::Other { wire: Wire::Openai, value } if value.get("id").is_some() => {
                    message.tool_calls.push(WrittenCall::Other(value));
                }
                // What another vendor's service did by itself.
                Part::Other { wire, .. } if *wire != Wire::Openai => self.dropped.add(path),
                Part::Refusal(refusal) => message.refusal = Some(refusal),
                Part::Audio(media) if self.request.wire == Wire::Openai => match &media.source {
                    Source::FileId(id) => message.audio = Some(PastAudio { id }),
                    _ => content.push(self.part(part, &path)?),
                },
                Part::Text(text) if text.text.is_empty() && turn.parts.len() > 1 => {}
                _ => content.push(self.part(part, &path)?),
            }
        }
        message.content = (!content.is_empty()).then(|| Content::from(content));
        let nothing = message.content.is_none() && message.tool_calls.is_empty();
        if nothing && message.refusal.is_none() && message.audio.is_none() {
            message.content = Some(Content::Text(""));
        }
        self.messages.push(message);
        Ok(())
    }

    /// Reasoning goes back to services that show it; OpenAI's own refuses the fields. What is signed is of use to its own
    /// dialect only.
    fn reasoning(&self, block: &'a Reasoning, message: &mut Message<'a>) {
        let foreign = block.signature.as_ref().is_some_and(|signature| signature.wire != Wire::Openai);
        if foreign {
            return;
        }
        match self.target.parameters.reasoning {
            ReasoningSwitch::Object => {
                let signature = block.signature.as_ref().map(|signature| (signature, block.redacted));
                let index = message.reasoning_details.len();
                message.reasoning_details.push(reasoning::detail(&block.text, signature, index));
            }
            ReasoningSwitch::ThinkingType | ReasoningSwitch::EnableThinking if !block.text.is_empty() => {
                match &mut message.reasoning_content {
                    Some(before) => before.to_mut().push_str(&block.text),
                    none => *none = Some(Cow::Borrowed(&block.text)),
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &'a ToolCall) -> WrittenCall<'a> {
        WrittenCall::Function {
            id: &call.id,
            r#type: "function",
            function: Function { name: &call.name, arguments: &call.arguments },
            // Google's own service of this dialect wants it back.
            extra_content: answer_writer::extra_content(
                call.signature.as_ref().filter(|_| self.request.wire == Wire::Openai),
            ),
            cache_control: self.hint(call.cache),
        }
    }

    fn part(&mut self, part: &'a Part, path: &str) -> Result<WrittenPart<'a>, Unwritable> {
        let mut written = part_writer::write(part, self.request.wire, self.target.parameters, path)?;
        let cache = match part {
            Part::Text(text) => text.cache,
            Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache,
            _ => None,
        };
        if let Some(hint) = self.hint(cache) {
            written.mark(hint);
        }
        Ok(written)
    }

    fn hint(&mut self, cache: Option<CacheHint>) -> Option<CacheControl> {
        let cache = cache?;
        if self.target.cache_hints {
            return Some(cache.into());
        }
        self.dropped.add("cache_control");
        None
    }
}

fn message<'a>(role: &'static str, content: Option<Vec<WrittenPart<'a>>>) -> Message<'a> {
    Message {
        role,
        name: None,
        content: content.map(Content::from),
        reasoning_content: None,
        reasoning_details: Vec::new(),
        refusal: None,
        audio: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

/// A single plain text is a string: every service of this dialect takes that, not all take lists.
impl<'a> From<Vec<WrittenPart<'a>>> for Content<'a> {
    fn from(parts: Vec<WrittenPart<'a>>) -> Self {
        match parts.as_slice() {
            [] => Self::Text(""),
            [only] => only.plain().map_or_else(|| Self::Parts(parts), Self::Text),
            _ => Self::Parts(parts),
        }
    }
}

/// For services that want roles in turn.
fn merged(messages: Vec<Message<'_>>) -> Vec<Message<'_>> {
    let mut merged: Vec<Message<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        let last = merged.last_mut().filter(|last| {
            last.role == message.role
                && last.role != "tool"
                && last.audio.is_none()
                && message.audio.is_none()
        });
        let Some(last) = last else {
            merged.push(message);
            continue;
        };
        last.content = match (last.content.take(), message.content) {
            (Some(first), Some(second)) => {
                let mut parts = first.into_parts();
                parts.extend(second.into_parts());
                Some(Content::from(parts))
            }
            (first, second) => first.or(second),
        };
        last.reasoning_content = last.reasoning_content.take().or(message.reasoning_content);
        last.reasoning_details.extend(message.reasoning_details);
        last.refusal = last.refusal.or(message.refusal);
        last.tool_calls.extend(message.tool_calls);
        if last.name != message.name {
            last.name = None;
        }
    }
    merged
}

impl<'a> Content<'a> {
    /// Empty texts are left out.
    fn into_parts(self) -> Vec<WrittenPart<'a>> {
        match self {
            Self::Text("") => Vec::new(),
            Self::Text(text) => vec![WrittenPart::text(text)],
            Self::Parts(parts) => parts,
        }
    }
}

/// This target cannot carry a part.
pub(super) fn unsupported(path: &str, reason: &str) -> Unwritable {
    Unwritable::Unsupported(Field::new(path, reason))
}
