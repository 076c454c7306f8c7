//! Structured output on services that have none: a tool whose arguments are the answer (TR-11).
//!
//! The writer adds the tool, names it in [`Written::json_tool`](super::Written), and makes the model call one. On the
//! way back, a call of it becomes the answer's text, and the client never sees the tool. Where the model calls one of the
//! client's own tools too, that call is the answer, and the hidden one vanishes.
//!
//! Text beside a call of the hidden tool ("Here is the JSON:") vanishes as well: the client parses what it gets. In
//! streams this means that text and hidden arguments are held back, up to [`MAX_HELD`], until it is known what the answer
//! is; arguments are not where the client has no tools. Works on answers with one choice, as all such services give.

use std::borrow::Cow;

use serde_json::json;

use super::answer::{Answer, Choice, Stop};
use super::content::Part;
use super::event::Event;
use super::request::{Format, Request, Tool, ToolChoice, ToolKind};

/// Most bytes that a stream holds back. What is longer is shown as text, whatever comes after it.
pub const MAX_HELD: usize = 4 << 20;

/// A name that none of the client's tools has.
#[must_use]
pub fn name(request: &Request) -> String {
    let mut name = "json_answer".to_owned();
    while request.tools.iter().any(|tool| tool.name == name) {
        name.push('_');
    }
    name
}

/// The tool of this name for an answer of this form.
#[must_use]
pub fn tool(name: &str, format: &Format) -> Tool {
    let (parameters, about) = match format {
        Format::JsonSchema(schema) => (schema.schema.clone(), schema.description.as_deref()),
        Format::Text | Format::JsonObject => (json!({ "type": "object" }), None),
    };
    let duty = "Gives the answer to the user. Call it once, with the whole answer as its arguments.";
    let description = about.map_or_else(|| duty.to_owned(), |about| format!("{duty} The answer is: {about}"));
    let kind = ToolKind::Function { parameters: Some(parameters), strict: None };
    Tool { name: name.to_owned(), description: Some(description), kind, cache: None }
}

/// What the model must call when the tool of this name is there: a tool, unless the client forces one of its own.
#[must_use]
pub fn choice(request: &Request, name: &str) -> ToolChoice {
    match &request.tool_choice {
        Some(own @ ToolChoice::Tool(_)) => own.clone(),
        Some(own @ ToolChoice::Allowed { required: true, .. }) => own.clone(),
        Some(ToolChoice::None) => ToolChoice::Tool(name.to_owned()),
        _ if request.tools.is_empty() => ToolChoice::Tool(name.to_owned()),
        _ => ToolChoice::Required,
    }
}

/// Makes text of the calls of `tool` in a whole answer.
pub fn fold_answer(answer: &mut Answer, tool: &str) {
    for choice in &mut answer.choices {
        fold_choice(choice, tool);
    }
}

fn fold_choice(choice: &mut Choice, tool: &str) {
    let hidden = |part: &Part| matches!(part, Part::ToolCall(call) if call.name == tool);
    let Some(first) = choice.parts.iter().position(hidden) else { return };
    let others = choice.parts.iter().any(|part| matches!(part, Part::ToolCall(call) if call.name != tool));
    if !others {
        if let Part::ToolCall(call) = &mut choice.parts[first] {
            let arguments = std::mem::take(&mut call.arguments);
            choice.parts.retain(|part| !matches!(part, Part::Text(_) | Part::ToolCall(_)));
            choice.parts.push(Part::text(arguments));
        }
        if choice.stop == Some(Stop::ToolCalls) {
            choice.stop = Some(Stop::End);
        }
    }
    choice.parts.retain(|part| !hidden(part));
}

/// The same for a stream: stands between its reader and its writer.
#[derive(Debug)]
pub struct JsonTool {
    tool: String,
    /// May the client's own tools be called too?
    others: bool,
    answer: Known,
    /// Text, or hidden arguments, that may yet be of no use.
    held: String,
    /// Numbers of the hidden calls; the first of them is the answer.
    hidden: Vec<u32>,
}

/// What is known of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing: text so far, if anything.
    Nothing,
    /// A call of the hidden tool, as long as no other follows.
    Hidden,
    /// The same, and part of it has been shown.
    Shown,
    /// A call of the client's own.
    Call,
}

impl JsonTool {
    /// For the hidden tool of this name.
    #[must_use]
    pub fn new(tool: impl Into<String>) -> Self {
        let (held, hidden) = (String::new(), Vec::new());
        Self { tool: tool.into(), others: true, answer: Known::Nothing, held, hidden }
    }

    /// The client has no tools of its own: the answer can be shown as it comes.
    #[must_use]
    pub fn without_other_tools(mut self) -> Self {
        self.others = false;
        self
    }

    /// Passes an event on, in the form that the client is to see.
    pub fn event(&mut self, event: Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        match event {
            Event::Text { text, .. } => match self.answer {
                Known::Nothing => self.hold(&text, sink),
                Known::Hidden | Known::Shown => {}
                Known::Call => sink(Event::Text { choice: 0, text }),
            },
            Event::ToolStart { call, ref name, .. } if *name == self.tool => self.start_hidden(call),
            Event::ToolStart { choice, call, id, name, signature } => {
                self.start_other(sink);
                sink(Event::ToolStart { choice, call: self.number(call), id, name, signature });
            }
            Event::ToolArguments { call, fragment, .. } if self.hidden.contains(&call) => {
                if self.hidden.first() == Some(&call) {
                    self.hidden_arguments(fragment, sink);
                }
            }
            Event::ToolArguments { choice, call, fragment } => {
                sink(Event::ToolArguments { choice, call: self.number(call), fragment });
            }
            Event::Finish { choice, stop, native, sequence } => {
                self.release(sink);
                let folded = matches!(self.answer, Known::Hidden | Known::Shown) && stop == Stop::ToolCalls;
                let stop = if folded { Stop::End } else { stop };
                sink(Event::Finish { choice, stop, native, sequence });
            }
            other => sink(other),
        }
    }

    /// The stream is over: passes on what is still held back.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        self.release(sink);
    }

    fn start_hidden(&mut self, call: u32) {
        self.hidden.push(call);
        if self.answer == Known::Nothing {
            self.held.clear();
            self.answer = Known::Hidden;
        }
    }

    fn start_other(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        match self.answer {
            Known::Nothing => self.release(sink),
            Known::Hidden => self.held = String::new(),
            Known::Shown | Known::Call => {}
        }
        self.answer = Known::Call;
    }

    fn hidden_arguments(&mut self, fragment: Cow<'_, str>, sink: &mut dyn FnMut(Event<'_>)) {
        match self.answer {
            Known::Hidden if self.others => self.hold(&fragment, sink),
            Known::Hidden | Known::Shown => {
                self.answer = Known::Shown;
                sink(Event::Text { choice: 0, text: fragment });
            }
            Known::Nothing | Known::Call => {}
        }
    }

    fn hold(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        self.held.push_str(text);
        if self.held.len() > MAX_HELD {
            self.release(sink);
            if self.answer == Known::Hidden {
                self.answer = Known::Shown;
            }
        }
    }

    fn release(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            sink(Event::Text { choice: 0, text: Cow::Owned(held) });
        }
    }

    /// The number of a visible call when the hidden ones are not counted.
    fn number(&self, call: u32) -> u32 {
        let before = self.hidden.iter().filter(|hidden| **hidden < call).count();
        call.saturating_sub(u32::try_from(before).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
