//! Spans, made when a request has ended: one for the request, one below it per attempt.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Span, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use penstock_model::outcome::Outcome;
use penstock_model::policy::{Address, Host};
use penstock_telemetry::names::{attribute, span};

use crate::clock::Moment;
use crate::record;
use crate::settle;
use crate::ticket::{Attempt, Ticket};

/// Emits the spans of a request that ended `now`.
pub(crate) fn emit(tracer: &SdkTracer, ticket: &Ticket, now: Moment) {
    let ended = SystemTime::now();
    let wall = |moment: Moment| ended - Duration::from_micros(now.micros_since(moment));
    let parent = ticket.request.parent.as_deref().and_then(parent).unwrap_or_default();
    let root = tracer
        .span_builder(span::name(ticket.request.operation, &ticket.request.model))
        .with_kind(SpanKind::Server)
        .with_start_time(wall(ticket.started))
        .with_attributes(request_attributes(ticket))
        .start_with_context(tracer, &parent);
    let context = parent.with_span(root);
    for (index, attempt) in ticket.attempts.iter().enumerate() {
        let mut child = tracer
            .span_builder(span::name(ticket.request.operation, &attempt.target.state.model))
            .with_kind(SpanKind::Client)
            .with_start_time(wall(attempt.started))
            .with_attributes(attempt_attributes(ticket, attempt, index))
            .start_with_context(tracer, &context);
        if attempt.outcome != Outcome::Ok {
            child.set_status(Status::error(attempt.outcome.as_str()));
        }
        child.end_with_timestamp(wall(attempt.ended));
    }
    let root = context.span();
    if !ticket.error_code.is_empty() {
        root.set_status(Status::error(ticket.error_code));
    }
    root.end_with_timestamp(ended);
}

/// W3C trace context: `00-TRACE-SPAN-FLAGS`.
fn parent(header: &str) -> Option<Context> {
    let mut parts = header.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || trace.len() != 32 || span.len() != 16 || flags.len() != 2 {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()? & 1),
        true,
        TraceState::default(),
    );
    context.is_valid().then(|| Context::new().with_remote_span_context(context))
}

fn request_attributes(ticket: &Ticket) -> Vec<KeyValue> {
    let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let mut attributes = vec![
        KeyValue::new(attribute::OPERATION, ticket.request.operation),
        KeyValue::new(attribute::REQUEST_STREAM, ticket.request.stream),
        KeyValue::new(attribute::HTTP_METHOD, ticket.request.method),
        KeyValue::new(attribute::HTTP_ROUTE, ticket.request.path),
        KeyValue::new(attribute::HTTP_STATUS, i64::from(ticket.status)),
        KeyValue::new(attribute::DECISION_ID, text(&ticket.request.decision)),
        KeyValue::new(attribute::REQUEST_ID, text(&ticket.request.id)),
        KeyValue::new(attribute::ATTEMPTS, ticket.attempts.len() as i64),
    ];
    if !ticket.request.model.is_empty() {
        attributes.push(KeyValue::new(attribute::REQUEST_MODEL, ticket.request.model.clone()));
    }
    if let Some(chosen) = ticket.decided {
        let (route, capability) = ticket.table.pool_names(chosen.pool);
        attributes.push(KeyValue::new(attribute::ROUTE, route.to_owned()));
        attributes.push(KeyValue::new(attribute::CAPABILITY, capability.to_owned()));
    }
    if !ticket.error_code.is_empty() {
        attributes.push(KeyValue::new(attribute::ERROR_TYPE, ticket.error_code));
    }
    attributes
}

fn host(address: &Address) -> String {
    match &address.host {
        Host::Name(name) => name.clone(),
        Host::Ip(ip) => ip.to_string(),
    }
}

fn attempt_attributes(ticket: &Ticket, attempt: &Attempt, index: usize) -> Vec<KeyValue> {
    let address = &attempt.target.upstream.address;
    let mut attributes = vec![
        KeyValue::new(attribute::OPERATION, ticket.request.operation),
        KeyValue::new(attribute::PROVIDER, "openai"),
        KeyValue::new(attribute::REQUEST_MODEL, attempt.target.state.model.clone()),
        KeyValue::new(attribute::BACKEND, attempt.target.state.backend.clone()),
        KeyValue::new(attribute::SERVER_ADDRESS, host(address)),
        KeyValue::new(attribute::SERVER_PORT, i64::from(address.port)),
        KeyValue::new(attribute::ATTEMPT, index as i64 + 1),
        KeyValue::new(attribute::OUTCOME, attempt.outcome.as_str()),
    ];
    if attempt.status > 0 {
        attributes.push(KeyValue::new(attribute::HTTP_STATUS, i64::from(attempt.status)));
    }
    if attempt.outcome != Outcome::Ok {
        attributes.push(KeyValue::new(attribute::ERROR_TYPE, attempt.outcome.as_str()));
    }
    if let Some(first) = attempt.first_byte.filter(|_| ticket.request.stream) {
        let seconds = first.micros_since(attempt.started) as f64 / 1e6;
        attributes.push(KeyValue::new(attribute::TIME_TO_FIRST_CHUNK, seconds));
    }
    let last = index + 1 == ticket.attempts.len();
    if last && record::succeeded(ticket) {
        attributes.extend(usage_attributes(ticket, attempt));
    }
    attributes
}

fn usage_attributes(ticket: &Ticket, attempt: &Attempt) -> Vec<KeyValue> {
    let Some(usage) = ticket.usage else { return Vec::new() };
    let count = |key, tokens: Option<u64>| tokens.map(|tokens| KeyValue::new(key, tokens as i64));
    let mut attributes: Vec<_> = [
        count(attribute::INPUT_TOKENS, usage.input_tokens),
        count(attribute::CACHED_INPUT_TOKENS, usage.cached_input_tokens),
        count(attribute::OUTPUT_TOKENS, usage.output_tokens),
    ]
    .into_iter()
    .flatten()
    .collect();
    let cost = ticket
        .decided
        .and_then(|chosen| settle::cost(&ticket.table, chosen.pool, attempt.pick.index, ticket.usage));
    if let Some(nanos) = cost {
        attributes.push(KeyValue::new(attribute::COST_AMOUNT, nanos as f64 / 1e9));
        attributes.push(KeyValue::new(attribute::COST_SOURCE, "local"));
    }
    attributes
}
