//! Access tokens of Google's service accounts: got when a policy first names the account, renewed before they expire.
//!
//! Requests never wait for one. Until the first token is here, targets with that credential are passed over like any
//! other whose key is missing; when a renewal fails, the old token is used for as long as it lives.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request};
use parking_lot::Mutex;
use penstock_model::policy::Address;
use penstock_providers::google_auth::{FORM, ServiceAccount, Token, read_token};
use penstock_providers::splice::SplicedBody;
use tokio::time::{Instant, sleep, timeout};

use crate::upstream::{Connector, RequestBody, connect};
use crate::worker::Shared;

/// How often due tokens are looked for.
const TICK: Duration = Duration::from_secs(1);
/// How long before its end a token is renewed.
const MARGIN: Duration = Duration::from_secs(300);
/// Between two tries that failed.
const PAUSE: Duration = Duration::from_secs(10);
/// The longest that getting a token may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// No token answer is longer.
const LONGEST: usize = 64 << 10;
/// Accounts whose tokens are kept. Those that no policy names any more give way.
const MOST: usize = 256;

/// The tokens of this process, by service account.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, Held>>);

struct Held {
    token: Option<String>,
    expires: Instant,
    /// When to get the next one.
    due: Instant,
    used: Instant,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Held").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Tokens {
    /// The account's token, if there is a good one. An account that is new is taken note of.
    pub(crate) fn current(&self, account: &str) -> Option<String> {
        let now = Instant::now();
        let mut held = self.0.lock();
        if !held.contains_key(account) && held.len() >= MOST {
            let oldest = held.iter().min_by_key(|(_, held)| held.used).map(|(account, _)| account.clone());
            oldest.and_then(|oldest| held.remove(&oldest));
        }
        let fresh = || Held { token: None, expires: now, due: now, used: now };
        let held = held.entry(account.to_owned()).or_insert_with(fresh);
        held.used = now;
        held.token.clone().filter(|_| held.expires > now)
    }

    fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let is_due = |held: &Held| held.due <= now && now - held.used < MARGIN;
        self.0.lock().iter().filter(|(_, held)| is_due(held)).map(|(account, _)| account.clone()).collect()
    }

    fn store(&self, account: &str, got: Result<Token, String>) {
        let now = Instant::now();
        let mut held = self.0.lock();
        let Some(held) = held.get_mut(account) else { return };
        match got {
            Ok(token) => {
                let life = Duration::from_secs(token.expires_in);
                held.expires = now + life;
                held.due = now + life.saturating_sub(MARGIN).max(life / 2);
                held.token = Some(token.access_token);
            }
            Err(reason) => {
                tracing::warn!(reason, "no access token for a Google service account");
                held.due = now + PAUSE;
            }
        }
    }
}

/// Keeps tokens fresh, for as long as the process lives.
pub(crate) async fn keep_fresh(shared: Arc<Shared>) {
    loop {
        sleep(TICK).await;
        for account in shared.holder.google().due() {
            let got = timeout(PATIENCE, get(&shared.connector, &account)).await;
            shared
                .holder
                .google()
                .store(&account, got.unwrap_or_else(|_| Err("no answer in time".to_owned())));
        }
    }
}

async fn get(connector: &Connector, account: &str) -> Result<Token, String> {
    let account = ServiceAccount::read(account).map_err(|error| error.to_string())?;
    let address = Address::of(account.token_uri()).ok_or("the key's token_uri is not an address")?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let body = Bytes::from(account.token_request(now));
    let host = HeaderValue::from_str(&address.authority).map_err(|error| error.to_string())?;
    let mut request = Request::new(RequestBody::from(SplicedBody::whole(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.path.parse().map_err(|_| "the key's token_uri is not an address")?;
    request.headers_mut().insert(HOST, host);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
    let connection = connect(connector, &address).await.map_err(|error| error.to_string())?;
    let (_, mut exchange) = connection.send(request).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    while let Some(data) = exchange.data().await {
        answer.extend_from_slice(&data.map_err(|error| error.to_string())?);
        if answer.len() > LONGEST {
            return Err("the answer is too long".to_owned());
        }
    }
    read_token(&answer)
        .map_err(|error| error.message.or(error.code).unwrap_or_else(|| "no token in the answer".to_owned()))
}
