//! DashScope's native generation calls, as Qwen's models and others have them.
//!
//! There are two, alike but for their path and for what a content is: `text-generation` takes and gives texts,
//! `multimodal-generation` lists of `{text}` and `{image}`. Which one a model is behind is a property of the model, and the
//! service refuses the other. [`call`](Dialect::call) tells by the model's name and by what the request holds.
//!
//! Whether an answer is streamed is not said in the body: streams need the header `X-DashScope-SSE: enable`, or
//! `Accept: text/event-stream`. A stream has no end mark: it is complete when each choice has said why it ended, and the
//! word for "not yet" is the text `null`. An error comes as `event:error`; the status that it stands for is in a comment,
//! and known by its code here.
//!
//! Wire facts: <https://help.aliyun.com/en/model-studio/qwen-api-via-dashscope>.

mod answer;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use penstock_model::Usage;
use penstock_model::vendor::Call;

use crate::dialect::{Dialect, StreamReader, TargetFacts};
use crate::exchange::{Answer, Part, Request, Unwritable, Written};
use crate::openai::error_body::VendorError;

/// The dialect.
#[derive(Debug)]
pub struct Dashscope;

impl Dialect for Dashscope {
    fn call(&self, request: &Request, target: &TargetFacts<'_>) -> Call {
        if is_multimodal(request, target.model) {
            Call::DashscopeMultimodal
        } else {
            Call::DashscopeGeneration
        }
    }

    fn write_request(&self, request: &Request, target: &TargetFacts<'_>) -> Result<Written, Unwritable> {
        request::write(request, target)
    }

    fn read_answer(&self, body: &[u8], id: &str) -> Result<Answer, VendorError> {
        answer::read(body, id)
    }

    fn stream_reader(&self, id: &str) -> Box<dyn StreamReader> {
        Box::new(stream::Reader::new(id))
    }

    fn find_usage(&self, body: &[u8]) -> Option<Usage> {
        answer::find_usage(body)
    }
}

/// Marks in the names of models that see or hear.
const MULTIMODAL: &[&str] = &["-vl", "vl-", "qvq", "-omni", "-ocr", "-audio"];

/// Is the model behind the multimodal call? It is when the request holds a picture, or when its name says so: see
/// [`MULTIMODAL`]; from version 3.5 on all of Qwen but `max` and `coder`.
fn is_multimodal(request: &Request, model: &str) -> bool {
    let newer = || {
        let version = model.strip_prefix("qwen3.").and_then(|rest| rest.bytes().next());
        version.is_some_and(|digit| (b'5'..=b'9').contains(&digit))
            && !["-max", "-coder"].iter().any(|kind| model.contains(kind))
    };
    MULTIMODAL.iter().any(|mark| model.contains(mark))
        || newer()
        || request.turns.iter().flat_map(|turn| &turn.parts).any(|part| matches!(part, Part::Image(_)))
}
