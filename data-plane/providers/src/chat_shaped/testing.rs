//! What the tests of these dialects share.

use penstock_model::vendor::{MaxTokens, Vendor, Wire};
use serde_json::Value;

use crate::dialect::{Dialect, TargetFacts};
use crate::exchange::{
    Event, Facts, Part, Request, Role, Tool, ToolCall, ToolKind, ToolResult, Turn, Unwritable,
};

/// A dialect, and the vendor that it is tried with.
pub(crate) struct Bench(pub(crate) &'static dyn Dialect, pub(crate) &'static str);

impl Bench {
    /// The body, and what was dropped.
    pub(crate) fn written(&self, request: &Request) -> (Value, String) {
        let written = self.0.write_request(request, &self.target()).unwrap();
        (serde_json::from_slice(&written.body).unwrap(), written.dropped.to_string())
    }

    pub(crate) fn refused(&self, request: &Request) -> Unwritable {
        self.0.write_request(request, &self.target()).unwrap_err()
    }

    pub(crate) fn target(&self) -> TargetFacts<'static> {
        TargetFacts {
            vendor: Vendor::find(self.1).unwrap(),
            model: "target-model",
            max_tokens_name: MaxTokens::AsGiven,
            default_max_tokens: 4096,
        }
    }

    /// The events of a stream, one text each, and what they amount to.
    pub(crate) fn events(&self, chunks: &[&[u8]]) -> (Vec<String>, Facts) {
        let (mut lines, mut facts) = (Vec::new(), Facts::default());
        let mut reader = self.0.stream_reader("req-1");
        let mut sink = |event: Event<'_>| {
            facts.see(&event);
            lines.push(format!("{event:?}"));
        };
        for chunk in chunks {
            reader.feed(chunk, &mut sink);
        }
        reader.end(&mut sink);
        (lines, facts)
    }
}

pub(crate) fn request(turns: Vec<Turn>) -> Request {
    Request { turns, ..Request::new(Wire::Openai) }
}

pub(crate) fn user(part: Part) -> Turn {
    Turn::new(Role::User, vec![part])
}

pub(crate) fn assistant(parts: Vec<Part>) -> Turn {
    Turn::new(Role::Assistant, parts)
}

/// A call of `tool_ID`.
pub(crate) fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: format!("tool_{id}"),
        arguments: arguments.to_owned(),
        signature: None,
        cache: None,
    })
}

pub(crate) fn result(id: &str, text: &str) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.to_owned(),
        name: None,
        parts: vec![Part::text(text)],
        is_error: false,
        cache: None,
    })
}

pub(crate) fn function(name: &str) -> Tool {
    let kind = ToolKind::Function { parameters: None, strict: None };
    Tool { name: name.to_owned(), description: None, kind, cache: None }
}
