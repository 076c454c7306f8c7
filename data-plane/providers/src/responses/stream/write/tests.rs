use std::collections::HashSet;

use penstock_model::Usage;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::exchange::{Choice, Media};

fn asked() -> Asked {
    Asked { id: "r1".to_owned(), model: "m".to_owned(), created: 7, include_usage: true }
}

fn written(events: &[Event<'_>]) -> String {
    let mut writer = Writer::new(asked());
    let mut out = Vec::new();
    for event in events {
        writer.event(event, &mut out);
    }
    writer.finish(&mut out);
    String::from_utf8(out).unwrap()
}

/// The events of a stream; each is one `event:` line, one `data:` line and an empty one.
fn parse(stream: &str) -> Vec<Value> {
    let blocks = stream.strip_suffix("\n\n").unwrap().split("\n\n");
    let parse = |block: &str| {
        let (name, data) = block.split_once("\ndata: ").unwrap();
        let value: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: "), value["type"].as_str(), "{block}");
        value
    };
    blocks.map(parse).collect()
}

/// An item that the checker follows.
struct Seen {
    item: Value,
    done: bool,
    /// Texts of its parts, and which are still open.
    parts: Vec<(String, bool)>,
}

/// Follows a stream as a strict client would, and gives its last response.
#[derive(Default)]
struct Checker {
    items: Vec<Seen>,
    ids: HashSet<String>,
}

impl Checker {
    fn check(stream: &str) -> Value {
        let events = parse(stream);
        let mut checker = Self::default();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], index, "{event}");
        }
        assert_eq!(events[0]["type"], "response.created");
        assert_eq!(events[1]["type"], "response.in_progress");
        let (last, middle) = events[2..].split_last().unwrap();
        for event in middle {
            checker.see(event);
        }
        let response = &last["response"];
        for before in &events[..2] {
            assert_eq!(before["response"]["id"], response["id"]);
            assert_eq!(before["response"]["status"], "in_progress");
            assert_eq!(before["response"]["output"], json!([]));
        }
        let complete = last["type"] == "response.completed";
        assert_eq!(response["status"], if complete { "completed" } else { "incomplete" });
        assert_eq!(response["incomplete_details"].is_null(), complete);
        let items: Vec<&Value> = checker.items.iter().map(|seen| &seen.item).collect();
        assert!(checker.items.iter().all(|seen| seen.done), "an item is left open: {stream}");
        assert_eq!(json!(items), response["output"]);
        response.clone()
    }

    fn see(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap().strip_prefix("response.").unwrap();
        let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
        if kind == "output_item.added" {
            return self.add(index, &event["item"]);
        }
        let seen = &mut self.items[index];
        assert!(!seen.done, "an event after the end of its item: {event}");
        if kind == "output_item.done" {
            seen.end(&event["item"]);
            return;
        }
        assert_eq!(event["item_id"], seen.item["id"], "{event}");
        let of = seen.item["type"].as_str().unwrap();
        let part = &event["content_index"].as_u64().or(event["summary_index"].as_u64());
        let part = part.map(|part| usize::try_from(part).unwrap());
        match (of, kind) {
            ("message", "content_part.added") | ("reasoning", "reasoning_summary_part.added") => {
                assert!(seen.parts.iter().all(|(_, open)| !open), "two open parts: {event}");
                assert_eq!(part, Some(seen.parts.len()));
                seen.parts.push((String::new(), true));
            }
            ("message", "output_text.delta" | "refusal.delta")
            | ("reasoning", "reasoning_summary_text.delta") => {
                let (text, open) = &mut seen.parts[part.unwrap()];
                assert!(*open);
                let delta = event["delta"].as_str().unwrap();
                assert!(!delta.is_empty());
                text.push_str(delta);
            }
            ("message", "output_text.annotation.added") => assert!(seen.parts[part.unwrap()].1),
            ("message", "output_text.done") | ("reasoning", "reasoning_summary_text.done") => {
                assert_eq!(event["text"], json!(seen.parts[part.unwrap()].0));
            }
            ("message", "refusal.done") => {
                assert_eq!(event["refusal"], json!(seen.parts[part.unwrap()].0));
            }
            ("message", "content_part.done") | ("reasoning", "reasoning_summary_part.done") => {
                let (text, open) = &mut seen.parts[part.unwrap()];
                let said = if event["part"]["type"] == "refusal" { "refusal" } else { "text" };
                assert_eq!(event["part"][said], json!(text));
                *open = false;
            }
            ("function_call", "function_call_arguments.delta") => {
                if seen.parts.is_empty() {
                    seen.parts.push((String::new(), true));
                }
                seen.parts[0].0.push_str(event["delta"].as_str().unwrap());
            }
            ("function_call", "function_call_arguments.done") => {
                assert_eq!(event["arguments"], json!(seen.parts[0].0));
                seen.parts[0].1 = false;
            }
            _ => panic!("{kind} inside {of}"),
        }
    }

    fn add(&mut self, index: usize, item: &Value) {
        assert_eq!(index, self.items.len());
        assert!(self.ids.insert(item["id"].as_str().unwrap().to_owned()), "an id occurs twice");
        let open = |seen: &Seen| !seen.done && seen.item["type"] != "function_call";
        assert!(!self.items.iter().any(open), "two open items");
        self.items.push(Seen { item: item.clone(), done: false, parts: Vec::new() });
    }
}

impl Seen {
    fn end(&mut self, item: &Value) {
        assert_eq!((&item["id"], &item["type"]), (&self.item["id"], &self.item["type"]));
        assert!(self.parts.iter().all(|(_, open)| !open), "an open part in a closed item");
        let nothing = match item["type"].as_str().unwrap() {
            "message" => self.parts.is_empty(),
            "reasoning" => self.parts.is_empty() && item["encrypted_content"].is_null(),
            "function_call" => item["arguments"] != json!(self.parts[0].0),
            _ => false,
        };
        assert!(!nothing, "an empty item: {item}");
        self.item = item.clone();
        self.done = true;
    }
}

#[derive(Debug, Clone)]
enum Said {
    Text(String),
    Refusal(String),
    Reasoning(String),
    Signature(Wire, bool),
    Call(Vec<String>),
    /// Two calls whose fragments interleave.
    Calls(Vec<String>),
    Citation,
    Image,
}

fn said() -> impl Strategy<Value = Said> {
    let text = || "\\PC{1,8}";
    let fragments = || prop::collection::vec(text(), 0..3);
    prop_oneof![
        text().prop_map(Said::Text),
        text().prop_map(Said::Text),
        text().prop_map(Said::Refusal),
        text().prop_map(Said::Reasoning),
        (0..Wire::ALL.len(), any::<bool>())
            .prop_map(|(wire, redacted)| Said::Signature(Wire::ALL[wire], redacted)),
        fragments().prop_map(Said::Call),
        fragments().prop_map(Said::Calls),
        Just(Said::Citation),
        Just(Said::Image),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![
        Just(Stop::End),
        Just(Stop::Sequence),
        Just(Stop::ToolCalls),
        Just(Stop::Length),
        Just(Stop::ContentFilter)
    ]
}

/// What was said, as a reader tells it.
fn told(said: &[Said], stop: Stop) -> Vec<Event<'_>> {
    let mut events =
        vec![Event::Start { id: Some("resp_9".into()), model: Some("served".into()), created: None }];
    let choice = 0;
    let mut call = 0;
    let start = |call: u32| Event::ToolStart {
        choice,
        call,
        id: format!("call_{call}").into(),
        name: "f".into(),
        signature: (call == 1).then(|| Signature { wire: Wire::Gemini, value: "s".to_owned() }),
    };
    for said in said {
        match said {
            Said::Text(text) => events.push(Event::Text { choice, text: text.into() }),
            Said::Refusal(text) => events.push(Event::Refusal { choice, text: text.into() }),
            Said::Reasoning(text) => events.push(Event::Reasoning { choice, text: text.into() }),
            Said::Signature(wire, redacted) => {
                let signature = Signature { wire: *wire, value: "c2ln".to_owned() };
                events.push(Event::ReasoningSignature { choice, signature, redacted: *redacted });
            }
            Said::Call(fragments) => {
                events.push(start(call));
                events.extend(fragments.iter().map(|fragment| Event::ToolArguments {
                    choice,
                    call,
                    fragment: fragment.into(),
                }));
                call += 1;
            }
            Said::Calls(fragments) => {
                events.extend([start(call), start(call + 1)]);
                for fragment in fragments {
                    for call in [call + 1, call] {
                        events.push(Event::ToolArguments { choice, call, fragment: fragment.into() });
                    }
                }
                call += 2;
            }
            Said::Citation => events.push(Event::Citation { choice, value: annotation() }),
            Said::Image => {
                let media = Media::new(Source::Base64("aWE=".to_owned()), Some("image/png".to_owned()));
                events.push(Event::Part { choice, part: Box::new(Part::Image(media)) });
            }
        }
    }
    let usage = Usage { input_tokens: Some(3), output_tokens: Some(2), ..Usage::default() };
    events.push(Event::Finish { choice, stop, native: "".into(), sequence: None });
    events.extend([Event::Usage(usage), Event::End]);
    events
}

fn annotation() -> Value {
    json!({"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}})
}

proptest! {
    #[test]
    fn whatever_a_service_says_a_strict_client_can_follow(said in prop::collection::vec(said(), 0..12), stop in stop()) {
        let events = told(&said, stop);
        let response = Checker::check(&written(&events));
        let output = response["output"].as_array().unwrap();
        let texts: String = output.iter().flat_map(|item| item["content"].as_array().into_iter().flatten())
            .filter_map(|part| part["text"].as_str()).collect();
        let expected: String = said.iter().filter_map(|s| match s { Said::Text(text) => Some(text.as_str()), _ => None }).collect();
        prop_assert_eq!(texts, expected);
        let calls = output.iter().filter(|item| item["type"] == "function_call").count();
        let expected: usize = said.iter().map(|s| match s { Said::Call(_) => 1, Said::Calls(_) => 2, _ => 0 }).sum();
        prop_assert_eq!(calls, expected);
        prop_assert_eq!(&response["usage"]["total_tokens"], &json!(5));
    }
}

fn text(text: &str) -> Event<'_> {
    Event::Text { choice: 0, text: text.into() }
}

fn types(stream: &str) -> Vec<String> {
    let of = |event: &Value| event["type"].as_str().unwrap().replace("response.", "");
    parse(stream).iter().map(of).collect()
}

#[test]
fn a_text_is_told_in_the_order_that_clients_expect() {
    let stop = Event::Finish { choice: 0, stop: Stop::End, native: "stop".into(), sequence: None };
    let stream = written(&[text("潮"), text("🚲"), stop]);
    assert_eq!(
        types(&stream),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed"
        ]
    );
    assert!(!stream.contains("[DONE]"));
    let response = Checker::check(&stream);
    assert_eq!(response["id"], "resp_r1");
    assert_eq!(response["model"], "m");
    assert_eq!(response["created_at"], 7);
    assert_eq!(response["output"][0]["content"][0]["text"], "潮🚲");
    assert_eq!(response["usage"], Value::Null, "what is unknown is not zero");
    for required in ["tools", "tool_choice", "parallel_tool_calls", "metadata", "instructions", "temperature"]
    {
        assert!(response.get(required).is_some(), "{required}");
    }
}

#[test]
fn thoughts_text_calls_thoughts_and_text_are_five_items() {
    let start = Event::ToolStart { choice: 0, call: 0, id: "t1".into(), name: "now".into(), signature: None };
    let thought = |text: &'static str| Event::Reasoning { choice: 0, text: text.into() };
    let stop = Event::Finish { choice: 0, stop: Stop::ToolCalls, native: "".into(), sequence: None };
    let stream = written(&[thought("r1"), text("t1"), start, thought("r2"), text("t2"), stop]);
    let response = Checker::check(&stream);
    let kinds: Vec<_> =
        response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "reasoning", "message"]);
    // A call that got no arguments has an empty object of them (TR-14).
    assert_eq!(response["output"][2]["arguments"], "{}");
}

#[test]
fn an_answer_that_was_cut_is_incomplete_and_says_why() {
    for (stop, reason) in [(Stop::Length, "max_output_tokens"), (Stop::ContentFilter, "content_filter")] {
        let stop = Event::Finish { choice: 0, stop, native: "".into(), sequence: None };
        let stream = written(&[text("half"), stop]);
        assert_eq!(types(&stream).last().unwrap(), "incomplete");
        let response = Checker::check(&stream);
        assert_eq!(response["incomplete_details"]["reason"], reason);
        assert_eq!(response["output"][0]["status"], "incomplete");
    }
}

#[test]
fn an_answer_of_calls_alone_has_no_message_tr_04() {
    let call = ToolCallOf("t1", "{\"k\":1}");
    let answer = answer(vec![call.part()]);
    let response: Value = serde_json::from_slice(&whole(&answer, &asked())).unwrap();
    assert_eq!(response["output"].as_array().unwrap().len(), 1);
    assert_eq!(response["output"][0]["type"], "function_call");
    assert_eq!(response["output"][0]["call_id"], "t1");
    assert_eq!(response["status"], "completed");
}

struct ToolCallOf(&'static str, &'static str);

impl ToolCallOf {
    fn part(&self) -> Part {
        Part::ToolCall(crate::exchange::ToolCall {
            id: self.0.to_owned(),
            name: "f".to_owned(),
            arguments: self.1.to_owned(),
            signature: None,
            cache: None,
        })
    }
}

fn answer(parts: Vec<Part>) -> Answer {
    let choice = Choice { parts, stop: Some(Stop::End), ..Choice::default() };
    Answer { choices: vec![choice], ..Answer::default() }
}

#[test]
fn a_whole_answer_is_what_its_stream_ends_with() {
    let said = [
        Said::Reasoning("thought".to_owned()),
        Said::Signature(Wire::Anthropic, false),
        Said::Text("a".to_owned()),
        Said::Citation,
        Said::Refusal("no".to_owned()),
    ];
    let streamed = Checker::check(&written(&told(&said, Stop::End)));
    let signature = Signature { wire: Wire::Anthropic, value: "c2ln".to_owned() };
    let reasoning = crate::exchange::Reasoning {
        text: "thought".to_owned(),
        signature: Some(signature),
        redacted: false,
    };
    let cited = crate::exchange::Text {
        text: "a".to_owned(),
        citations: vec![annotation()],
        ..crate::exchange::Text::default()
    };
    let mut answer =
        answer(vec![Part::Reasoning(reasoning), Part::Text(cited), Part::Refusal("no".to_owned())]);
    answer.id = Some("resp_9".to_owned());
    answer.model = Some("served".to_owned());
    answer.usage = Some(Usage { input_tokens: Some(3), output_tokens: Some(2), ..Usage::default() });
    let whole: Value = serde_json::from_slice(&whole(&answer, &asked())).unwrap();
    assert_eq!(whole, streamed);
    assert_eq!(whole["output"][0]["encrypted_content"], "penstock-anthropic:c2ln");
    assert_eq!(whole["output"][1]["content"][0]["annotations"][0]["url"], "https://a.example");
}
