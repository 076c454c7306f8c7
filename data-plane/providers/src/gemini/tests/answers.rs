use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::fixtures::{asked, read_answer};
use crate::dialect::{Dialect as _, Protocol as _};
use crate::exchange::{Answer, Choice, Media, Part, Reasoning, Signature, Source, Stop, Text, ToolCall};
use crate::gemini::Gemini;

fn rewritten(answer: &Answer) -> Value {
    serde_json::from_slice(&Gemini.write_answer(answer, &asked())).unwrap()
}

fn own(value: &str) -> Option<Signature> {
    Some(Signature { wire: Wire::Gemini, value: value.to_owned() })
}

#[test]
fn a_rich_answer_is_read_as_a_whole() {
    let answer = read_answer(&json!({
        "candidates": [{
            "content": {"role": "model", "parts": [
                {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
                {"text": "see", "thoughtSignature": "dGV4dA=="},
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "Y2FsbA=="},
                {"functionCall": {"id": "own", "name": "g"}},
                {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
            ]},
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {"webSearchQueries": ["q"]},
        }],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 15},
        "modelVersion": "gemini-3",
        "responseId": "r1",
        "createTime": "2026-01-01T00:00:00Z",
    }));
    let call = |id: &str, name: &str, signature| {
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), "{}".to_owned());
        Part::ToolCall(ToolCall { id, name, arguments, signature, cache: None })
    };
    let citations = vec![json!({"groundingMetadata": {"webSearchQueries": ["q"]}})];
    let expected = [
        Part::Reasoning(Reasoning { text: "hm".to_owned(), signature: own("c2ln"), redacted: false }),
        Part::Text(Text { text: "see".to_owned(), signature: own("dGV4dA=="), citations, cache: None }),
        call("penstock_req-1_0_0", "f", own("Y2FsbA==")),
        call("own", "g", None),
        Part::Image(Media::new(Source::Base64("AA==".to_owned()), Some("image/png".to_owned()))),
        Part::Other {
            wire: Wire::Gemini,
            value: json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
        },
    ];
    assert_eq!(answer.choices[0].parts, expected);
    assert_eq!(answer.choices[0].stop, Some(Stop::ToolCalls));
    assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("r1"), Some("gemini-3")));
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens),
        (Some(5), Some(10), Some(3))
    );
    assert_eq!(answer.extra.keys().collect::<Vec<_>>(), ["createTime"]);
}

#[test]
fn a_blocked_prompt_is_a_filtered_choice_without_parts() {
    let body = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}, "modelVersion": "g", "responseId": "r"});
    let answer = read_answer(&body);
    let choice = &answer.choices[0];
    assert_eq!(
        (choice.stop, choice.native_stop.as_deref(), choice.parts.len()),
        (Some(Stop::ContentFilter), Some("PROHIBITED_CONTENT"), 0)
    );
    assert_eq!(rewritten(&answer), body);
    // From another vendor there is no feedback on the prompt, but there is a reason.
    let foreign = Answer { choices: vec![choice.clone()], ..Answer::default() };
    assert_eq!(
        rewritten(&foreign)["candidates"],
        json!([{"finishReason": "PROHIBITED_CONTENT", "index": 0}])
    );
}

#[test]
fn a_failing_reason_is_an_error_and_a_filter_is_not() {
    let body = |reason: &str| {
        json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": reason, "finishMessage": "Bad call"}]}).to_string()
    };
    for reason in ["MALFORMED_FUNCTION_CALL", "OTHER", "UNEXPECTED_TOOL_CALL"] {
        let error = Gemini.read_answer(body(reason).as_bytes(), "r").unwrap_err();
        assert_eq!((error.code.as_deref(), error.message.as_deref()), (Some(reason), Some("Bad call")));
    }
    let answer = Gemini.read_answer(body("RECITATION").as_bytes(), "r").unwrap();
    assert_eq!(answer.choices[0].stop, Some(Stop::ContentFilter));
    assert_eq!(rewritten(&answer)["candidates"][0]["finishReason"], "RECITATION");
}

#[test]
fn what_is_no_answer_is_an_error() {
    let error = |body: &str| Gemini.read_answer(body.as_bytes(), "r").unwrap_err();
    let said = error(r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#);
    assert_eq!(
        (said.code.as_deref(), said.kind.as_deref(), said.message.as_deref()),
        (Some("503"), Some("UNAVAILABLE"), Some("overloaded"))
    );
    for body in
        ["", "{}", "[]", r#"[{"candidates":[]}]"#, r#"{"candidates":5}"#, "<html>", r#"{"candidates":[]}"#]
    {
        assert_eq!(error(body), Default::default(), "{body}");
    }
}

#[test]
fn white_space_of_a_pretty_answer_does_not_reach_the_arguments_tr_14() {
    let pretty = serde_json::to_string_pretty(&json!({"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "args": {"a": [1, "b c"]}}}, {"functionCall": {"name": "f", "args": null}}]}}]})).unwrap();
    let answer = Gemini.read_answer(pretty.as_bytes(), "r").unwrap();
    let arguments = answer.choices[0].parts.iter().map(|part| match part {
        Part::ToolCall(call) => call.arguments.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(arguments.collect::<Vec<_>>(), [r#"{"a":[1,"b c"]}"#, "{}"]);
}

#[test]
fn a_foreign_answer_is_told_in_this_dialect() {
    let call = |arguments: &str| {
        Part::ToolCall(ToolCall {
            id: "t1".to_owned(),
            name: "f".to_owned(),
            arguments: arguments.to_owned(),
            signature: None,
            cache: None,
        })
    };
    let foreign = Some(Signature { wire: Wire::Anthropic, value: "c2ln".to_owned() });
    let thought = Part::Reasoning(Reasoning { text: String::new(), signature: foreign, redacted: false });
    let choice = |parts: Vec<Part>, stop| Choice { parts, stop: Some(stop), ..Choice::default() };
    let answer = |choice: Choice| rewritten(&Answer { choices: vec![choice], ..Answer::default() });
    let body =
        answer(choice(vec![thought, Part::Refusal("no".to_owned()), call("{\"n\":1.0}")], Stop::ToolCalls));
    let expected = json!({
        "candidates": [{"content": {"role": "model", "parts": [
            {"text": "", "thought": true, "thoughtSignature": "cGVuc3RvY2stYW50aHJvcGljOmMybG4="},
            {"text": "no"},
            {"functionCall": {"id": "t1", "name": "f", "args": {"n": 1.0}}},
        ]}, "finishReason": "STOP", "index": 0}],
        "modelVersion": "m", "responseId": "req-1",
    });
    assert_eq!(body, expected);
    // A call that was cut, and one that the model broke.
    let cut = answer(choice(vec![Part::text("x"), call("{\"a")], Stop::Length));
    assert_eq!(cut["candidates"][0]["finishReason"], "MAX_TOKENS");
    let broken = answer(choice(vec![call("{\"a")], Stop::ToolCalls));
    assert_eq!(broken["candidates"], json!([{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]));
}
