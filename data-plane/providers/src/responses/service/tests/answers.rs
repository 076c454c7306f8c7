use proptest::prelude::*;
use serde_json::{Value, json};

use crate::dialect::{Asked, Dialect, Protocol};
use crate::exchange::{Answer, Choice, Part, Reasoning, Signature, Stop, Text, ToolCall, Usage};
use crate::responses::{OWN, Responses};

fn read(body: &Value) -> Result<Answer, crate::openai::error_body::VendorError> {
    Responses.read_answer(body.to_string().as_bytes(), "r1")
}

#[test]
fn an_answer_that_was_cut_says_why() {
    for (reason, stop) in [("max_output_tokens", Stop::Length), ("content_filter", Stop::ContentFilter)] {
        let answer = read(&json!({"id": "resp_1", "status": "incomplete", "output": [],
            "incomplete_details": {"reason": reason}}))
        .unwrap();
        let choice = &answer.choices[0];
        assert_eq!((choice.stop, choice.native_stop.as_deref()), (Some(stop), Some(reason)));
        assert_eq!(answer.usage, None, "unknown, not zero");
    }
}

#[test]
fn a_failed_response_is_an_error_in_spite_of_its_status() {
    let error = read(&json!({"status": "failed", "output": [],
        "error": {"code": "rate_limit_exceeded", "message": "slow down"}}))
    .unwrap_err();
    assert_eq!(error.code.as_deref(), Some("rate_limit_exceeded"));
    assert_eq!(error.message.as_deref(), Some("slow down"));
    for nothing in [json!({}), json!([]), json!({"status": "in_progress", "output": []})] {
        assert!(read(&nothing).is_err(), "{nothing}");
    }
}

#[test]
fn calls_get_an_id_and_arguments_where_the_service_gives_none_tr_14() {
    let answer = read(&json!({"status": "completed", "output": [
        {"type": "function_call", "call_id": "", "name": "now", "arguments": ""},
        {"type": "function_call", "name": "now"}
    ]}))
    .unwrap();
    let calls: Vec<(&str, &str)> = answer.choices[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolCall(call) => (call.id.as_str(), call.arguments.as_str()),
            _ => panic!(),
        })
        .collect();
    assert_eq!(calls, [("call_r1_0", "{}"), ("call_r1_1", "{}")]);
    assert_eq!(answer.choices[0].stop, Some(Stop::ToolCalls));
}

#[test]
fn what_only_this_dialect_knows_is_kept_whole() {
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed"});
    let answer = read(&json!({"status": "completed", "output": [search]})).unwrap();
    assert_eq!(answer.choices[0].parts, [Part::Other { wire: OWN, value: search }]);
}

fn part() -> impl Strategy<Value = Part> {
    let text = || "\\PC{1,8}";
    let signature = || Some(Signature { wire: OWN, value: "gAAA".to_owned() });
    prop_oneof![
        text().prop_map(|text| Part::Text(Text { text, ..Text::default() })),
        text().prop_map(Part::Refusal),
        text().prop_map(move |text| Part::Reasoning(Reasoning {
            text,
            signature: signature(),
            redacted: true
        })),
        Just(Part::Reasoning(Reasoning { text: String::new(), signature: signature(), redacted: true })),
        text().prop_map(|name| {
            let arguments = "{\"k\":1}".to_owned();
            Part::ToolCall(ToolCall { id: "t1".to_owned(), name, arguments, signature: None, cache: None })
        }),
    ]
}

proptest! {
    /// Neighbouring texts are one text on the wire.
    #[test]
    fn an_answer_that_we_write_is_read_as_it_was(parts in prop::collection::vec(part(), 0..8), counts in prop::option::of((0..9_u64, 0..9_u64))) {
        let said = |part: &Part| std::mem::discriminant(part);
        let mut parts = parts;
        parts.dedup_by(|a, b| said(a) == said(b) && matches!(a, Part::Text(_) | Part::Refusal(_)));
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let usage = counts.map(|(input, output)| Usage {
            input_tokens: Some(input), output_tokens: Some(output), cached_input_tokens: Some(0),
            reasoning_tokens: Some(0), cache_write_tokens: Some(0), ..Usage::default()
        });
        let stop = Some(if calls { Stop::ToolCalls } else { Stop::End });
        let answer = Answer {
            id: Some("resp_1".to_owned()), model: Some("m".to_owned()), created: Some(7), usage,
            choices: vec![Choice { parts, stop, ..Choice::default() }],
            ..Answer::default()
        };
        let body = Responses.write_answer(&answer, &Asked::default());
        prop_assert_eq!(Responses.find_usage(&body), usage);
        prop_assert_eq!(Responses.read_answer(&body, "r1").unwrap(), answer);
    }

    #[test]
    fn arbitrary_bytes_are_no_answer_and_no_panic(body in prop::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(Responses.read_answer(&body, "r1").is_err());
    }
}
