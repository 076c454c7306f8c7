//! `POST /api/invoke`: a prompt in, an answer out, with the score of every candidate.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use penstock_decision::context::RequestContext;
use penstock_decision::filter::Needs;
use penstock_decision::plan::Planned;
use penstock_model::outcome::Outcome;
use penstock_providers::openai::invoke;
use penstock_request::{Api, with_view};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::ask::Ask;
use crate::attempt::Reply;
use crate::dispatch::dispatch;
use crate::error::{Failure, Refusal};
use crate::service::{Answered, Asked, context, decide_for, upstream_call};
use crate::ticket::Ticket;

/// Answers the call.
pub(crate) async fn serve(
    ticket: &mut Ticket,
    head: &http::request::Parts,
    body: &Bytes,
) -> Result<Answered, Refusal> {
    let asked = invoke::view(body).map_err(Refusal::InvalidBody)?;
    if asked.stream {
        return Err(Refusal::StreamUnsupported);
    }
    let capability = asked
        .capability
        .as_deref()
        .map(|name| ticket.table.policy().find_capability(name).ok_or(Refusal::UnknownCapability))
        .transpose()?;
    let chat = invoke::chat_body(&asked.prompt, asked.model.as_deref().unwrap_or("auto"), false);
    let api = Api::of("/v1/chat/completions");
    let mut ask = Ask::read(&api, head, &chat).map_err(|_| Refusal::Internal)?;
    ask.path_and_query = api.label();
    let tokens = ask.view.estimated_prompt_tokens();
    let context = with_view(context(ticket, &Api::Invoke, head), &ask.view);
    let context = RequestContext { model: asked.model.as_deref().unwrap_or_default(), ..context };
    ticket.request.asked_for(context.model);
    let texts = || vec![Cow::Borrowed(asked.prompt.as_ref())];
    decide_for(ticket, &Asked { context, capability, texts: &texts })?;

    let call = upstream_call(ticket, &ask)?;
    let needs = Needs { tokens, ..Needs::default() };
    let (reply, _) = dispatch(ticket, &call, &needs).await?;
    let text = match reply {
        Reply::Whole { pieces, .. } => invoke::answer(&pieces.concat()),
        Reply::Flow(_) => None,
    };
    let text = text.ok_or_else(|| Refusal::Upstream(Failure::silent(Outcome::InvalidResponse)))?;
    let answer: Bytes = describe(ticket, &text).to_string().into();
    ticket.bytes_out = answer.len() as u64;
    Ok(Answered::Here(answer::json(StatusCode::OK, answer)))
}

fn describe(ticket: &Ticket, text: &str) -> Value {
    let now = ticket.worker.shared.clock.now();
    let last = ticket.attempts.last();
    let state = last.map(|attempt| &attempt.target.state);
    let chosen = ticket.decided.map(|chosen| chosen.classification.capability);
    let capability = chosen.map(|id| ticket.table.policy().capabilities[id.index()].name.as_str());
    json!({
        "answer": text,
        "backend_id": state.map(|state| state.backend.as_str()),
        "model": state.map(|state| state.model.as_str()),
        "capability": capability,
        "latency_ms": now.micros_since(ticket.started) as f64 / 1e3,
        "decision_id": ticket.request.decision.to_str().unwrap_or_default(),
        "score_detail": score_detail(ticket),
    })
}

/// Every candidate with every term.
fn score_detail(ticket: &Ticket) -> Vec<Value> {
    let Some(chosen) = ticket.decided else { return Vec::new() };
    let table = &ticket.table;
    let answered = ticket.attempts.last().map(|attempt| attempt.pick.index);
    let entry = |(index, planned): (usize, &Planned)| {
        let (backend, model) = table.policy().target_key(planned.target);
        let terms: Map<String, Value> =
            planned.terms.iter().map(|term| (term.name.to_owned(), json!(term.value))).collect();
        json!({
            "backend": backend,
            "model": model,
            "score": planned.log_score,
            "weight": planned.weight,
            "terms": terms,
            "excluded": ticket.exclusions.name(index),
            "chosen": answered == Some(index),
        })
    };
    table.plans.pool(chosen.pool).iter().enumerate().map(entry).collect()
}
