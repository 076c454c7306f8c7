//! Writing a streamed answer, and by the same way a whole one.
//!
//! ```text
//! response.created, response.in_progress
//!   output_item.added
//!     message:        (content_part.added, output_text|refusal .delta* .done, content_part.done)*
//!     reasoning:      (reasoning_summary_part.added, reasoning_summary_text .delta* .done, reasoning_summary_part.done)?
//!     function_call:  function_call_arguments .delta* .done
//!   output_item.done
//! response.completed | response.incomplete
//! ```
//!
//! At most one message or block of thoughts is open at a time. Calls stay open beside each other until something else
//! begins, because some services interleave them. The last event repeats the whole output: it is kept until then, so a
//! stream needs as much memory as its answer is long.

mod content;
mod parts;
#[cfg(test)]
mod tests;

use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::emit::{Body, Emitter, Piece};
use crate::dialect::{Asked, StreamWriter};
use crate::exchange::{Answer, Event, Part, Signature, Source, Stop, Usage, replay};
use crate::responses::OWN;
use crate::responses::response::{Content, Counts, IncompleteDetails, Item, Response, Status, Summary};

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::responses) struct Writer {
    asked: Asked,
    emitter: Emitter,
    progress: Progress,
    /// Has `response.created` been written?
    begun: bool,
    /// Is the last item, a message or a block of thoughts, still open?
    open: bool,
    /// Calls that are open: the service's number of each, and its item.
    calls: Vec<(u32, usize)>,
}

/// The response so far.
#[derive(Debug, Default)]
struct Progress {
    id: String,
    model: String,
    created: u64,
    items: Vec<Item>,
    stop: Option<Stop>,
    usage: Usage,
}

impl Progress {
    /// As it is once it has ended.
    fn outcome(&self) -> Response<'_> {
        let incomplete_details = IncompleteDetails::of(self.stop);
        Response {
            status: if incomplete_details.is_some() { Status::Incomplete } else { Status::Completed },
            incomplete_details,
            output: &self.items,
            usage: Counts::of(&self.usage),
            ..Response::new(&self.id, &self.model, self.created)
        }
    }
}

/// The response object of a whole answer.
pub(in crate::responses) fn whole(answer: &Answer, asked: &Asked) -> Vec<u8> {
    let mut writer = Writer { emitter: Emitter::new(true), ..Writer::new(asked.clone()) };
    let mut nothing = Vec::new();
    replay(answer, &mut |event| writer.event(&event, &mut nothing));
    serde_json::to_vec(&writer.progress.outcome()).expect("strings always serialise")
}

impl StreamWriter for Writer {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model, created } => {
                self.begin(id.as_deref(), model.as_deref(), *created, out);
            }
            Event::Usage(usage) => self.progress.usage.update(*usage),
            Event::Text { choice: 0, text } => self.text(text, out),
            Event::Refusal { choice: 0, text } => self.refusal(text, out),
            Event::Reasoning { choice: 0, text } => self.reasoning(text, out),
            Event::ReasoningSignature { choice: 0, signature, redacted } => {
                self.signature(signature, *redacted, out);
            }
            Event::ToolStart { choice: 0, call, id, name, signature } => {
                self.call(*call, id, name, signature.as_ref(), out);
            }
            Event::ToolArguments { choice: 0, call, fragment } => self.arguments(*call, fragment, out),
            Event::Citation { choice: 0, value } => self.annotation(value, out),
            Event::Logprobs { choice: 0, value } => self.logprobs(value),
            Event::Part { choice: 0, part } => self.part(part, out),
            Event::Finish { choice: 0, stop, .. } => {
                self.progress.stop = Some(*stop);
                self.close(out);
            }
            // A client of this protocol cannot ask for several choices. How a stream ends is for `finish`, and for
            // whoever writes the error.
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(None, None, None, out);
        self.close(out);
        let response = self.progress.outcome();
        let complete = response.incomplete_details.is_none();
        let kind = if complete { "response.completed" } else { "response.incomplete" };
        self.emitter.emit(out, kind, &Body { response: Some(&response), ..Body::default() });
    }
}

impl Writer {
    pub(in crate::responses) fn new(asked: Asked) -> Self {
        Self {
            asked,
            emitter: Emitter::new(false),
            progress: Progress::default(),
            begun: false,
            open: false,
            calls: Vec::new(),
        }
    }

    fn begin(&mut self, id: Option<&str>, model: Option<&str>, created: Option<u64>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let id = id.filter(|id| !id.is_empty()).unwrap_or(&self.asked.id);
        self.progress.id = if id.starts_with("resp_") { id.to_owned() } else { format!("resp_{id}") };
        self.progress.model = model.unwrap_or(&self.asked.model).to_owned();
        self.progress.created = created.unwrap_or(self.asked.created);
        let progress = &self.progress;
        let response = Response::new(&progress.id, &progress.model, progress.created);
        for kind in ["response.created", "response.in_progress"] {
            self.emitter.emit(out, kind, &Body { response: Some(&response), ..Body::default() });
        }
    }

    /// The id of the next item: unique within the answer, and across answers as far as ours are.
    fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.asked.id, self.progress.items.len())
    }

    /// Adds an item and tells of it.
    fn add(&mut self, item: Item, out: &mut Vec<u8>) {
        self.begin(None, None, None, out);
        let output_index = Some(self.progress.items.len());
        let body = Body { output_index, item: Some(&item), ..Body::default() };
        self.emitter.emit(out, "response.output_item.added", &body);
        self.progress.items.push(item);
    }

    /// Tells that an item is done.
    fn done(&mut self, at: usize, out: &mut Vec<u8>) {
        let cut = IncompleteDetails::of(self.progress.stop).is_some();
        self.progress.items[at].set_status(if cut { Status::Incomplete } else { Status::Completed });
        let item = &self.progress.items[at];
        let body = Body { output_index: Some(at), item: Some(item), ..Body::default() };
        self.emitter.emit(out, "response.output_item.done", &body);
    }

    /// Ends every item that is open.
    fn close(&mut self, out: &mut Vec<u8>) {
        self.close_calls(out);
        if !std::mem::take(&mut self.open) {
            return;
        }
        let at = self.progress.items.len() - 1;
        self.close_content(out);
        self.close_summary(out);
        self.done(at, out);
    }

    fn close_calls(&mut self, out: &mut Vec<u8>) {
        for (_, at) in std::mem::take(&mut self.calls) {
            let Some(Item::FunctionCall { id, name, arguments, .. }) = self.progress.items.get_mut(at) else {
                continue;
            };
            let place = Body { item_id: Some(id), output_index: Some(at), ..Body::default() };
            // Readers see to it that there are arguments; a call without any would be refused when it comes back.
            if arguments.is_empty() {
                arguments.push_str("{}");
                let body = Body { delta: Some("{}"), ..place };
                self.emitter.emit(out, "response.function_call_arguments.delta", &body);
            }
            let body = Body {
                item_id: Some(id),
                output_index: Some(at),
                name: Some(name),
                arguments: Some(arguments),
                ..Body::default()
            };
            self.emitter.emit(out, "response.function_call_arguments.done", &body);
            self.done(at, out);
        }
    }
}
