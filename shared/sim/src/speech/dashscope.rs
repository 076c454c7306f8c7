//! `DashScope`'s own text and multimodal generation.
//!
//! Read from the Model Studio API reference at help.aliyun.com. Whether to stream is told by a header; pieces come
//! whole or as what is new, by `incremental_output`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Frame, Incoming, Speech};
use crate::check::{At, Checked, What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::media;
use crate::reject::Rejection;
use crate::script::{Asked, Choice, Finish, Part, Script, Tool};

/// `POST /api/v1/services/aigc/…/generation`
#[derive(Debug)]
struct Generation {
    /// Contents are lists of parts, not texts.
    multimodal: bool,
}

const MOST_STOPS: usize = 16;

pub(crate) fn route(post: bool, path: &str) -> Found {
    let service = path.strip_prefix("/api/v1/services/aigc/").filter(|_| post)?;
    let endpoint = match service {
        "text-generation/generation" => Endpoint::Speech(&Generation { multimodal: false }),
        "multimodal-generation/generation" => Endpoint::Speech(&Generation { multimodal: true }),
        _ => return None,
    };
    Some((endpoint, None))
}

impl Speech for Generation {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let body = incoming.json()?;
        let model = match &body["model"] {
            Value::String(model) if incoming.has(model) => model.clone(),
            Value::String(_) => return Err(Rejection::plain(404, "Model not exist.")),
            _ => {
                return Err(Rejection::plain(
                    400,
                    "Required body invalid, please check the request body format.",
                ));
            }
        };
        let asks_events = incoming.header("x-dashscope-sse") == Some("enable")
            || incoming.header("accept").is_some_and(|accept| accept.contains("text/event-stream"));
        let asked = Asked { stream: asks_events, ..incoming.asked(model, "input") };
        self.generation(&body, asked).map_err(refuse)
    }

    fn whole(&self, script: &Script) -> Value {
        let mut state = State::default();
        script.parts.iter().for_each(|part| state.add(part, part.pieces()));
        self.answer(script, &state, Some(finish_reason(script)))
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        let incremental = script.echo == Value::Bool(true);
        let mut frames = Vec::new();
        let mut state = State::default();
        for part in &script.parts {
            for (index, piece) in part.pieces().iter().enumerate() {
                if incremental {
                    state.forget();
                }
                match part {
                    // Id and name come once.
                    Part::Call(_) if index > 0 => state.more(piece),
                    _ => state.add(part, std::slice::from_ref(piece)),
                }
                frames.push(event(frames.len(), &self.answer(script, &state, None), true));
            }
        }
        if incremental {
            state = State::default();
        }
        frames.push(event(frames.len(), &self.answer(script, &state, Some(finish_reason(script))), false));
        frames
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        let body = crate::shape::Shape::Dashscope.body(rejection);
        let status = rejection.status.as_u16();
        let data = String::from_utf8_lossy(&body);
        format!("id:99\nevent:error\n:HTTP_STATUS/{status}\ndata:{data}\n\n").into()
    }
}

fn event(index: usize, answer: &Value, token: bool) -> Frame {
    Frame {
        bytes: format!("id:{}\nevent:result\n:HTTP_STATUS/200\ndata:{answer}\n\n", index + 1).into(),
        token,
    }
}

fn finish_reason(script: &Script) -> &'static str {
    match script.finish {
        Finish::Stop | Finish::Sequence(_) => "stop",
        Finish::Length => "length",
        Finish::Calls => "tool_calls",
    }
}

/// The message so far, or what is new of it.
#[derive(Debug, Default)]
struct State {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    /// Calls that were begun, forgotten ones included.
    begun: usize,
}

impl State {
    fn add(&mut self, part: &Part, pieces: &[String]) {
        match part {
            Part::Reasoning(_) => self.reasoning.push_str(&pieces.concat()),
            Part::Text(_) => self.text.push_str(&pieces.concat()),
            Part::Call(call) => {
                let function = json!({"name": call.name, "arguments": pieces.concat()});
                let id = format!("call_{}", call.id);
                self.calls
                    .push(json!({"index": self.begun, "id": id, "type": "function", "function": function}));
                self.begun += 1;
            }
        }
    }

    /// More arguments of the last call.
    fn more(&mut self, piece: &str) {
        match self.calls.last_mut() {
            Some(call) => {
                let so_far = call["function"]["arguments"].as_str().unwrap_or_default();
                call["function"]["arguments"] = format!("{so_far}{piece}").into();
            }
            None => self.calls.push(json!({
                "index": self.begun - 1, "id": "", "type": "function", "function": {"name": "", "arguments": piece}
            })),
        }
    }

    fn forget(&mut self) {
        *self = Self { begun: self.begun, ..Self::default() };
    }
}

impl Generation {
    fn answer(&self, script: &Script, state: &State, finish: Option<&str>) -> Value {
        let content = if self.multimodal && !state.text.is_empty() {
            json!([{"text": state.text}])
        } else if self.multimodal {
            json!([])
        } else {
            json!(state.text)
        };
        let mut message = json!({"role": "assistant", "content": content});
        if script.reasoning().is_some() {
            message["reasoning_content"] = state.reasoning.as_str().into();
        }
        if !state.calls.is_empty() {
            message["tool_calls"] = state.calls.clone().into();
        }
        let tokens = script.tokens;
        json!({
            "output": {"choices": [{"message": message, "finish_reason": finish.unwrap_or("null")}]},
            "usage": {
                "input_tokens": tokens.input, "output_tokens": tokens.output, "total_tokens": tokens.input + tokens.output,
                "prompt_tokens_details": {"cached_tokens": tokens.cached},
                "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
            },
            "request_id": format!("8b4a4f4d-0000-9000-8000-{:012x}", script.number),
        })
    }

    fn generation(&self, body: &Value, asked: Asked) -> Checked<Asked> {
        let root = At::root(body);
        let mut asked = Asked { include_usage: true, ..asked };
        if let Some(parameters) = root.get("parameters") {
            self.parameters(&parameters, &mut asked)?;
        }
        let input = root.need("input")?;
        if let Some(prompt) = input.text_of("prompt")? {
            prompt.clone_into(&mut asked.text);
            return Ok(asked);
        }
        self.conversation(&input, &mut asked)?;
        Ok(asked)
    }

    fn parameters(&self, at: &At<'_>, asked: &mut Asked) -> Checked<()> {
        at.object()?;
        let is_message = at.text_of("result_format")?.is_none_or(|format| format == "message");
        at.range("temperature", 0.0, 1.999)?;
        at.range("top_p", 0.000_001, 1.0)?;
        asked.max_tokens = at.at_least("max_tokens", 1)?;
        asked.stop = match at.get("stop") {
            Some(stop) if stop.value.is_string() => vec![stop.text()?.to_owned()],
            _ => at.texts_of("stop")?,
        };
        if asked.stop.len() > MOST_STOPS {
            return Err(at.wrong("Too many stop sequences."));
        }
        asked.echo = at.flag_of("incremental_output")?.unwrap_or(false).into();
        asked.reasoning = at.flag_of("enable_thinking")?.unwrap_or(false);
        for tool in at.list_of("tools")? {
            let function = tool.need("function")?;
            let schema = function.get("parameters").map_or(Value::Null, |at| at.value.clone());
            asked.tools.push(Tool { name: function.need_text("name")?.to_owned(), schema });
        }
        if !asked.tools.is_empty() && at.get("result_format").is_none() && !self.multimodal || !is_message {
            return Err(at.wrong("'result_format' must be 'message' when 'tools' are given."));
        }
        if let Some(choice) = at.get("tool_choice") {
            asked.choice = match choice.value {
                Value::String(_) => match choice.one_of(&["auto", "none"])? {
                    "none" => Choice::None,
                    _ => Choice::Auto,
                },
                _ => Choice::Named(choice.need("function")?.need_text("name")?.to_owned()),
            };
        }
        asked.one_tool = at.flag_of("parallel_tool_calls")?.is_some_and(|parallel| !parallel);
        if let Some(format) = at.get("response_format") {
            asked.json = format.need("type")?.one_of(&["text", "json_object", "json_schema"])? != "text";
            asked.schema = format.value.pointer("/json_schema/schema").cloned();
        }
        Ok(())
    }

    fn conversation(&self, input: &At<'_>, asked: &mut Asked) -> Checked<()> {
        let messages = input.need("messages")?.list()?;
        let mut open: Vec<(&str, &str)> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let role = message.need("role")?.one_of(&["system", "user", "assistant", "tool"])?;
            if role == "system" && index > 0 {
                return Err(
                    message.wrong("Role must be user or assistant and Content length must be greater than 0")
                );
            }
            let (text, images) = self.content(message, role)?;
            if role == "tool" {
                let id = message.text_of("tool_call_id")?.unwrap_or_default();
                let Some(at) = open.iter().position(|(known, _)| *known == id) else {
                    let text = "messages with role \"tool\" must be a response to a preceeding message with \"tool_calls\".";
                    return Err(message.wrong(text));
                };
                asked.results.push((open.remove(at).1.to_owned(), text));
                continue;
            }
            asked.results.clear();
            if role == "user" {
                (asked.text, asked.images) = (text, images);
            }
            for call in message.list_of("tool_calls")? {
                let function = call.need("function")?;
                function.need_text("arguments")?;
                open.push((call.need_text("id")?, function.need_text("name")?));
            }
        }
        match messages.last() {
            Some(last) if last.value["role"] != "system" => Ok(()),
            _ => Err(input.wrong("the messages must end with one of a user or a tool")),
        }
    }

    fn content(&self, message: &At<'_>, role: &str) -> Checked<(String, Vec<(String, usize)>)> {
        let Some(content) = message.get("content") else {
            return match role {
                "assistant" if message.get("tool_calls").is_some() => Ok(Default::default()),
                _ => Err(message.wrong("content field is a required field")),
            };
        };
        if let Some(text) = content.value.as_str() {
            return Ok((text.to_owned(), Vec::new()));
        }
        if !self.multimodal {
            return Err(content.wrong("Input should be a valid string"));
        }
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in content.list()? {
            part.only(&["text", "image", "audio", "video", "min_pixels", "max_pixels"])?;
            texts.extend(part.text_of("text")?);
            if let Some(image) = part.get("image") {
                let url = image.text()?;
                match media::data_url(url) {
                    Some((kind, bytes)) if media::sniff(&bytes).is_some() => images.push((kind, bytes.len())),
                    None if url.starts_with("http") || url.starts_with("oss://") => {}
                    _ => return Err(image.wrong("The image format is illegal and cannot be opened.")),
                }
            }
        }
        Ok((texts.join("\n"), images))
    }
}

fn refuse(wrong: Wrong) -> Rejection {
    let path = wrong.bracketed();
    let message = match &wrong.what {
        What::Unknown => format!("<400> InternalError.Algo.InvalidParameter: {path} is not a known field"),
        What::Missing => format!("<400> InternalError.Algo.InvalidParameter: {path} is a required field"),
        What::Type(expected) => {
            format!("<400> InternalError.Algo.InvalidParameter: {path} should be of type {expected}")
        }
        What::Said(said) => format!("<400> InternalError.Algo.InvalidParameter: {said}"),
    };
    Rejection::plain(400, message)
}
