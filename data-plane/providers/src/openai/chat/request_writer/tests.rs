use penstock_model::vendor::Auth;

use super::*;
use crate::exchange::{CacheHint, Media, Part, Role, Source, ToolCall, ToolResult, Turn};
use crate::openai::chat::request_reader::read;

fn vendor(parameters: Parameters) -> Vendor {
    Vendor { parameters, auth: Auth::Bearer, ..Vendor::find("openai").unwrap().clone() }
}

fn try_write(request: &Request, parameters: Parameters) -> Result<Written, Unwritable> {
    let vendor = vendor(parameters);
    let max_tokens_name = vendor.parameters.max_tokens;
    let target = TargetFacts { vendor: &vendor, model: "target", max_tokens_name, default_max_tokens: 1 };
    write(request, &target)
}

/// What is sent, without the model, and what is dropped.
fn sent(request: &Request, parameters: Parameters) -> (Value, String) {
    let written = try_write(request, parameters).unwrap();
    let mut body: Map<String, Value> = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(body.shift_remove("model"), Some("target".into()));
    (body.into(), written.dropped.to_string())
}

fn request(body: &Value) -> Request {
    read(body.to_string().as_bytes()).unwrap()
}

fn messages(request: &Request, parameters: Parameters) -> Value {
    sent(request, parameters).0["messages"].take()
}

#[test]
fn the_limit_arrives_under_the_one_name_that_the_deployment_accepts_tr_05() {
    for given in ["max_tokens", "max_completion_tokens"] {
        let request = request(&json!({"messages": [], given: 64}));
        for (takes, name) in [
            (MaxTokens::MaxTokens, "max_tokens"),
            (MaxTokens::MaxCompletionTokens, "max_completion_tokens"),
            (MaxTokens::AsGiven, "max_completion_tokens"),
        ] {
            let (body, _) = sent(&request, Parameters { max_tokens: takes, ..Parameters::default() });
            assert_eq!(body, json!({"messages": [], name: 64}));
        }
    }
}

#[test]
fn images_are_sent_by_their_real_type_or_not_at_all_tr_07() {
    let image = |url: &str| {
        request(&json!({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url}}
        ]}]}))
    };
    let body = messages(&image("data:image/JPG;x=y;base64,/9j/2Q=="), Parameters::default());
    assert_eq!(body[0]["content"][1]["image_url"]["url"], "data:image/jpeg;base64,/9j/2Q==");
    let error = try_write(&image("data:image/svg+xml;base64,PHN2Zy8+"), Parameters::default()).unwrap_err();
    let Unwritable::Wrong(field) = error else { panic!("{error}") };
    assert_eq!(field.field, "messages[0].content[1]");
    let no_urls = Parameters { image_urls: false, ..Parameters::default() };
    let error = try_write(&image("https://x.example/a.png"), no_urls).unwrap_err();
    assert!(matches!(error, Unwritable::Unsupported(_)));
}

#[test]
fn own_unknown_fields_arrive_and_foreign_ones_are_named_tr_09() {
    let unknown = json!({
        "enable_thinking": false,
        "chat_template_kwargs": {"a": 1},
        "x_new": {"big": 12_345_678_901_234_567_890_u64},
    });
    let mut body = unknown.clone();
    body["messages"] = json!([{"role": "assistant", "content": "Once", "prefix": true}]);
    let mut request = request(&body);
    let (sent_body, dropped) = sent(&request, Parameters::default());
    for (name, value) in unknown.as_object().unwrap() {
        assert_eq!(&sent_body[name], value);
    }
    assert_eq!(dropped, "messages[0].prefix");
    request.wire = Wire::Gemini;
    let (sent_body, dropped) = sent(&request, Parameters::default());
    assert_eq!(sent_body.as_object().unwrap().len(), 1);
    assert_eq!(dropped, "enable_thinking, chat_template_kwargs, x_new, messages[0].prefix");
}

#[test]
fn parameters_go_by_the_vendors_names_or_are_dropped_and_named() {
    let parameters = Parameters {
        rename: [("seed".to_owned(), "random_seed".to_owned())].into(),
        drop: vec!["logit_bias".to_owned(), "x".to_owned()],
        ..Parameters::default()
    };
    let request = request(&json!({"messages": [], "seed": 7, "logit_bias": {"1": 2}, "x": 1}));
    let (body, dropped) = sent(&request, parameters);
    assert_eq!(body, json!({"messages": [], "random_seed": 7}));
    assert_eq!(dropped, "logit_bias, x");
}

#[test]
fn several_answers_from_a_service_that_gives_one_are_refused_tr_12() {
    let one = Parameters { many_choices: false, ..Parameters::default() };
    let asked = |n: u32| request(&json!({"messages": [], "n": n}));
    let error = try_write(&asked(2), one.clone()).unwrap_err();
    let Unwritable::Unsupported(field) = error else { panic!("{error}") };
    assert_eq!(field.field, "n");
    assert_eq!(sent(&asked(1), one).0, json!({"messages": []}));
    assert_eq!(sent(&asked(2), Parameters::default()).0["n"], 2);
}

#[test]
fn more_stop_sequences_than_a_service_takes_are_refused_with_the_limit_tr_13() {
    let parameters = Parameters { max_stops: Some(4), ..Parameters::default() };
    let asked = |stop: Value| request(&json!({"messages": [], "stop": stop}));
    let error = try_write(&asked(json!(["a", "b", "c", "d", "e"])), parameters.clone()).unwrap_err();
    assert!(
        matches!(&error, Unwritable::Unsupported(_)) && error.to_string().contains("at most 4"),
        "{error}"
    );
    assert_eq!(sent(&asked(json!("a")), parameters.clone()).0["stop"], json!(["a"]));
    assert_eq!(sent(&asked(json!([])), parameters).0, json!({"messages": []}));
}

#[test]
fn a_call_without_arguments_is_sent_with_an_empty_object_tr_14() {
    let request = request(&json!({"messages": [{"role": "assistant", "content": "", "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "now", "arguments": ""}}
    ]}]}));
    let call = json!({"id": "t1", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let expected = json!([{"role": "assistant", "content": null, "tool_calls": [call]}]);
    assert_eq!(messages(&request, Parameters::default()), expected);
}

#[test]
fn nothing_is_merged_unless_the_vendor_says_so_tr_02() {
    let call = json!({"id": "t1", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let body = json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "content": "ok", "tool_call_id": "t1"},
        {"role": "user", "content": "d"},
    ]});
    let request = request(&body);
    assert_eq!(messages(&request, Parameters::default()).as_array().unwrap().len(), 6);
    let merged = messages(&request, Parameters { merge_turns: true, ..Parameters::default() });
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c", "tool_calls": [call]},
        {"role": "tool", "content": "ok", "tool_call_id": "t1"},
        {"role": "user", "content": "d"},
    ]);
    assert_eq!(merged, expected);
}

#[test]
fn developers_are_system_where_the_role_is_unknown_tr_01() {
    let request = request(&json!({"messages": [{"role": "developer", "content": "Be brief."}]}));
    let role = |known| {
        let parameters = Parameters { developer_role: known, ..Parameters::default() };
        messages(&request, parameters)[0]["role"].take()
    };
    assert_eq!((role(true), role(false)), ("developer".into(), "system".into()));
}

/// A conversation as an Anthropic client sends it.
fn foreign(parts: Vec<Part>) -> Request {
    Request { turns: vec![Turn::new(Role::User, parts)], ..Request::new(Wire::Anthropic) }
}

#[test]
fn results_of_a_turn_become_messages_and_their_pictures_the_users_tr_03() {
    let image = Media::new(Source::Base64("iVBORw0KGgo=".to_owned()), None);
    let result = |id: &str, parts| {
        Part::ToolResult(ToolResult {
            call_id: id.to_owned(),
            name: None,
            parts,
            is_error: id == "b",
            cache: None,
        })
    };
    let request = foreign(vec![
        Part::text("now?"),
        result("a", vec![Part::text("seen"), Part::Image(image)]),
        result("b", vec![]),
    ]);
    let (mut body, dropped) = sent(&request, Parameters::default());
    let url = json!({"url": "data:image/png;base64,iVBORw0KGgo="});
    let expected = json!([
        {"role": "tool", "content": "seen", "tool_call_id": "a"},
        {"role": "tool", "content": "", "tool_call_id": "b"},
        {"role": "user", "content": [{"type": "image_url", "image_url": url}, {"type": "text", "text": "now?"}]},
    ]);
    assert_eq!(body["messages"].take(), expected);
    assert_eq!(dropped, "messages[0].content[2].is_error");
}

#[test]
fn cache_hints_go_only_where_the_client_wrote_them_in_this_dialect() {
    let text = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let own = request(&json!({"messages": [{"role": "user", "content": [text]}]}));
    assert_eq!(messages(&own, Parameters::default())[0]["content"], json!([text]));
    let mut hinted = Part::text("a");
    if let Part::Text(text) = &mut hinted {
        text.cache = Some(CacheHint::Default);
    }
    let (body, dropped) = sent(&foreign(vec![hinted]), Parameters::default());
    assert_eq!((&body["messages"][0]["content"], dropped.as_str()), (&json!("a"), "cache_control"));
}

#[test]
fn reasoning_is_switched_in_each_vendors_way() {
    let asked =
        |reasoning: ReasoningRequest| Request { reasoning: Some(reasoning), ..Request::new(Wire::Openai) };
    let on = ReasoningRequest { enabled: Some(true), budget_tokens: Some(4000), ..Default::default() };
    let off = ReasoningRequest { enabled: Some(false), ..Default::default() };
    for (switch, wanted, body, dropped) in [
        (ReasoningSwitch::Effort, &on, json!({"reasoning_effort": "low"}), ""),
        (ReasoningSwitch::Effort, &off, json!({}), "reasoning_effort"),
        (ReasoningSwitch::EnableThinking, &on, json!({"enable_thinking": true, "thinking_budget": 4000}), ""),
        (ReasoningSwitch::EnableThinking, &off, json!({"enable_thinking": false}), ""),
        (ReasoningSwitch::ThinkingType, &on, json!({"thinking": {"type": "enabled"}}), ""),
        (ReasoningSwitch::ThinkingType, &off, json!({"thinking": {"type": "disabled"}}), ""),
        (ReasoningSwitch::Object, &on, json!({"reasoning": {"enabled": true, "max_tokens": 4000}}), ""),
        (ReasoningSwitch::None, &on, json!({}), "reasoning_effort"),
        (ReasoningSwitch::None, &off, json!({}), ""),
    ] {
        let parameters = Parameters { reasoning: switch, ..Parameters::default() };
        let (mut sent, lost) = sent(&asked(wanted.clone()), parameters);
        sent.as_object_mut().unwrap().remove("messages");
        assert_eq!((sent, lost.as_str()), (body, dropped), "{switch:?} {wanted:?}");
    }
}

#[test]
fn own_reasoning_goes_back_to_services_that_show_it_and_foreign_never_tr_08() {
    let message = json!({"role": "assistant", "content": "x", "reasoning_content": "hm"});
    let own = request(&json!({"messages": [message]}));
    let signed = json!({"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic"});
    let foreign =
        request(&json!({"messages": [{"role": "assistant", "content": "x", "reasoning_details": [signed]}]}));
    let to =
        |request: &Request, reasoning| messages(request, Parameters { reasoning, ..Parameters::default() });
    assert_eq!(to(&own, ReasoningSwitch::ThinkingType), json!([message]));
    let bare = json!([{"role": "assistant", "content": "x"}]);
    assert_eq!(to(&own, ReasoningSwitch::Effort), bare);
    for switch in [ReasoningSwitch::ThinkingType, ReasoningSwitch::Object, ReasoningSwitch::Effort] {
        assert_eq!(to(&foreign, switch), bare);
    }
    // Another gateway's block is given back as it came.
    let block = json!({"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0, "id": null});
    let theirs =
        request(&json!({"messages": [{"role": "assistant", "content": "x", "reasoning_details": [block]}]}));
    assert_eq!(to(&theirs, ReasoningSwitch::Object)[0]["reasoning_details"], json!([block]));
}

#[test]
fn a_schema_for_a_service_without_schemas_becomes_a_tool_tr_11() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "ans", "schema": {"type": "object"}}});
    let request = request(&json!({"messages": [], "response_format": format}));
    let parameters = Parameters { json: vec![JsonOutput::Object], ..Parameters::default() };
    let written = try_write(&request, parameters.clone()).unwrap();
    let name = written.json_tool.unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(body["tools"][0]["function"]["name"], name.as_str());
    assert_eq!(body["tool_choice"]["function"]["name"], name.as_str());
    assert!(body.get("response_format").is_none());
    let object = Request {
        output: Output { format: Some(Format::JsonObject), ..Output::default() },
        ..Request::new(Wire::Openai)
    };
    assert_eq!(sent(&object, parameters).0["response_format"], json!({"type": "json_object"}));
}

#[test]
fn streams_always_ask_for_the_usage_where_asking_is_the_way_sse_05() {
    let options = json!({"include_obfuscation": false});
    let request = request(&json!({"messages": [], "stream": true, "stream_options": options}));
    let (body, dropped) = sent(&request, Parameters::default());
    let expected = json!({"include_usage": true, "include_obfuscation": false});
    assert_eq!((&body["stream_options"], dropped.as_str()), (&expected, ""));
    let unasked = Parameters { stream_usage: StreamUsage::Always, ..Parameters::default() };
    let (body, dropped) = sent(&request, unasked);
    assert_eq!(
        (body, dropped.as_str()),
        (json!({"messages": [], "stream": true}), "stream_options.include_obfuscation")
    );
}

#[test]
fn fixed_fields_of_a_vendor_take_the_place_of_the_clients() {
    let mut vendor = vendor(Parameters::default());
    vendor.body.insert("user".to_owned(), "fixed".into());
    vendor.model_in_path = true;
    let target = TargetFacts {
        vendor: &vendor,
        model: "m",
        max_tokens_name: MaxTokens::AsGiven,
        default_max_tokens: 1,
    };
    let written = write(&request(&json!({"messages": [], "user": "own"})), &target).unwrap();
    assert_eq!(written.body, r#"{"messages":[],"user":"fixed"}"#.as_bytes());
}

#[test]
fn what_no_message_can_hold_is_refused_with_its_place() {
    for part in [
        Part::File(Media::new(Source::Url("https://x.example/a.pdf".to_owned()), None)),
        Part::File(Media::new(Source::FileId("file_1".to_owned()), None)),
        Part::Image(Media::new(Source::FileId("file_1".to_owned()), None)),
        Part::Other { wire: Wire::Anthropic, value: json!({"type": "search_result"}) },
    ] {
        let error = try_write(&foreign(vec![Part::text("a"), part]), Parameters::default()).unwrap_err();
        let Unwritable::Unsupported(field) = error else { panic!("{error}") };
        assert_eq!(field.field, "messages[0].content[1]");
    }
    let call =
        ToolCall { id: "a".into(), name: "f".into(), arguments: "{}".into(), signature: None, cache: None };
    assert!(try_write(&foreign(vec![Part::ToolCall(call)]), Parameters::default()).is_err());
}
