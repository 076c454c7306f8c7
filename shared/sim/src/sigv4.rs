//! AWS Signature Version 4: is a call signed as it should be?
//!
//! Written from "Authenticating Requests (AWS Signature Version 4)" in the documentation of AWS IAM.

use std::fmt::Write as _;

use http::request::Parts;
use sha2::{Digest as _, Sha256};

use crate::reject::Rejection;

/// The parts of an `Authorization` header.
#[derive(Debug)]
struct Signature<'a> {
    access_key: &'a str,
    /// Date, region, service and `aws4_request`.
    scope: Vec<&'a str>,
    signed: Vec<&'a str>,
    value: &'a str,
}

/// Checks the signature. `key` is `ACCESS_KEY_ID:SECRET`; without it only the form can be checked.
pub(crate) fn verify(key: Option<&str>, parts: &Parts, body: &[u8]) -> Result<(), Rejection> {
    let incomplete = |what: &str| Rejection::coded(403, "IncompleteSignatureException", what);
    let authorization = header(parts, "authorization").unwrap_or_default();
    let signature = parse(authorization).ok_or_else(|| incomplete("Authorization header is malformed."))?;
    let date =
        header(parts, "x-amz-date").ok_or_else(|| incomplete("Authorization header requires X-Amz-Date."))?;
    if !date.starts_with(signature.scope[0]) || date.len() != "20260101T000000Z".len() {
        return Err(incomplete(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date.",
        ));
    }
    if signature.scope[2] != "bedrock" || signature.scope[3] != "aws4_request" {
        return Err(incomplete("Credential should be scoped to correct service: 'bedrock'."));
    }
    let must_be_signed =
        parts.headers.keys().map(|name| name.as_str()).filter(|name| name.starts_with("x-amz-"));
    for name in ["host", "x-amz-date"].into_iter().chain(must_be_signed) {
        if !signature.signed.contains(&name) {
            let message = format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.");
            return Err(Rejection::coded(403, "InvalidSignatureException", message));
        }
    }
    let Some((access_key, secret)) = key.and_then(|key| key.split_once(':')) else { return Ok(()) };
    if access_key != signature.access_key {
        let message = "The security token included in the request is invalid.";
        return Err(Rejection::coded(403, "UnrecognizedClientException", message));
    }
    if sign(secret, &signature, date, parts, body) == signature.value {
        return Ok(());
    }
    let message = "The request signature we calculated does not match the signature you provided. Check your AWS \
                   Secret Access Key and signing method.";
    Err(Rejection::coded(403, "InvalidSignatureException", message))
}

fn parse(authorization: &str) -> Option<Signature<'_>> {
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field = |name: &str| {
        fields
            .split(',')
            .find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
            .filter(|value| !value.is_empty())
    };
    let mut credential = field("Credential")?.split('/');
    let access_key = credential.next()?;
    let scope: Vec<&str> = credential.collect();
    let value = field("Signature").filter(|value| value.len() == 64)?;
    let signed = field("SignedHeaders")?.split(';').collect();
    (scope.len() == 4).then_some(Signature { access_key, scope, signed, value })
}

fn sign(secret: &str, signature: &Signature<'_>, date: &str, parts: &Parts, body: &[u8]) -> String {
    let mut request =
        format!("{}\n{}\n{}\n", parts.method, canonical_path(parts.uri.path()), canonical_query(parts));
    for name in &signature.signed {
        let host = parts.uri.authority().map(http::uri::Authority::as_str);
        let value = header(parts, name).or(if *name == "host" { host } else { None }).unwrap_or_default();
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        writeln!(request, "{name}:{}", words.join(" ")).expect("a string grows");
    }
    write!(request, "\n{}\n{}", signature.signed.join(";"), hex(&Sha256::digest(body)))
        .expect("a string grows");
    let scope = signature.scope.join("/");
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let secret = format!("AWS4{secret}").into_bytes();
    let key = signature.scope.iter().fold(secret, |key, step| hmac(&key, step.as_bytes()).to_vec());
    hex(&hmac(&key, text.as_bytes()))
}

/// Each segment of the path encoded once more, as all services but S3 want it.
fn canonical_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(byte as char)
            }
            _ => write!(out, "%{byte:02X}").expect("a string grows"),
        }
    }
    out
}

fn canonical_query(parts: &Parts) -> String {
    let mut pairs: Vec<&str> = parts.uri.query().unwrap_or_default().split('&').collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a string grows");
        out
    })
}

fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_gives_what_rfc_4231_says() {
        let mac = hex(&hmac(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    /// The example "GET Object"-like request of AWS' documentation for IAM `ListUsers`, with its published signature.
    #[test]
    fn the_documented_example_has_its_documented_signature() {
        let request = http::Request::builder()
            .uri("/?Action=ListUsers&Version=2010-05-08")
            .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
            .header("host", "iam.amazonaws.com")
            .header("x-amz-date", "20150830T123600Z");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let signature = Signature {
            access_key: "AKIDEXAMPLE",
            scope: vec!["20150830", "us-east-1", "iam", "aws4_request"],
            signed: vec!["content-type", "host", "x-amz-date"],
            value: "",
        };
        let value =
            sign("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", &signature, "20150830T123600Z", &parts, b"");
        assert_eq!(value, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
    }
}
