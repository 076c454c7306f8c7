//! Why an answer ended, in Anthropic's words.
//!
//! `pause_turn` (a server tool needs another round) and `model_context_window_exceeded` have no twin elsewhere; the
//! native word goes along.

use crate::exchange::Stop;

/// What a `stop_reason` means. One that is not known ends the answer, as any does.
pub(super) fn read(native: &str) -> Stop {
    match native {
        "stop_sequence" => Stop::Sequence,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::ToolCalls,
        "refusal" => Stop::ContentFilter,
        _ => Stop::End,
    }
}

/// The `stop_reason` for an end. `native`, the service's own word, is kept where it is one of Anthropic's and still
/// means this end.
pub(super) fn write(stop: Stop, native: Option<&str>) -> &'static str {
    const SPECIAL: [&str; 2] = ["pause_turn", "model_context_window_exceeded"];
    if let Some(special) = SPECIAL.into_iter().find(|word| Some(*word) == native && read(word) == stop) {
        return special;
    }
    match stop {
        Stop::End => "end_turn",
        Stop::Sequence => "stop_sequence",
        Stop::Length => "max_tokens",
        Stop::ToolCalls => "tool_use",
        Stop::ContentFilter => "refusal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_as_it_was() {
        for native in [
            "end_turn",
            "stop_sequence",
            "max_tokens",
            "tool_use",
            "refusal",
            "pause_turn",
            "model_context_window_exceeded",
        ] {
            assert_eq!(write(read(native), Some(native)), native);
        }
    }

    #[test]
    fn a_foreign_word_and_one_that_no_longer_fits_are_replaced() {
        assert_eq!(write(Stop::Length, Some("MAX_TOKENS")), "max_tokens");
        assert_eq!(write(Stop::End, Some("tool_use")), "end_turn");
        assert_eq!(write(Stop::ToolCalls, Some("pause_turn")), "tool_use");
        assert_eq!(read("something_new"), Stop::End);
    }
}
