//! Error bodies as clients get them, in OpenAI's shape.

use bytes::Bytes;
use serde::Serialize;

pub use crate::vendor_error::{MAX_MESSAGE, VendorError};

/// An error in OpenAI's shape: `{"error":{"message":…,"type":…,"param":…,"code":…}}`.
#[must_use]
pub fn build(kind: &str, code: &str, message: &str, param: Option<&str>) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: &'a str,
    }
    let body = Body { error: Error { message, r#type: kind, param, code } };
    serde_json::to_vec(&body).expect("strings always serialise").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_error_has_openais_shape() {
        let body = build("invalid_request_error", "invalid_json", "say \"please\"", None);
        let expected = r#"{"error":{"message":"say \"please\"","type":"invalid_request_error","param":null,"code":"invalid_json"}}"#;
        assert_eq!(body, expected.as_bytes());
    }
}
