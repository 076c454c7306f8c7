//! OpenAI's API: chat, responses, and the smaller calls beside them.
//!
//! Read from the API reference at platform.openai.com, with error texts as that service gives them.

mod chat;
mod message;
mod responses;
mod simple;
mod write;

use http::Method;

use crate::check::{What, Wrong};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;

pub(crate) use chat::Chat;
pub(crate) use simple::rank;
pub(crate) use write::{completion, error_event, stream_chat};

pub(crate) fn route(method: &Method, path: &str) -> Found {
    let post = method == Method::POST;
    let endpoint = match (post, path.strip_prefix("/v1")?) {
        (true, "/chat/completions") => Endpoint::Chat,
        (true, "/embeddings") => Endpoint::Embeddings,
        (true, "/responses") => Endpoint::Speech(&responses::Responses),
        (true, "/completions") => Endpoint::Direct(simple::completions),
        (true, "/rerank") => Endpoint::Direct(simple::rerank),
        (true, "/moderations") => Endpoint::Direct(simple::moderations),
        (true, "/images/generations") => Endpoint::Direct(simple::images),
        (true, "/audio/speech") => Endpoint::Direct(simple::speech),
        (true, "/audio/transcriptions" | "/audio/translations") => Endpoint::Direct(simple::transcriptions),
        (false, "/models") if method == Method::GET => Endpoint::Models,
        _ => return None,
    };
    Some((endpoint, None))
}

/// Each mistake with the parameter, the code and the words that OpenAI has for it.
pub(crate) fn refuse(wrong: Wrong) -> Rejection {
    let path = wrong.bracketed();
    match wrong.what {
        What::Unknown => {
            let message = format!("Unknown parameter: '{path}'.");
            Rejection::param(path, Some("unknown_parameter"), message)
        }
        What::Missing => {
            let message = format!("Missing required parameter: '{path}'.");
            Rejection::param(path, Some("missing_required_parameter"), message)
        }
        What::Type(expected) => {
            let message = format!("Invalid type for '{path}': expected {expected}.");
            Rejection::param(path, Some("invalid_type"), message)
        }
        What::Said(said) => {
            let message =
                if said.ends_with('.') { said } else { format!("Invalid value for '{path}': {said}.") };
            Rejection::param(path, Some("invalid_value"), message)
        }
    }
}
