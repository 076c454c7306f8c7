//! Azure `OpenAI`: chat by deployment and api-version, and the newer paths under `/openai/v1`.
//!
//! Read from the data plane reference at learn.microsoft.com. A deployment's name is the model's.

use bytes::Bytes;
use http::{Method, Uri};
use serde_json::{Value, json};

use super::openai::{self, Chat};
use super::{Frame, Incoming, Speech};
use crate::dialect::{Endpoint, Found};
use crate::reject::Rejection;
use crate::script::{Asked, Script};

/// Chat with Azure's content filter results.
#[derive(Debug)]
struct AzureChat;

pub(crate) fn route(method: &Method, uri: &Uri) -> Result<Found, Rejection> {
    let missing = || Rejection::coded(404, "404", "Resource not found");
    let path = uri.path();
    if let Some(rest) = path.strip_prefix("/openai/v1/") {
        return Ok(openai::route(method, &format!("/v1/{rest}"))
            .map(|(endpoint, model)| (in_azure(endpoint), model)));
    }
    let Some((deployment, call)) =
        path.strip_prefix("/openai/deployments/").and_then(|rest| rest.split_once('/'))
    else {
        return Ok(None);
    };
    let version =
        uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("api-version="));
    if !version.is_some_and(is_version) {
        return Err(missing());
    }
    let found = openai::route(method, &format!("/v1/{call}")).ok_or_else(missing)?;
    Ok(Some((in_azure(found.0), Some(deployment.to_owned()))))
}

/// A date, with `-preview` or not.
fn is_version(version: &str) -> bool {
    let date = version.strip_suffix("-preview").unwrap_or(version);
    date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn in_azure(endpoint: Endpoint) -> Endpoint {
    match endpoint {
        Endpoint::Chat => Endpoint::Speech(&AzureChat),
        other => other,
    }
}

impl Speech for AzureChat {
    fn check(&self, incoming: &Incoming<'_>) -> Result<Asked, Rejection> {
        let Some(deployment) = incoming.model else { return Chat.check(incoming) };
        if !incoming.has(deployment) {
            let message = "The API deployment for this resource does not exist. If you created the deployment within the \
                           last 5 minutes, please wait a moment and try again.";
            return Err(Rejection::coded(404, "DeploymentNotFound", message));
        }
        // The deployment decides; a model in the body is not looked at.
        let mut body = incoming.json()?;
        body["model"] = deployment.into();
        Chat.check(&Incoming { body: &body.to_string().into(), ..*incoming })
    }

    fn whole(&self, script: &Script) -> Value {
        let mut answer = openai::completion(script);
        answer["choices"][0]["content_filter_results"] = filter_results();
        answer["prompt_filter_results"] =
            json!([{"prompt_index": 0, "content_filter_results": filter_results()}]);
        answer
    }

    fn stream(&self, script: &Script) -> Vec<Frame> {
        let prompt = json!({
            "choices": [], "created": 0, "id": "", "model": "", "object": "",
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filter_results()}],
        });
        let mut frames = vec![Frame::data(&prompt, false)];
        frames.extend(openai::stream_chat(script, Some(("content_filter_results", &json!({})))));
        frames
    }

    fn broken(&self, rejection: &Rejection) -> Bytes {
        openai::error_event(rejection)
    }
}

fn filter_results() -> Value {
    let safe = json!({"filtered": false, "severity": "safe"});
    json!({"hate": safe, "self_harm": safe, "sexual": safe, "violence": safe})
}
