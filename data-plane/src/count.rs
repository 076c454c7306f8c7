//! Counting a conversation's tokens where no service of the route does it: an estimate, said to be one.

use http::{HeaderName, HeaderValue, Response, StatusCode};
use penstock_model::vendor::Call;
use penstock_providers::{anthropic, gemini};

use crate::answer::{self, AnswerBody};
use crate::ask::Ask;
use crate::ticket::Ticket;

const ESTIMATED: HeaderName = HeaderName::from_static("x-penstock-estimated");

/// The answer, unless a candidate can count for itself.
pub(crate) fn estimate(ticket: &Ticket, ask: &Ask<'_>) -> Option<Response<AnswerBody>> {
    let pool = ticket.decided?.pool;
    let table = &ticket.table;
    let mut candidates = table.pool(pool).candidates.iter();
    if candidates.any(|candidate| table.target(candidate.target).uri(ask.call).is_some()) {
        return None;
    }
    let tokens = ask.view.estimated_prompt_tokens();
    let body = match ask.call {
        Call::GeminiCountTokens => gemini::count_tokens_answer(tokens),
        _ => anthropic::count_tokens(tokens),
    };
    let mut response = answer::json(StatusCode::OK, body);
    response.headers_mut().insert(ESTIMATED, HeaderValue::from_static("true"));
    Some(response)
}
