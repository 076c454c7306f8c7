//! The other items: thoughts, calls, pictures.

use super::{Body, Item, OWN, Part, Piece, Signature, Source, Status, Summary, Value, Wire, Writer, json};

impl Writer {
    pub(super) fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open_reasoning(out);
        self.open_summary(out);
        let at = self.progress.items.len() - 1;
        let Some(Item::Reasoning { id, summary, .. }) = self.progress.items.last_mut() else { return };
        if let Some(summary) = summary.last_mut() {
            summary.text.push_str(text);
        }
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            summary_index: Some(0),
            delta: Some(text),
            ..Body::default()
        };
        self.emitter.emit(out, "response.reasoning_summary_text.delta", &body);
    }

    /// Ends the block of thoughts with its signature. One without text gets an empty summary, unless it is the thought
    /// itself, encrypted: by this the reader of requests knows the two apart (TR-08).
    pub(super) fn signature(&mut self, signature: &Signature, redacted: bool, out: &mut Vec<u8>) {
        self.open_reasoning(out);
        if !redacted {
            self.open_summary(out);
        }
        if let Some(Item::Reasoning { encrypted_content, .. }) = self.progress.items.last_mut() {
            *encrypted_content = Some(signature.to_text(OWN));
        }
        self.close(out);
    }

    fn open_reasoning(&mut self, out: &mut Vec<u8>) {
        if self.open && matches!(self.progress.items.last(), Some(Item::Reasoning { .. })) {
            return;
        }
        self.close(out);
        let id = self.next_id("rs");
        self.add(Item::Reasoning { id, summary: Vec::new(), encrypted_content: None }, out);
        self.open = true;
    }

    fn open_summary(&mut self, out: &mut Vec<u8>) {
        let at = self.progress.items.len() - 1;
        let Some(Item::Reasoning { id, summary, .. }) = self.progress.items.last_mut() else { return };
        if !summary.is_empty() {
            return;
        }
        let part = Summary::new();
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            summary_index: Some(0),
            part: Some(Piece::Summary(&part)),
            ..Body::default()
        };
        self.emitter.emit(out, "response.reasoning_summary_part.added", &body);
        summary.push(part);
    }

    /// Ends the summary, if the last item is a block of thoughts that has one.
    pub(super) fn close_summary(&mut self, out: &mut Vec<u8>) {
        let at = self.progress.items.len() - 1;
        let Some(Item::Reasoning { id, summary, .. }) = self.progress.items.last() else { return };
        let Some(part) = summary.last() else { return };
        let place =
            || Body { item_id: Some(id), output_index: Some(at), summary_index: Some(0), ..Body::default() };
        let body = Body { text: Some(&part.text), ..place() };
        self.emitter.emit(out, "response.reasoning_summary_text.done", &body);
        let body = Body { part: Some(Piece::Summary(part)), ..place() };
        self.emitter.emit(out, "response.reasoning_summary_part.done", &body);
    }

    pub(super) fn call(
        &mut self,
        call: u32,
        call_id: &str,
        name: &str,
        signature: Option<&Signature>,
        out: &mut Vec<u8>,
    ) {
        if self.calls.iter().any(|(known, _)| *known == call) {
            self.close_calls(out);
        }
        if self.open {
            self.close(out);
        }
        let extra_content = signature.map(extra_content);
        self.calls.push((call, self.progress.items.len()));
        let item = Item::FunctionCall {
            id: self.next_id("fc"),
            status: Status::InProgress,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            extra_content,
        };
        self.add(item, out);
    }

    pub(super) fn arguments(&mut self, call: u32, fragment: &str, out: &mut Vec<u8>) {
        let Some(&(_, at)) = self.calls.iter().find(|(known, _)| *known == call) else { return };
        let Some(Item::FunctionCall { id, arguments, .. }) = self.progress.items.get_mut(at) else { return };
        arguments.push_str(fragment);
        let body =
            Body { item_id: Some(id), output_index: Some(at), delta: Some(fragment), ..Body::default() };
        self.emitter.emit(out, "response.function_call_arguments.delta", &body);
    }

    /// A picture is the result of a tool here. Of other pieces a client of this protocol knows nothing.
    pub(super) fn part(&mut self, part: &Part, out: &mut Vec<u8>) {
        let Part::Image(media) = part else { return };
        match &media.source {
            Source::Base64(data) => {
                self.close(out);
                let at = self.progress.items.len();
                let id = self.next_id("ig");
                let status = Status::InProgress;
                self.add(Item::ImageGenerationCall { id, status, result: String::new() }, out);
                if let Some(Item::ImageGenerationCall { result, .. }) = self.progress.items.last_mut() {
                    result.clone_from(data);
                }
                self.done(at, out);
            }
            Source::Url(url) => self.text(&format!("![]({url})"), out),
            Source::Text(_) | Source::FileId(_) => {}
        }
    }
}

/// A call's signature, where the reader of requests finds it.
fn extra_content(signature: &Signature) -> Value {
    json!({ "google": { "thought_signature": signature.to_text(Wire::Gemini) } })
}
