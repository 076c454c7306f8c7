use penstock_model::vendor::Wire;
use proptest::prelude::*;

use super::*;
use crate::exchange::{JsonSchema, ToolCall};

const HIDDEN: &str = "json_answer";

fn call(name: &str, arguments: &str) -> Part {
    let (id, name, arguments) = (format!("id-{name}"), name.to_owned(), arguments.to_owned());
    Part::ToolCall(ToolCall { id, name, arguments, signature: None, cache: None })
}

fn folded(parts: Vec<Part>, stop: Stop) -> Choice {
    let choice = Choice { parts, stop: Some(stop), ..Choice::default() };
    let mut answer = Answer { choices: vec![choice], ..Answer::default() };
    fold_answer(&mut answer, HIDDEN);
    answer.choices.remove(0)
}

/// The events of an answer, each call's arguments in two fragments.
fn events(parts: &[Part], stop: Stop) -> Vec<Event<'static>> {
    let mut events = vec![Event::Start { id: None, model: None, created: None }];
    let mut calls = 0;
    for part in parts {
        match part {
            Part::Text(text) => events.push(Event::Text { choice: 0, text: text.text.clone().into() }),
            Part::ToolCall(tool) => {
                let (id, name) = (tool.id.clone().into(), tool.name.clone().into());
                events.push(Event::ToolStart { choice: 0, call: calls, id, name, signature: None });
                let (a, b) = tool.arguments.split_at(tool.arguments.len() / 2);
                for fragment in [a, b].into_iter().filter(|fragment| !fragment.is_empty()) {
                    let fragment = fragment.to_owned().into();
                    events.push(Event::ToolArguments { choice: 0, call: calls, fragment });
                }
                calls += 1;
            }
            _ => {}
        }
    }
    events.push(Event::Finish { choice: 0, stop, native: "tool_use".into(), sequence: None });
    events.push(Event::End);
    events
}

/// What a client makes of a stream.
fn streamed(parts: &[Part], stop: Stop, mut filter: JsonTool) -> Choice {
    let mut choice = Choice::default();
    let mut sink = |event: Event<'_>| match event {
        Event::Text { text, .. } => match choice.parts.last_mut() {
            Some(Part::Text(last)) => last.text.push_str(&text),
            _ => choice.parts.push(Part::text(text)),
        },
        Event::ToolStart { call: number, name, .. } => {
            let before = choice.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
            assert_eq!(number as usize, before, "numbers have no gaps");
            choice.parts.push(call(&name, ""));
        }
        Event::ToolArguments { call: number, fragment, .. } => {
            let mut calls = choice.parts.iter_mut().filter_map(|part| match part {
                Part::ToolCall(call) => Some(call),
                _ => None,
            });
            calls.nth(number as usize).unwrap().arguments.push_str(&fragment);
        }
        Event::Finish { stop, .. } => choice.stop = Some(stop),
        _ => {}
    };
    for event in events(parts, stop) {
        filter.event(event, &mut sink);
    }
    filter.finish(&mut sink);
    choice
}

#[test]
fn a_call_of_the_callers_tool_stays_a_call_tr_11() {
    let parts = vec![call("get_weather", r#"{"city":"Rome"}"#)];
    for choice in
        [folded(parts.clone(), Stop::ToolCalls), streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN))]
    {
        assert_eq!((choice.parts, choice.stop), (parts.clone(), Some(Stop::ToolCalls)));
    }
}

#[test]
fn a_call_of_the_hidden_tool_is_text_and_no_call_is_seen_tr_11() {
    let parts = vec![Part::text("Here it is:"), call(HIDDEN, r#"{"a":1}"#)];
    for choice in [
        folded(parts.clone(), Stop::ToolCalls),
        streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN)),
        streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN).without_other_tools()),
    ] {
        assert_eq!((choice.parts, choice.stop), (vec![Part::text(r#"{"a":1}"#)], Some(Stop::End)));
    }
}

#[test]
fn with_both_the_callers_call_wins_in_either_order_tr_11() {
    let (own, hidden) = (call("get_weather", "{}"), call(HIDDEN, r#"{"a":1}"#));
    for parts in [[own.clone(), hidden.clone()], [hidden, own.clone()]] {
        let whole = folded(parts.to_vec(), Stop::ToolCalls);
        let stream = streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN));
        for choice in [whole, stream] {
            assert_eq!((choice.parts, choice.stop), (vec![own.clone()], Some(Stop::ToolCalls)));
        }
    }
}

#[test]
fn an_answer_that_was_cut_says_so_tr_11() {
    let parts = [call(HIDDEN, r#"{"a":"#)];
    let choice = streamed(&parts, Stop::Length, JsonTool::new(HIDDEN));
    assert_eq!((choice.parts, choice.stop), (vec![Part::text(r#"{"a":"#)], Some(Stop::Length)));
}

#[test]
fn an_answer_in_plain_text_passes_tr_11() {
    let parts = vec![Part::text("I cannot do that.")];
    for choice in [folded(parts.clone(), Stop::End), streamed(&parts, Stop::End, JsonTool::new(HIDDEN))] {
        assert_eq!((choice.parts, choice.stop), (parts.clone(), Some(Stop::End)));
    }
}

#[test]
fn what_is_held_back_is_bounded_tr_11() {
    let parts = [call(HIDDEN, &"x".repeat(MAX_HELD * 2 + 10)), call("own", "{}")];
    let choice = streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN));
    assert!(matches!(&choice.parts[0], Part::Text(text) if text.text.len() > MAX_HELD));
    assert_eq!((&choice.parts[1], choice.stop), (&parts[1], Some(Stop::ToolCalls)));
}

#[test]
fn the_hidden_tool_cannot_collide_with_the_callers_tr_11() {
    let mut request = Request::new(Wire::Openai);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let format = Format::JsonSchema(JsonSchema {
        name: None,
        description: Some("a number".into()),
        schema: schema.clone(),
        strict: None,
    });
    assert_eq!(choice(&request, HIDDEN), ToolChoice::Tool(HIDDEN.to_owned()));
    request.tools.push(tool(&name(&request), &format));
    request.tools.push(tool(&name(&request), &format));
    assert_eq!(name(&request), "json_answer__");
    assert_eq!(choice(&request, &name(&request)), ToolChoice::Required);
    request.tool_choice = Some(ToolChoice::Tool("json_answer".to_owned()));
    assert_eq!(choice(&request, "json_answer__"), ToolChoice::Tool("json_answer".to_owned()));
    let ToolKind::Function { parameters, .. } = &request.tools[0].kind else { panic!() };
    assert_eq!(parameters.as_ref(), Some(&schema));
    assert!(request.tools[0].description.as_deref().unwrap().contains("a number"));
}

proptest! {
    #[test]
    fn streams_and_whole_answers_agree_tr_11(
        parts in prop::collection::vec(
            prop_oneof![Just(Part::text("t")), Just(call(HIDDEN, "{\"a\":1}")), Just(call("own", "{\"b\":2}"))],
            0..6,
        ),
    ) {
        let whole = folded(parts.clone(), Stop::ToolCalls);
        let stream = streamed(&parts, Stop::ToolCalls, JsonTool::new(HIDDEN));
        prop_assert_eq!(stream.stop, whole.stop);
        let calls = |choice: &Choice| {
            choice.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(calls(&stream), calls(&whole));
        if !parts.iter().any(|part| matches!(part, Part::ToolCall(call) if call.name == "own")) {
            let text = |choice: &Choice| choice.parts.iter().map(|part| match part {
                Part::Text(text) => text.text.clone(),
                _ => String::new(),
            }).collect::<String>();
            prop_assert_eq!(text(&stream), text(&whole));
        }
    }
}
