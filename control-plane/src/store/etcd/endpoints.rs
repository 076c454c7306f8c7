//! The members of the cluster, one of which is in use.
//!
//! etcd-client can spread calls over members, but then a dead member fails its share of them. Here all calls go to one
//! member until it fails; then to the next.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, GetOptions, GetResponse, Txn, TxnResponse};

use super::Timing;
use super::error::{self, Failure};
use crate::store::Error;

/// etcd closes connections that ping more often than every five seconds.
const PING: Duration = Duration::from_secs(6);
const PING_ANSWER: Duration = Duration::from_secs(3);

/// A page of documents of a mebibyte each, or a batch of watch events, fits.
pub(super) const MAX_MESSAGE: usize = 64 << 20;

pub(super) struct Endpoints {
    members: Vec<Client>,
    /// Grows; modulo the number of members it is the one in use.
    current: AtomicUsize,
    pub(super) timing: Timing,
}

impl Endpoints {
    pub(super) async fn new(urls: &[String], timing: Timing) -> Result<Self, Error> {
        let options = ConnectOptions::new()
            .with_connect_timeout(timing.call)
            .with_keep_alive(PING, PING_ANSWER)
            .with_keep_alive_while_idle(true)
            .with_require_leader(true);
        let mut members = Vec::with_capacity(urls.len());
        for url in urls {
            if url.starts_with("https://") {
                return Err(Error::Tls { url: url.clone() });
            }
            let client = Client::connect([url], Some(options.clone())).await;
            members
                .push(client.map_err(|source| Error::Address { url: url.clone(), source: source.into() })?);
        }
        if members.is_empty() {
            let source = "no address was given".into();
            return Err(Error::Address { url: String::new(), source });
        }
        Ok(Self { members, current: AtomicUsize::new(0), timing })
    }

    /// The member in use, and its turn for [`Endpoints::leave`].
    pub(super) fn current(&self) -> (usize, Client) {
        let turn = self.current.load(Ordering::Relaxed);
        (turn, self.members[turn % self.members.len()].clone())
    }

    /// Goes on to the next member, unless somebody else did since `turn`.
    pub(super) fn leave(&self, turn: usize) {
        let _ = self.current.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Reads from the first member that answers.
    pub(super) async fn read(&self, key: &[u8], options: &GetOptions) -> Result<GetResponse, Failure> {
        self.call(Failure::may_read_elsewhere, |client| {
            let (key, options) = (key.to_vec(), options.clone());
            let mut kv = client.kv_client().max_decoding_message_size(MAX_MESSAGE);
            async move { kv.get(key, Some(options)).await }
        })
        .await
    }

    /// Commits through the first member that can be reached. Once a member may have taken the transaction, no other
    /// one gets it.
    pub(super) async fn write(&self, txn: &Txn) -> Result<TxnResponse, Failure> {
        self.call(Failure::may_write_elsewhere, |client| {
            let txn = txn.clone();
            async move { client.kv_client().txn(txn).await }
        })
        .await
    }

    async fn call<T, F: Future<Output = Result<T, etcd_client::Error>>>(
        &self,
        may_retry: fn(&Failure) -> bool,
        call: impl Fn(Client) -> F,
    ) -> Result<T, Failure> {
        let mut tried = 0;
        loop {
            let (turn, client) = self.current();
            let failure = match tokio::time::timeout(self.timing.call, call(client)).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error::classify(error),
                Err(_) => Failure::NoAnswer("no answer within the deadline".into()),
            };
            tried += 1;
            if !may_retry(&failure) || tried > self.members.len() {
                return Err(failure);
            }
            self.leave(turn);
        }
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints").field("members", &self.members.len()).finish_non_exhaustive()
    }
}
