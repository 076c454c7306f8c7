//! What a service says to a request, before a dialect writes it down.
//!
//! The request decides: `use tool NAME` in the last user text calls a declared tool, `use tools A and B` calls several;
//! results of tools are quoted; a schema that was asked for gets an instance; images are named by type and size; all
//! else gets the service's name, a digest of the messages and filler, as in [`crate::answer`].

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::answer::{WORDS, digest};
use crate::sample::sample;

/// What a request asks for, whichever dialect it came in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// [`digest`] of the conversation as it stands in the body.
    pub(crate) digest: u32,
    /// Length of the conversation in bytes.
    pub(crate) length: usize,
    /// Text of the last user turn.
    pub(crate) text: String,
    /// Names and texts of the tool results the conversation ends with.
    pub(crate) results: Vec<(String, String)>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: Choice,
    /// Only one call at a time.
    pub(crate) one_tool: bool,
    /// Schema of the answer.
    pub(crate) schema: Option<Value>,
    /// Any JSON object as the answer.
    pub(crate) json: bool,
    pub(crate) reasoning: bool,
    /// Media type and bytes of each image of the last user turn.
    pub(crate) images: Vec<(String, usize)>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) stop: Vec<String>,
    /// Did the request mark something to be cached?
    pub(crate) cache: bool,
    /// What the answer repeats of the request, where the dialect does that.
    pub(crate) echo: Value,
}

/// A tool that was declared.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

/// May, must or must not a tool be called?
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    #[default]
    Auto,
    None,
    Any,
    Named(String),
}

/// What is said.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) model: String,
    /// Makes ids.
    pub(crate) number: u64,
    pub(crate) include_usage: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) finish: Finish,
    pub(crate) tokens: Tokens,
    pub(crate) echo: Value,
}

/// A part of what is said, in the pieces it is streamed in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Reasoning(Vec<String>),
    Text(Vec<String>),
    Call(ToolCall),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    /// Unique in the service, without a vendor's prefix.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// The arguments as JSON, in pieces.
    pub(crate) pieces: Vec<String>,
}

/// Why it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    /// At this stop sequence.
    Sequence(String),
    Length,
    Calls,
}

/// What it cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// All of the input.
    pub(crate) input: u64,
    /// Of the input: read from a cache.
    pub(crate) cached: u64,
    /// Of the input: written to a cache.
    pub(crate) written: u64,
    /// All of the output.
    pub(crate) output: u64,
    /// Of the output: reasoning.
    pub(crate) reasoning: u64,
}

/// Who answers, and how much it says at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speaker<'a> {
    pub(crate) service: &'a str,
    pub(crate) answer_tokens: u32,
    pub(crate) number: u64,
}

impl Script {
    pub(crate) fn write(asked: Asked, speaker: Speaker<'_>) -> Self {
        let calls = calls(&asked, speaker.number);
        let mut parts = Vec::new();
        if asked.reasoning {
            parts.push(Part::Reasoning(pieces("Water finds its way: first the gate, then the wheel.")));
        }
        let mut finish = if calls.is_empty() { Finish::Stop } else { Finish::Calls };
        if calls.is_empty() {
            let mut said = text(&asked, speaker);
            if let Some((cut, stop)) = cut(&said, &asked.stop) {
                said.truncate(cut);
                finish = Finish::Sequence(stop);
            }
            let mut pieces = pieces(&said);
            if let Some(limit) = asked.max_tokens.filter(|limit| (*limit as usize) < pieces.len()) {
                pieces.truncate(limit as usize);
                finish = Finish::Length;
            }
            parts.push(Part::Text(pieces));
        } else if calls.len() > 1 {
            parts.push(Part::Text(pieces(&format!("Calling {} tools.", calls.len()))));
        }
        parts.extend(calls.into_iter().map(Part::Call));
        let tokens = Tokens::of(&asked, &parts);
        let Asked { model, include_usage, echo, .. } = asked;
        Self { model, number: speaker.number, include_usage, parts, finish, tokens, echo }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// All text in one; `None` when there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(pieces) => Some(pieces.concat()),
            _ => None,
        });
        texts.next()
    }

    /// All reasoning in one; `None` when there is none.
    pub(crate) fn reasoning(&self) -> Option<String> {
        self.parts.iter().find_map(|part| match part {
            Part::Reasoning(pieces) => Some(pieces.concat()),
            _ => None,
        })
    }
}

impl Part {
    pub(crate) fn pieces(&self) -> &[String] {
        match self {
            Self::Reasoning(pieces) | Self::Text(pieces) => pieces,
            Self::Call(call) => &call.pieces,
        }
    }
}

impl Tokens {
    fn of(asked: &Asked, parts: &[Part]) -> Self {
        let count = |part: &Part| part.pieces().len() as u64;
        let input = (asked.length as u64).div_ceil(4);
        let is_reasoning = |part: &&Part| matches!(part, Part::Reasoning(_));
        Self {
            input,
            cached: input / 4,
            written: if asked.cache { input / 4 } else { 0 },
            output: parts.iter().map(count).sum(),
            reasoning: parts.iter().filter(is_reasoning).map(count).sum(),
        }
    }
}

/// Signs what only this simulator may have said; a changed text has another signature.
pub(crate) fn sign(text: &str) -> String {
    BASE64_STANDARD.encode(format!("sim-signature:{:08x}:{}", digest(text), text.len()))
}

fn calls(asked: &Asked, number: u64) -> Vec<ToolCall> {
    if !asked.results.is_empty() || asked.choice == Choice::None {
        return Vec::new();
    }
    let mut names = wanted(&asked.text);
    names.retain(|name| asked.tools.iter().any(|tool| tool.name == *name));
    match &asked.choice {
        Choice::Any if names.is_empty() => names.extend(asked.tools.first().map(|tool| tool.name.clone())),
        Choice::Named(name) => names = vec![name.clone()],
        _ => {}
    }
    if asked.one_tool {
        names.truncate(1);
    }
    let tool = |name: &String| asked.tools.iter().find(|tool| tool.name == *name);
    let call = |(index, tool): (usize, &Tool)| {
        let arguments = sample(&tool.schema);
        let json = arguments.to_string();
        let half = (json.len() / 2..).find(|at| json.is_char_boundary(*at)).unwrap_or(json.len());
        let pieces = [&json[..half], &json[half..]].map(str::to_owned).to_vec();
        ToolCall { id: format!("{number:08x}{index:02x}"), name: tool.name.clone(), arguments, pieces }
    };
    names.iter().filter_map(tool).enumerate().map(call).collect()
}

/// The names after `use tool` or `use tools`, joined by `and`.
fn wanted(text: &str) -> Vec<String> {
    let Some(at) = text.find("use tool") else { return Vec::new() };
    let rest = text[at + "use tool".len()..].trim_start_matches('s');
    let mut names = Vec::new();
    for (index, word) in rest.split_whitespace().enumerate() {
        match (index % 2, word) {
            (0, name) => names.push(name.trim_end_matches(['.', ',', '!']).to_owned()),
            (_, "and") => {}
            _ => break,
        }
    }
    names
}

fn text(asked: &Asked, speaker: Speaker<'_>) -> String {
    if let Some(schema) = &asked.schema {
        return sample(schema).to_string();
    }
    if asked.json {
        return format!(r#"{{"service":"{}"}}"#, speaker.service);
    }
    let mut text = format!("{}: [{:08x}]", speaker.service, asked.digest);
    if !asked.results.is_empty() {
        for (name, result) in &asked.results {
            write!(text, " {name} said {result}").expect("a string grows");
        }
    } else if !asked.images.is_empty() {
        for (media, size) in &asked.images {
            write!(text, " {media} of {size} bytes").expect("a string grows");
        }
    } else {
        let filler =
            (2..speaker.answer_tokens).map(|index| WORDS[(asked.digest.wrapping_add(index) % 16) as usize]);
        text.extend(filler);
    }
    text
}

/// Where the first stop sequence begins.
fn cut(text: &str, stop: &[String]) -> Option<(usize, String)> {
    stop.iter().filter_map(|stop| Some((text.find(stop)?, stop.clone()))).min()
}

/// Text cut before each space: near enough to tokens.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split_inclusive(' ') {
        let (word, space) = word.strip_suffix(' ').map_or((word, ""), |word| (word, " "));
        match pieces.last_mut() {
            Some(last) if last.trim().is_empty() => last.push_str(word),
            _ if !word.is_empty() => pieces.push(word.to_owned()),
            _ => {}
        }
        if !space.is_empty() {
            pieces.push(space.to_owned());
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Asked {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
        let tool = |name: &str| Tool { name: name.to_owned(), schema: schema.clone() };
        Asked { text: text.to_owned(), tools: vec![tool("find"), tool("read")], ..Asked::default() }
    }

    fn script(asked: Asked) -> Script {
        Script::write(asked, Speaker { service: "s", answer_tokens: 5, number: 1 })
    }

    #[test]
    fn a_text_that_names_tools_calls_them() {
        let names = |asked: Asked| script(asked).calls().map(|call| call.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(asked("please use tool find.")), ["find"]);
        assert_eq!(names(asked("use tools find and read now")), ["find", "read"]);
        assert_eq!(names(Asked { one_tool: true, ..asked("use tools find and read") }), ["find"]);
        assert!(names(asked("use tool other")).is_empty());
        assert!(names(Asked { choice: Choice::None, ..asked("use tool find") }).is_empty());
        assert_eq!(names(Asked { choice: Choice::Any, ..asked("hi") }), ["find"]);
        let answered = Asked { results: vec![("find".into(), "42".into())], ..asked("use tool find") };
        assert!(script(answered).text().unwrap().ends_with(" find said 42"));
    }

    #[test]
    fn pieces_joined_are_the_text() {
        for text in ["a b  c", " a", "a ", "", "{\"a\": 1}", "潮 🚲"] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(pieces("a b c").len(), 3);
    }

    #[test]
    fn limits_and_stops_cut_the_text() {
        let limited = script(Asked { max_tokens: Some(2), ..asked("hi") });
        assert_eq!((limited.finish, limited.tokens.output), (Finish::Length, 2));
        let stopped = script(Asked { stop: vec!["[".to_owned()], ..asked("hi") });
        assert_eq!((stopped.text().unwrap().as_str(), stopped.finish), ("s: ", Finish::Sequence("[".into())));
    }
}
