//! gRPC at both ends: tonic's, which behaves, and h2 itself, which does what a test says.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::server::StreamingService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use super::PATIENCE;

/// Messages are text.
pub(crate) type Codec = ProstCodec<String, String>;
type Messages = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;
type Answering = Pin<Box<dyn Future<Output = Result<tonic::Response<Messages>, Status>> + Send>>;

/// What [`echo`] was asked.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Path and metadata of each call.
    pub(crate) calls: Mutex<Vec<(String, MetadataMap)>>,
    pub(crate) connections: AtomicUsize,
}

impl Seen {
    pub(crate) fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

/// One service of tonic's, with a method for each of the four kinds of calls. `status`: what `/test.Echo/Fail` ends with.
pub(crate) async fn echo(status: Status) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            shared.connections.fetch_add(1, Relaxed);
            let (seen, status) = (Arc::clone(&shared), status.clone());
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let path = request.uri().path().to_owned();
                let metadata = MetadataMap::from_headers(request.headers().clone());
                seen.calls.lock().unwrap().push((path.clone(), metadata));
                let echo = Echo { path, status: status.clone() };
                async move {
                    Ok::<_, std::convert::Infallible>(
                        tonic::server::Grpc::new(Codec::default()).streaming(echo, request).await,
                    )
                }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(socket), service));
        }
    });
    (addr, seen)
}

struct Echo {
    path: String,
    status: Status,
}

impl StreamingService<String> for Echo {
    type Response = String;
    type ResponseStream = Messages;
    type Future = Answering;

    fn call(&mut self, request: tonic::Request<Streaming<String>>) -> Answering {
        let (path, status) = (self.path.clone(), self.status.clone());
        Box::pin(async move {
            let mut asked = request.into_inner();
            let messages: Messages = match path.as_str() {
                "/test.Echo/Unary" => {
                    let said = asked.message().await?.unwrap_or_default();
                    Box::pin(tokio_stream::iter([Ok(format!("echo {said}"))]))
                }
                "/test.Echo/Many" => {
                    let said = asked.message().await?.unwrap_or_default();
                    Box::pin(tokio_stream::iter((0..3).map(move |n| Ok(format!("{said} {n}")))))
                }
                "/test.Echo/Collect" => {
                    let said: Vec<String> = asked.collect::<Result<_, _>>().await?;
                    Box::pin(tokio_stream::iter([Ok(said.join("+"))]))
                }
                "/test.Echo/Chat" => Box::pin(asked.map(|said| said.map(|said| format!("re: {said}")))),
                // Says only in its trailers that it fails, after one message or before any.
                "/test.Echo/FailLate" => Box::pin(tokio_stream::iter([Ok("one".to_owned()), Err(status)])),
                "/test.Echo/FailFirst" => Box::pin(tokio_stream::iter([Err(status)])),
                _ => return Err(status),
            };
            let mut response = tonic::Response::new(messages);
            response.metadata_mut().insert("x-initial", "yes".parse().unwrap());
            Ok(response)
        })
    }
}

/// A client of tonic's.
pub(crate) async fn tonic_client(addr: SocketAddr) -> Grpc<Channel> {
    let channel = Endpoint::from_shared(format!("http://{addr}")).unwrap().connect().await.unwrap();
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    client
}

/// A call of one message and one answer.
pub(crate) async fn unary(
    client: &mut Grpc<Channel>,
    method: &'static str,
    said: &str,
) -> Result<tonic::Response<String>, Status> {
    let path = http::uri::PathAndQuery::from_static(method);
    client.ready().await.unwrap();
    timeout(PATIENCE, client.unary(tonic::Request::new(said.to_owned()), path, Codec::default()))
        .await
        .unwrap()
}

/// A service that does with each request, by its number, what `handle` says.
pub(crate) async fn raw<F>(
    handle: impl Fn(usize, Request<RecvStream>, SendResponse<Bytes>) -> F + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (handle, number) = (Arc::new(handle), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (handle, number) = (Arc::clone(&handle), Arc::clone(&number));
            tokio::spawn(async move {
                let Ok(mut connection) = h2::server::handshake(socket).await else { return };
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(handle(number.fetch_add(1, Relaxed), request, respond));
                }
            });
        }
    });
    addr
}

/// The head of an answer.
pub(crate) fn head() -> Response<()> {
    Response::builder().header("content-type", "application/grpc").body(()).unwrap()
}

/// Trailers with this status.
pub(crate) fn trailers(status: u32) -> HeaderMap {
    [(http::HeaderName::from_static("grpc-status"), status.into())].into_iter().collect()
}

/// A message with its frame.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat().into()
}

/// Answers with one message and a good end.
pub(crate) fn answer(mut respond: SendResponse<Bytes>, message: &[u8]) {
    let mut stream = respond.send_response(head(), false).unwrap();
    stream.send_data(framed(message), false).unwrap();
    stream.send_trailers(trailers(0)).unwrap();
}

/// Waits until the caller has reset the stream; says with what.
pub(crate) async fn reset_of(mut respond: SendResponse<Bytes>) -> h2::Reason {
    timeout(PATIENCE, std::future::poll_fn(|context| respond.poll_reset(context))).await.unwrap().unwrap()
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// `None` where the head says it all.
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) fn says(&self, name: &str) -> Option<&str> {
        let said = self.trailers.as_ref().unwrap_or(&self.head).get(name)?;
        said.to_str().ok()
    }

    pub(crate) fn status(&self) -> Option<u32> {
        self.says("grpc-status")?.parse().ok()
    }
}

/// A connection of h2's to the proxy.
pub(crate) async fn connect(addr: SocketAddr) -> SendRequest<Bytes> {
    let (client, connection) = h2::client::handshake(TcpStream::connect(addr).await.unwrap()).await.unwrap();
    tokio::spawn(connection);
    client.ready().await.unwrap()
}

/// A request for a method, with these headers besides.
pub(crate) fn request(method: &str, headers: &[(&str, &str)]) -> Request<()> {
    let request = Request::post(format!("http://gateway{method}")).header("content-type", "application/grpc");
    headers
        .iter()
        .fold(request.header("te", "trailers"), |request, (name, value)| request.header(*name, *value))
        .body(())
        .unwrap()
}

/// Sends one message and reads the whole answer.
pub(crate) async fn call(addr: SocketAddr, method: &str, headers: &[(&str, &str)], message: &[u8]) -> Answer {
    let mut client = connect(addr).await;
    let (response, mut stream) = client.send_request(request(method, headers), false).unwrap();
    stream.send_data(framed(message), true).unwrap();
    read(response).await
}

/// Reads a whole answer.
pub(crate) async fn read(response: h2::client::ResponseFuture) -> Answer {
    timeout(PATIENCE, async {
        let (head, mut stream) = response.await.unwrap().into_parts();
        let mut body = Vec::new();
        while let Some(data) = stream.data().await {
            let data = data.unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        Answer { head: head.headers, body, trailers: stream.trailers().await.unwrap() }
    })
    .await
    .unwrap()
}
