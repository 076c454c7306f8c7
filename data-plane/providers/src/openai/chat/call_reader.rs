//! Tells the tool calls of a stream apart.
//!
//! Fragments say by `index` which call they belong to. Some services number every call 0, or none; some repeat the id
//! with every fragment, and some give none at all (SSE-06). A new id starts a new call, whatever the index says, and so
//! does a name when the call before it is complete.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer_reader::made_id;
use super::members::elements;
use super::stream_reader::filled;
use super::tool_reader;
use crate::exchange::{Event, Signature};

/// The calls of one choice.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

struct Call {
    /// As the service numbers it.
    index: Option<u64>,
    id: String,
    name: String,
    signature: Option<Signature>,
    /// Its start is told with its first arguments: by then its name is known, and a call that never gets any can be told
    /// whole (TR-14).
    told: bool,
    arguments: Balance,
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
        self.0.is_empty()
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
        for (call, state) in (0..).zip(&mut self.0) {
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
        let index = fragment.index.and_then(|raw| raw.get().parse().ok());
        let id = fragment.id.and_then(filled);
        let function = fragment.function.as_ref();
        let name = function.and_then(|function| function.name).and_then(filled);
        let at = match self.find(index, id.as_deref(), name.as_deref()) {
            Some(at) => at,
            // Arguments of no call.
            None if id.is_none() && name.is_none() => return,
            None => {
                let made = || made_id(answer, choice as usize * 1000 + self.0.len());
                let id = id.map_or_else(made, Cow::into_owned);
                let arguments = Balance::default();
                let name = String::new();
                self.0.push(Call { index, id, name, signature: None, told: false, arguments });
                self.0.len() - 1
            }
        };
        let call = &mut self.0[at];
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        if let Some(signature) = fragment.extra_content.and_then(tool_reader::thought_signature) {
            call.signature = Some(signature);
        }
        let arguments = function.and_then(|function| function.arguments);
        let Some(fragment) = arguments.and_then(arguments_text) else { return };
        call.arguments.see(&fragment);
        if !call.told {
            call.tell(choice, at as u32, sink);
        }
        sink(Event::ToolArguments { choice, call: at as u32, fragment });
    }

    /// Which call a fragment belongs to; `None` when it starts one.
    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let same_index = |call: &Call| index.is_none() || call.index == index;
        if let Some(id) = id {
            let known = |call: &Call| call.id == id && same_index(call);
            return self.0.iter().rposition(known);
        }
        let at = self.0.iter().rposition(same_index)?;
        let starts = name.is_some() && self.0[at].arguments.is_closed();
        (!starts).then_some(at)
    }
}

/// Text, or the object that some services send in its place.
fn arguments_text(raw: &RawValue) -> Option<Cow<'_, str>> {
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

/// Whether a JSON object that comes in pieces is complete.
#[derive(Default)]
pub(super) struct Balance {
    depth: u32,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Balance {
    pub(super) fn see(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            match (byte, self.in_string) {
                _ if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_string = !self.in_string,
                (b'{' | b'[', false) => self.depth += 1,
                (b'}' | b']', false) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}
