//! What a service says, whole or token by token.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};

/// Every answer says it was made at this moment: repeatable, and no clock to read.
pub(crate) const CREATED: u64 = 1_760_000_000;

/// Filler after the name and the digest. None needs escaping in JSON.
pub(crate) const WORDS: [&str; 16] = [
    " water", " turns", " the", " wheel", " while", " gates", " open", " and", " close", " so", " that",
    " no", " drop", " is", " lost", " again",
];

/// A short digest (FNV-1a) of a request's `messages`, as they stand in the body: answers carry it, so that a test can
/// tell whether all bytes arrived.
#[must_use]
pub fn digest(messages_json: &str) -> u32 {
    messages_json.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// One answer, not yet written down.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The service's name, escaped for JSON, without quotes.
    pub(crate) service: Bytes,
    /// The model's name as a JSON string.
    pub(crate) model: String,
    /// Makes the id.
    pub(crate) number: u64,
    pub(crate) digest: u32,
    pub(crate) prompt_tokens: u64,
    /// Number of tokens; the first is the name, the second the digest.
    pub(crate) tokens: u32,
    /// Did the request's limit cut it?
    pub(crate) cut: bool,
}

impl Answer {
    fn finish_reason(&self) -> &'static str {
        if self.cut { "length" } else { "stop" }
    }

    fn service(&self) -> &str {
        str::from_utf8(&self.service).expect("made from a string")
    }

    fn put_token(&self, out: &mut BytesMut, index: u32) {
        match index {
            0 => write!(out, "{}:", self.service()),
            1 => write!(out, " [{:08x}]", self.digest),
            _ => out.write_str(WORDS[(self.digest.wrapping_add(index) % 16) as usize]),
        }
        .expect("the buffer grows");
    }

    fn put_usage(&self, out: &mut BytesMut) {
        let (prompt, answer) = (self.prompt_tokens, u64::from(self.tokens));
        write!(
            out,
            r#""usage":{{"prompt_tokens":{prompt},"completion_tokens":{answer},"total_tokens":{}}}"#,
            prompt + answer
        )
        .expect("the buffer grows");
    }

    fn put_head(&self, out: &mut BytesMut, object: &str) {
        let (number, model) = (self.number, &self.model);
        write!(
            out,
            r#"{{"id":"chatcmpl-{number:08x}","object":"{object}","created":{CREATED},"model":{model},"choices":["#
        )
        .expect("the buffer grows");
    }

    /// The answer as one body.
    pub(crate) fn completion(&self) -> Bytes {
        let mut out =
            BytesMut::with_capacity(320 + self.service.len() + self.model.len() + 8 * self.tokens as usize);
        self.put_head(&mut out, "chat.completion");
        out.extend_from_slice(br#"{"index":0,"message":{"role":"assistant","content":""#);
        for index in 0..self.tokens {
            self.put_token(&mut out, index);
        }
        write!(out, r#"","refusal":null}},"logprobs":null,"finish_reason":"{}"}}],"#, self.finish_reason())
            .expect("the buffer grows");
        self.put_usage(&mut out);
        out.extend_from_slice(b"}");
        out.freeze()
    }

    /// The answer as stream events.
    pub(crate) fn into_events(self, include_usage: bool) -> Events {
        let mut head = BytesMut::with_capacity(160 + self.model.len());
        head.extend_from_slice(b"data: ");
        self.put_head(&mut head, "chat.completion.chunk");
        let per_event = head.len() + 96;
        let buffer = BytesMut::with_capacity((per_event * (self.tokens as usize + 4)).min(16 << 10));
        Events { answer: self, include_usage, head, buffer, next: Step::Role }
    }
}

/// The events of one streamed answer, made one at a time.
#[derive(Debug)]
pub(crate) struct Events {
    answer: Answer,
    include_usage: bool,
    /// What every event begins with.
    head: BytesMut,
    buffer: BytesMut,
    next: Step,
}

/// Which event comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Role,
    Token(u32),
    Finish,
    Usage,
    Done,
    End,
}

impl Events {
    pub(crate) fn next_step(&self) -> Step {
        self.next
    }

    /// Number of tokens in all.
    pub(crate) fn tokens(&self) -> u32 {
        self.answer.tokens
    }

    /// The next event; `None` after `[DONE]`.
    pub(crate) fn next_event(&mut self) -> Option<Bytes> {
        let out = &mut self.buffer;
        // Asked for usage, the real service says null until it is known.
        let tail = if self.include_usage { "],\"usage\":null}\n\n" } else { "]}\n\n" };
        if !matches!(self.next, Step::Done | Step::End) {
            out.extend_from_slice(&self.head);
        }
        self.next = match self.next {
            Step::Role => {
                out.extend_from_slice(
                    br#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#,
                );
                out.extend_from_slice(tail.as_bytes());
                Step::Token(0)
            }
            Step::Token(index) => {
                out.extend_from_slice(br#"{"index":0,"delta":{"content":""#);
                self.answer.put_token(out, index);
                out.extend_from_slice(br#""},"finish_reason":null}"#);
                out.extend_from_slice(tail.as_bytes());
                if index + 1 < self.answer.tokens { Step::Token(index + 1) } else { Step::Finish }
            }
            Step::Finish => {
                let reason = self.answer.finish_reason();
                write!(out, r#"{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}{tail}"#)
                    .expect("the buffer grows");
                if self.include_usage { Step::Usage } else { Step::Done }
            }
            Step::Usage => {
                out.extend_from_slice(b"],");
                self.answer.put_usage(out);
                out.extend_from_slice(b"}\n\n");
                Step::Done
            }
            Step::Done => {
                out.extend_from_slice(b"data: [DONE]\n\n");
                Step::End
            }
            Step::End => return None,
        };
        Some(out.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answer(tokens: u32) -> Answer {
        Answer {
            service: Bytes::from_static(b"code-a"),
            model: "\"m\"".to_owned(),
            number: 1,
            digest: 0xabc,
            prompt_tokens: 5,
            tokens,
            cut: false,
        }
    }

    #[test]
    fn whole_and_streamed_answers_say_the_same() {
        let whole: Value = serde_json::from_slice(&answer(5).completion()).unwrap();
        let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(text.starts_with("code-a: [00000abc] "), "{text}");
        assert_eq!(whole["usage"]["total_tokens"], 10);

        let mut events = answer(5).into_events(true);
        let mut streamed = String::new();
        let mut all = Vec::new();
        while let Some(event) = events.next_event() {
            all.push(String::from_utf8(event.to_vec()).unwrap());
        }
        assert_eq!(all.pop().unwrap(), "data: [DONE]\n\n");
        let chunks: Vec<Value> = all
            .iter()
            .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        for chunk in &chunks {
            streamed.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
        assert_eq!(streamed, text);
        assert_eq!(chunks.len(), 1 + 5 + 1 + 1);
        assert_eq!(chunks[6]["choices"][0]["finish_reason"], "stop");
        assert_eq!(chunks[7]["choices"], Value::Array(vec![]));
        assert_eq!(chunks[7]["usage"], whole["usage"]);
    }

    #[test]
    fn the_digest_tells_one_changed_byte() {
        assert_eq!(digest(""), 0x811c_9dc5);
        assert_eq!(digest("a"), 0xe40c_292c);
        assert_ne!(digest("[{\"role\":\"user\"}]"), digest("[{\"role\": \"user\"}]"));
    }
}
