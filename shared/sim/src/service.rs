//! What a service does with one call.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::{Answer, digest};
use crate::auth;
use crate::body::{Broken, Call, HalfWay, Pace, SimBody, Source, StreamBody};
use crate::config::ServiceConfig;
use crate::dialect::{Dialect, Endpoint, Route};
use crate::embeddings;
use crate::fault::{Fault, Garbage, Truncate};
use crate::io::{Farewell, Link};
use crate::reject::Rejection;
use crate::reply;
use crate::request::{self, ChatRequest};
use crate::script::{Script, Speaker};
use crate::shape::Shape;
use crate::speech::openai::Chat;
use crate::speech::{self, Frames, Plain, Speech};
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
    Whole(Plain),
    /// Instead of the answer: not what was asked for.
    Faulty(Response<SimBody>, Ending),
    Stream {
        events: Source,
        content_type: HeaderValue,
        half_way: HalfWay,
    },
}

/// A call on its way through the service.
struct Work {
    number: u64,
    fault: Fault,
    rng: Pcg64Mcg,
    parts: Parts,
    body: Bytes,
}

impl Work {
    fn incoming<'a>(&'a self, config: &'a ServiceConfig, model: Option<&'a str>) -> speech::Incoming<'a> {
        speech::Incoming { config, parts: &self.parts, body: &self.body, model }
    }
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
            (&Method::GET, "/health") => Ok(reply::json(Bytes::from_static(b"{\"status\":\"ok\"}"))),
            (&Method::GET, "/sim/stats") => Ok(reply::serialized(&self.counters.read())),
            (&Method::GET, "/sim/fault") => Ok(reply::serialized(&self.fault())),
            (&Method::POST, "/sim/fault") => Ok(self.control(request).await),
            (method, _) => match self.config.dialect.route(method, request.uri()) {
                Ok(Route { endpoint: Endpoint::Models, .. }) => Ok(self.list_models(request)),
                Ok(route) => self.work(request, link, route).await,
                Err(rejection) => Ok(reply::rejection(&rejection, self.config.dialect.shape())),
            },
        }
    }

    fn list_models(&self, request: Request<Incoming>) -> Response<SimBody> {
        match auth::authorize(&self.config, &request.into_parts().0, b"") {
            Ok(()) => reply::json(self.models.clone()),
            Err(rejection) => reply::rejection(&rejection, self.config.dialect.shape()),
        }
    }

    /// `POST /sim/fault`
    async fn control(&self, request: Request<Incoming>) -> Response<SimBody> {
        let body = match read_body(request.into_body(), MAX_CONTROL_BODY).await {
            Ok(body) => body,
            Err(_) => return reply::rejection(&Rejection::too_large(MAX_CONTROL_BODY), Shape::Openai),
        };
        let fault: Result<Fault, String> = serde_json::from_slice(&body).map_err(|error| error.to_string());
        match fault.and_then(|fault| fault.check().map(|()| fault).map_err(|error| error.to_string())) {
            Ok(fault) => {
                tracing::info!(service = %self.config.name, ?fault, "fault set");
                self.set_fault(fault);
                reply::serialized(&self.fault())
            }
            Err(reason) => reply::rejection(&Rejection::request(reason), Shape::Openai),
        }
    }

    /// A call to the model.
    async fn work(
        &self,
        request: Request<Incoming>,
        link: Link,
        route: Route,
    ) -> Result<Response<SimBody>, Broken> {
        let (mut call, number) = Call::begin(&self.counters);
        let fault = self.fault();
        let cut = fault.truncate.is_some();
        match self.answer(&mut call, number, fault, request, &link, &route).await {
            Ok(Reply::Whole(Plain { content_type, body })) if cut => {
                call.ended(Ending::Truncated);
                Ok(reply::short(content_type, &body))
            }
            Ok(Reply::Whole(Plain { content_type, body })) => {
                call.ended(Ending::Ok);
                Ok(reply::typed(content_type, SimBody::Whole(body)))
            }
            Ok(Reply::Faulty(response, ending)) => {
                call.ended(ending);
                Ok(response)
            }
            Ok(Reply::Stream { events, content_type, half_way }) => {
                let body = StreamBody::new(events, self.pace(), half_way, call);
                Ok(reply::typed(content_type, SimBody::Stream(Box::new(body))))
            }
            Err(Stop::Reject(rejection)) => {
                call.ended(Ending::of_status(rejection.status.as_u16()));
                Ok(reply::rejection(&rejection, route.shape))
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
        route: &Route,
    ) -> Result<Reply, Stop> {
        let (parts, body) = request.into_parts();
        let body = read_body(body, self.config.max_body).await?;
        if self.config.capture {
            let captured = capture(&parts, &body);
            *self.counters.last_request.lock().expect("no holder panics") = Some(captured);
        }
        let seed = self.config.seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut work = Work { number, fault, rng: Pcg64Mcg::seed_from_u64(seed), parts, body };
        auth::authorize(&self.config, &work.parts, &work.body)?;
        check_content_type(&work.parts, route)?;
        self.misbehave(&mut work, link).await?;
        match route.endpoint {
            Endpoint::Chat => self.chat(call, work).await,
            Endpoint::Embeddings => {
                let answer = embeddings::answer(&work.body, &self.config.models)?;
                self.directly(call, work, Plain { content_type: reply::JSON, body: answer }).await
            }
            Endpoint::Speech(speech) => self.speak(call, work, speech, route.model.as_deref()).await,
            Endpoint::Direct(answer) => {
                let answer = answer(&work.incoming(&self.config, route.model.as_deref()))?;
                self.directly(call, work, answer).await
            }
            Endpoint::Models => {
                Err(Rejection::unknown_path(&work.parts.method, work.parts.uri.path()).into())
            }
        }
    }

    /// OpenAI's chat. What asks for nothing special is read and answered the short way.
    async fn chat(&self, call: &mut Call, mut work: Work) -> Result<Reply, Stop> {
        let body = work.body.clone();
        let request = request::chat(&body, &self.config.models)?;
        if !request.plain || self.config.dialect == Dialect::OpenaiStrict {
            return self.speak(call, work, &Chat, None).await;
        }
        call.slot = self.take_slot().await?;
        self.wait(self.latency(&mut work)).await;
        if work.fault.stream_error && request.stream {
            return Ok(Reply::Faulty(reply::error_event(), Ending::ServerError));
        }
        if work.fault.garbage.is_some() {
            let content_type = if request.stream { reply::EVENTS } else { reply::JSON };
            return Ok(Reply::Faulty(reply::garbage(content_type), Ending::Garbage));
        }
        let answer = self.compose(&request, work.number);
        if request.stream {
            let events = Source::Chat(answer.into_events(request.include_usage));
            let half_way = half_way(&work.fault, &Chat);
            return Ok(Reply::Stream { events, content_type: reply::EVENTS, half_way });
        }
        self.wait(self.pace().due(answer.tokens - 1)).await;
        Ok(Reply::Whole(Plain { content_type: reply::JSON, body: answer.completion() }))
    }

    /// A conversation in any dialect.
    async fn speak(
        &self,
        call: &mut Call,
        mut work: Work,
        speech: &'static dyn Speech,
        model: Option<&str>,
    ) -> Result<Reply, Stop> {
        let asked = speech.check(&work.incoming(&self.config, model))?;
        call.slot = self.take_slot().await?;
        self.wait(self.latency(&mut work)).await;
        let stream = asked.stream;
        let content_type = if stream { speech.stream_type() } else { reply::JSON };
        if work.fault.garbage.is_some() {
            return Ok(Reply::Faulty(reply::garbage(content_type), Ending::Garbage));
        }
        let speaker = Speaker {
            service: &self.config.name,
            answer_tokens: self.config.answer_tokens.max(1),
            number: work.number,
        };
        let script = Script::write(asked, speaker);
        if stream {
            let mut frames = speech.stream(&script);
            if work.fault.stream_error {
                let head = frames.into_iter().take_while(|frame| !frame.token).map(|frame| frame.bytes);
                let error = speech.broken(&Rejection::failure(503, None));
                let body = SimBody::Whole(head.chain([error]).collect::<Vec<_>>().concat().into());
                return Ok(Reply::Faulty(reply::typed(content_type, body), Ending::ServerError));
            }
            frames.retain(|frame| !frame.bytes.is_empty());
            let half_way = half_way(&work.fault, speech);
            return Ok(Reply::Stream { events: Source::Frames(Frames::new(frames)), content_type, half_way });
        }
        self.wait(self.pace().due((script.tokens.output as u32).saturating_sub(1))).await;
        Ok(Reply::Whole(speech.whole(&script).into()))
    }

    /// A call whose answer needs no conversation.
    async fn directly(&self, call: &mut Call, mut work: Work, answer: Plain) -> Result<Reply, Stop> {
        call.slot = self.take_slot().await?;
        self.wait(self.latency(&mut work)).await;
        if work.fault.garbage.is_some() {
            return Ok(Reply::Faulty(reply::garbage(reply::JSON), Ending::Garbage));
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

fn check_content_type(parts: &Parts, route: &Route) -> Result<(), Rejection> {
    let content_type =
        parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let is_right = match route.endpoint {
        Endpoint::Direct(_) if parts.uri.path().contains("/audio/trans") => {
            media.eq_ignore_ascii_case("multipart/form-data")
        }
        // Ollama does not look.
        _ => media.eq_ignore_ascii_case("application/json") || route.shape == Shape::Ollama,
    };
    if is_right { Ok(()) } else { Err(Rejection::content_type()) }
}

/// What the fault in force does half-way through a stream.
fn half_way(fault: &Fault, speech: &dyn Speech) -> HalfWay {
    match (fault.truncate, fault.stall, fault.late_error) {
        (Some(Truncate::Abort), ..) => HalfWay::Break,
        (Some(Truncate::Clean), ..) => HalfWay::End,
        (None, true, _) => HalfWay::Stall,
        (None, false, true) => HalfWay::Fail(speech.broken(&Rejection::failure(503, None))),
        (None, false, false) => HalfWay::GoOn,
    }
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
