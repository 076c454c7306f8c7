//! Idle connections of one worker. No locks: a worker is one thread.

use std::time::Duration;

use super::connection::Connection;
use crate::clock::Moment;

/// Below the idle time of every common server (nginx 75 s, Node.js 5 s is the exception, where the one fresh try helps).
const IDLE: Duration = Duration::from_secs(30);
/// Idle connections kept to one address.
const MOST: usize = 512;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// By upstream id; the newest last.
    #[expect(
        clippy::vec_box,
        reason = "a connection is large and goes back and forth between pool and request"
    )]
    idle: Vec<Vec<Box<Connection>>>,
}

impl Pool {
    /// The connection that was used last, which is the one least likely to be closed.
    pub(crate) fn take(&mut self, upstream: usize, now: Moment) -> Option<Box<Connection>> {
        let idle = self.idle.get_mut(upstream)?;
        let connection = idle.pop()?;
        if now.since(connection.idle_since) > IDLE {
            // Those below are older still.
            idle.clear();
            return None;
        }
        Some(connection)
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&mut self, upstream: usize, mut connection: Box<Connection>, now: Moment) {
        if self.idle.len() <= upstream {
            self.idle.resize_with(upstream + 1, Vec::new);
        }
        connection.idle_since = now;
        let idle = &mut self.idle[upstream];
        if idle.len() < MOST {
            idle.push(connection);
        }
    }

    /// Closes what has been idle for too long.
    pub(crate) fn prune(&mut self, now: Moment) {
        for idle in &mut self.idle {
            idle.retain(|connection| now.since(connection.idle_since) <= IDLE);
        }
    }
}
