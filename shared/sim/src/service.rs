//! What a service does with one call.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::{Answer, Events, digest};
use crate::body::{Broken, Call, HalfWay, Pace, SimBody, StreamBody};
use crate::config::ServiceConfig;
use crate::embeddings;
use crate::fault::{Fault, Garbage, Truncate};
use crate::io::{Farewell, Link};
use crate::reject::Rejection;
use crate::reply;
use crate::request::{self, ChatRequest};
use crate::stats::{CapturedRequest, Counters, Ending};

/// Largest body of a control call.
const MAX_CONTROL_BODY: usize = 4 << 10;

/// One simulated service.
#[derive(Debug)]
pub(crate) struct Service {
    config: ServiceConfig,
    pub(crate) counters: Arc<Counters>,
    /// Spares healthy services the lock.
    faulty: AtomicBool,
    fault: Mutex<Fault>,
    slots: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    /// The name, escaped for JSON, without quotes.
    name: Bytes,
    models: Bytes,
}

#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Chat,
    Embeddings,
}

/// Why a call gets no answer.
enum Stop {
    Reject(Rejection),
    Break(Ending),
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Reject(rejection)
    }
}

/// The answer to a call.
enum Reply {
    Whole(Bytes),
    /// Instead of the answer: not what was asked for.
    Faulty(Response<SimBody>, Ending),
    Stream(Events),
}

/// A call on its way through the service.
struct Work {
    number: u64,
    fault: Fault,
    rng: Pcg64Mcg,
    body: Bytes,
}

impl Service {
    pub(crate) fn new(config: ServiceConfig) -> Self {
        let quoted = Bytes::from(reply::quote(&config.name));
        Self {
            counters: Arc::default(),
            faulty: AtomicBool::new(false),
            fault: Mutex::default(),
            slots: config.capacity.map(|capacity| Arc::new(Semaphore::new(capacity.concurrent))),
            waiting: AtomicUsize::new(0),
            name: quoted.slice(1..quoted.len() - 1),
            models: reply::model_list(&config.name, &config.models),
            config,
        }
    }

    pub(crate) fn fault(&self) -> Fault {
        if self.faulty.load(Relaxed) {
            self.fault.lock().expect("no holder panics").clone()
        } else {
            Fault::default()
        }
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        let faulty = fault != Fault::default();
        *self.fault.lock().expect("no holder panics") = fault;
        self.faulty.store(faulty, Relaxed);
    }

    /// Answers one request, or has its connection ended.
    pub(crate) async fn call(
        &self,
        request: Request<Incoming>,
        link: Link,
    ) -> Result<Response<SimBody>, Broken> {
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/chat/completions") => self.work(request, link, Endpoint::Chat).await,
            (&Method::POST, "/v1/embeddings") => self.work(request, link, Endpoint::Embeddings).await,
            (&Method::GET, "/v1/models") => Ok(match self.authorize(request.headers()) {
                Ok(()) => reply::json(self.models.clone()),
                Err(rejection) => reply::rejection(&rejection),
            }),
            (&Method::GET, "/health") => Ok(reply::json(Bytes::from_static(b"{\"status\":\"ok\"}"))),
            (&Method::GET, "/sim/stats") => Ok(reply::serialized(&self.counters.read())),
            (&Method::GET, "/sim/fault") => Ok(reply::serialized(&self.fault())),
            (&Method::POST, "/sim/fault") => Ok(self.control(request).await),
            (method, path) => Ok(reply::rejection(&Rejection::unknown_path(method, path))),
        }
    }

    /// `POST /sim/fault`
    async fn control(&self, request: Request<Incoming>) -> Response<SimBody> {
        let body = match read_body(request.into_body(), MAX_CONTROL_BODY).await {
            Ok(body) => body,
            Err(_) => return reply::rejection(&Rejection::too_large(MAX_CONTROL_BODY)),
        };
        let fault: Result<Fault, String> = serde_json::from_slice(&body).map_err(|error| error.to_string());
        match fault.and_then(|fault| fault.check().map(|()| fault).map_err(|error| error.to_string())) {
            Ok(fault) => {
                tracing::info!(service = %self.config.name, ?fault, "fault set");
                self.set_fault(fault);
                reply::serialized(&self.fault())
            }
            Err(reason) => reply::rejection(&Rejection::request(reason)),
        }
    }

    /// A call to the model.
    async fn work(
        &self,
        request: Request<Incoming>,
        link: Link,
        endpoint: Endpoint,
    ) -> Result<Response<SimBody>, Broken> {
        let (mut call, number) = Call::begin(&self.counters);
        let fault = self.fault();
        let half_way = match (fault.truncate, fault.stall) {
            (Some(Truncate::Abort), _) => HalfWay::Break,
            (Some(Truncate::Clean), _) => HalfWay::End,
            (None, true) => HalfWay::Stall,
            (None, false) => HalfWay::GoOn,
        };
        match self.answer(&mut call, number, fault, request, &link, endpoint).await {
            Ok(Reply::Whole(body)) if matches!(half_way, HalfWay::Break | HalfWay::End) => {
                call.ended(Ending::Truncated);
                Ok(reply::short(&body))
            }
            Ok(Reply::Whole(body)) => {
                call.ended(Ending::Ok);
                Ok(reply::json(body))
            }
            Ok(Reply::Faulty(response, ending)) => {
                call.ended(ending);
                Ok(response)
            }
            Ok(Reply::Stream(events)) => {
                let body = StreamBody::new(events, self.pace(), half_way, call);
                Ok(reply::events(SimBody::Stream(Box::new(body))))
            }
            Err(Stop::Reject(rejection)) => {
                call.ended(Ending::of_status(rejection.status.as_u16()));
                Ok(reply::rejection(&rejection))
            }
            Err(Stop::Break(ending)) => {
                call.ended(ending);
                Err(Broken)
            }
        }
    }

    async fn answer(
        &self,
        call: &mut Call,
        number: u64,
        fault: Fault,
        request: Request<Incoming>,
        link: &Link,
        endpoint: Endpoint,
    ) -> Result<Reply, Stop> {
        let (parts, body) = request.into_parts();
        let body = read_body(body, self.config.max_body).await?;
        if self.config.capture {
            let captured = capture(&parts, &body);
            *self.counters.last_request.lock().expect("no holder panics") = Some(captured);
        }
        let seed = self.config.seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut work = Work { number, fault, rng: Pcg64Mcg::seed_from_u64(seed), body };
        self.authorize(&parts.headers)?;
        check_content_type(&parts)?;
        self.misbehave(&mut work, link).await?;
        match endpoint {
            Endpoint::Chat => self.chat(call, work).await,
            Endpoint::Embeddings => self.embeddings(call, work).await,
        }
    }

    async fn chat(&self, call: &mut Call, mut work: Work) -> Result<Reply, Stop> {
        let body = work.body.clone();
        let request = request::chat(&body, &self.config.models)?;
        call.slot = self.take_slot().await?;
        self.wait(self.latency(&mut work)).await;
        if work.fault.stream_error && request.stream {
            return Ok(Reply::Faulty(reply::error_event(), Ending::ServerError));
        }
        if work.fault.garbage.is_some() {
            return Ok(Reply::Faulty(reply::garbage(request.stream), Ending::Garbage));
        }
        let answer = self.compose(&request, work.number);
        if request.stream {
            return Ok(Reply::Stream(answer.into_events(request.include_usage)));
        }
        self.wait(self.pace().due(answer.tokens - 1)).await;
        Ok(Reply::Whole(answer.completion()))
    }

    async fn embeddings(&self, call: &mut Call, mut work: Work) -> Result<Reply, Stop> {
        let answer = embeddings::answer(&work.body, &self.config.models)?;
        call.slot = self.take_slot().await?;
        self.wait(self.latency(&mut work)).await;
        if work.fault.garbage.is_some() {
            return Ok(Reply::Faulty(reply::garbage(false), Ending::Garbage));
        }
        Ok(Reply::Whole(answer))
    }

    fn compose(&self, request: &ChatRequest<'_>, number: u64) -> Answer {
        let wanted = self.config.answer_tokens.max(1);
        let tokens = request.max_tokens.map_or(wanted, |limit| limit.min(wanted));
        Answer {
            service: self.name.clone(),
            model: reply::quote(&request.model),
            number,
            digest: digest(request.messages),
            prompt_tokens: (request.messages.len() as u64).div_ceil(4),
            tokens,
            cut: tokens < wanted,
        }
    }

    /// The faults that come before the request is even looked at.
    async fn misbehave(&self, work: &mut Work, link: &Link) -> Result<(), Stop> {
        if work.fault.hang {
            pending::<()>().await;
        }
        if work.fault.reset {
            link.end_with(Farewell::Reset);
            return Err(Stop::Break(Ending::Reset));
        }
        if work.fault.garbage == Some(Garbage::Http) {
            link.end_with(Farewell::Garbage);
            return Err(Stop::Break(Ending::Garbage));
        }
        if work.fault.errors.is_some_and(|share| work.rng.random_bool(share)) {
            return Err(Rejection::failure(work.fault.status.unwrap_or(500), work.fault.retry_after).into());
        }
        if self.config.error_rate > 0.0 && work.rng.random_bool(self.config.error_rate.min(1.0)) {
            return Err(Rejection::failure(500, None).into());
        }
        Ok(())
    }

    fn authorize(&self, headers: &http::HeaderMap) -> Result<(), Rejection> {
        let Some(key) = &self.config.api_key else { return Ok(()) };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        match given.map(|value| value.strip_prefix("Bearer ") == Some(key)) {
            Some(true) => Ok(()),
            given => Err(Rejection::unauthorized(given.is_some())),
        }
    }

    /// Waits for a slot while the queue has room.
    async fn take_slot(&self) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        let (Some(slots), Some(capacity)) = (&self.slots, self.config.capacity) else { return Ok(None) };
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return Ok(Some(slot));
        }
        let place = Place::take(&self.waiting, capacity.queue).ok_or_else(Rejection::queue_full)?;
        let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
        drop(place);
        Ok(Some(slot))
    }

    fn latency(&self, work: &mut Work) -> Duration {
        self.config.latency.draw(&mut work.rng) + work.fault.latency.unwrap_or_default()
    }

    fn pace(&self) -> Pace {
        let speed = self.config.tokens_per_second;
        let per_token = if speed > 0.0 { Duration::from_secs_f64(1.0 / speed) } else { Duration::ZERO };
        Pace { first_token: self.config.first_token, per_token }
    }

    async fn wait(&self, wait: Duration) {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// A place in the queue, given back on drop.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, places: usize) -> Option<Self> {
        if waiting.fetch_add(1, Relaxed) < places {
            return Some(Self(waiting));
        }
        waiting.fetch_sub(1, Relaxed);
        None
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

async fn read_body(body: Incoming, limit: usize) -> Result<Bytes, Rejection> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Rejection::too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Rejection::too_large(limit)),
        // The caller broke off; whatever is answered will not be read.
        Err(_) => Err(Rejection::request("The request body was cut off.")),
    }
}

fn check_content_type(parts: &Parts) -> Result<(), Rejection> {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = content_type.is_some_and(|value| {
        value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
    });
    if is_json { Ok(()) } else { Err(Rejection::content_type()) }
}

fn capture(parts: &Parts, body: &[u8]) -> CapturedRequest {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    CapturedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        version: format!("{:?}", parts.version),
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
            .collect(),
        body: text(body),
    }
}
