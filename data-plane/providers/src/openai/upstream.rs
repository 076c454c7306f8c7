//! Where to send a request, and with which credential.

use http::HeaderValue;
use http::header::InvalidHeaderValue;

/// The calls of this dialect that can be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST …/chat/completions`
    ChatCompletions,
    /// `POST …/embeddings`
    Embeddings,
}

impl Endpoint {
    /// The path at the service. `base` is the path of the backend's base URL, such as `/v1`, with or without a slash
    /// at its end.
    #[must_use]
    pub fn path(self, base: &str) -> String {
        let call = match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Embeddings => "/embeddings",
        };
        format!("{}{call}", base.trim_end_matches('/'))
    }
}

/// The `authorization` header for `secret`, marked sensitive so that no log prints it.
///
/// # Errors
/// When the secret holds bytes that a header cannot carry, a line break for instance. The error does not show it.
pub fn bearer(secret: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {secret}"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_is_appended_to_the_base_path() {
        assert_eq!(Endpoint::ChatCompletions.path("/v1"), "/v1/chat/completions");
        assert_eq!(Endpoint::ChatCompletions.path("/api/v3/"), "/api/v3/chat/completions");
        assert_eq!(Endpoint::Embeddings.path("/"), "/embeddings");
        assert_eq!(Endpoint::Embeddings.path(""), "/embeddings");
    }

    #[test]
    fn the_credential_is_not_printed_sec_01() {
        assert!(!format!("{:?}", bearer("SENTINEL-7f3a").unwrap()).contains("SENTINEL"));
        assert!(!format!("{:?}", bearer("SENTINEL\n").unwrap_err()).contains("SENTINEL"));
    }
}
