//! A connection that is driven by whoever uses it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::body::RequestBody;
use super::stream::Stream;
use crate::clock::Moment;

type Driver = http1::Connection<TokioIo<Stream>, RequestBody>;

/// One connection, with nothing under way.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    driver: Driver,
    /// Has it carried a request before?
    pub(crate) reused: bool,
    /// Since when it lies in the pool.
    pub(crate) idle_since: Moment,
}

impl Connection {
    pub(super) fn new(sender: SendRequest<RequestBody>, driver: Driver) -> Self {
        Self { sender, driver, reused: false, idle_since: Moment(0) }
    }

    /// Has the service closed it meanwhile? Looks without waiting.
    pub(crate) async fn is_closed(&mut self) -> bool {
        poll_fn(|context| Poll::Ready(self.drive(context))).await || !self.sender.is_ready()
    }

    /// Lets the connection read and write what it can; true when it has ended. Its readiness wakes the caller's task, so
    /// that the other half needs no waker of its own: whatever changes there, changes while this is polled.
    fn drive(&mut self, context: &mut Context<'_>) -> bool {
        Pin::new(&mut self.driver).poll(context).is_ready()
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(
        mut self: Box<Self>,
        request: Request<RequestBody>,
    ) -> Result<(Response<()>, Exchange), hyper::Error> {
        let response = {
            let sending = self.sender.try_send_request(request);
            let mut sending = pin!(sending);
            let driver = &mut self.driver;
            poll_fn(|context| {
                let _ = Pin::new(&mut *driver).poll(context);
                sending.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            })
            .await
        };
        let (head, body) = response.map_err(|error| error.into_error())?.into_parts();
        Ok((Response::from_parts(head, ()), Exchange { connection: Some(self), body }))
    }
}

/// An answer that is being read. Dropping it ends the exchange: by closing the connection or, where others share it, by
/// resetting the stream.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` when others share it: then it has a task of its own.
    connection: Option<Box<Connection>>,
    body: Incoming,
}

impl Exchange {
    /// Over a connection that drives itself.
    pub(super) fn shared(body: Incoming) -> Self {
        Self { connection: None, body }
    }

    /// The next piece of the body.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(connection) = &mut self.connection else {
            return Pin::new(&mut self.body).poll_frame(context);
        };
        let mut quiet = Context::from_waker(Waker::noop());
        if let ready @ Poll::Ready(_) = Pin::new(&mut self.body).poll_frame(&mut quiet) {
            return ready;
        }
        connection.drive(context);
        Pin::new(&mut self.body).poll_frame(&mut quiet)
    }

    /// The next frame of the body.
    pub(crate) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|context| self.poll_frame(context)).await
    }

    /// The next data of the body; trailers are passed over.
    pub(crate) async fn data(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match self.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Has the whole body been read?
    pub(crate) fn is_done(&self) -> bool {
        self.body.is_end_stream()
    }

    /// The connection, if the answer is whole and the service keeps it open.
    pub(crate) async fn finish(self) -> Option<Box<Connection>> {
        let mut this = Some(self);
        poll_fn(|context| Poll::Ready(this.take().and_then(|exchange| exchange.finish_now(context)))).await
    }

    /// Like [`Self::finish`], within a poll.
    pub(crate) fn finish_now(self, context: &mut Context<'_>) -> Option<Box<Connection>> {
        let Self { connection, body } = self;
        drop(body);
        let mut connection = connection?;
        // Only now does the connection see that nobody reads the body any more, and becomes ready for the next request.
        let ended = connection.drive(context);
        connection.reused = true;
        (!ended && connection.sender.is_ready()).then_some(connection)
    }
}
