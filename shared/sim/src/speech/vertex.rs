//! Vertex AI: Gemini and Claude under one host, told apart by the publisher in the path.

use http::Uri;

use super::{anthropic, gemini};
use crate::dialect::{Endpoint, Found};

/// `/v1/projects/P/locations/L/publishers/PUBLISHER/models/MODEL:METHOD`
pub(crate) fn route(post: bool, uri: &Uri) -> Found {
    let steps: Vec<&str> = uri.path().split('/').collect();
    let ["", "v1" | "v1beta1", "projects", _, "locations", _, "publishers", publisher, "models", call] =
        steps[..]
    else {
        return None;
    };
    if !post {
        return None;
    }
    match publisher {
        "google" => gemini::call(call, uri, true),
        "anthropic" => {
            let (model, method) = call.rsplit_once(':')?;
            let stream = match method {
                "rawPredict" => false,
                "streamRawPredict" => true,
                _ => return None,
            };
            let endpoint: Endpoint = if stream {
                Endpoint::Speech(&anthropic::OnVertex { stream: true })
            } else {
                Endpoint::Speech(&anthropic::OnVertex { stream: false })
            };
            Some((endpoint, Some(model.to_owned())))
        }
        _ => None,
    }
}
