//! One look at a body, in the protocol of its path.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use penstock_model::vendor::{Call, Wire};
use penstock_providers::json::InvalidBody;
use penstock_providers::openai::extra::{self, Form};
use penstock_providers::openai::view;
use penstock_providers::view::View;
use penstock_providers::{anthropic, gemini, responses};

use crate::api::Api;

/// What a body asks.
#[derive(Debug)]
pub struct Look<'a> {
    /// The call as the client made it.
    pub call: Call,
    /// The client's protocol, where it is a conversation.
    pub wire: Option<Wire>,
    /// The model that the path names.
    pub path_model: Option<&'a str>,
    /// What routing needs to know.
    pub view: View<'a>,
    /// The body, where it is a form (`multipart/form-data`); else it is JSON.
    pub form: Option<Form<'a>>,
}

/// Looks at the body of a call of one of the protocols.
///
/// # Errors
/// When it is not what the protocol allows, as far as routing needs to know.
pub fn look<'a>(api: &'a Api<'a>, headers: &'a HeaderMap, body: &'a [u8]) -> Result<Look<'a>, InvalidBody> {
    let look = |call, wire, path_model, view| Look { call, wire, path_model, view, form: None };
    Ok(match api {
        Api::Conversation { wire, model, stream } => {
            let model = model.as_deref();
            let view = conversation(*wire, body, model, *stream)?;
            look(wire.call(view.stream), Some(*wire), model, view)
        }
        Api::CountTokens { wire, model } => {
            let call = if *wire == Wire::Gemini { Call::GeminiCountTokens } else { Call::CountTokens };
            let model = model.as_deref();
            look(call, None, model, conversation(*wire, body, model, false)?)
        }
        Api::Other(call) => match view_of(*call, body) {
            Some(view) => look(*call, None, None, view?),
            None => {
                let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
                let form = extra::form(body, content_type.unwrap_or_default())?;
                let look = look(*call, None, None, form.view.clone());
                Look { form: Some(form), ..look }
            }
        },
        _ => look(Call::ChatCompletions, Some(Wire::Openai), None, view::chat(body)?),
    })
}

/// The view of a call with a JSON body; `None` for those that take forms.
fn view_of(call: Call, body: &[u8]) -> Option<Result<View<'_>, InvalidBody>> {
    Some(match call {
        Call::Completions => extra::completions(body),
        Call::Embeddings => view::embeddings(body),
        Call::Rerank => extra::rerank(body),
        Call::Moderations => extra::moderations(body),
        Call::ImagesGenerations => extra::images_generations(body),
        Call::AudioSpeech => extra::audio_speech(body),
        _ => return None,
    })
}

fn conversation<'a>(
    wire: Wire,
    body: &'a [u8],
    path_model: Option<&'a str>,
    stream: bool,
) -> Result<View<'a>, InvalidBody> {
    match wire {
        Wire::OpenaiResponses => responses::view(body),
        Wire::Anthropic => anthropic::view(body),
        Wire::Gemini => gemini::view(body, path_model.unwrap_or_default(), stream),
        _ => view::chat(body),
    }
}
