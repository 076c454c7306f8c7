//! Every node that is connected, or was within the last ten minutes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use penstock_proto::admin::v1 as admin;
use penstock_proto::fleet::v1::{Ack, Hello, Nack, NodeIdentity, NodeReport};

use super::node::{Node, Standing};
use super::sequence::Accepted;
use crate::clock::unix_ms;

/// A node that was not heard of for this long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// More nodes than this are refused: memory stays bounded whatever connects.
const MAX_NODES: usize = 10_000;

/// A connected node: what a session passes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) node: String,
    pub(crate) id: u64,
}

/// No room for another node.
#[derive(Debug)]
pub(crate) struct Full;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: HashMap<String, Node>,
    sessions: u64,
}

impl Registry {
    /// A node said hello. Its newest stream counts, should it have several.
    pub(crate) fn connect(&self, hello: &Hello) -> Result<Session, Full> {
        let identity = hello.node.clone().unwrap_or_default();
        let inner = &mut *self.inner.lock();
        inner.sessions += 1;
        let session = Session { node: identity.id.clone(), id: inner.sessions };
        let now = Instant::now();
        let node = inner.node(&session.node, now).ok_or(Full)?;
        node.identity = identity;
        node.session = Some(session.id);
        node.seen = now;
        if hello.have_version != 0 {
            node.acked(None, hello.have_version, hello.have_hash.clone(), now, unix_ms());
        }
        Ok(session)
    }

    pub(crate) fn disconnect(&self, session: &Session) {
        self.with(session, |node| {
            node.session = None;
            node.seen = Instant::now();
        });
    }

    /// A snapshot is on its way to the node.
    pub(crate) fn pushed(&self, session: &Session, nonce: u64) {
        self.with(session, |node| node.pushed(nonce, Instant::now()));
    }

    /// The node serves what was pushed; gives how long that took.
    pub(crate) fn acked(&self, session: &Session, ack: Ack) -> Option<Duration> {
        let (now, unix_ms) = (Instant::now(), unix_ms());
        self.with(session, |node| node.acked(Some(ack.nonce), ack.version, ack.content_hash, now, unix_ms))?
    }

    pub(crate) fn nacked(&self, session: &Session, nack: Nack) {
        self.with(session, |node| node.nacked(nack));
    }

    /// Marks a report as taken. One of a node that is not known and for which there is no room is not new: its sender
    /// would only be forgotten again.
    pub(crate) fn accept(&self, report: &NodeReport, now: Instant) -> Accepted {
        let inner = &mut *self.inner.lock();
        let Some(node) = inner.node(&report.node_id, now) else {
            return Accepted { new: false, sequence: report.sequence };
        };
        let accepted = node.sequences.accept(&report.incarnation, report.sequence);
        if accepted.new {
            let attempts = report.rows.iter().map(|row| row.attempts).sum();
            node.reported(report.health, attempts, now, unix_ms());
        }
        accepted
    }

    /// Forgets nodes that have been away for long.
    pub(crate) fn forget(&self, now: Instant) {
        self.inner.lock().nodes.retain(|_, node| {
            node.session.is_some() || now.saturating_duration_since(node.seen) < FORGET_AFTER
        });
    }

    /// All nodes, by id.
    pub(crate) fn list(&self) -> Vec<admin::Node> {
        let now = Instant::now();
        let mut nodes: Vec<_> = self.inner.lock().nodes.values().map(|node| node.describe(now)).collect();
        let id = |node: &admin::Node| node.identity.as_ref().map(|identity| identity.id.clone());
        nodes.sort_by_key(id);
        nodes
    }

    /// Connected nodes, and known ones that are not.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        let connected = inner.nodes.values().filter(|node| node.session.is_some()).count();
        (connected, inner.nodes.len() - connected)
    }

    /// How many connected nodes serve `version`, and how many refused it.
    pub(crate) fn standing(&self, version: u64) -> (u32, u32) {
        let inner = self.inner.lock();
        let connected = inner.nodes.values().filter(|node| node.session.is_some());
        connected.fold((0, 0), |(acked, nacked), node| match node.standing(version) {
            Standing::Serves => (acked + 1, nacked),
            Standing::Refused => (acked, nacked + 1),
            Standing::Neither => (acked, nacked),
        })
    }

    /// Runs on the node while the session is its current one.
    fn with<T>(&self, session: &Session, change: impl FnOnce(&mut Node) -> T) -> Option<T> {
        let mut inner = self.inner.lock();
        let node = inner.nodes.get_mut(&session.node)?;
        (node.session == Some(session.id)).then(|| change(node))
    }
}

impl Inner {
    fn node(&mut self, id: &str, now: Instant) -> Option<&mut Node> {
        if !self.nodes.contains_key(id) {
            if self.nodes.len() >= MAX_NODES {
                return None;
            }
            let identity = NodeIdentity { id: id.to_owned(), ..NodeIdentity::default() };
            self.nodes.insert(id.to_owned(), Node::new(identity, now));
        }
        self.nodes.get_mut(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(id: &str) -> Hello {
        let node = Some(NodeIdentity { id: id.to_owned(), ..NodeIdentity::default() });
        Hello { node, ..Hello::default() }
    }

    #[test]
    fn a_node_that_is_away_is_forgotten_after_ten_minutes_and_a_connected_one_never() {
        let registry = Registry::default();
        let _stays = registry.connect(&hello("stays")).unwrap();
        let leaves = registry.connect(&hello("leaves")).unwrap();
        registry.disconnect(&leaves);
        assert_eq!(registry.count(), (1, 1));
        registry.forget(Instant::now() + Duration::from_secs(599));
        assert_eq!(registry.count(), (1, 1));
        registry.forget(Instant::now() + Duration::from_secs(601));
        assert_eq!(registry.count(), (1, 0));
    }

    #[test]
    fn the_end_of_an_old_stream_does_not_disconnect_a_node_that_came_back() {
        let registry = Registry::default();
        let old = registry.connect(&hello("n")).unwrap();
        let new = registry.connect(&hello("n")).unwrap();
        registry.disconnect(&old);
        assert_eq!(registry.count(), (1, 0));
        registry.disconnect(&new);
        assert_eq!(registry.count(), (0, 1));
    }

    #[test]
    fn the_number_of_nodes_is_bounded() {
        let registry = Registry::default();
        for id in 0..MAX_NODES {
            registry.connect(&hello(&id.to_string())).unwrap();
        }
        assert!(registry.connect(&hello("one more")).is_err());
        assert!(registry.connect(&hello("7")).is_ok(), "known ones may come back");
    }
}
