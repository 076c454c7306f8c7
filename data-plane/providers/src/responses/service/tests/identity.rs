//! Responses → exchange model → Responses changes nothing of a request that is written in the canonical way: no ids of
//! items, messages of one text as strings, `store: false`, encrypted thoughts asked for where there is thinking.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::body;
use crate::responses::request::read;

fn text() -> impl Strategy<Value = String> {
    "\\PC{1,12}"
}

fn input_piece() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(|text| json!({"type": "input_text", "text": text})),
        Just(json!({"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}})),
        select(vec!["low", "high"]).prop_map(|detail| {
            json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": detail})
        }),
        Just(json!({"type": "input_image", "image_url": "https://a.example/i.png"})),
        Just(json!({"type": "input_image", "file_id": "file-1"})),
        Just(json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"})),
        Just(json!({"type": "input_file", "file_url": "https://a.example/a.pdf"})),
        Just(json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})),
        Just(json!({"type": "input_of_tomorrow", "x": [1, 2.5]})),
    ]
}

/// Several, so that they are not written as a string.
fn pieces() -> impl Strategy<Value = Value> {
    prop::collection::vec(input_piece(), 2..4).prop_map(Value::Array)
}

fn content() -> impl Strategy<Value = Value> {
    prop_oneof![text().prop_map(Value::String), pieces()]
}

fn said() -> impl Strategy<Value = Value> {
    let cited = json!([{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}]);
    prop_oneof![
        text().prop_map(Value::String),
        text().prop_map(move |text| json!([{"type": "output_text", "text": text, "annotations": cited}])),
        text().prop_map(|text| json!([{"type": "refusal", "refusal": text}])),
    ]
}

/// Items that may follow each other in any order; calls come with their results.
fn items() -> impl Strategy<Value = Vec<Value>> {
    let result = prop_oneof![text().prop_map(Value::String), pieces()];
    let group = prop_oneof![
        (select(vec!["user", "developer"]), content())
            .prop_map(|(role, content)| vec![json!({"role": role, "content": content})]),
        said().prop_map(|content| vec![json!({"role": "assistant", "content": content})]),
        text().prop_map(|text| {
            let summary = json!([{"type": "summary_text", "text": text}]);
            vec![json!({"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"})]
        }),
        Just(vec![json!({"type": "reasoning", "summary": [], "encrypted_content": "gBBB"})]),
        Just(vec![json!({"type": "web_search_call", "id": "ws_1", "status": "completed"})]),
        (any::<u16>(), result).prop_map(|(number, output)| {
            let id = format!("call_{number}");
            vec![
                json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{\"k\": 1}"}),
                json!({"type": "function_call_output", "call_id": id, "output": output}),
            ]
        }),
    ];
    // The first is of the user: a system message there would be the instructions.
    prop::collection::vec(group, 0..6).prop_map(|groups| {
        let first = json!({"role": "user", "content": "Hi"});
        std::iter::once(first).chain(groups.into_iter().flatten()).collect()
    })
}

fn tool() -> impl Strategy<Value = Value> {
    prop_oneof![
        (text(), any::<bool>()).prop_map(|(about, strict)| {
            json!({"type": "function", "name": "f", "description": about,
                "parameters": {"type": "object", "properties": {"k": {"type": "number"}}}, "strict": strict})
        }),
        Just(json!({"type": "function", "name": "g", "parameters": null, "defer_loading": true})),
        Just(json!({"type": "web_search", "search_context_size": "low"})),
        Just(json!({"type": "custom", "name": "c", "format": {"type": "text"}})),
    ]
}

fn tool_choice() -> impl Strategy<Value = Value> {
    select(vec![
        json!("auto"),
        json!("none"),
        json!("required"),
        json!({"type": "function", "name": "f"}),
        json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}),
        json!({"type": "web_search"}),
    ])
}

fn text_field() -> impl Strategy<Value = Value> {
    let schema = json!({"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"}, "strict": true});
    select(vec![
        json!({"format": {"type": "text"}}),
        json!({"format": {"type": "json_object"}, "verbosity": "low"}),
        json!({"format": schema}),
        json!({"verbosity": "high", "of_tomorrow": 1}),
    ])
}

fn field() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        text().prop_map(|text| ("instructions", Value::String(text))),
        prop::collection::vec(tool(), 1..4).prop_map(|tools| ("tools", Value::Array(tools))),
        tool_choice().prop_map(|choice| ("tool_choice", choice)),
        text_field().prop_map(|text| ("text", text)),
        (0.0..2.0).prop_map(|value: f64| ("temperature", json!(value))),
        Just(("top_p", json!(1))),
        any::<u32>().prop_map(|limit| ("max_output_tokens", json!(limit))),
        Just(("metadata", json!({"a": "b"}))),
        Just(("service_tier", json!("flex"))),
        Just(("prompt_cache_key", json!("k"))),
        text().prop_map(|user| ("safety_identifier", Value::String(user))),
        Just(("stream", json!(true))),
        Just(("truncation", json!("auto"))),
        Just(("max_tool_calls", json!(3))),
        Just(("x_new", json!({"big": 12345678901234567890_u64, "deep": [[null]]}))),
    ]
}

fn reasoning() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(select(vec![
        json!({"effort": "low"}),
        json!({"effort": "high", "summary": "auto"}),
        json!({"summary": "detailed", "context": "all_turns"}),
    ]))
}

proptest! {
    #[test]
    fn a_canonical_request_comes_out_as_it_went_in_tr_09(
        items in items(),
        fields in prop::collection::vec(field(), 0..8),
        reasoning in reasoning(),
        parallel in any::<bool>(),
    ) {
        let mut request: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let thinks = reasoning.is_some() || items.iter().any(|item| item["type"] == "reasoning");
        request.extend(reasoning.map(|value| ("reasoning".to_owned(), value)));
        if thinks {
            request.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
        }
        if request.contains_key("tools") {
            request.insert("parallel_tool_calls".to_owned(), json!(parallel));
        }
        request.insert("model".to_owned(), "target-model".into());
        request.insert("store".to_owned(), false.into());
        request.insert("input".to_owned(), Value::Array(items));
        let request = Value::Object(request);
        let read = read(request.to_string().as_bytes()).unwrap();
        prop_assert!(super::written(&read).unwrap().dropped.is_empty());
        prop_assert_eq!(body(&read), request);
    }
}
