//! Signature version 4 of requests to AWS services.
//!
//! Source: "AWS Signature Version 4 for API requests", IAM User Guide. The path is signed as every service but S3 wants
//! it: percent-encoded once more, as it was sent.

use std::fmt;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac as _};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, InvalidHeaderValue};
use sha2::{Digest as _, Sha256};

const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";

/// Who signs.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
}

impl Credentials {
    /// Reads `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`. `None` for anything else, which then is an API key and
    /// sent as a bearer token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // API keys are base64, some behind a prefix; none has a colon.
        let mut parts = text.splitn(3, ':');
        let access_key_id = parts.next()?;
        let secret_access_key = parts.next()?;
        let session_token = parts.next();
        let is_id = (16..=128).contains(&access_key_id.len())
            && access_key_id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let is_sound = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        (is_id && is_sound(secret_access_key) && session_token.is_none_or(is_sound)).then(|| Self {
            access_key_id: access_key_id.to_owned(),
            secret_access_key: secret_access_key.to_owned(),
            session_token: session_token.map(str::to_owned),
        })
    }
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// Which service a signature is for, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope<'a> {
    /// As in `us-east-1`.
    pub region: &'a str,
    /// As in `bedrock`.
    pub service: &'a str,
}

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub struct ToSign<'a> {
    /// `POST`
    pub method: &'a str,
    /// As it is sent, percent-encoded.
    pub path_and_query: &'a str,
    /// The `host` header (`:authority`), port included where it is sent.
    pub host: &'a str,
    /// Other headers to sign, names in lower case. Whatever is between us and the service must leave them alone.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, in any number of pieces.
    pub body: &'a [&'a [u8]],
}

/// Signs a request: the headers to add to it.
///
/// # Errors
/// When the region or the service hold what no header may hold.
pub fn sign(
    request: &ToSign<'_>,
    credentials: &Credentials,
    scope: &Scope<'_>,
    now: SystemTime,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let time = timestamp(now);
    let day = &time[..8];
    let scope_text = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let (canonical, signed) = canonical_request(request, credentials, &time);
    let to_sign =
        format!("AWS4-HMAC-SHA256\n{time}\n{scope_text}\n{}", hex(&Sha256::digest(canonical.as_bytes())));

    let mut key = hmac(format!("AWS4{}", credentials.secret_access_key).as_bytes(), day);
    for part in [scope.region, scope.service, "aws4_request"] {
        key = hmac(&key, part);
    }
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope_text}, SignedHeaders={signed}, Signature={}",
        credentials.access_key_id,
        hex(&hmac(&key, &to_sign)),
    );

    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(DATE, HeaderValue::try_from(time)?);
    if let Some(token) = &credentials.session_token {
        headers.insert(TOKEN, secret(token)?);
    }
    headers.insert(AUTHORIZATION, secret(&authorization)?);
    Ok(headers)
}

fn secret(value: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The request in the one form that both sides sign, and the names of its headers.
fn canonical_request(request: &ToSign<'_>, credentials: &Credentials, time: &str) -> (String, String) {
    let (path, query) = request.path_and_query.split_once('?').unwrap_or((request.path_and_query, ""));
    let mut headers = vec![("host", request.host), (DATE, time)];
    headers.extend(credentials.session_token.as_deref().map(|token| (TOKEN, token)));
    headers.extend_from_slice(request.headers);
    // Stable: of one name, values stay in their order.
    headers.sort_by_key(|(name, _)| *name);

    let mut text = format!("{}\n{}\n{}\n", request.method, canonical_path(path), canonical_query(query));
    let mut signed = String::new();
    for group in headers.chunk_by(|(one, _), (other, _)| one == other) {
        let separator = if signed.is_empty() { "" } else { ";" };
        let _ = write!(signed, "{separator}{}", group[0].0);
        let values: Vec<String> = group.iter().map(|(_, value)| single_spaced(value)).collect();
        let _ = writeln!(text, "{}:{}", group[0].0, values.join(","));
    }
    let mut digest = Sha256::new();
    request.body.iter().for_each(|piece| digest.update(piece));
    let _ = write!(text, "\n{signed}\n{}", hex(&digest.finalize()));
    (text, signed)
}

fn single_spaced(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The path as sent, percent-encoded once more: what was `%3A` becomes `%253A`.
fn canonical_path(path: &str) -> String {
    if path.is_empty() {
        return "/".to_owned();
    }
    let mut encoded = String::with_capacity(path.len() + 16);
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// The query as sent, in order of names and then of values.
fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn hmac(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is accepted");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `20150830T123600Z`. A time before 1970 is taken for 1970.
fn timestamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of a day since 1970, by eras of 400 years that begin in March.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = days / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests;
