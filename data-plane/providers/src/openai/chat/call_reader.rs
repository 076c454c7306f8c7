//! Reads the tool calls of a stream.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer_reader::made_id;
use super::members::elements;
use super::stream_reader::filled;
use super::tool_reader;
use crate::exchange::{Event, Signature};
use crate::openai::calls;

/// The calls of one choice.
#[derive(Default)]
pub(super) struct Calls {
    told_apart: calls::Calls,
    calls: Vec<Call>,
}

struct Call {
    id: String,
    name: String,
    signature: Option<Signature>,
    /// Its start is told with its first arguments: by then its name is known, and a call that never gets any can be told
    /// whole (TR-14).
    told: bool,
}

#[derive(Deserialize)]
struct Fragment<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes in what one delta says of calls; `answer` is the id that ids are made of.
    pub(super) fn read(
        &mut self,
        new: Option<&RawValue>,
        old: Option<&RawValue>,
        choice: u32,
        answer: &str,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        for raw in new.and_then(|raw| elements(raw, "").ok()).unwrap_or_default() {
            if let Ok(fragment) = serde_json::from_str::<Fragment<'_>>(raw.get()) {
                self.fragment(&fragment, choice, answer, sink);
            }
        }
        if let Some(function) = old.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            let fragment = Fragment { index: None, id: None, function: Some(function), extra_content: None };
            self.fragment(&fragment, choice, answer, sink);
        }
    }

    /// The choice ends: tells the calls that got no arguments.
    pub(super) fn close(&mut self, choice: u32, sink: &mut dyn FnMut(Event<'_>)) {
        for (call, state) in (0..).zip(&mut self.calls) {
            if !state.told {
                state.tell(choice, call, sink);
                sink(Event::ToolArguments { choice, call, fragment: "{}".into() });
            }
        }
    }

    fn fragment(
        &mut self,
        fragment: &Fragment<'_>,
        choice: u32,
        answer: &str,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        let id = fragment.id.and_then(filled);
        let function = fragment.function.as_ref();
        let name = function.and_then(|function| function.name).and_then(filled);
        let arguments = function.and_then(|function| function.arguments).and_then(arguments);
        let place = self.told_apart.place(calls::Fragment {
            index: fragment.index.and_then(|raw| raw.get().parse().ok()),
            id: id.as_deref(),
            name: name.as_deref(),
            arguments: arguments.as_deref(),
        });
        let Some(at) = place else { return };
        if at == self.calls.len() {
            let id = id.map_or_else(|| made_id(answer, choice, at), Cow::into_owned);
            self.calls.push(Call { id, name: String::new(), signature: None, told: false });
        }
        let call = &mut self.calls[at];
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        if let Some(signature) = fragment.extra_content.and_then(tool_reader::thought_signature) {
            call.signature = Some(signature);
        }
        let Some(fragment) = arguments else { return };
        if !call.told {
            call.tell(choice, at as u32, sink);
        }
        sink(Event::ToolArguments { choice, call: at as u32, fragment });
    }
}

/// Text, or the object that some services send in its place.
fn arguments(raw: &RawValue) -> Option<Cow<'_, str>> {
    if raw.get().starts_with('{') { Some(raw.get().into()) } else { filled(raw) }
}

impl Call {
    fn tell(&mut self, choice: u32, call: u32, sink: &mut dyn FnMut(Event<'_>)) {
        self.told = true;
        sink(Event::ToolStart {
            choice,
            call,
            id: self.id.as_str().into(),
            name: self.name.as_str().into(),
            signature: self.signature.take(),
        });
    }
}
