use penstock_model::Usage;
use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::Chat;
use crate::dialect::{Asked, ClientError, Protocol as _};
use crate::exchange::{Answer, Choice, Event, Part, Reasoning, Signature, Stop, ToolCall};

pub(super) fn asked(include_usage: bool) -> Asked {
    Asked { id: "req-1".to_owned(), model: "m".to_owned(), created: 1, include_usage }
}

/// What a client gets, as JSON, `[DONE]` left out after a check that it is there.
fn written(events: &[Event<'_>], include_usage: bool) -> Vec<Value> {
    let mut writer = Chat.stream_writer(asked(include_usage));
    let mut out = Vec::new();
    for event in events {
        writer.event(event, &mut out);
    }
    writer.finish(&mut out);
    let text = String::from_utf8(out).unwrap();
    let mut events: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(events.pop(), Some("data: [DONE]"));
    let json = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    events.into_iter().map(json).collect()
}

fn start() -> Event<'static> {
    Event::Start { id: Some("c1".into()), model: Some("model".into()), created: Some(7) }
}

fn finish(stop: Stop) -> Event<'static> {
    Event::Finish { choice: 0, stop, native: "".into(), sequence: None }
}

#[test]
fn the_usage_comes_last_without_choices_and_only_when_asked_for_sse_05() {
    let usage = Usage { input_tokens: Some(9), output_tokens: Some(1), ..Usage::default() };
    let events = [
        start(),
        Event::Usage(usage),
        Event::Text { choice: 0, text: "a\"潮".into() },
        finish(Stop::End),
        Event::End,
    ];
    let chunks = written(&events, true);
    assert_eq!(
        chunks,
        [
            json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "model", "usage": null,
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a\"潮"}, "finish_reason": null}]}),
            json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "model", "usage": null,
                "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "model", "choices": [],
                "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}}),
        ]
    );
    let chunks = written(&events, false);
    assert_eq!(chunks.len(), 2);
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn an_answer_of_calls_alone_has_null_for_content_tr_04() {
    let call = ToolCall {
        id: "t1".into(),
        name: "now".into(),
        arguments: "{}".into(),
        signature: None,
        cache: None,
    };
    let choice =
        Choice { parts: vec![Part::ToolCall(call)], stop: Some(Stop::ToolCalls), ..Choice::default() };
    let answer = Answer { choices: vec![choice], ..Answer::default() };
    let body: Value = serde_json::from_slice(&Chat.write_answer(&answer, &asked(false))).unwrap();
    assert_eq!(
        body,
        json!({"id": "chatcmpl-req-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": null, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
            ]},
        }]})
    );
    let chunks = written(
        &[
            start(),
            Event::ToolStart { choice: 0, call: 0, id: "t1".into(), name: "now".into(), signature: None },
            Event::ToolArguments { choice: 0, call: 0, fragment: "{}".into() },
            finish(Stop::ToolCalls),
        ],
        false,
    );
    let delta = &chunks[0]["choices"][0]["delta"];
    assert_eq!((&delta["role"], &delta["content"]), (&json!("assistant"), &Value::Null));
    assert!(delta.as_object().unwrap().contains_key("content"));
    let rest = chunks[1..].iter().map(|chunk| &chunk["choices"][0]["delta"]);
    assert!(rest.into_iter().all(|delta| delta.get("content").is_none()));
}

#[test]
fn reasoning_is_shown_with_what_gives_it_back_tr_08() {
    let signature = Signature { wire: Wire::Anthropic, value: "c2ln".to_owned() };
    let block = Reasoning { text: String::new(), signature: Some(signature.clone()), redacted: false };
    let choice = Choice { parts: vec![Part::Reasoning(block), Part::text("x")], ..Choice::default() };
    let answer = Answer { choices: vec![choice], ..Answer::default() };
    let body: Value = serde_json::from_slice(&Chat.write_answer(&answer, &asked(false))).unwrap();
    let detail =
        json!({"type": "reasoning.text", "text": "", "signature": "c2ln", "format": "anthropic", "index": 0});
    let message = &body["choices"][0]["message"];
    assert_eq!(message["reasoning_details"], json!([detail]));
    let back = json!({ "messages": [message] }).to_string();
    let turn = Chat.read_request(back.as_bytes(), None, false).unwrap().turns.remove(0);
    assert_eq!(turn.parts, answer.choices[0].parts);

    let chunks = written(
        &[
            start(),
            Event::ReasoningSignature { choice: 0, signature, redacted: false },
            Event::Reasoning { choice: 0, text: "hm".into() },
        ],
        false,
    );
    assert_eq!(chunks[0]["choices"][0]["delta"]["reasoning_details"], json!([detail]));
    let second = &chunks[1]["choices"][0]["delta"];
    assert_eq!(second["reasoning_content"], "hm");
    assert_eq!(second["reasoning_details"], json!([{"type": "reasoning.text", "text": "hm", "index": 1}]));
}

#[test]
fn the_vendors_own_word_for_the_end_is_kept_beside_ours() {
    let end = |native: &'static str, sequence: Option<&'static str>| {
        let event = Event::Finish {
            choice: 0,
            stop: Stop::End,
            native: native.into(),
            sequence: sequence.map(Into::into),
        };
        written(&[start(), event], false)[0]["choices"][0].clone()
    };
    let choice = end("end_turn", Some("END"));
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(
        (&choice["native_finish_reason"], &choice["stop_reason"]),
        (&json!("end_turn"), &json!("END"))
    );
    assert_eq!(choice["delta"], json!({"role": "assistant", "content": ""}));
    assert!(end("stop", None).get("native_finish_reason").is_none());
}

#[test]
fn an_error_tells_its_code_its_field_and_the_request_it_was() {
    let error = ClientError {
        status: 400,
        code: "unsupported_request",
        message: "no",
        field: Some("n"),
        request_id: "req-1",
    };
    let expected = r#"{"error":{"message":"no","type":"invalid_request_error","param":"n","code":"unsupported_request"},"request_id":"req-1"}"#;
    assert_eq!(Chat.error(&error), expected.as_bytes());
    assert_eq!(Chat.error_event(&error), format!("data: {expected}\n\n").as_bytes());
}
