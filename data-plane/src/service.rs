//! One request, from its head to its answer.
//!
//! ```text
//! path → body → view → decide ─┬─▶ dispatch ──▶ relay ──▶ settle
//!                              └─▶ refusal ─────────────▶ settle
//! ```

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use penstock_decision::context::RequestContext;
use penstock_decision::facts::Texts;
use penstock_decision::{Facts, Undecided, decide};
use penstock_model::Policy;
use penstock_model::policy::CapabilityId;
use penstock_model::vendor::{Call as VendorCall, Wire};
use penstock_request::{Api, Origin, needs, with_view};

use crate::answer::{self, AnswerBody};
use crate::ask::Ask;
use crate::attempt::{Call, Flow, Reply};
use crate::body;
use crate::cache::{self, Looked};
use crate::clock::{Moment, unix_ms};
use crate::count;
use crate::deadline::deadline;
use crate::dispatch::dispatch;
use crate::error::Refusal;
use crate::facts::LiveFacts;
use crate::generic;
use crate::invoke;
use crate::models;
use crate::relay::Relay;
use crate::table::{RouteTable, Target};
use crate::ticket::{Chosen, RequestFacts, Ticket};
use crate::worker::Worker;

/// With it a client says what it needs, whatever the protocol.
const CAPABILITY: &str = "x-penstock-capability";

/// Answers one request.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let started = worker.shared.clock.now();
    let (head, incoming) = request.into_parts();
    let api = Api::of_request(&head);
    let turned_away = |refusal: &Refusal| turned_away(&worker, api.wire(), refusal);
    if let Some(method) = api.method().filter(|method| *method != head.method)
        && !(method == Method::GET && head.method == Method::HEAD)
    {
        let allow = if method == Method::GET { "GET, HEAD" } else { "POST" };
        return turned_away(&Refusal::WrongMethod { allow });
    }
    if api == Api::Health {
        return answer::json(StatusCode::OK, Bytes::from_static(b"{\"status\":\"ok\"}"));
    }
    let Some(table) = worker.shared.holder.table.load_full() else {
        return turned_away(&Refusal::NoPolicy);
    };
    if api.is_generic() && !table.has_generic() {
        return turned_away(&Refusal::UnknownPath);
    }
    match &api {
        Api::Models { wire } => {
            let wire = models::shape(*wire, &head.headers);
            answer::json(StatusCode::OK, models::list(table.policy(), wire))
        }
        Api::Model { wire, id } => {
            let wire = models::shape(*wire, &head.headers);
            match models::one(table.policy(), id, wire) {
                Some(model) => answer::json(StatusCode::OK, model),
                None => turned_away(&Refusal::UnknownModel),
            }
        }
        // In a box, because the connection keeps the room of a whole request for as long as a stream flows.
        _ => Box::pin(call(Rc::clone(&worker), table, peer, &api, &head, incoming, started)).await,
    }
}

/// A refusal before there is anything to decide.
fn turned_away(worker: &Worker, wire: Wire, refusal: &Refusal) -> Response<AnswerBody> {
    *worker.meter.borrow_mut().refused.entry(refusal.status().as_u16()).or_default() += 1;
    answer::refusal(refusal, wire, "")
}

/// A call that goes to a service.
async fn call(
    worker: Rc<Worker>,
    table: Arc<RouteTable>,
    peer: SocketAddr,
    api: &Api<'_>,
    head: &http::request::Parts,
    incoming: Incoming,
    started: Moment,
) -> Response<AnswerBody> {
    let facts = facts(&worker, peer, api, head);
    let mut ticket = Ticket::new(worker, Arc::clone(&table), started, facts);
    if api.is_generic() {
        return answered(generic::serve(&mut ticket, api, head, incoming).await, ticket);
    }
    let body = match body::read(incoming, &head.headers, table.policy().body_limit).await {
        Ok(body) => body,
        Err(refusal) => return refused(ticket, &refusal),
    };
    ticket.request.bytes_in = body.len() as u64;
    let result = match api {
        Api::Invoke => invoke::serve(&mut ticket, head, &body).await,
        _ => forward(&mut ticket, api, head, &body).await,
    };
    answered(result, ticket)
}

fn answered(result: Result<Answered, Refusal>, ticket: Ticket) -> Response<AnswerBody> {
    match result {
        Ok(Answered::Here(response)) => finished(ticket, response),
        Ok(Answered::Flow(flow, target, idle)) => flowing(ticket, *flow, target, idle),
        Err(refusal) => refused(ticket, &refusal),
    }
}

/// How a call ended.
pub(crate) enum Answered {
    /// The answer is whole.
    Here(Response<AnswerBody>),
    /// The answer is still coming from this target.
    Flow(Box<Flow>, Arc<Target>, Duration),
}

impl Answered {
    /// The reply of a target.
    pub(crate) fn with(ticket: &mut Ticket, reply: Reply, target: Arc<Target>, call: &Call<'_>) -> Self {
        match reply {
            Reply::Whole { head, pieces } => {
                let (parts, ()) = head.into_parts();
                ticket.answer_begins(&parts.headers);
                pieces.iter().for_each(|piece| ticket.out(piece));
                ticket.answer_ends(ticket.worker.shared.clock.now());
                Self::Here(Response::from_parts(parts, AnswerBody::from(pieces)))
            }
            Reply::Flow(flow) => {
                ticket.answer_begins(flow.head.headers());
                Self::Flow(flow, target, call.timeouts.idle)
            }
        }
    }
}

fn facts(worker: &Worker, peer: SocketAddr, api: &Api<'_>, head: &http::request::Parts) -> RequestFacts {
    let headers = &head.headers;
    let decision = hex(worker.bits());
    let given = headers.get("x-request-id").filter(|id| sane(id));
    let parent = worker.shared.tracer.as_ref().and_then(|_| headers.get("traceparent")?.to_str().ok());
    RequestFacts {
        id: given.unwrap_or(&decision).clone(),
        decision,
        client: peer.ip(),
        method: if api.is_generic() { generic::method_name(&head.method) } else { "POST" },
        path: api.label(),
        protocol: api.protocol(),
        operation: api.operation(),
        wire: api.wire(),
        model: String::new(),
        stream: false,
        bytes_in: 0,
        parent: parent.map(str::to_owned),
    }
}

/// A request id that may be written into logs and headers as it is.
fn sane(id: &HeaderValue) -> bool {
    (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

fn hex(bits: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let text: [u8; 16] = std::array::from_fn(|at| DIGITS[(bits >> (60 - 4 * at) & 15) as usize]);
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static("0000000000000000"))
}

/// What [`decide_for`] needs of a request, whatever its protocol.
pub(crate) struct Asked<'a> {
    pub(crate) context: RequestContext<'a>,
    /// The capability that the body names. A body without such a field may have it in the header
    /// `x-penstock-capability`.
    pub(crate) capability: Option<CapabilityId>,
    /// Those of the last turn, then those of the first; gathered only when something asks for them.
    pub(crate) texts: &'a Texts<'a>,
}

/// A call of one of the protocols.
async fn forward(
    ticket: &mut Ticket,
    api: &Api<'_>,
    head: &http::request::Parts,
    body: &Bytes,
) -> Result<Answered, Refusal> {
    let ask = Ask::read(api, head, body).map_err(Refusal::InvalidBody)?;
    let view = &ask.view;
    let tokens = view.estimated_prompt_tokens();
    let context = with_view(context(ticket, api, head), view);
    ticket.request.asked_for(context.model);
    ticket.request.stream = view.stream;
    decide_for(ticket, &Asked { context, capability: None, texts: &|| view.telling_turns().collect() })?;
    if matches!(ask.call, VendorCall::CountTokens | VendorCall::GeminiCountTokens)
        && let Some(estimate) = count::estimate(ticket, &ask)
    {
        return Ok(Answered::Here(estimate));
    }
    let call = upstream_call(ticket, &ask)?;
    if let Some(kept) = look_up(ticket, api, &call).await {
        return Ok(Answered::Here(kept));
    }
    let (reply, target) = dispatch(ticket, &call, &needs(ask.call, view, tokens)).await?;
    Ok(Answered::with(ticket, reply, target, &call))
}

/// The answer that is kept for a call, if its route keeps answers and there is one.
async fn look_up(ticket: &mut Ticket, api: &Api<'_>, call: &Call<'_>) -> Option<Response<AnswerBody>> {
    let chosen = ticket.decided?;
    let table = Arc::clone(&ticket.table);
    let ttl = table.policy().routes[chosen.route.index()].cache?;
    let answers = table.answers.as_ref().filter(|_| call.ask.form.is_none())?;
    let ask = call.ask;
    let header = |name| ask.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let [version, beta] = ["anthropic-version", "anthropic-beta"].map(header);
    let model = ask.view.model.as_deref().unwrap_or_default();
    let named = [api.label(), table.pool_names(chosen.pool).1, model, version, beta];
    let key = cache::key(&table.snapshot, chosen.route, &named, ask.body)?;
    let clock = ticket.worker.shared.clock;
    // No longer than a service would be waited for.
    let patience = call.timeouts.first_token.min(call.deadline.since(clock.now()));
    match answers.look(key, ask.headers, ttl, patience, || clock.now()).await {
        Looked::Hit(kept) => {
            ticket.cache = "hit";
            let answer = kept.answer(clock.now());
            ticket.bytes_out = http_body::Body::size_hint(answer.body()).exact().unwrap_or(0);
            Some(answer)
        }
        Looked::Miss(keeper) => {
            ticket.cache = "miss";
            ticket.keep_with(keeper);
            None
        }
        Looked::Skip => {
            ticket.cache = "miss";
            None
        }
    }
}

/// What rules see of every call. Who and where we are, and when it is, is added by [`decide_for`].
pub(crate) fn context<'a>(
    ticket: &Ticket,
    api: &Api<'_>,
    head: &'a http::request::Parts,
) -> RequestContext<'a> {
    let origin = Origin {
        client_ip: ticket.request.client,
        request_id: "",
        unix_seconds: 0,
        zone: "",
        region: "",
        node: "",
    };
    penstock_request::context(api, head, &origin)
}

/// Route, capability, pool.
pub(crate) fn decide_for(ticket: &mut Ticket, asked: &Asked<'_>) -> Result<(), Refusal> {
    let worker = Rc::clone(&ticket.worker);
    let table = Arc::clone(&ticket.table);
    let node = &worker.shared.node;
    let capability = match asked.capability {
        Some(capability) => Some(capability),
        None => named_capability(table.policy(), asked.context.headers)?,
    };
    let context = RequestContext {
        request_id: ticket.request.id.to_str().unwrap_or_default(),
        unix_seconds: (unix_ms(worker.shared.clock.wall(ticket.started)) / 1_000) as u64,
        zone: &node.zone,
        region: &node.region,
        node: &node.id,
        ..asked.context
    };
    let backends = LiveFacts::new(&table, ticket.started);
    let texts = || (asked.texts)();
    let facts = Facts::new(context, table.policy(), &table.classifier, capability, &texts, &backends);
    let decided = decide(&table.rules, &facts).map_err(|undecided| match undecided {
        Undecided::NoRoute => Refusal::NoRoute,
        Undecided::NoBackend { .. } => Refusal::NoBackend,
    })?;
    for failed in &decided.failed {
        tracing::debug!(route = failed.route.0, error = %failed.error, "a condition could not be evaluated");
    }
    ticket.decided =
        Some(Chosen { route: decided.route, classification: decided.classification, pool: decided.pool });
    Ok(())
}

/// The capability that the header names, if there is one.
fn named_capability(policy: &Policy, headers: &http::HeaderMap) -> Result<Option<CapabilityId>, Refusal> {
    let Some(name) = headers.get(CAPABILITY) else { return Ok(None) };
    let known = name.to_str().ok().and_then(|name| policy.find_capability(name.trim()));
    known.map(Some).ok_or(Refusal::UnknownCapability)
}

/// The call for the services of the route that was decided.
pub(crate) fn upstream_call<'a>(ticket: &Ticket, ask: &'a Ask<'a>) -> Result<Call<'a>, Refusal> {
    let chosen = ticket.decided.ok_or(Refusal::Internal)?;
    let route = &ticket.table.policy().routes[chosen.route.index()];
    let deadline = deadline(ask.headers, ticket.started, route.timeouts.total)?;
    Ok(Call { ask, timeouts: route.timeouts, strict: route.strict, deadline })
}

fn finished(mut ticket: Ticket, mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    ticket.status = response.status().as_u16();
    ticket.first_token = ticket.attempts.last().and_then(|attempt| attempt.first_byte);
    answer::sign(&mut response, &ticket, ticket.attempts.len());
    if let Some(last) = ticket.attempts.last() {
        answer::sign_backend(&mut response, last.target.backend.clone());
    }
    response
}

fn flowing(mut ticket: Ticket, flow: Flow, target: Arc<Target>, idle: Duration) -> Response<AnswerBody> {
    let Flow { head: mut signed, held, exchange, passage } = flow;
    ticket.status = signed.status().as_u16();
    answer::sign(&mut signed, &ticket, ticket.attempts.len() + 1);
    answer::sign_backend(&mut signed, target.backend.clone());
    let (parts, ()) = signed.into_parts();
    let relay = Relay::new(ticket, target, held, exchange, passage, idle);
    Response::from_parts(parts, AnswerBody::Relay(Box::new(relay)))
}

fn refused(mut ticket: Ticket, refusal: &Refusal) -> Response<AnswerBody> {
    ticket.error_code = refusal.code();
    let id = ticket.request.decision.to_str().unwrap_or_default();
    let mut response = answer::refusal(refusal, ticket.request.wire, id);
    if let Some(last) = ticket.attempts.last().map(|attempt| attempt.target.backend.clone()) {
        answer::sign_backend(&mut response, last);
    }
    // Not that of the answer, which says 200 where it is gRPC.
    ticket.status = refusal.status().as_u16();
    answer::sign(&mut response, &ticket, ticket.attempts.len());
    response
}
