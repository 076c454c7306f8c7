//! What messages are made of: text, refusals, and what is said about a text.

use serde_json::Value;

use super::{Body, Content, Item, Piece, Status, Writer};

/// The kinds of annotation that clients know.
const ANNOTATIONS: [&str; 4] = ["url_citation", "file_citation", "container_file_citation", "file_path"];

impl Writer {
    pub(super) fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open_content(), Some(Content::OutputText { .. })) {
            let empty =
                Content::OutputText { text: String::new(), annotations: Vec::new(), logprobs: Vec::new() };
            self.add_content(empty, out);
        }
        let at = self.progress.items.len() - 1;
        let Some(Item::Message { id, content, .. }) = self.progress.items.last_mut() else { return };
        let content_index = content.len() - 1;
        if let Some(Content::OutputText { text: all, .. }) = content.last_mut() {
            all.push_str(text);
        }
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            content_index: Some(content_index),
            delta: Some(text),
            logprobs: Some(&[]),
            ..Body::default()
        };
        self.emitter.emit(out, "response.output_text.delta", &body);
    }

    pub(super) fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open_content(), Some(Content::Refusal { .. })) {
            self.add_content(Content::Refusal { refusal: String::new() }, out);
        }
        let at = self.progress.items.len() - 1;
        let Some(Item::Message { id, content, .. }) = self.progress.items.last_mut() else { return };
        let content_index = content.len() - 1;
        if let Some(Content::Refusal { refusal }) = content.last_mut() {
            refusal.push_str(text);
        }
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            content_index: Some(content_index),
            delta: Some(text),
            ..Body::default()
        };
        self.emitter.emit(out, "response.refusal.delta", &body);
    }

    /// Adds an annotation of the text so far. Those of other shapes than OpenAI's are left out: clients know none.
    pub(super) fn annotation(&mut self, value: &Value, out: &mut Vec<u8>) {
        let Some(annotation) = flat(value) else { return };
        if !matches!(self.open_content(), Some(Content::OutputText { .. })) {
            return;
        }
        let at = self.progress.items.len() - 1;
        let Some(Item::Message { id, content, .. }) = self.progress.items.last_mut() else { return };
        let content_index = content.len() - 1;
        let Some(Content::OutputText { annotations, .. }) = content.last_mut() else { return };
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            content_index: Some(content_index),
            annotation_index: Some(annotations.len()),
            annotation: Some(&annotation),
            ..Body::default()
        };
        self.emitter.emit(out, "response.output_text.annotation.added", &body);
        annotations.push(annotation);
    }

    /// Keeps log-probabilities until the text is done.
    pub(super) fn logprobs(&mut self, value: &Value) {
        let tokens = value.get("content").and_then(Value::as_array);
        if let Some(Item::Message { content, .. }) = self.progress.items.last_mut()
            && let Some(Content::OutputText { logprobs, .. }) = content.last_mut()
            && let Some(tokens) = tokens
        {
            logprobs.extend_from_slice(tokens);
        }
    }

    /// The part that is open.
    fn open_content(&self) -> Option<&Content> {
        match self.progress.items.last() {
            Some(Item::Message { content, .. }) if self.open => content.last(),
            _ => None,
        }
    }

    /// Opens a part, and a message around it if there is none.
    fn add_content(&mut self, part: Content, out: &mut Vec<u8>) {
        if self.open_content().is_some() {
            self.close_content(out);
        } else {
            self.close(out);
            let id = self.next_id("msg");
            let status = Status::InProgress;
            self.add(Item::Message { id, status, role: "assistant", content: Vec::new() }, out);
            self.open = true;
        }
        let at = self.progress.items.len() - 1;
        let Some(Item::Message { id, content, .. }) = self.progress.items.last_mut() else { return };
        let body = Body {
            item_id: Some(id),
            output_index: Some(at),
            content_index: Some(content.len()),
            part: Some(Piece::Content(&part)),
            ..Body::default()
        };
        self.emitter.emit(out, "response.content_part.added", &body);
        content.push(part);
    }

    /// Ends the last part, if the last item is a message.
    pub(super) fn close_content(&mut self, out: &mut Vec<u8>) {
        let at = self.progress.items.len() - 1;
        let Some(Item::Message { id, content, .. }) = self.progress.items.last() else { return };
        let Some(part) = content.last() else { return };
        let place = || Body {
            item_id: Some(id),
            output_index: Some(at),
            content_index: Some(content.len() - 1),
            ..Body::default()
        };
        match part {
            Content::OutputText { text, logprobs, .. } => {
                let body = Body { text: Some(text), logprobs: Some(logprobs), ..place() };
                self.emitter.emit(out, "response.output_text.done", &body);
            }
            Content::Refusal { refusal } => {
                let body = Body { refusal: Some(refusal), ..place() };
                self.emitter.emit(out, "response.refusal.done", &body);
            }
        }
        let body = Body { part: Some(Piece::Content(part)), ..place() };
        self.emitter.emit(out, "response.content_part.done", &body);
    }
}

/// An annotation as this interface has it: in chat completions its fields are one level deeper.
fn flat(value: &Value) -> Option<Value> {
    let kind = value.get("type")?.as_str().filter(|kind| ANNOTATIONS.contains(kind))?;
    let Some(Value::Object(inner)) = value.get(kind) else { return Some(value.clone()) };
    let mut flat = serde_json::Map::with_capacity(inner.len() + 1);
    flat.insert("type".to_owned(), kind.into());
    flat.extend(inner.clone());
    Some(Value::Object(flat))
}
