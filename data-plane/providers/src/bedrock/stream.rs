//! Streamed answers.
//!
//! The answer is complete at `messageStop`; `metadata` follows it and brings the usage. So the end mark is `metadata`,
//! or the end of the body behind `messageStop`.

use std::borrow::Cow;

use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Ended, call_id, ended, failure, stop_sequence, text};
use super::usage;
use crate::aws::event_stream::{Decoder, Frame};
use crate::dialect::StreamReader;
use crate::exchange::{Event, Part, Signature};
use crate::openai::error_body::VendorError;

/// Exceptions inside a stream, and the status that each stands for.
const EXCEPTIONS: &[(&str, u16)] = &[
    ("internalServerException", 500),
    ("modelStreamErrorException", 424),
    ("modelTimeoutException", 408),
    ("validationException", 400),
    ("throttlingException", 429),
    ("serviceUnavailableException", 503),
];

/// Reads a stream of frames.
pub(super) struct Reader {
    decoder: Decoder,
    state: State,
}

struct State {
    id: String,
    started: bool,
    /// Has `messageStop` come?
    finished: bool,
    /// Nothing follows any more.
    over: bool,
    /// How many calls there were.
    calls: u32,
    /// The calls that have not ended.
    open: Vec<OpenCall>,
    /// The signature of the current thought.
    signature: String,
    redacted: bool,
}

struct OpenCall {
    /// Of the block.
    index: u64,
    call: u32,
    /// Have arguments come?
    has_arguments: bool,
}

type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

impl Reader {
    pub(super) fn new(id: &str) -> Self {
        let state = State {
            id: id.to_owned(),
            started: false,
            finished: false,
            over: false,
            calls: 0,
            open: Vec::new(),
            signature: String::new(),
            redacted: false,
        };
        Self { decoder: Decoder::default(), state }
    }
}

impl StreamReader for Reader {
    fn feed(&mut self, read: &[u8], sink: Sink<'_>) {
        let state = &mut self.state;
        if let Err(broken) = self.decoder.feed(read, |frame| state.frame(frame, sink)) {
            state.fail(
                VendorError { message: Some(broken.to_string()), ..VendorError::default() },
                None,
                sink,
            );
        }
    }

    fn end(&mut self, sink: Sink<'_>) {
        let state = &mut self.state;
        if state.finished && !state.over {
            state.over = true;
            sink(Event::End);
        }
    }

    fn open_bytes(&self) -> u64 {
        self.decoder.open_bytes()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStart<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    start: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<ToolStart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolStart {
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDelta<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use: Option<ToolDelta<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<ThoughtDelta<'a>>,
    citation: Option<Value>,
}

#[derive(Deserialize)]
struct ToolDelta<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThoughtDelta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    redacted_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStop {
    #[serde(default)]
    content_block_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageStop {
    #[serde(default)]
    stop_reason: String,
    additional_model_response_fields: Option<Value>,
}

#[derive(Deserialize)]
struct Metadata {
    usage: Option<usage::Raw>,
}

impl State {
    fn frame(&mut self, frame: Frame<'_>, sink: Sink<'_>) {
        if self.over {
            return;
        }
        match frame.header(":message-type") {
            Some("exception") => {
                let name = frame.header(":exception-type").unwrap_or("exception");
                let status = EXCEPTIONS.iter().find(|(known, _)| *known == name).map(|(_, status)| *status);
                let said = VendorError::read(frame.payload);
                self.fail(VendorError { code: Some(name.to_owned()), ..said }, status, sink);
            }
            Some("error") => {
                // Its texts are in headers: read as the JSON that exceptions have.
                let message = frame.header(":error-message").unwrap_or_default();
                let said = VendorError::read(crate::json::quote(message).as_bytes());
                let code = frame.header(":error-code").map(str::to_owned);
                self.fail(VendorError { code, ..said }, None, sink);
            }
            _ => {
                let name = frame.header(":event-type").unwrap_or_default();
                if self.event(name, frame.payload, sink).is_err() {
                    let message = format!("a {name} event of the stream is not what it should be");
                    self.fail(VendorError { message: Some(message), ..VendorError::default() }, None, sink);
                }
            }
        }
    }

    fn event(&mut self, name: &str, payload: &[u8], sink: Sink<'_>) -> serde_json::Result<()> {
        match name {
            // Nothing of an answer follows its end.
            _ if self.finished && name != "metadata" => {}
            "messageStart" => self.start(sink),
            "contentBlockStart" => {
                self.start(sink);
                self.block_start(&serde_json::from_slice(payload)?, sink)?;
            }
            "contentBlockDelta" => {
                self.start(sink);
                self.block_delta(serde_json::from_slice(payload)?, sink);
            }
            "contentBlockStop" => {
                let stop: BlockStop = serde_json::from_slice(payload)?;
                self.block_stop(|call| call.index == stop.content_block_index, sink);
            }
            "messageStop" => {
                self.start(sink);
                self.message_stop(&serde_json::from_slice(payload)?, sink);
            }
            "metadata" => {
                let metadata: Metadata = serde_json::from_slice(payload)?;
                self.metadata(metadata, sink);
            }
            // Of a type that came later than this was written.
            _ => {}
        }
        Ok(())
    }

    /// Once, whatever comes first.
    fn start(&mut self, sink: Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { id: None, model: None, created: None });
        }
    }

    fn block_start(&mut self, block: &BlockStart<'_>, sink: Sink<'_>) -> serde_json::Result<()> {
        self.end_thought(sink);
        let Some(raw) = block.start else { return Ok(()) };
        let start: Start = serde_json::from_str(raw.get())?;
        if let Some(tool) = start.tool_use {
            let call = self.calls;
            self.calls = call.saturating_add(1);
            self.open.push(OpenCall { index: block.content_block_index, call, has_arguments: false });
            let id = call_id(&tool.tool_use_id, &self.id, call as usize);
            sink(Event::ToolStart { choice: 0, call, id, name: Cow::Owned(tool.name), signature: None });
        } else {
            let value: Value = serde_json::from_str(raw.get())?;
            let is_known = |object: &serde_json::Map<String, Value>| {
                object.is_empty() || object.contains_key("text") || object.contains_key("reasoningContent")
            };
            if value.as_object().is_some_and(|object| !is_known(object)) {
                let part = Box::new(Part::Other { wire: Wire::Bedrock, value });
                sink(Event::Part { choice: 0, part });
            }
        }
        Ok(())
    }

    fn block_delta(&mut self, block: BlockDelta<'_>, sink: Sink<'_>) {
        let delta = block.delta;
        if let Some(thought) = delta.reasoning_content {
            return self.thought_delta(&thought, sink);
        }
        self.end_thought(sink);
        if let Some(raw) = delta.text {
            let text = text(Some(raw));
            if !text.is_empty() {
                sink(Event::Text { choice: 0, text });
            }
        }
        if let Some(tool) = delta.tool_use
            && let Some(open) = self.open.iter_mut().find(|open| open.index == block.content_block_index)
        {
            let fragment = text(tool.input);
            if !fragment.is_empty() {
                open.has_arguments = true;
                sink(Event::ToolArguments { choice: 0, call: open.call, fragment });
            }
        }
        if let Some(value) = delta.citation {
            sink(Event::Citation { choice: 0, value });
        }
    }

    fn thought_delta(&mut self, thought: &ThoughtDelta<'_>, sink: Sink<'_>) {
        let shown = text(thought.text);
        if !shown.is_empty() {
            // More of it behind a signature is a thought of its own.
            self.end_thought(sink);
            sink(Event::Reasoning { choice: 0, text: shown });
        }
        self.signature.push_str(&text(thought.signature));
        let redacted = text(thought.redacted_content);
        if !redacted.is_empty() {
            self.end_thought(sink);
            self.redacted = true;
            self.signature.push_str(&redacted);
        }
    }

    /// Reports the signature of the current thought, if there is one.
    fn end_thought(&mut self, sink: Sink<'_>) {
        if !self.signature.is_empty() {
            let signature = Signature { wire: Wire::Bedrock, value: std::mem::take(&mut self.signature) };
            let redacted = std::mem::take(&mut self.redacted);
            sink(Event::ReasoningSignature { choice: 0, signature, redacted });
        }
    }

    fn block_stop(&mut self, is_over: impl Fn(&OpenCall) -> bool, sink: Sink<'_>) {
        self.end_thought(sink);
        self.open.retain(|open| {
            let over = is_over(open);
            if over && !open.has_arguments {
                // A call without arguments has none to send (TR-14).
                sink(Event::ToolArguments { choice: 0, call: open.call, fragment: Cow::Borrowed("{}") });
            }
            !over
        });
    }

    fn message_stop(&mut self, stop: &MessageStop, sink: Sink<'_>) {
        let Ended::As(reason) = ended(&stop.stop_reason) else {
            return self.fail(failure(&stop.stop_reason), None, sink);
        };
        self.block_stop(|_| true, sink);
        self.finished = true;
        sink(Event::Finish {
            choice: 0,
            stop: reason,
            native: Cow::Borrowed(&stop.stop_reason),
            sequence: stop_sequence(stop.additional_model_response_fields.as_ref()).map(Cow::Owned),
        });
    }

    fn metadata(&mut self, metadata: Metadata, sink: Sink<'_>) {
        let usage = metadata.usage.map(usage::Raw::normalise);
        if let Some(usage) = usage.filter(|usage| !usage.is_empty()) {
            self.start(sink);
            sink(Event::Usage(usage));
        }
        if self.finished {
            self.over = true;
            sink(Event::End);
        }
    }

    fn fail(&mut self, error: VendorError, status: Option<u16>, sink: Sink<'_>) {
        if !std::mem::replace(&mut self.over, true) {
            sink(Event::Failed { error, status });
        }
    }
}
