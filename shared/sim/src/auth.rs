//! Credentials, in the header that each vendor has for them.

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::config::ServiceConfig;
use crate::dialect::Dialect;
use crate::reject::Rejection;
use crate::sigv4;

/// Checks that a call brings the key in the right place; any key where the service has none.
pub(crate) fn authorize(config: &ServiceConfig, parts: &Parts, body: &[u8]) -> Result<(), Rejection> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = header(AUTHORIZATION.as_str());
    let bearer = authorization.and_then(|value| value.strip_prefix("Bearer "));
    let given = match config.dialect {
        Dialect::Openai | Dialect::OpenaiStrict => return openai(config, authorization),
        Dialect::Ollama => return Ok(()),
        Dialect::Bedrock => match authorization.filter(|value| value.starts_with("AWS4-HMAC-SHA256")) {
            Some(_) => return sigv4::verify(config.api_key.as_deref(), parts, body),
            None => bearer,
        },
        Dialect::AzureOpenai => header("api-key").or(bearer),
        Dialect::Anthropic => header("x-api-key").or(bearer),
        Dialect::Gemini => header("x-goog-api-key").or_else(|| query(parts, "key")),
        Dialect::Vertex | Dialect::Cohere | Dialect::Dashscope => bearer,
    };
    match (given, &config.api_key) {
        (None | Some(""), _) => Err(missing(config.dialect)),
        (Some(given), Some(key)) if given != key => Err(wrong(config.dialect)),
        _ => Ok(()),
    }
}

fn openai(config: &ServiceConfig, given: Option<&str>) -> Result<(), Rejection> {
    let Some(key) = &config.api_key else { return Ok(()) };
    match given.map(|value| value.strip_prefix("Bearer ") == Some(key)) {
        Some(true) => Ok(()),
        given => Err(Rejection::unauthorized(given.is_some())),
    }
}

/// A parameter of the query, as it stands there.
pub(crate) fn query<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

fn missing(dialect: Dialect) -> Rejection {
    match dialect {
        Dialect::Anthropic => Rejection::plain(401, "x-api-key header is required"),
        Dialect::Gemini => Rejection::plain(
            403,
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or \
             other form of API consumer identity to call this API.",
        ),
        Dialect::Vertex => Rejection::coded(
            401,
            "CREDENTIALS_MISSING",
            "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or \
             other valid authentication credential.",
        ),
        Dialect::Bedrock => {
            Rejection::coded(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        }
        Dialect::AzureOpenai => wrong(dialect),
        Dialect::Dashscope => Rejection::plain(401, "No API-key provided."),
        _ => Rejection::plain(401, "no api key supplied"),
    }
}

fn wrong(dialect: Dialect) -> Rejection {
    match dialect {
        Dialect::Anthropic => Rejection::plain(401, "invalid x-api-key"),
        Dialect::Gemini => {
            Rejection::coded(400, "API_KEY_INVALID", "API key not valid. Please pass a valid API key.")
        }
        Dialect::Vertex => Rejection::coded(
            401,
            "ACCESS_TOKEN_TYPE_UNSUPPORTED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other \
             valid authentication credential.",
        ),
        Dialect::Bedrock => Rejection::coded(
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
        Dialect::AzureOpenai => Rejection::plain(
            401,
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key \
             for an active subscription and use a correct regional API endpoint for your resource.",
        ),
        Dialect::Dashscope => Rejection::plain(401, "Invalid API-key provided."),
        _ => Rejection::plain(401, "invalid api token"),
    }
}
