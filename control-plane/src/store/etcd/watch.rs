//! A watch that survives compactions, dead streams and lost members.
//!
//! What it guards against, from incidents of other projects:
//!
//! - A watch from a compacted revision is refused for ever: then everything is read anew at one revision, and the watch
//!   goes on from there.
//! - The revision to resume from moves only by what arrives *on the stream*: by events, or by an answer about progress.
//!   Servers before 3.4.25 and 3.5.8 can send such an answer ahead of events that are older than it, so it counts only
//!   once the next one has come.
//! - A stream can be dead without an error. Every few seconds the server is asked how far it is; a stream that stays
//!   silent is replaced by one to the next member.

use std::convert::Infallible;
use std::time::Duration;

use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};
use tracing::Instrument;

use super::endpoints::MAX_MESSAGE;
use super::error::{self, Failure};
use super::{Etcd, from_wire, to_wire};
use crate::backoff::Backoff;
use crate::store::watch::BUFFER;
use crate::store::{Change, Event, List, Reason, Revision, Watch};

/// Entries read at once; each can be a document of a mebibyte.
const PAGE: usize = 32;

pub(super) fn open(store: Etcd, prefix: &str, from: Option<Revision>) -> Watch {
    let (events, receiver) = mpsc::channel(BUFFER);
    let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    let follower = Follower {
        store,
        prefix: prefix.to_owned(),
        events,
        backoff,
        seen: from,
        announced: None,
        restart: Reason::Opened,
    };
    let span = tracing::debug_span!("store_watch", prefix);
    Watch::new(receiver, tokio::spawn(follower.run().instrument(span)).abort_handle())
}

/// The task behind one watch.
struct Follower {
    store: Etcd,
    prefix: String,
    events: mpsc::Sender<Event>,
    backoff: Backoff,
    /// Everything up to here has been delivered; `None`: everything has to be read anew.
    seen: Option<Revision>,
    /// The newest answer about progress on this stream, not yet trusted.
    announced: Option<Revision>,
    /// Why everything has to be read anew.
    restart: Reason,
}

/// Why a stream ended.
enum End {
    /// Nobody listens any more.
    Dropped,
    /// It cannot go on from where it was.
    StartOver(Reason),
    /// Broken, silent, or refused.
    Broken(Failure),
}

impl Follower {
    async fn run(mut self) {
        loop {
            let (turn, _) = self.store.endpoints.current();
            let end = match self.seen {
                None => self.resync().await.err(),
                Some(seen) => {
                    let Err(end) = self.follow(seen).await;
                    Some(end)
                }
            };
            match end {
                None => continue,
                Some(End::Dropped) => return,
                Some(End::StartOver(reason)) => {
                    tracing::warn!(?reason, "watch starts over");
                    (self.seen, self.restart) = (None, reason);
                }
                Some(End::Broken(failure)) => {
                    tracing::warn!(?failure, "watch broke, opening it anew");
                    self.store.endpoints.leave(turn);
                }
            }
            self.backoff.wait().await;
        }
    }

    /// Reads everything under the prefix at one revision.
    async fn resync(&mut self) -> Result<(), End> {
        let mut list = List { prefix: self.prefix.clone(), limit: PAGE, ..List::default() };
        let mut page = self.store.page(&list, None).await.map_err(End::Broken)?;
        let revision = page.revision;
        let mut entries = std::mem::take(&mut page.entries);
        while page.more {
            list.after = entries.last().map(|entry| entry.key.clone());
            page = match self.store.page(&list, Some(revision)).await {
                Err(Failure::Compacted) => return Err(End::StartOver(self.restart)),
                other => other.map_err(End::Broken)?,
            };
            entries.append(&mut page.entries);
        }
        self.send(Event::Resync { entries, revision, reason: self.restart }).await?;
        self.seen = Some(revision);
        Ok(())
    }

    /// Follows one stream to its end.
    async fn follow(&mut self, seen: Revision) -> Result<Infallible, End> {
        let timing = self.store.endpoints.timing;
        self.announced = None;
        let mut stream = self.open_stream(seen).await?;
        let mut ask = interval_at(Instant::now() + timing.progress, timing.progress);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                received = timeout_at(heard + timing.silence, stream.message()) => match received {
                    Ok(Ok(Some(response))) => {
                        heard = Instant::now();
                        self.take(response).await?;
                    }
                    Ok(Ok(None)) => return Err(broken("the server ended the stream")),
                    Ok(Err(error)) => return Err(ended(error::classify(error))),
                    Err(_) => return Err(broken("the stream fell silent")),
                },
                _ = ask.tick() => {
                    // A full queue of requests means that nothing gets through: silence will tell.
                    let asked = stream.request_progress();
                    let _ = tokio::time::timeout(timing.progress, asked).await;
                }
            }
        }
    }

    async fn open_stream(&self, seen: Revision) -> Result<WatchStream, End> {
        let endpoints = &self.store.endpoints;
        let (_, client) = endpoints.current();
        let mut watch = client.watch_client().max_decoding_message_size(MAX_MESSAGE);
        let options =
            WatchOptions::new().with_prefix().with_start_revision(to_wire(seen + 1)).with_progress_notify();
        match tokio::time::timeout(endpoints.timing.call, watch.watch(self.prefix.as_str(), Some(options)))
            .await
        {
            Ok(opened) => opened.map_err(|error| ended(error::classify(error))),
            Err(_) => Err(broken("no answer within the deadline")),
        }
    }

    async fn take(&mut self, response: WatchResponse) -> Result<(), End> {
        if response.canceled() {
            return Err(match response.compact_revision() {
                0 => broken(response.cancel_reason()),
                _ => End::StartOver(Reason::Compacted),
            });
        }
        let newest = response.header().map_or(0, |header| from_wire(header.revision()));
        if self.seen.is_some_and(|seen| newest < seen) {
            return Err(End::StartOver(Reason::Replaced));
        }
        if !response.events().is_empty() {
            return self.deliver(response.events()).await;
        }
        if !response.created() {
            self.progress(newest).await?;
        }
        Ok(())
    }

    async fn progress(&mut self, newest: Revision) -> Result<(), End> {
        if let Some(earlier) = self.announced.replace(newest) {
            self.seen = self.seen.max(Some(earlier));
            self.backoff.reset();
        }
        self.send(Event::Progress).await
    }

    /// Passes events on, those of one transaction together.
    async fn deliver(&mut self, events: &[etcd_client::Event]) -> Result<(), End> {
        let changes = events.iter().filter_map(|event| {
            let found = event.kv()?;
            let value = match event.event_type() {
                EventType::Put => Some(found.value().to_vec().into()),
                EventType::Delete => None,
            };
            Some((from_wire(found.mod_revision()), Change { key: found.key_str().ok()?.to_owned(), value }))
        });
        let mut batch: Option<(Revision, Vec<Change>)> = None;
        for (revision, change) in changes {
            match &mut batch {
                Some((current, changes)) if *current == revision => changes.push(change),
                _ => {
                    let done = batch.replace((revision, vec![change]));
                    self.flush(done).await?;
                }
            }
        }
        self.flush(batch).await
    }

    async fn flush(&mut self, batch: Option<(Revision, Vec<Change>)>) -> Result<(), End> {
        let Some((revision, changes)) = batch else { return Ok(()) };
        self.send(Event::Changes { changes, revision }).await?;
        self.seen = self.seen.max(Some(revision));
        Ok(())
    }

    async fn send(&self, event: Event) -> Result<(), End> {
        self.events.send(event).await.map_err(|_| End::Dropped)
    }
}

fn ended(failure: Failure) -> End {
    match failure {
        Failure::Compacted => End::StartOver(Reason::Compacted),
        other => End::Broken(other),
    }
}

fn broken(reason: &str) -> End {
    End::Broken(Failure::NoAnswer(reason.to_owned().into()))
}
