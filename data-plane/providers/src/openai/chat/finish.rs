//! Why an answer ended, in this dialect's words and those that its vendors added.

use crate::exchange::Stop;
use crate::openai::error_body::VendorError;

/// The word for a reason.
pub(super) fn word(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence => "stop",
        Stop::Length => "length",
        Stop::ToolCalls => "tool_calls",
        Stop::ContentFilter => "content_filter",
    }
}

/// What a word means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The answer is complete.
    Stop(Stop),
    /// The service failed; the HTTP status that this stands for.
    Failed(u16),
}

/// Reads a `finish_reason`. A word that nobody has told us of is a plain end.
pub(super) fn read(word: &str) -> Meaning {
    Meaning::Stop(match word {
        // Mistral; Zhipu.
        "length" | "model_length" | "model_context_window_exceeded" | "max_tokens" => Stop::Length,
        "tool_calls" | "function_call" => Stop::ToolCalls,
        // Zhipu.
        "content_filter" | "sensitive" => Stop::ContentFilter,
        // DeepSeek; Zhipu; Mistral.
        "insufficient_system_resource" => return Meaning::Failed(503),
        "network_error" | "error" => return Meaning::Failed(500),
        _ => Stop::End,
    })
}

/// The reason, seen together with the rest of the answer: some services say `stop` although tools are to be called, and
/// some name the stop sequence in a field of its own.
pub(super) fn refine(stop: Stop, calls_tools: bool, sequence: bool) -> Stop {
    match stop {
        Stop::End if calls_tools => Stop::ToolCalls,
        Stop::End if sequence => Stop::Sequence,
        stop => stop,
    }
}

/// The error that a failing word stands for.
pub(super) fn failure(word: &str) -> VendorError {
    VendorError {
        code: Some(word.to_owned()),
        message: Some(format!("the service stopped with finish_reason \"{word}\"")),
        ..VendorError::default()
    }
}
