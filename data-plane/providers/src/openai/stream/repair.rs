//! Gives tool calls numbers of their own where the service does not (SSE-06).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{JsonStr, span_of};
use crate::openai::calls::{Calls, Fragment};

/// Most choices of one answer.
const MAX_CHOICES: usize = 1024;

/// The calls seen so far.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// By choice.
    choices: Vec<Calls>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default, deserialize_with = "crate::json::raw")]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Repair {
    /// Takes in a chunk, and gives it back with other numbers if it needs any.
    pub(super) fn repair(&mut self, chunk: &[u8]) -> Option<Vec<u8>> {
        let parsed: Chunk<'_> = serde_json::from_slice(chunk).ok()?;
        let mut edits = Vec::new();
        for choice in parsed.choices.into_iter().flatten() {
            let index = choice.index.and_then(|raw| raw.get().parse().ok()).unwrap_or(0_usize);
            for call in choice.delta.and_then(|delta| delta.tool_calls).into_iter().flatten() {
                edits.extend(self.number(chunk, index, call));
            }
        }
        (!edits.is_empty()).then(|| apply(chunk, &edits))
    }

    /// Where in the chunk which text has to stand, if this call's number is to be another one.
    fn number(&mut self, chunk: &[u8], choice: usize, raw: &RawValue) -> Option<Edit> {
        if choice >= MAX_CHOICES {
            return None;
        }
        let call: Call<'_> = serde_json::from_str(raw.get()).ok()?;
        while self.choices.len() <= choice {
            self.choices.push(Calls::default());
        }
        let calls = &mut self.choices[choice];
        let text = |raw: Option<&RawValue>| {
            raw.and_then(JsonStr::new).map(JsonStr::decode).filter(|text| !text.is_empty()).map(String::from)
        };
        let function = call.function.as_ref();
        let id = text(call.id);
        let name = text(function.and_then(|function| function.name));
        let arguments = text(function.and_then(|function| function.arguments));
        let index = call.index.and_then(|raw| raw.get().parse().ok());
        let at = calls.place(Fragment {
            index,
            id: id.as_deref(),
            name: name.as_deref(),
            arguments: arguments.as_deref(),
        })?;
        let number = calls.number(at);
        match call.index {
            _ if index == Some(number) => None,
            Some(raw) => {
                let span = span_of(chunk, raw.get());
                Some(Edit { from: span.start, to: span.end, text: number.to_string() })
            }
            None => {
                let brace = span_of(chunk, raw.get()).start;
                Some(Edit { from: brace + 1, to: brace + 1, text: format!("\"index\":{number},") })
            }
        }
    }
}

struct Edit {
    from: usize,
    to: usize,
    text: String,
}

fn apply(chunk: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunk.len() + edits.len() * 12);
    let mut from = 0;
    for edit in edits {
        out.extend_from_slice(&chunk[from..edit.from]);
        out.extend_from_slice(edit.text.as_bytes());
        from = edit.to;
    }
    out.extend_from_slice(&chunk[from..]);
    out
}
