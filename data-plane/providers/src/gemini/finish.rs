//! Why a candidate ended: `finishReason`.

use crate::exchange::Stop;
use crate::openai::error_body::VendorError;

/// Content that is not allowed.
const FILTERED: [&str; 10] = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
];

/// The service failed; what came before is of no use.
const FAILED: [&str; 9] = [
    MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "OTHER",
    "LANGUAGE",
    "NO_IMAGE",
    "IMAGE_OTHER",
];

/// The model called a function with arguments that are not JSON.
pub(super) const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";

/// What a reason means for a candidate that has called functions, or has not. `Ok(None)` when it has not ended; `Err`
/// when the reason is a failure. An unknown reason is an end.
pub(super) fn read(reason: &str, calls: bool) -> Result<Option<Stop>, ()> {
    match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => Ok(None),
        "MAX_TOKENS" => Ok(Some(Stop::Length)),
        _ if FILTERED.contains(&reason) => Ok(Some(Stop::ContentFilter)),
        _ if FAILED.contains(&reason) => Err(()),
        _ if calls => Ok(Some(Stop::ToolCalls)),
        _ => Ok(Some(Stop::End)),
    }
}

/// A reason that is a failure, as an error.
pub(super) fn failure(reason: &str, message: Option<&str>) -> VendorError {
    let said =
        message.and_then(|text| VendorError::from_value(&serde_json::json!({ "message": text }), 0).message);
    let message = said.unwrap_or_else(|| format!("the service stopped with finishReason {reason}"));
    VendorError { code: Some(reason.to_owned()), message: Some(message), ..VendorError::default() }
}

/// The reason that a client is told. `native` is the service's word, which is kept if it is one of this dialect.
pub(super) fn write(stop: Stop, native: Option<&str>) -> &str {
    match stop {
        Stop::End | Stop::Sequence | Stop::ToolCalls => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::ContentFilter => native.filter(|word| FILTERED.contains(word)).unwrap_or("SAFETY"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_after_a_call_asks_for_the_tool_and_a_limit_stays_a_limit_sse_07() {
        assert_eq!(read("STOP", false), Ok(Some(Stop::End)));
        assert_eq!(read("STOP", true), Ok(Some(Stop::ToolCalls)));
        assert_eq!(read("MAX_TOKENS", true), Ok(Some(Stop::Length)));
        assert_eq!(read("FINISH_REASON_UNSPECIFIED", true), Ok(None));
        assert_eq!(read("SOMETHING_NEW", false), Ok(Some(Stop::End)));
        assert_eq!(read("OTHER", false), Err(()));
    }

    #[test]
    fn a_filters_name_survives_and_a_foreign_word_does_not() {
        for word in FILTERED {
            let stop = read(word, true).unwrap().unwrap();
            assert_eq!((stop, write(stop, Some(word))), (Stop::ContentFilter, word));
        }
        assert_eq!(write(Stop::ContentFilter, Some("refusal")), "SAFETY");
        assert_eq!(write(Stop::ToolCalls, Some("tool_use")), "STOP");
    }
}
