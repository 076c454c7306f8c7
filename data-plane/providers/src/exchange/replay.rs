//! A whole answer told as events: for a service that answers in one piece although a stream was asked for.

use std::borrow::Cow;

use super::answer::{Answer, Choice, Stop};
use super::content::Part;
use super::event::Event;

/// Tells `answer` as the events of a stream, end mark included.
pub fn replay(answer: &Answer, sink: &mut dyn FnMut(Event<'_>)) {
    sink(Event::Start {
        id: answer.id.as_deref().map(Cow::Borrowed),
        model: answer.model.as_deref().map(Cow::Borrowed),
        created: answer.created,
    });
    for choice in &answer.choices {
        replay_choice(choice, sink);
    }
    if let Some(usage) = answer.usage {
        sink(Event::Usage(usage));
    }
    sink(Event::End);
}

fn replay_choice(choice: &Choice, sink: &mut dyn FnMut(Event<'_>)) {
    let index = choice.index;
    let mut calls = 0;
    for part in &choice.parts {
        replay_part(index, part, &mut calls, sink);
    }
    if let Some(value) = &choice.logprobs {
        sink(Event::Logprobs { choice: index, value: value.clone() });
    }
    sink(Event::Finish {
        choice: index,
        stop: choice.stop.unwrap_or(Stop::End),
        native: choice.native_stop.as_deref().unwrap_or_default().into(),
        sequence: choice.stop_sequence.as_deref().map(Cow::Borrowed),
    });
}

fn replay_part(choice: u32, part: &Part, calls: &mut u32, sink: &mut dyn FnMut(Event<'_>)) {
    match part {
        Part::Text(text) => {
            if !text.text.is_empty() {
                sink(Event::Text { choice, text: text.text.as_str().into() });
            }
            for citation in &text.citations {
                sink(Event::Citation { choice, value: citation.clone() });
            }
        }
        Part::Reasoning(reasoning) => {
            if !reasoning.text.is_empty() {
                sink(Event::Reasoning { choice, text: reasoning.text.as_str().into() });
            }
            if let Some(signature) = &reasoning.signature {
                let (signature, redacted) = (signature.clone(), reasoning.redacted);
                sink(Event::ReasoningSignature { choice, signature, redacted });
            }
        }
        Part::Refusal(text) if text.is_empty() => {}
        Part::Refusal(text) => sink(Event::Refusal { choice, text: text.as_str().into() }),
        Part::ToolCall(tool) => {
            let call = *calls;
            *calls += 1;
            sink(Event::ToolStart {
                choice,
                call,
                id: tool.id.as_str().into(),
                name: tool.name.as_str().into(),
                signature: tool.signature.clone(),
            });
            sink(Event::ToolArguments { choice, call, fragment: tool.arguments.as_str().into() });
        }
        other => sink(Event::Part { choice, part: Box::new(other.clone()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::ToolCall;
    use super::*;

    #[test]
    fn a_whole_answer_is_told_in_the_order_of_a_stream() {
        let call = ToolCall {
            id: "t1".to_owned(),
            name: "now".to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
            cache: None,
        };
        let parts = vec![Part::text("a"), Part::text(""), Part::ToolCall(call)];
        let choice = Choice { parts, stop: Some(Stop::ToolCalls), ..Choice::default() };
        let answer = Answer { choices: vec![choice], ..Answer::default() };
        let mut names = Vec::new();
        replay(&answer, &mut |event| {
            let name = format!("{event:?}");
            names.push(name.split([' ', '(']).next().unwrap_or_default().to_owned());
        });
        assert_eq!(names, ["Start", "Text", "ToolStart", "ToolArguments", "Finish", "End"]);
    }
}
