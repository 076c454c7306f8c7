use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fixtures::{asked, events, read_answer, read_request, write};
use crate::dialect::{Dialect as _, Protocol as _};
use crate::exchange::Event;
use crate::gemini::Gemini;

fn words() -> impl Strategy<Value = String> {
    "[a-zé你🚲\"\\\\ \n]{1,8}"
}

fn objects() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        words().prop_map(Value::from),
        Just(json!(0.25))
    ];
    let value =
        leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Value::from));
    prop::collection::vec((words(), value), 0..3).prop_map(|all| Value::Object(Map::from_iter(all)))
}

fn signature() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(&["c2ln", "QUJD"][..]))
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

/// Parts of a model's content that are no calls.
fn model_parts() -> impl Strategy<Value = Value> {
    prop_oneof![
        (words(), signature()).prop_map(|(text, signature)| signed(json!({"text": text}), signature)),
        (words(), signature())
            .prop_map(|(text, signature)| signed(json!({"text": text, "thought": true}), signature)),
        words().prop_map(|code| json!({"executableCode": {"language": "PYTHON", "code": code}})),
        Just(json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}})),
    ]
}

fn calls() -> impl Strategy<Value = Vec<Value>> {
    let call = (prop::sample::select(&["f", "g"][..]), objects(), any::<bool>(), signature());
    prop::collection::vec(call, 0..4).prop_map(|all| {
        let call = |(index, (name, args, has_id, signature)): (usize, (&str, Value, bool, _))| {
            let mut call = Map::new();
            if has_id {
                call.insert("id".to_owned(), format!("id{index}").into());
            }
            call.insert("name".to_owned(), name.into());
            call.insert("args".to_owned(), args);
            signed(json!({"functionCall": call}), signature)
        };
        all.into_iter().enumerate().map(call).collect()
    })
}

fn user_parts() -> impl Strategy<Value = Value> {
    prop_oneof![
        words().prop_map(|text| json!({"text": text})),
        Just(json!({"inlineData": {"mimeType": "image/jpeg", "data": "AA==", "displayName": "n"}})),
        Just(
            json!({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"}, "videoMetadata": {"fps": 1}})
        ),
        Just(json!({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AA=="}})),
    ]
}

fn responses() -> impl Strategy<Value = Value> {
    prop_oneof![
        words().prop_map(|text| json!({"output": text})),
        words().prop_map(|text| json!({"error": text})),
        objects().prop_filter("is read as text or as a failure", |object| {
            !["output", "error"].iter().any(|name| object.get(name).is_some())
        }),
    ]
}

/// A round: a user's content, a model's, and the results of its calls.
fn rounds() -> impl Strategy<Value = Vec<Value>> {
    let users = prop::collection::vec(user_parts(), 1..3);
    let model = prop::collection::vec(model_parts(), 1..3);
    (users, model, calls(), prop::collection::vec(responses(), 4)).prop_map(
        |(users, mut model, calls, responses)| {
            let results: Vec<Value> = calls
                .iter()
                .zip(responses)
                .map(|(call, response)| {
                    let mut result = Map::new();
                    if let Some(id) = call["functionCall"].get("id") {
                        result.insert("id".to_owned(), id.clone());
                    }
                    result.insert("name".to_owned(), call["functionCall"]["name"].clone());
                    result.insert("response".to_owned(), response);
                    json!({"functionResponse": result})
                })
                .collect();
            model.extend(calls);
            let mut round =
                vec![json!({"role": "user", "parts": users}), json!({"role": "model", "parts": model})];
            if !results.is_empty() {
                round.push(json!({"role": "user", "parts": results}));
                round.push(json!({"role": "model", "parts": [{"text": "so"}]}));
            }
            round
        },
    )
}

fn configs() -> impl Strategy<Value = Value> {
    let some = |value: Value| prop::option::of(Just(value));
    let fields: Vec<(&str, BoxedStrategy<Option<Value>>)> = vec![
        ("temperature", some(json!(0.2)).boxed()),
        ("topP", some(json!(1)).boxed()),
        ("topK", some(json!(40)).boxed()),
        ("seed", some(json!(7)).boxed()),
        ("presencePenalty", some(json!(-0.5)).boxed()),
        ("frequencyPenalty", some(json!(0.5)).boxed()),
        ("responseLogprobs", some(json!(true)).boxed()),
        ("logprobs", some(json!(3)).boxed()),
        ("maxOutputTokens", some(json!(64)).boxed()),
        ("stopSequences", some(json!(["a", "\n"])).boxed()),
        ("candidateCount", some(json!(2)).boxed()),
        ("responseMimeType", some(json!("application/json")).boxed()),
        (
            "thinkingConfig",
            prop::option::of(prop::sample::select(
                &[
                    r#"{"thinkingLevel":"HIGH","includeThoughts":true}"#,
                    r#"{"thinkingBudget":512}"#,
                    r#"{"thinkingBudget":-1,"includeThoughts":false}"#,
                    r#"{"includeThoughts":true}"#,
                ][..],
            ))
            .prop_map(|text| text.map(|text| serde_json::from_str(text).unwrap()))
            .boxed(),
        ),
        ("responseModalities", some(json!(["TEXT"])).boxed()),
        ("mediaResolution", some(json!("MEDIA_RESOLUTION_LOW")).boxed()),
    ];
    let (names, values): (Vec<&str>, Vec<_>) = fields.into_iter().unzip();
    values.prop_map(move |values| {
        let given = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(given.collect())
    })
}

fn requests() -> impl Strategy<Value = Value> {
    let tools = json!([
        {"functionDeclarations": [
            {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}},
            {"name": "g"},
        ]},
        {"googleSearch": {"timeRangeFilter": {}}},
    ]);
    let modes = [
        r#"{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}"#,
        r#"{"functionCallingConfig":{"mode":"VALIDATED"},"retrievalConfig":{"languageCode":"de"}}"#,
        r#"{"functionCallingConfig":{"mode":"NONE"}}"#,
    ];
    (
        prop::option::of(words()),
        prop::collection::vec(rounds(), 1..3),
        configs(),
        prop::option::of(prop::sample::select(modes.to_vec())),
        prop::option::of(Just(json!([{"category": "C", "threshold": "T"}]))),
    )
        .prop_map(move |(system, rounds, config, mode, safety)| {
            let mut contents = rounds.concat();
            contents.push(json!({"role": "user", "parts": [{"text": "and now?"}]}));
            let mut body = Map::new();
            if let Some(system) = system {
                body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
            }
            body.insert("contents".to_owned(), contents.into());
            body.insert("tools".to_owned(), tools.clone());
            if let Some(mode) = mode {
                body.insert("toolConfig".to_owned(), serde_json::from_str(mode).unwrap());
            }
            if config.as_object().is_some_and(|config| !config.is_empty()) {
                body.insert("generationConfig".to_owned(), config);
            }
            if let Some(safety) = safety {
                body.insert("safetySettings".to_owned(), safety);
            }
            Value::Object(body)
        })
}

fn answers() -> impl Strategy<Value = Value> {
    let candidate = (
        prop::collection::vec(model_parts(), 0..3),
        calls(),
        prop::sample::select(&["STOP", "MAX_TOKENS", "SPII"][..]),
    );
    (prop::collection::vec(candidate, 1..3), any::<u32>(), any::<u32>()).prop_map(|(candidates, input, output)| {
        let candidates: Vec<Value> = candidates
            .into_iter()
            .enumerate()
            .map(|(index, (mut parts, calls, reason))| {
                parts.extend(calls);
                let mut candidate = Map::new();
                if !parts.is_empty() {
                    candidate.insert("content".to_owned(), json!({"role": "model", "parts": parts}));
                }
                candidate.insert("finishReason".to_owned(), reason.into());
                candidate.insert("index".to_owned(), index.into());
                candidate.insert("groundingMetadata".to_owned(), json!({"webSearchQueries": ["q"]}));
                Value::Object(candidate)
            })
            .collect();
        json!({
            "candidates": candidates,
            "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": u64::from(input) + u64::from(output) + 2, "thoughtsTokenCount": 2},
            "modelVersion": "gemini-3-pro",
            "responseId": "r1",
            "createTime": "2026-01-01T00:00:00Z",
        })
    })
}

/// The same answer, each candidate's part in an event of its own.
fn streamed(answer: &Value) -> Vec<u8> {
    let mut stream = String::new();
    for candidate in answer["candidates"].as_array().unwrap() {
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let event = json!({"candidates": [{"index": candidate["index"], "content": {"parts": [part]}}]});
            stream += &format!("data: {event}\r\n\r\n");
        }
        let event = json!({"candidates": [{"index": candidate["index"], "finishReason": candidate["finishReason"]}], "usageMetadata": answer["usageMetadata"]});
        stream += &format!("data: {event}\n\n");
    }
    stream.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_canonical_request_comes_out_as_it_went_in(body in requests()) {
        let written = write(&read_request(&body)).unwrap();
        let out: Value = serde_json::from_slice(&written.body).unwrap();
        prop_assert_eq!(out, body);
        prop_assert!(written.dropped.is_empty(), "{}", written.dropped);
    }

    #[test]
    fn a_canonical_answer_comes_out_as_it_went_in(body in answers()) {
        let out: Value = serde_json::from_slice(&Gemini.write_answer(&read_answer(&body), &asked())).unwrap();
        prop_assert_eq!(out, body);
    }

    #[test]
    fn any_chunking_of_a_stream_gives_the_same_events_sse_01(body in answers(), cuts in prop::collection::vec(1..40_usize, 1..20)) {
        let bytes = streamed(&body);
        let mut reads = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            let (read, after) = rest.split_at((*cut).min(rest.len()));
            reads.push(read);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(events(&reads), events(&[&bytes]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Gemini.read_answer(&bytes, "r");
        let _ = Gemini.read_request(&bytes, None, true);
        let _ = Gemini.find_usage(&bytes);
        let _ = events(&[b"data: ", &bytes, b"\n\n"]);
    }

    #[test]
    fn damaged_bodies_never_panic(body in requests(), answer in answers(), at in any::<prop::sample::Index>(), byte: u8) {
        for value in [body, answer] {
            let mut bytes = value.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(request) = Gemini.read_request(&bytes, None, true) {
                let _ = write(&request);
            }
            if let Ok(answer) = Gemini.read_answer(&bytes, "r") {
                let _ = Gemini.write_answer(&answer, &asked());
            }
            let mut writer = Gemini.stream_writer(asked());
            let mut out = Vec::new();
            let mut reader = Gemini.stream_reader("r");
            let mut sink = |event: Event<'_>| writer.event(&event, &mut out);
            reader.feed(&[b"data: ", &bytes[..], b"\n\n"].concat(), &mut sink);
            reader.end(&mut sink);
            writer.finish(&mut out);
        }
    }
}
