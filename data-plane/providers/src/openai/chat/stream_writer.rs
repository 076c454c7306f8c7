//! Writes a stream for a client: chunks as `data:` events, the usage if it was asked for, `[DONE]`.

use penstock_model::Usage;
use penstock_model::vendor::Wire;
use serde::Serialize;
use serde_json::{Value, json};

use super::{answer_writer, finish, reasoning};
use crate::dialect::{Asked, StreamWriter};
use crate::exchange::{Event, Part, Signature, Stop};
use crate::openai::usage::WrittenUsage;

/// What has been written of one answer.
pub(super) struct Writer {
    asked: Asked,
    /// `data: {"id":…,"object":…,"created":…,"model":…,"choices":[`; empty until it is known.
    head: Vec<u8>,
    /// By choice.
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Default, Clone)]
struct Choice {
    /// Has a delta named the role?
    begun: bool,
    /// How many blocks of reasoning have ended.
    blocks: usize,
}

/// Most choices whose state is kept: `n` is at most 128 where there is a limit at all.
const MAX_CHOICES: u32 = 1024;

impl Writer {
    pub(super) fn new(asked: Asked) -> Self {
        Self { asked, head: Vec::new(), choices: Vec::new(), usage: None }
    }

    fn start(&mut self, id: Option<&str>, model: Option<&str>, created: Option<u64>) {
        self.head = b"data: {\"id\":".to_vec();
        put(&mut self.head, &answer_writer::id(id, &self.asked));
        self.head.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":");
        put(&mut self.head, &created.unwrap_or(self.asked.created));
        self.head.extend_from_slice(b",\"model\":");
        put(&mut self.head, model.unwrap_or(&self.asked.model));
        self.head.extend_from_slice(b",\"choices\":[");
    }

    fn choice(&mut self, index: u32) -> &mut Choice {
        let index = index.min(MAX_CHOICES) as usize;
        if self.choices.len() <= index {
            self.choices.resize(index + 1, Choice::default());
        }
        &mut self.choices[index]
    }

    /// A chunk up to the inside of its delta.
    fn open(&mut self, out: &mut Vec<u8>, choice: u32, content: bool) {
        if self.head.is_empty() {
            self.start(None, None, None);
        }
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b"{\"index\":");
        put(out, &choice);
        out.extend_from_slice(b",\"delta\":{");
        if !std::mem::replace(&mut self.choice(choice).begun, true) {
            out.extend_from_slice(b"\"role\":\"assistant\",");
            if !content {
                out.extend_from_slice(b"\"content\":null,");
            }
        }
    }

    /// The end of a chunk whose choice is not finished.
    fn close(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"},\"finish_reason\":null}]");
        self.end_chunk(out);
    }

    fn end_chunk(&self, out: &mut Vec<u8>) {
        // As the interface's reference has it: a null in every chunk but the last.
        out.extend_from_slice(if self.asked.include_usage { b",\"usage\":null}\n\n" } else { b"}\n\n" });
    }

    /// A chunk whose delta has one field.
    fn delta<T: Serialize + ?Sized>(&mut self, out: &mut Vec<u8>, choice: u32, field: &str, value: &T) {
        self.open(out, choice, field == "content");
        member(out, field, value);
        self.close(out);
    }

    fn reasoning(&mut self, out: &mut Vec<u8>, choice: u32, text: &str) {
        let index = self.choice(choice).blocks;
        self.open(out, choice, false);
        member(out, "reasoning_content", text);
        // Once more as part of its block: when the block's signature comes, clients have to know its exact text.
        out.extend_from_slice(b",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":");
        put(out, text);
        out.extend_from_slice(b",\"index\":");
        put(out, &index);
        out.extend_from_slice(b"}]");
        self.close(out);
    }

    fn signature(&mut self, out: &mut Vec<u8>, choice: u32, signature: &Signature, redacted: bool) {
        let state = self.choice(choice);
        let detail = reasoning::detail("", Some((signature, redacted)), state.blocks);
        state.blocks += 1;
        self.delta(out, choice, "reasoning_details", &[detail]);
    }

    fn part(&mut self, out: &mut Vec<u8>, choice: u32, part: &Part) {
        match part {
            Part::Image(media) => {
                if let Some(image) = answer_writer::image(media) {
                    self.delta(out, choice, "images", &[image]);
                }
            }
            Part::Audio(media) => self.delta(out, choice, "audio", &answer_writer::audio(media)),
            Part::Other { wire: Wire::Openai, value } => self.delta(out, choice, "tool_calls", &[value]),
            // Readers tell text, reasoning and calls by events of their own; the rest has no place here.
            _ => {}
        }
    }

    fn finish_choice(
        &mut self,
        out: &mut Vec<u8>,
        choice: u32,
        stop: Stop,
        native: &str,
        sequence: Option<&str>,
    ) {
        let word = finish::word(stop);
        self.open(out, choice, true);
        if out.last() == Some(&b',') {
            // The role came with this delta, and nothing follows it.
            member(out, "content", "");
        }
        out.extend_from_slice(b"},\"finish_reason\":");
        put(out, word);
        if !native.is_empty() && native != word {
            out.push(b',');
            member(out, "native_finish_reason", native);
        }
        if let Some(sequence) = sequence {
            out.push(b',');
            member(out, "stop_reason", sequence);
        }
        out.extend_from_slice(b"}]");
        self.end_chunk(out);
    }

    fn tool_start(&mut self, out: &mut Vec<u8>, choice: u32, call: u32, start: &ToolStart<'_>) {
        let mut value = json!({
            "index": call,
            "id": start.id,
            "type": "function",
            "function": { "name": start.name, "arguments": "" },
        });
        if let Some(extra) = answer_writer::extra_content(start.signature) {
            value["extra_content"] = extra;
        }
        self.delta(out, choice, "tool_calls", &[value]);
    }

    fn logprobs(&mut self, out: &mut Vec<u8>, choice: u32, value: &Value) {
        self.open(out, choice, true);
        if out.last() == Some(&b',') {
            member(out, "content", "");
        }
        out.extend_from_slice(b"},");
        member(out, "logprobs", value);
        out.extend_from_slice(b",\"finish_reason\":null}]");
        self.end_chunk(out);
    }
}

struct ToolStart<'a> {
    id: &'a str,
    name: &'a str,
    signature: Option<&'a Signature>,
}

impl StreamWriter for Writer {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model, created } => self.start(id.as_deref(), model.as_deref(), *created),
            Event::Text { choice, text } => self.delta(out, *choice, "content", text.as_ref()),
            Event::Reasoning { choice, text } => self.reasoning(out, *choice, text),
            Event::ReasoningSignature { choice, signature, redacted } => {
                self.signature(out, *choice, signature, *redacted);
            }
            Event::Refusal { choice, text } => self.delta(out, *choice, "refusal", text.as_ref()),
            Event::ToolStart { choice, call, id, name, signature } => {
                let start = ToolStart { id, name, signature: signature.as_ref() };
                self.tool_start(out, *choice, *call, &start);
            }
            Event::ToolArguments { choice, call, fragment } => {
                self.open(out, *choice, false);
                out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
                put(out, call);
                out.extend_from_slice(b",\"function\":{\"arguments\":");
                put(out, fragment.as_ref());
                out.extend_from_slice(b"}}]");
                self.close(out);
            }
            Event::Citation { choice, value } => self.delta(out, *choice, "annotations", &[value]),
            Event::Part { choice, part } => self.part(out, *choice, part),
            Event::Logprobs { choice, value } => self.logprobs(out, *choice, value),
            Event::Finish { choice, stop, native, sequence } => {
                self.finish_choice(out, *choice, *stop, native, sequence.as_deref());
            }
            Event::Usage(usage) => self.usage.get_or_insert_default().update(*usage),
            // What ends the stream is the caller's to say: `finish`, or an error event.
            Event::End | Event::Failed { .. } => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.head.is_empty() {
            self.start(None, None, None);
        }
        if self.asked.include_usage
            && let Some(usage) = self.usage
        {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"],");
            member(out, "usage", &WrittenUsage::from(usage));
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

/// `"name":value`
fn member<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    put(out, value);
}

fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(&mut *out, value).expect("a vector takes all that is written to it");
}
