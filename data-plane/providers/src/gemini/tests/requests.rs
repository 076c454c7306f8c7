use penstock_model::vendor::Wire;
use serde_json::{Value, json};

use super::fixtures::{chat, read_request, vendor, write, write_to, written};
use crate::exchange::{
    Format, JsonSchema, Media, Output, Part, Reasoning, Role, Signature, Source, Tool, ToolCall, ToolChoice,
    ToolKind, ToolResult, Unwritable,
};

fn call(id: &str, name: &str, arguments: &str) -> Part {
    let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
    Part::ToolCall(ToolCall { id, name, arguments, signature: None, cache: None })
}

fn result(id: &str, text: &str) -> Part {
    let (call_id, parts) = (id.to_owned(), vec![Part::text(text)]);
    Part::ToolResult(ToolResult { call_id, name: None, parts, is_error: false, cache: None })
}

fn image(kind: &str) -> Part {
    Part::Image(Media::new(Source::Base64("/9j/2Q==".to_owned()), Some(kind.to_owned())))
}

fn function(name: &str, parameters: Value) -> Tool {
    let kind = ToolKind::Function { parameters: Some(parameters), strict: None };
    Tool { name: name.to_owned(), description: None, kind, cache: None }
}

fn refusal(error: Unwritable) -> String {
    match error {
        Unwritable::Wrong(field) => format!("wrong {field}"),
        Unwritable::Unsupported(field) => format!("unsupported {field}"),
    }
}

#[test]
fn all_instructions_arrive_in_order_tr_01() {
    let request = chat(vec![
        (Role::System, vec![Part::text("Answer in French.")]),
        (Role::Developer, vec![Part::text("Be brief."), Part::text("")]),
        (Role::User, vec![Part::text("Hi")]),
    ]);
    let (body, dropped) = written(&request);
    assert_eq!(
        body,
        json!({
            "systemInstruction": {"parts": [{"text": "Answer in French."}, {"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        })
    );
    assert_eq!(dropped, "");
}

#[test]
fn instructions_alone_are_what_is_asked() {
    let request = chat(vec![(Role::System, vec![Part::text("Hi")])]);
    assert_eq!(written(&request).0, json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}));
    assert!(refusal(write(&chat(vec![])).unwrap_err()).starts_with("wrong messages"));
}

#[test]
fn neighbours_of_one_role_are_one_content_tr_02() {
    let request = chat(vec![
        (Role::User, vec![Part::text("a")]),
        (Role::User, vec![Part::text("b"), image("image/png")]),
        (Role::Assistant, vec![Part::text("c")]),
        (Role::Assistant, vec![Part::text(""), call("t1", "f", "{}")]),
        (Role::User, vec![result("t1", "ok")]),
        (Role::User, vec![Part::text("d")]),
    ]);
    let expected = json!([
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"inlineData": {"mimeType": "image/png", "data": "/9j/2Q=="}}]},
        {"role": "model", "parts": [
            {"text": "c"},
            {"functionCall": {"id": "t1", "name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "t1", "name": "f", "response": {"output": "ok"}}},
            {"text": "d"},
        ]},
    ]);
    assert_eq!(written(&request).0["contents"], expected);
}

#[test]
fn results_of_parallel_calls_are_one_content_in_the_order_of_the_calls_tr_03() {
    let request = chat(vec![
        (Role::User, vec![Part::text("a")]),
        (Role::Assistant, vec![call("t1", "f", "{\"k\":1}"), call("t2", "g", "{\"k\":2}")]),
        (Role::User, vec![result("t2", "{\"b\": 1.0}")]),
        (Role::User, vec![result("t1", "A")]),
    ]);
    let (body, _) = written(&request);
    assert_eq!(
        body["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"id": "t1", "name": "f", "response": {"output": "A"}}},
            {"functionResponse": {"id": "t2", "name": "g", "response": {"b": 1.0}}},
        ]})
    );
    // Of calls made together, the first is signed.
    assert!(body["contents"][1]["parts"][0]["thoughtSignature"].is_string());
    assert!(body["contents"][1]["parts"][1]["thoughtSignature"].is_null());
    let mut unknown = request.clone();
    unknown.turns[3].parts = vec![result("t9", "A")];
    assert!(refusal(write(&unknown).unwrap_err()).contains("`t9`"));
    unknown.turns.truncate(3);
    assert!(refusal(write(&unknown).unwrap_err()).contains("`t1`"));
}

#[test]
fn a_models_generation_decides_on_signatures_and_on_pictures_in_results() {
    let Part::ToolResult(mut with_picture) = result("t1", "ok") else { unreachable!() };
    with_picture.parts.push(image("image/png"));
    with_picture.is_error = true;
    let request = chat(vec![
        (Role::User, vec![Part::text("a")]),
        (Role::Assistant, vec![call("t1", "f", "{}")]),
        (Role::User, vec![Part::ToolResult(with_picture)]),
    ]);
    let google = vendor(|_| {});
    let body = |model: &str| -> Value {
        serde_json::from_slice(&write_to(&request, &google, model).unwrap().body).unwrap()
    };
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "/9j/2Q=="}});
    let old = body("gemini-2.5-flash");
    assert_eq!(
        old["contents"][1]["parts"][0],
        json!({"functionCall": {"id": "t1", "name": "f", "args": {}}})
    );
    let result = json!({"id": "t1", "name": "f", "response": {"error": "ok"}});
    assert_eq!(old["contents"][2]["parts"], json!([{"functionResponse": result}, picture]));
    let new = body("gemini-3.8-flash");
    assert_eq!(new["contents"][2]["parts"][0]["functionResponse"]["parts"], json!([picture]));
}

#[test]
fn limits_and_sampling_arrive_under_this_dialects_names_tr_05() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.output = Output { max_tokens: Some(64), choices: Some(2), ..Output::default() };
    request.sampling.temperature = serde_json::from_str("0.20").unwrap();
    request.sampling.top_k = serde_json::from_str("40").unwrap();
    request.sampling.logprobs = Some(true);
    request.sampling.top_logprobs = Some(3);
    request.sampling.logit_bias = Some(json!({"1": 2}));
    request.user = Some("u".to_owned());
    request.extra.insert("enable_thinking".to_owned(), json!(false));
    let (body, dropped) = written(&request);
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.2, "topK": 40, "responseLogprobs": true, "logprobs": 3, "maxOutputTokens": 64, "candidateCount": 2})
    );
    assert_eq!(dropped, "logit_bias, enable_thinking, user");
    assert!(body.get("enable_thinking").is_none());
}

#[test]
fn what_the_vendors_file_refuses_is_dropped_by_name() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.sampling.seed = Some(7.into());
    request.sampling.logprobs = Some(true);
    let vendor = vendor(|vendor| vendor.parameters.drop = vec!["seed".to_owned(), "logprobs".to_owned()]);
    let written = write_to(&request, &vendor, "m").unwrap();
    assert_eq!(written.dropped.to_string(), "seed, logprobs");
    assert_eq!(written.body, r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#);
}

#[test]
fn a_tools_schema_goes_whole_or_lowered_tr_06() {
    let schema = json!({
        "$schema": "s", "type": "object", "additionalProperties": false,
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {"p": {"$ref": "#/$defs/P"}, "n": {"type": ["string", "null"]}},
    });
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.tools =
        vec![function("f", schema.clone()), function("now", json!({"type": "object", "properties": {}}))];
    let format = JsonSchema {
        name: Some("n".to_owned()),
        description: None,
        schema: schema.clone(),
        strict: Some(true),
    };
    request.output.format = Some(Format::JsonSchema(format));
    let (body, dropped) = written(&request);
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0],
        json!({"name": "f", "parametersJsonSchema": schema})
    );
    assert_eq!(
        body["generationConfig"],
        json!({"responseMimeType": "application/json", "responseJsonSchema": schema})
    );
    assert_eq!(dropped, "");
    let old = vendor(|vendor| {
        vendor.parameters.drop = vec!["parametersJsonSchema".to_owned(), "responseJsonSchema".to_owned()];
    });
    let written = write_to(&request, &old, "m").unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let lowered = json!({"type": "OBJECT", "properties": {
        "p": {"type": "OBJECT", "properties": {"x": {"type": "NUMBER"}}}, "n": {"type": "STRING", "nullable": true},
    }});
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations": [{"name": "f", "parameters": lowered}, {"name": "now"}]}])
    );
    assert_eq!(body["generationConfig"]["responseSchema"], lowered);
    let expected =
        "tools[0].parameters.additionalProperties, response_format.json_schema.schema.additionalProperties";
    assert_eq!(written.dropped.to_string(), expected);
}

#[test]
fn image_types_are_a_table_and_the_wrong_part_is_named_tr_07() {
    let request = |part: Part| chat(vec![(Role::System, vec![]), (Role::User, vec![Part::text("a"), part])]);
    let blob =
        |part: Part| written(&request(part)).0["contents"][0]["parts"][1]["inlineData"]["mimeType"].clone();
    assert_eq!(blob(image("image/jpeg")), "image/jpeg");
    let untyped = Part::Image(Media::new(Source::Base64("/9j/2Q==".to_owned()), None));
    assert_eq!(blob(untyped), "image/jpeg");
    let svg = refusal(write(&request(image("image/svg+xml"))).unwrap_err());
    assert!(svg.starts_with("wrong messages[") && svg.contains("].content[1].image_url: "), "{svg}");
}

#[test]
fn files_and_sound_go_inline_or_by_their_address() {
    let media = |source: Source, kind: &str| Media::new(source, Some(kind.to_owned()));
    let data = || Source::Base64("AAAA".to_owned());
    let request = chat(vec![(
        Role::User,
        vec![
            Part::Audio(media(data(), "audio/wav")),
            Part::File(media(data(), "application/pdf")),
            Part::File(media(Source::Url("gs://b/o.pdf".to_owned()), "application/pdf")),
            Part::Image(Media::new(Source::Url("https://x.example/i.png".to_owned()), None)),
            Part::File(Media::new(Source::Text("plain".to_owned()), None)),
        ],
    )]);
    let expected = json!([
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/o.pdf"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/i.png"}},
        {"text": "plain"},
    ]);
    assert_eq!(written(&request).0["contents"][0]["parts"], expected);
    let blind = vendor(|vendor| vendor.parameters.image_urls = false);
    let error = refusal(write_to(&request, &blind, "m").unwrap_err());
    assert!(error.starts_with("unsupported messages[0].content[3].image_url"), "{error}");
    let elsewhere = Part::File(Media::new(Source::FileId("file-1".to_owned()), None));
    let error = refusal(write(&chat(vec![(Role::User, vec![elsewhere])])).unwrap_err());
    assert!(error.starts_with("unsupported messages[0].content[0]"), "{error}");
}

#[test]
fn signatures_go_back_to_their_maker_alone_tr_08() {
    let signed = |wire: Wire, text: &str| {
        let signature = Some(Signature { wire, value: "c2ln".to_owned() });
        Part::Reasoning(Reasoning { text: text.to_owned(), signature, redacted: false })
    };
    let turns = |parts: Vec<Part>| {
        written(&chat(vec![(Role::User, vec![Part::text("a")]), (Role::Assistant, parts)])).0["contents"][1]["parts"].clone()
    };
    assert_eq!(
        turns(vec![signed(Wire::Gemini, "hm"), signed(Wire::Anthropic, "no"), Part::text("b")]),
        json!([{"text": "hm", "thought": true, "thoughtSignature": "c2ln"}, {"text": "b"}])
    );
    // One that stood behind a text, and one that stands alone.
    assert_eq!(
        turns(vec![Part::text("b"), signed(Wire::Gemini, "")]),
        json!([{"text": "b", "thoughtSignature": "c2ln"}])
    );
    assert_eq!(
        turns(vec![signed(Wire::Gemini, ""), Part::text("b")]),
        json!([{"text": "", "thoughtSignature": "c2ln"}, {"text": "b"}])
    );
    let mut call =
        ToolCall { id: "t".into(), name: "f".into(), arguments: "{}".into(), signature: None, cache: None };
    call.signature = Some(Signature { wire: Wire::Gemini, value: "c2ln".to_owned() });
    let request = chat(vec![
        (Role::User, vec![Part::text("a")]),
        (Role::Assistant, vec![Part::ToolCall(call)]),
        (Role::User, vec![result("t", "x")]),
    ]);
    assert_eq!(written(&request).0["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
}

#[test]
fn one_tool_at_a_time_has_no_equivalent_and_is_reported_tr_10() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.tools = vec![function("f", json!({})), function("g", json!({}))];
    request.tool_choice = Some(ToolChoice::Required);
    request.parallel_tool_calls = Some(false);
    let (body, dropped) = written(&request);
    assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    assert_eq!(dropped, "parallel_tool_calls");
    request.parallel_tool_calls = Some(true);
    assert_eq!(written(&request).1, "");
}

#[test]
fn every_choice_of_tools_has_its_mode() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.tools = vec![function("f", json!({})), function("g", json!({}))];
    let names = || vec!["f".to_owned(), "g".to_owned()];
    for (choice, expected) in [
        (ToolChoice::Auto, json!({"mode": "AUTO"})),
        (ToolChoice::None, json!({"mode": "NONE"})),
        (ToolChoice::Tool("f".to_owned()), json!({"mode": "ANY", "allowedFunctionNames": ["f"]})),
        (
            ToolChoice::Allowed { required: true, names: names() },
            json!({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}),
        ),
        (
            ToolChoice::Allowed { required: false, names: names() },
            json!({"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]}),
        ),
    ] {
        request.tool_choice = Some(choice.clone());
        let config = json!({"functionCallingConfig": expected});
        assert_eq!(written(&request).0["toolConfig"], config);
        let mut body = json!({"contents": [], "toolConfig": config});
        body["tools"] = json!([{"functionDeclarations": [{"name": "f"}]}]);
        assert_eq!(read_request(&body).tool_choice, Some(choice));
    }
}

#[test]
fn a_tool_of_another_vendor_is_refused() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    let kind = ToolKind::Other(json!({"type": "web_search"}));
    request.tools = vec![Tool { name: "web_search".to_owned(), description: None, kind, cache: None }];
    assert_eq!(
        refusal(write(&request).unwrap_err()),
        "unsupported tools[0]: `web_search` is a tool of another vendor"
    );
}

#[test]
fn several_answers_are_asked_for_where_the_service_gives_them_tr_12() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    request.output.choices = Some(2);
    assert_eq!(written(&request).0["generationConfig"], json!({"candidateCount": 2}));
    let single = vendor(|vendor| vendor.parameters.many_choices = false);
    assert!(refusal(write_to(&request, &single, "m").unwrap_err()).starts_with("unsupported n: "));
}

#[test]
fn stop_sequences_beyond_the_limit_are_refused_with_it_tr_13() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    let stops = |stops: &[&str]| stops.iter().map(|stop| (*stop).to_owned()).collect::<Vec<_>>();
    request.output.stop = stops(&["\n\n", " \t", "END", ""]);
    let (body, dropped) = written(&request);
    assert_eq!(body["generationConfig"], json!({"stopSequences": ["\n\n", " \t", "END"]}));
    assert_eq!(dropped, "stop");
    request.output.stop = stops(&["a", "b", "c", "d", "e", "f"]);
    assert!(refusal(write(&request).unwrap_err()).contains("at most 5"));
    request.output.stop = vec![];
    assert!(written(&request).0.get("generationConfig").is_none());
}

#[test]
fn arguments_are_an_object_or_refused_by_the_calls_id_tr_14() {
    let request = |arguments: &str| {
        chat(vec![
            (Role::User, vec![Part::text("a")]),
            (Role::Assistant, vec![call("t1", "now", arguments)]),
            (Role::User, vec![result("t1", "x")]),
        ])
    };
    let args = |arguments: &str| {
        let body = String::from_utf8(write(&request(arguments)).unwrap().body.to_vec()).unwrap();
        body.split("\"args\":").nth(1).unwrap().split("},\"thought").next().unwrap().to_owned()
    };
    assert_eq!(args(""), "{}");
    assert_eq!(args(" {} "), "{}");
    assert_eq!(args(r#"{"n":12345678901234567890123}"#), r#"{"n":12345678901234567890123}"#);
    for wrong in ["{", "[1]", "1", "{} x"] {
        let error = refusal(write(&request(wrong)).unwrap_err());
        assert!(error.starts_with("wrong messages[1].content[0]") && error.contains("`t1`"), "{error}");
    }
}

#[test]
fn models_that_refuse_a_form_beside_tools_get_it_as_a_tool_tr_11() {
    let mut request = chat(vec![(Role::User, vec![Part::text("a")])]);
    let schema = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    let form = JsonSchema { name: None, description: None, schema: schema.clone(), strict: None };
    request.output.format = Some(Format::JsonSchema(form));
    request.tools = vec![function("json_answer", json!({"type": "object"}))];
    let google = vendor(|_| {});
    let written = write_to(&request, &google, "gemini-2.5-flash").unwrap();
    assert_eq!(written.json_tool.as_deref(), Some("json_answer_"));
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let declared = body["tools"][0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(declared.len(), 2);
    assert_eq!(
        (&declared[1]["name"], &declared[1]["parametersJsonSchema"]),
        (&json!("json_answer_"), &schema)
    );
    assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    assert!(body.get("generationConfig").is_none());
    // A newer model takes both, and an older one takes the form alone.
    assert_eq!(write_to(&request, &google, "gemini-3-pro").unwrap().json_tool, None);
    request.output.choices = Some(2);
    assert!(
        refusal(write_to(&request, &google, "gemini-2.5-flash").unwrap_err()).starts_with("unsupported n")
    );
    request.tools.clear();
    assert_eq!(write_to(&request, &google, "gemini-2.5-flash").unwrap().json_tool, None);
}
