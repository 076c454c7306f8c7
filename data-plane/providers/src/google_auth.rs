//! How a Google service account gets access tokens.
//!
//! The account's key signs a claim of who it is (a JWT, RFC 7519, signed as RS256); the token service takes the claim for
//! a token of about an hour (RFC 7523, and Google's guide "Using OAuth 2.0 for Server to Server Applications"). The
//! caller posts [`ServiceAccount::token_request`] to [`ServiceAccount::token_uri`] as [`FORM`], and reads what comes back
//! with [`read_token`].

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::{Deserialize, Serialize};

use crate::openai::error_body::VendorError;

/// The media type of a token request.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// What tokens are asked for: all that the account may do in Google Cloud.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where tokens are given, unless the key says otherwise.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// How long a claim is good for; Google takes no longer ones.
const CLAIM_LIFE: Duration = Duration::from_secs(3600);

/// A service account that can sign.
pub struct ServiceAccount {
    email: String,
    token_uri: String,
    project: Option<String>,
    key_id: Option<String>,
    key: RsaKeyPair,
}

/// Why a key cannot be used. Says nothing of the key itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// Not the JSON of a service account's key.
    #[error("it is not the JSON key of a service account: it needs `client_email` and `private_key`")]
    NotAServiceAccount,
    /// `private_key` is not PKCS #8 in PEM.
    #[error("its `private_key` is not in PEM")]
    NotPem,
    /// `private_key` is no RSA key that is long enough.
    #[error("its `private_key` is not an RSA key of 2048 bits or more")]
    NotRsa,
}

impl ServiceAccount {
    /// Is this credential meant to be a service account's key, rather than an access token?
    #[must_use]
    pub fn looks_like(credential: &str) -> bool {
        credential.trim_start().starts_with('{')
    }

    /// Reads the JSON key that Google gave out.
    ///
    /// # Errors
    /// When it is none, or its private key cannot sign.
    pub fn read(json: &str) -> Result<Self, InvalidKey> {
        #[derive(Deserialize)]
        struct Key {
            client_email: String,
            private_key: String,
            private_key_id: Option<String>,
            project_id: Option<String>,
            token_uri: Option<String>,
        }
        let key: Key = serde_json::from_str(json).map_err(|_| InvalidKey::NotAServiceAccount)?;
        let der = pem(&key.private_key).ok_or(InvalidKey::NotPem)?;
        Ok(Self {
            email: key.client_email,
            token_uri: key.token_uri.unwrap_or_else(|| TOKEN_URI.to_owned()),
            project: key.project_id,
            key_id: key.private_key_id,
            key: RsaKeyPair::from_pkcs8(&der).map_err(|_| InvalidKey::NotRsa)?,
        })
    }

    /// Where tokens are given.
    #[must_use]
    pub fn token_uri(&self) -> &str {
        &self.token_uri
    }

    /// The project that the account belongs to.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// The body of a request for a token, which names and proves the account. `now`: since 1970. It is as secret as a
    /// token, for an hour.
    #[must_use]
    pub fn token_request(&self, now: Duration) -> String {
        // The claim is made of letters, digits and `-_.`: nothing of it needs an escape.
        format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={}",
            self.claim(now)
        )
    }

    /// A signed claim of who the account is.
    fn claim(&self, now: Duration) -> String {
        #[derive(Serialize)]
        struct Header<'a> {
            alg: &'static str,
            typ: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            kid: Option<&'a str>,
        }
        #[derive(Serialize)]
        struct Claims<'a> {
            iss: &'a str,
            scope: &'static str,
            aud: &'a str,
            iat: u64,
            exp: u64,
        }
        let header = Header { alg: "RS256", typ: "JWT", kid: self.key_id.as_deref() };
        let claims = Claims {
            iss: &self.email,
            scope: SCOPE,
            aud: &self.token_uri,
            iat: now.as_secs(),
            exp: now.saturating_add(CLAIM_LIFE).as_secs(),
        };
        let mut claim = format!("{}.{}", encode(&header), encode(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        // Randomness only guards the key against measurement: the signature of a message is always the same.
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), claim.as_bytes(), &mut signature)
            .expect("a key that was accepted signs SHA-256");
        claim.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut claim);
        claim
    }
}

/// Without its key.
impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccount")
            .field("email", &self.email)
            .field("token_uri", &self.token_uri)
            .finish_non_exhaustive()
    }
}

/// A token, and how long it is good for.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Token {
    /// What goes behind `Bearer`.
    pub access_token: String,
    /// Seconds from when it was given.
    pub expires_in: u64,
}

/// Without its secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// Reads the answer of the token service, whatever its status.
///
/// # Errors
/// What the service says is wrong: `{"error":"invalid_grant","error_description":…}` (RFC 6749, section 5.2).
pub fn read_token(body: &[u8]) -> Result<Token, VendorError> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
        error_description: Option<String>,
    }
    if let Ok(token) = serde_json::from_slice::<Token>(body)
        && !token.access_token.is_empty()
    {
        return Ok(token);
    }
    let Ok(refusal) = serde_json::from_slice::<Refusal>(body) else { return Err(VendorError::read(body)) };
    let description = serde_json::json!({ "code": refusal.error, "message": refusal.error_description });
    Err(VendorError::read(description.to_string().as_bytes()))
}

/// JSON in base64, as JWTs have it.
fn encode(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).expect("strings and numbers always serialise"))
}

/// What is between the lines of a PEM file that holds a private key in PKCS #8.
fn pem(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (base64, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let base64: String = base64.split_ascii_whitespace().collect();
    STANDARD.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::{Value, json};

    use super::*;

    const TEST_KEY: &str = include_str!("../fixtures/gemini/test_key.pem");

    fn key() -> Value {
        json!({
            "type": "service_account", "project_id": "p-1", "private_key_id": "k-1", "private_key": TEST_KEY,
            "client_email": "a@p-1.example", "token_uri": "https://token.example/t",
        })
    }

    fn account(key: &Value) -> Result<ServiceAccount, InvalidKey> {
        ServiceAccount::read(&key.to_string())
    }

    #[test]
    fn a_claim_names_the_account_and_its_signature_holds() {
        let account = account(&key()).unwrap();
        assert_eq!((account.token_uri(), account.project()), ("https://token.example/t", Some("p-1")));
        let body = account.token_request(Duration::from_millis(1_700_000_000_900));
        let claim = body
            .strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=")
            .unwrap();
        assert!(claim.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{claim}");
        let (signed, signature) = claim.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let decode =
            |text: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap() };
        assert_eq!(decode(header), json!({"alg": "RS256", "typ": "JWT", "kid": "k-1"}));
        let expected = json!({
            "iss": "a@p-1.example", "scope": "https://www.googleapis.com/auth/cloud-platform",
            "aud": "https://token.example/t", "iat": 1_700_000_000, "exp": 1_700_003_600,
        });
        assert_eq!(decode(claims), expected);
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, account.key.public_key().as_ref());
        public.verify(signed.as_bytes(), &signature).unwrap();
        assert!(public.verify(format!("{signed}x").as_bytes(), &signature).is_err());
    }

    #[test]
    fn a_key_without_a_place_for_tokens_goes_to_googles() {
        let mut key = key();
        key.as_object_mut().unwrap().retain(|name, _| name == "client_email" || name == "private_key");
        let account = account(&key).unwrap();
        assert_eq!((account.token_uri(), account.project()), (TOKEN_URI, None));
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated_sec_01() {
        let with = |private_key: &str| {
            let mut key = key();
            key["private_key"] = private_key.into();
            account(&key).unwrap_err()
        };
        assert_eq!(ServiceAccount::read("{}").unwrap_err(), InvalidKey::NotAServiceAccount);
        assert_eq!(ServiceAccount::read("ya29.token").unwrap_err(), InvalidKey::NotAServiceAccount);
        assert_eq!(with("SENTINEL"), InvalidKey::NotPem);
        let broken = "-----BEGIN PRIVATE KEY-----\nU0VOVElORUw=\n-----END PRIVATE KEY-----\n";
        assert_eq!(with(broken), InvalidKey::NotRsa);
        assert!(!with(broken).to_string().contains("U0VOVElORUw"));
        assert!(ServiceAccount::looks_like(" \n{\"type\":1}") && !ServiceAccount::looks_like("ya29.token"));
    }

    #[test]
    fn secrets_are_not_shown_sec_01() {
        let shown = format!("{:?}", account(&key()).unwrap());
        assert_eq!(
            shown,
            r#"ServiceAccount { email: "a@p-1.example", token_uri: "https://token.example/t", .. }"#
        );
        let token = Token { access_token: "SENTINEL".to_owned(), expires_in: 1 };
        assert_eq!(format!("{token:?}"), "Token { expires_in: 1, .. }");
    }

    #[test]
    fn a_token_is_read_and_a_refusal_says_why() {
        let token =
            read_token(br#"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#).unwrap();
        assert_eq!((token.access_token.as_str(), token.expires_in), ("ya29.x", 3599));
        let refusal =
            read_token(br#"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#)
                .unwrap_err();
        assert_eq!(refusal.code.as_deref(), Some("invalid_grant"));
        assert_eq!(refusal.message.as_deref(), Some("Invalid JWT Signature."));
        for body in [&b""[..], b"{}", b"<html>", br#"{"access_token":"","expires_in":1}"#] {
            assert_eq!(read_token(body).unwrap_err(), VendorError::default());
        }
    }
}
