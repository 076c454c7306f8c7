use serde_json::json;

use super::fixtures::{read_request, write};
use crate::dialect::Protocol as _;
use crate::exchange::{
    Format, JsonSchema, Part, ReasoningRequest, Role, ToolChoice, ToolKind, Turn, Unwritable,
};
use crate::gemini::Gemini;

#[test]
fn names_in_snake_case_are_read_as_the_service_reads_them() {
    let camel = json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"parts": [{"inlineData": {"mimeType": "image/jpg", "data": "AA=="}}, {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x"}, "videoMetadata": {"fps": 1}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a_b": 1}}, "thoughtSignature": "c2ln"}, {"executableCode": {"language": "PYTHON", "code": "1"}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {"a_b": {"type": "NUMBER", "nullable": true}}}}]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}},
        "generationConfig": {"maxOutputTokens": 5, "topK": 3, "stopSequences": ["x"], "responseMimeType": "application/json",
            "responseSchema": {"type": "STRING"}, "thinkingConfig": {"thinkingBudget": 0, "includeThoughts": true}, "responseModalities": ["TEXT"]},
        "safetySettings": [{"category": "C", "threshold": "T"}],
    });
    // In keys alone: those of arguments and properties are the client's.
    let mut snake = camel.to_string();
    for (one, other) in [
        ("systemInstruction", "system_instruction"),
        ("inlineData", "inline_data"),
        ("mimeType", "mime_type"),
        ("fileData", "file_data"),
        ("fileUri", "file_uri"),
        ("videoMetadata", "video_metadata"),
        ("functionCall\"", "function_call\""),
        ("thoughtSignature", "thought_signature"),
        ("functionResponse", "function_response"),
        ("functionDeclarations", "function_declarations"),
        ("toolConfig", "tool_config"),
        ("functionCallingConfig", "function_calling_config"),
        ("generationConfig", "generation_config"),
        ("maxOutputTokens", "max_output_tokens"),
        ("topK", "top_k"),
        ("stopSequences", "stop_sequences"),
        ("responseMimeType", "response_mime_type"),
        ("responseSchema", "response_schema"),
        ("thinkingConfig", "thinking_config"),
        ("thinkingBudget", "thinking_budget"),
        ("includeThoughts", "include_thoughts"),
        ("responseModalities", "response_modalities"),
        ("safetySettings", "safety_settings"),
        ("googleSearch", "google_search"),
    ] {
        assert!(snake.contains(one), "{one}");
        snake = snake.replace(one, other);
    }
    let read = read_request(&camel);
    assert_eq!(read_request(&serde_json::from_str(&snake).unwrap()), read);
    assert_eq!(read.turns[0], Turn::new(Role::System, vec![Part::text("s")]));
    assert_eq!(
        read.output.format,
        Some(Format::JsonSchema(JsonSchema {
            name: None,
            description: None,
            schema: json!({"type": "string"}),
            strict: None
        }))
    );
    let thinking =
        ReasoningRequest { enabled: Some(false), visible: Some(true), ..ReasoningRequest::default() };
    assert_eq!((read.tool_choice, read.reasoning), (Some(ToolChoice::Auto), Some(thinking)));
    let extra: Vec<&String> = read.extra.keys().collect();
    assert_eq!(
        extra,
        ["toolConfig.functionCallingConfig", "generationConfig.responseModalities", "safetySettings"]
    );
    let ToolKind::Function { parameters, .. } = &read.tools[0].kind else { panic!("{:?}", read.tools) };
    assert_eq!(
        parameters,
        &Some(json!({"type": "object", "properties": {"a_b": {"type": ["number", "null"]}}}))
    );
}

#[test]
fn calls_without_ids_get_unique_ones_that_their_results_find() {
    let response =
        |name: &str, text: &str| json!({"functionResponse": {"name": name, "response": {"output": text}}});
    let request = read_request(&json!({"contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {"k": 1}}}, {"functionCall": {"name": "g"}}, {"functionCall": {"id": "own", "name": "f", "args": {"k": 2}}}, {"functionCall": {"name": "f"}},
        ]},
        {"role": "user", "parts": [
            response("g", "G"), response("f", "F1"), response("f", "F2"), {"functionResponse": {"id": "own", "name": "f", "response": {"x": 1.50}}},
        ]},
    ]}));
    let ids = |turn: &Turn| {
        turn.parts
            .iter()
            .map(|part| match part {
                Part::ToolCall(call) => call.id.clone(),
                Part::ToolResult(result) => result.call_id.clone(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&request.turns[1]), ["penstock_0", "penstock_1", "own", "penstock_3"]);
    assert_eq!(ids(&request.turns[2]), ["penstock_1", "penstock_0", "penstock_3", "own"]);
    assert!(write(&request).is_ok());
    let lost = read_request(&json!({"contents": [{"parts": [response("h", "x")]}]}));
    let Unwritable::Wrong(field) = write(&lost).unwrap_err() else {
        panic!("it is the request that is wrong")
    };
    assert!(field.reason.contains("`h`"), "{field}");
}

#[test]
fn a_wrong_field_is_named_with_its_place() {
    for (body, field) in [
        (json!({"contents": [{"role": "assistant", "parts": []}]}), "contents[0].role"),
        (json!({"contents": [{"parts": [5]}]}), "contents[0].parts[0]"),
        (
            json!({"contents": [{"parts": [{"functionCall": {"name": "f", "args": [1]}}]}]}),
            "contents[0].parts[0].functionCall",
        ),
        (json!({"tools": [{"functionDeclarations": [{}]}]}), "tools[0].functionDeclarations[0].name"),
        (
            json!({"toolConfig": {"functionCallingConfig": {"mode": "ALL"}}}),
            "toolConfig.functionCallingConfig.mode",
        ),
        (json!({"generationConfig": {"topK": "x"}}), "generationConfig.topK"),
        (json!({"generationConfig": 5}), "generationConfig"),
        (json!({"contents": {}}), "contents"),
    ] {
        let error = Gemini.read_request(body.to_string().as_bytes(), None, false).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
}
