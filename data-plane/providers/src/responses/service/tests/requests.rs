use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::{body, written};
use crate::dialect::protocol;
use crate::exchange::{
    Part, Reasoning, ReasoningRequest, Request, Role, Signature, ToolCall, ToolResult, Turn, Unwritable,
};

/// A chat client's request.
fn chat(body: Value) -> Request {
    protocol(Wire::Openai).unwrap().read_request(body.to_string().as_bytes(), None, false).unwrap()
}

fn input(request: &Request) -> Value {
    body(request)["input"].clone()
}

#[test]
fn every_instruction_arrives_in_its_place_tr_01() {
    let request = chat(json!({"messages": [
        {"role": "system", "content": "Answer in French."},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "developer", "content": "No lists."},
        {"role": "user", "content": "Hi"}
    ]}));
    let body = body(&request);
    assert_eq!(body["instructions"], "Answer in French.");
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "No lists."},
        {"role": "user", "content": "Hi"}
    ]);
    assert_eq!(body["input"], expected);
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": ""}})
}

#[test]
fn results_follow_their_calls_and_unknown_ones_are_refused_by_id_tr_03() {
    let request = chat(json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": null, "tool_calls": [call("t1"), call("t2")]},
        {"role": "tool", "tool_call_id": "t2", "content": "B"},
        {"role": "tool", "tool_call_id": "t1", "content": "A"}
    ]}));
    let expected = json!([
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "t2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t2", "output": "B"},
        {"type": "function_call_output", "call_id": "t1", "output": "A"}
    ]);
    assert_eq!(input(&request), expected);
    let unknown = chat(json!({"messages": [{"role": "tool", "tool_call_id": "t9", "content": "A"}]}));
    let Err(Unwritable::Wrong(field)) = written(&unknown) else { panic!() };
    assert!(field.reason.contains("t9"), "{field}");
}

#[test]
fn calls_without_text_are_no_message_tr_04() {
    for content in [Some(Value::Null), Some(json!("")), None] {
        let mut message = json!({"role": "assistant", "tool_calls": [call("t1")]});
        if let Some(content) = content {
            message["content"] = content;
        }
        let request =
            chat(json!({"messages": [message, {"role": "tool", "tool_call_id": "t1", "content": "A"}]}));
        let input = input(&request);
        assert_eq!(input.as_array().unwrap().len(), 2, "{input}");
        assert_eq!(input[0]["type"], "function_call");
        assert_eq!(input[0]["arguments"], "{}", "TR-14");
    }
}

#[test]
fn thoughts_go_back_to_where_they_came_from_and_nowhere_else_tr_08() {
    let thought = |wire, text: &str| {
        let signature = Some(Signature { wire, value: "c2ln".to_owned() });
        Part::Reasoning(Reasoning { text: text.to_owned(), signature, redacted: true })
    };
    let mut request = Request::new(Wire::Openai);
    let unsigned = Part::Reasoning(Reasoning { text: "loose".to_owned(), ..Reasoning::default() });
    request.turns.push(Turn::new(
        Role::Assistant,
        vec![
            thought(Wire::OpenaiResponses, ""),
            thought(Wire::Anthropic, "foreign"),
            unsigned,
            Part::text("Hi"),
        ],
    ));
    let body = body(&request);
    let expected = json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "c2ln"},
        {"role": "assistant", "content": "Hi"}
    ]);
    assert_eq!(body["input"], expected);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]), "the next ones must come back, too");
    assert!(written(&request).unwrap().dropped.is_empty());
}

#[test]
fn one_call_at_a_time_is_kept_tr_10() {
    let tool = json!({"type": "function", "function": {"name": "f"}});
    let request = chat(json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [tool],
        "tool_choice": "required", "parallel_tool_calls": false}));
    let body = body(&request);
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("required"), &json!(false)));
    // Functions are strict by default here, and are not where the client comes from.
    assert_eq!(body["tools"][0]["strict"], false);
}

#[test]
fn what_the_dialect_lacks_is_refused_or_reported_tr_12_tr_13() {
    let hi = json!([{"role": "user", "content": "Hi"}]);
    for (name, value) in [("stop", json!("END")), ("n", json!(2))] {
        let Err(Unwritable::Unsupported(field)) = written(&chat(json!({"messages": hi, name: value}))) else {
            panic!("{name}")
        };
        assert_eq!(field.field, name);
    }
    let request = chat(json!({"messages": hi, "stop": [], "seed": 1, "logit_bias": {"1": 2}, "x_new": 1,
        "metadata": {"a": "b"}, "store": false}));
    assert_eq!(written(&request).unwrap().dropped.fields(), ["seed", "logit_bias", "x_new"]);
}

#[test]
fn how_much_to_think_is_said_in_the_dialects_words() {
    let cases = [
        (ReasoningRequest { enabled: Some(false), ..ReasoningRequest::default() }, json!({"effort": "none"})),
        (
            ReasoningRequest { budget_tokens: Some(8000), ..ReasoningRequest::default() },
            json!({"effort": "medium"}),
        ),
        (
            ReasoningRequest {
                effort: Some("low".to_owned()),
                visible: Some(true),
                ..ReasoningRequest::default()
            },
            json!({"effort": "low", "summary": "auto"}),
        ),
    ];
    for (asked, expected) in cases {
        let off = asked.enabled == Some(false);
        let mut request = Request::new(Wire::Anthropic);
        request.reasoning = Some(asked);
        let body = body(&request);
        assert_eq!(body["reasoning"], expected);
        assert_eq!(body.get("include").is_none(), off, "models that do not think refuse the wish");
    }
}

#[test]
fn a_result_without_text_is_an_empty_string_and_a_failed_one_is_reported() {
    let mut request = Request::new(Wire::Anthropic);
    let call = ToolCall {
        id: "t1".to_owned(),
        name: "f".to_owned(),
        arguments: "{}".to_owned(),
        signature: None,
        cache: None,
    };
    let result =
        ToolResult { call_id: "t1".to_owned(), name: None, parts: vec![], is_error: true, cache: None };
    request.turns = vec![
        Turn::new(Role::Assistant, vec![Part::ToolCall(call)]),
        Turn::new(Role::User, vec![Part::ToolResult(result), Part::text("and?")]),
    ];
    assert_eq!(input(&request)[1], json!({"type": "function_call_output", "call_id": "t1", "output": ""}));
    assert_eq!(input(&request)[2], json!({"role": "user", "content": "and?"}));
    assert_eq!(written(&request).unwrap().dropped.fields(), ["messages[1].is_error"]);
}
