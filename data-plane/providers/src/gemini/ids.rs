//! Ids of calls to which nobody gave one.

/// How all of them begin.
pub(super) const MADE_UP: &str = "penstock_";

/// For a call in an answer: unique as long as `answer`, our id of the answer, is.
pub(super) fn in_answer(answer: &str, choice: u32, call: u32) -> String {
    format!("{MADE_UP}{answer}_{choice}_{call}")
}

/// For the `call`-th call of a conversation that a client sent.
pub(super) fn in_request(call: usize) -> String {
    format!("{MADE_UP}{call}")
}

/// `id`, unless it is one of these.
pub(super) fn given(id: &str) -> Option<&str> {
    (!id.starts_with(MADE_UP)).then_some(id)
}
