//! Streamed answers, written: each event is a whole response with what is new.
//!
//! Calls are written whole, as this dialect has them: fragments of arguments are kept until they make a JSON object. All
//! reasons to finish and the usage go in the last event, because what comes of a choice must come before its end, and
//! other services report their usage after it.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{OutCandidate, OutResponse, finish_reason, keep_citation, write_call, write_part};
use super::part::write_signature;
use super::wire::{OutContent, OutPart, Piece};
use super::{logprobs, usage};
use crate::dialect::{Asked, StreamWriter};
use crate::exchange::{Event, Stop, ToolCall, Usage};

/// Writes one stream.
pub(super) struct Writer {
    id: String,
    model: String,
    usage: Option<Usage>,
    choices: Vec<Choice>,
}

#[derive(Default)]
struct Choice {
    index: u32,
    /// Is the last that was written a thought without its signature?
    thinking: bool,
    /// Calls that are not written yet, with their numbers.
    calls: Vec<(u32, ToolCall)>,
    broken_call: bool,
    end: Option<(Stop, String)>,
}

impl Writer {
    pub(super) fn new(asked: Asked) -> Self {
        Self { id: asked.id, model: asked.model, usage: None, choices: Vec::new() }
    }

    fn choice(&mut self, index: u32) -> &mut Choice {
        let at = self.choices.iter().position(|choice| choice.index == index).unwrap_or_else(|| {
            self.choices.push(Choice { index, ..Choice::default() });
            self.choices.len() - 1
        });
        &mut self.choices[at]
    }

    /// Writes what is new of one choice.
    fn frame(&self, candidate: OutCandidate<'_>, out: &mut Vec<u8>) {
        self.response(vec![candidate], None, out);
    }

    fn pieces(&self, index: u32, parts: Vec<Piece<'_>>, out: &mut Vec<u8>) {
        if !parts.is_empty() {
            let content = Some(OutContent { role: Some("model"), parts });
            self.frame(OutCandidate { content, index, ..OutCandidate::default() }, out);
        }
    }

    fn response(&self, candidates: Vec<OutCandidate<'_>>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        let response = OutResponse {
            candidates,
            usage_metadata: usage.map(usage::Written::from),
            model_version: &self.model,
            response_id: &self.id,
            extra: Map::new(),
        };
        out.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut *out, &response).expect("strings and JSON values always serialise");
        out.extend_from_slice(b"\n\n");
    }

    /// Writes the calls of a choice whose arguments are complete; `all`: those that never will be are given up.
    fn flush_calls(&mut self, index: u32, all: bool, out: &mut Vec<u8>) {
        let choice = self.choice(index);
        if choice.calls.is_empty() {
            return;
        }
        let complete = |call: &ToolCall| serde_json::from_str::<&RawValue>(&call.arguments).is_ok();
        // In their order: one that is not complete holds back those behind it.
        let ready = choice.calls.iter().take_while(|(_, call)| all || complete(call)).count();
        let ready: Vec<(u32, ToolCall)> = choice.calls.drain(..ready).collect();
        let pieces: Vec<Option<Piece<'_>>> = ready.iter().map(|(_, call)| write_call(call)).collect();
        choice.broken_call |= pieces.iter().any(Option::is_none);
        choice.thinking = false;
        self.pieces(index, pieces.into_iter().flatten().collect(), out);
    }

    /// Writes a piece that is no call, after the calls before it.
    fn piece(&mut self, index: u32, piece: Option<Piece<'_>>, thinking: bool, out: &mut Vec<u8>) {
        self.flush_calls(index, false, out);
        self.choice(index).thinking = thinking;
        self.pieces(index, piece.into_iter().collect(), out);
    }
}

impl StreamWriter for Writer {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model, .. } => {
                if let Some(id) = id {
                    id.as_ref().clone_into(&mut self.id);
                }
                if let Some(model) = model {
                    model.as_ref().clone_into(&mut self.model);
                }
            }
            Event::Text { choice, text } | Event::Refusal { choice, text } => {
                self.piece(*choice, Some(Piece::text(text.as_ref(), None)), false, out);
            }
            Event::Reasoning { choice, text } => {
                self.piece(*choice, Some(Piece::thought(text.as_ref(), None)), true, out);
            }
            Event::ReasoningSignature { choice, signature, redacted } => {
                self.flush_calls(*choice, false, out);
                let text = Some(write_signature(signature, *redacted));
                let own = signature.wire == penstock_model::vendor::Wire::Gemini;
                // Its own signatures may also stand behind a text.
                let thought = !own || *redacted || self.choice(*choice).thinking;
                let piece = if thought { Piece::thought("", text) } else { Piece::text("", text) };
                self.piece(*choice, Some(piece), false, out);
            }
            Event::Part { choice, part } => self.piece(*choice, write_part(part), false, out),
            Event::ToolStart { choice, call, id, name, signature } => {
                self.flush_calls(*choice, false, out);
                let started = ToolCall {
                    id: id.clone().into_owned(),
                    name: name.clone().into_owned(),
                    arguments: String::new(),
                    signature: signature.clone(),
                    cache: None,
                };
                self.choice(*choice).calls.push((*call, started));
            }
            Event::ToolArguments { choice, call, fragment } => {
                let calls = &mut self.choice(*choice).calls;
                if let Some((_, open)) = calls.iter_mut().rev().find(|(number, _)| number == call) {
                    open.arguments.push_str(fragment);
                }
            }
            Event::Citation { choice, value } => {
                let mut citations = Map::new();
                if keep_citation(value, &mut citations) {
                    self.frame(OutCandidate { index: *choice, citations, ..OutCandidate::default() }, out);
                }
            }
            Event::Logprobs { choice, value } => {
                let logprobs_result: Option<Value> = logprobs::write(value);
                if logprobs_result.is_some() {
                    self.frame(
                        OutCandidate { index: *choice, logprobs_result, ..OutCandidate::default() },
                        out,
                    );
                }
            }
            Event::Finish { choice, stop, native, .. } => {
                self.flush_calls(*choice, true, out);
                self.choice(*choice).end = Some((*stop, native.clone().into_owned()));
            }
            Event::Usage(usage) => self.usage.get_or_insert_default().update(*usage),
            Event::End | Event::Failed { .. } => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let indexes: Vec<u32> = self.choices.iter().map(|choice| choice.index).collect();
        indexes.into_iter().for_each(|index| self.flush_calls(index, true, out));
        // As the service itself does: client code reads `content.parts` of every frame.
        let text = || OutPart { text: Some("".into()), ..OutPart::default() };
        let nothing = || Some(OutContent { role: Some("model"), parts: vec![Piece::Made(Box::new(text()))] });
        let candidates = self.choices.iter().map(|choice| OutCandidate {
            content: nothing(),
            index: choice.index,
            finish_reason: choice
                .end
                .as_ref()
                .map(|(stop, native)| finish_reason(*stop, Some(native), choice.broken_call)),
            ..OutCandidate::default()
        });
        let candidates: Vec<_> = candidates.filter(|candidate| candidate.finish_reason.is_some()).collect();
        if !candidates.is_empty() || self.usage.is_some() {
            self.response(candidates, self.usage.as_ref(), out);
        }
    }
}
