//! What is read and written again is what it was: requests, answers, streams.

use penstock_model::Usage;
use penstock_model::vendor::{MaxTokens, Parameters, ReasoningSwitch, Vendor, Wire};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::Chat;
use super::tests::asked;
use crate::dialect::{Dialect as _, Protocol as _, TargetFacts};
use crate::exchange::{Event, Signature, Stop};

/// An object of the members that are there.
fn object(members: Vec<(&str, Option<Value>)>) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{1,12}", Just("\u{0}\"\\\n潮🚲".to_owned())]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![(0_u32..3).prop_map(Value::from), select(vec![0.2, 0.95, 1.5]).prop_map(Value::from)]
}

fn hint() -> impl Strategy<Value = Option<Value>> {
    option::weighted(
        0.2,
        select(vec![
            json!({"type": "ephemeral"}),
            json!({"type": "ephemeral", "ttl": "5m"}),
            json!({"type": "ephemeral", "ttl": "1h"}),
        ]),
    )
}

fn part() -> impl Strategy<Value = Value> {
    let body = prop_oneof![
        text().prop_map(|text| json!({"type": "text", "text": text})),
        Just(
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}})
        ),
        Just(json!({"type": "image_url", "image_url": {"url": "https://x.example/a.png"}})),
        Just(json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}})),
        Just(json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}})),
        Just(
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}})
        ),
        Just(json!({"type": "file", "file": {"file_id": "file-1"}})),
    ];
    (body, hint()).prop_map(|(mut part, hint)| {
        if let Some(hint) = hint {
            part["cache_control"] = hint;
        }
        part
    })
}

/// A string, or a list that says more than a string could.
fn content() -> impl Strategy<Value = Value> {
    prop_oneof![text().prop_map(Value::from), vec(part(), 2..4).prop_map(Value::from)]
}

fn call(id: usize, name: &str, signed: bool) -> Value {
    let mut call = json!({"id": format!("t{id}"), "type": "function",
        "function": {"name": name, "arguments": "{\"a\": 1.50}"}});
    if signed {
        call["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    }
    call
}

fn message() -> impl Strategy<Value = Value> {
    let name = || option::weighted(0.2, Just(Value::from("ann")));
    let plain =
        (select(vec!["system", "developer", "user"]), name(), content()).prop_map(|(role, name, content)| {
            object(vec![("role", Some(role.into())), ("name", name), ("content", Some(content))])
        });
    let assistant =
        (option::of(text()), option::of(text()), option::weighted(0.2, text()), 0_usize..3, any::<bool>())
            .prop_map(|(content, reasoning, refusal, calls, signed)| {
                let calls: Vec<Value> = (0..calls).map(|id| call(id, "f", signed)).collect();
                let silent = calls.is_empty() && refusal.is_none();
                let content = content.or_else(|| silent.then(String::new));
                object(vec![
                    ("role", Some("assistant".into())),
                    ("content", Some(content.into())),
                    ("reasoning_content", reasoning.map(Value::from)),
                    ("refusal", refusal.map(Value::from)),
                    ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
                ])
            });
    let result = (text(), name()).prop_map(|(content, name)| {
        object(vec![
            ("role", Some("tool".into())),
            ("name", name),
            ("content", Some(content.into())),
            ("tool_call_id", Some("t0".into())),
        ])
    });
    prop_oneof![plain, assistant, result]
}

fn tools() -> impl Strategy<Value = Value> {
    let function =
        (option::of(text()), option::of(any::<bool>()), hint()).prop_map(|(about, strict, hint)| {
            let function = object(vec![
                ("name", Some("f".into())),
                ("description", about.map(Value::from)),
                ("parameters", Some(json!({"type": "object", "properties": {"a": {"type": "number"}}}))),
                ("strict", strict.map(Value::from)),
            ]);
            object(vec![
                ("type", Some("function".into())),
                ("function", Some(function)),
                ("cache_control", hint),
            ])
        });
    let custom = Just(json!({"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}));
    vec(prop_oneof![function, custom], 1..3).prop_map(Value::from)
}

fn tool_choice() -> impl Strategy<Value = Value> {
    let f = json!({"type": "function", "function": {"name": "f"}});
    select(vec![
        json!("auto"),
        json!("none"),
        json!("required"),
        f.clone(),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [f]}}),
    ])
}

fn request() -> impl Strategy<Value = Value> {
    let format = select(vec![
        json!({"type": "text"}),
        json!({"type": "json_object"}),
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": true}}),
    ]);
    let with_tools = option::of((tools(), option::of(tool_choice()), option::of(any::<bool>())));
    let sampling = vec(option::weighted(0.3, number()), 6);
    let output = (option::of(1_u32..9999), vec(text(), 0..3), option::of(1_u32..4), option::of(format));
    let about = (option::of(text()), option::of(text()), any::<bool>(), option::of(number()));
    (vec(message(), 0..5), with_tools, sampling, output, about).prop_map(
        |(messages, tools, mut sampling, (limit, stop, n, format), (user, key, stream, unknown))| {
            let mut next = || sampling.pop().flatten();
            let (tools, choice, parallel) = tools.map_or((None, None, None), |(a, b, c)| (Some(a), b, c));
            object(vec![
                ("model", Some("target".into())),
                ("messages", Some(messages.into())),
                ("tools", tools),
                ("tool_choice", choice),
                ("parallel_tool_calls", parallel.map(Value::from)),
                ("temperature", next()),
                ("top_p", next()),
                ("top_k", next()),
                ("seed", next()),
                ("frequency_penalty", next()),
                ("presence_penalty", next()),
                ("max_completion_tokens", limit.map(Value::from)),
                ("stop", (!stop.is_empty()).then(|| stop.into())),
                ("n", n.map(Value::from)),
                ("response_format", format),
                ("user", user.map(Value::from)),
                ("prompt_cache_key", key.map(Value::from)),
                ("stream", stream.then_some(Value::Bool(true))),
                ("stream_options", stream.then(|| json!({"include_usage": true}))),
                ("x_new", unknown.map(|unknown| json!({"deep": [unknown]}))),
            ])
        },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(0_u64..100_000);
    (count(), count(), count(), count(), count(), count(), count(), 1_u64..9999).prop_map(
        |(cached, short, long, reasoning, audio_in, audio_out, searches, tokens)| Usage {
            input_tokens: Some(tokens),
            cached_input_tokens: cached,
            cache_write_tokens: short,
            cache_write_1h_tokens: long,
            output_tokens: Some(tokens * 2),
            reasoning_tokens: reasoning,
            audio_input_tokens: audio_in,
            audio_output_tokens: audio_out,
            images: None,
            searches,
        },
    )
}

fn answer() -> impl Strategy<Value = Value> {
    let stop = select(vec![
        ("stop", None),
        ("stop", Some("eos")),
        ("length", None),
        ("content_filter", Some("sensitive")),
    ]);
    let said = (option::of(text()), option::of(text()), option::weighted(0.2, text()), 0_usize..3);
    let choice = (said, stop).prop_map(|((content, reasoning, refusal, calls), (stop, native))| {
        let calls: Vec<Value> = (0..calls).map(|id| call(id, "f", id == 1)).collect();
        let silent = calls.is_empty() && refusal.is_none();
        let (stop, native) = if calls.is_empty() { (stop, native) } else { ("tool_calls", None) };
        let message = object(vec![
            ("role", Some("assistant".into())),
            ("content", Some(content.or_else(|| silent.then(String::new)).into())),
            ("reasoning_content", reasoning.map(Value::from)),
            ("refusal", refusal.map(Value::from)),
            ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
        ]);
        object(vec![
            ("index", Some(0.into())),
            ("message", Some(message)),
            ("logprobs", Some(json!({"content": []}))),
            ("finish_reason", Some(stop.into())),
            ("native_finish_reason", native.map(Value::from)),
        ])
    });
    (vec(choice, 1..3), option::of(usage())).prop_map(|(mut choices, usage)| {
        for (index, choice) in choices.iter_mut().enumerate() {
            choice["index"] = index.into();
        }
        let usage = usage.map(|usage| json!(super::super::usage::WrittenUsage::from(usage)));
        object(vec![
            ("id", Some("c1".into())),
            ("object", Some("chat.completion".into())),
            ("created", Some(7.into())),
            ("model", Some("m".into())),
            ("choices", Some(choices.into())),
            ("usage", usage),
            ("system_fingerprint", Some("fp".into())),
        ])
    })
}

/// What one choice tells, its finish included.
fn told(choice: u32) -> impl Strategy<Value = Vec<Event<'static>>> {
    let signature = |wire, redacted| Event::ReasoningSignature {
        choice,
        signature: Signature { wire, value: "c2ln".to_owned() },
        redacted,
    };
    let event = prop_oneof![
        3 => text().prop_map(move |text| Event::Text { choice, text: text.into() }),
        2 => text().prop_map(move |text| Event::Reasoning { choice, text: text.into() }),
        1 => text().prop_map(move |text| Event::Refusal { choice, text: text.into() }),
        1 => select(vec![
            signature(Wire::Anthropic, false),
            signature(Wire::Gemini, false),
            signature(Wire::Bedrock, true),
            Event::Citation { choice, value: json!({"type": "url_citation"}) },
            Event::Logprobs { choice, value: json!({"content": [{"token": "a"}]}) },
        ]),
    ];
    let calls = vec((vec(text(), 1..3), any::<bool>()), 0..3);
    let stop = select(vec![(Stop::End, "eos"), (Stop::Length, "length"), (Stop::ContentFilter, "sensitive")]);
    (vec(event, 0..6), calls, stop).prop_map(move |(mut events, calls, (stop, native))| {
        let (stop, native) = if calls.is_empty() { (stop, native) } else { (Stop::ToolCalls, "tool_use") };
        for (call, (fragments, signed)) in (0..).zip(calls) {
            let signature = signed.then(|| Signature { wire: Wire::Gemini, value: "c2ln".to_owned() });
            let (id, name) = (format!("t{call}").into(), "f".into());
            events.push(Event::ToolStart { choice, call, id, name, signature });
            let fragment = |text: String| Event::ToolArguments { choice, call, fragment: text.into() };
            events.extend(fragments.into_iter().map(fragment));
        }
        events.push(Event::Finish { choice, stop, native: native.into(), sequence: None });
        events
    })
}

fn stream() -> impl Strategy<Value = Vec<Event<'static>>> {
    (told(0), option::of(told(1)), option::of(usage())).prop_map(|(first, second, usage)| {
        let start = Event::Start { id: Some("c1".into()), model: Some("m".into()), created: Some(7) };
        let mut events = vec![start];
        events.extend(first.into_iter().chain(second.into_iter().flatten()));
        events.extend(usage.map(Event::Usage));
        events.push(Event::End);
        events
    })
}

proptest! {
    #[test]
    fn requests_are_written_as_they_were_read(body in request()) {
        let mut vendor = Vendor::find("openai").unwrap().clone();
        // With this one nothing of a message is left out.
        vendor.parameters = Parameters { reasoning: ReasoningSwitch::ThinkingType, ..Parameters::default() };
        let max_tokens_name = MaxTokens::AsGiven;
        let target = TargetFacts { vendor: &vendor, model: "target", max_tokens_name, default_max_tokens: 1 };
        let request = Chat.read_request(body.to_string().as_bytes(), None, false).unwrap();
        let written = Chat.write_request(&request, &target).unwrap();
        prop_assert!(written.dropped.is_empty(), "{}", written.dropped);
        prop_assert_eq!(serde_json::from_slice::<Value>(&written.body).unwrap(), body);
    }

    #[test]
    fn answers_are_written_as_they_were_read(body in answer()) {
        let answer = Chat.read_answer(body.to_string().as_bytes(), "r").unwrap();
        let written = Chat.write_answer(&answer, &asked(false));
        prop_assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), body);
    }

    #[test]
    fn streams_are_read_as_they_were_written(events in stream()) {
        let mut writer = Chat.stream_writer(asked(true));
        let mut body = Vec::new();
        for event in &events {
            writer.event(event, &mut body);
        }
        writer.finish(&mut body);
        let mut reader = Chat.stream_reader("r");
        let mut read = Vec::new();
        reader.feed(&body, &mut |event| read.push(format!("{event:?}")));
        let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_bytes_make_the_answers_reader_panic(noise in vec(any::<u8>(), 0..200), json in "\\{[\\[\\]{}\",:a-z0-9]{0,60}\\}") {
        let _ = Chat.read_answer(&noise, "r");
        let _ = Chat.read_answer(json.as_bytes(), "r");
    }
}
