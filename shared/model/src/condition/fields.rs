//! What conditions can speak of.

/// The fields a condition may use, each with its CEL type and what it is.
pub const CONTEXT_FIELDS: &[(&str, &str, &str)] = &[
    ("method", "string", "HTTP method"),
    ("path", "string", "request path without the query"),
    ("host", "string", "the Host header or :authority, in lower case, without the port"),
    ("headers", "map(string, string)", "request headers, lower-case names"),
    ("client_ip", "string", "address of the peer"),
    ("protocol", "string", PROTOCOLS),
    ("model", "string", "the model the client asked for"),
    ("stream", "bool", "does the client want a stream?"),
    ("message_count", "int", "how many messages the conversation has"),
    ("system_prompt", "bool", "is there a system or developer message?"),
    ("prompt_tokens", "int", "estimate of the prompt's tokens"),
    ("max_tokens", "int", "the client's limit, 0 when not given"),
    ("temperature", "double", "sampling temperature, 1.0 when not given"),
    ("tools", "int", "how many tools the request declares"),
    ("images", "bool", "does a message hold an image?"),
    ("audio", "bool", "is there sound in a message, or wanted in the answer?"),
    ("json_schema", "bool", "must the answer follow a JSON Schema?"),
    (
        "language",
        "string",
        "zh, en, ja, ko or other, by the script of the beginning of what the user said last",
    ),
    ("capability", "string", "what the request needs: what the client named, or what its text is taken for"),
    ("capability_confidence", "double", "how sure that is, 0 to 1"),
    ("user", "string", "the end user, as the body names it, empty when absent"),
    (
        "session",
        "string",
        "the x-session-id header, or the conversation that the body names, empty when absent",
    ),
    ("biz_type", "string", "the x-biz-type header, empty when absent"),
    ("bucket", "int", "0 to 99, the same for all requests of a session, or else drawn from the request id"),
    ("now", "timestamp", "when the request arrived"),
    ("hour", "int", "0 to 23, UTC"),
    ("weekday", "int", "1 = Monday to 7 = Sunday, UTC"),
    ("date", "string", "like 2026-12-01, UTC"),
    ("zone", "string", "the proxy's zone"),
    ("region", "string", "the proxy's region"),
    ("node", "string", "the proxy's id"),
    ("backends", "map(string, map(string, dyn))", "how backends are doing, by name; see below"),
];

/// What `protocol` can be: each protocol that clients speak.
const PROTOCOLS: &str = "openai-chat, openai-responses, openai-completions, openai-embeddings, openai-rerank, \
    openai-moderations, openai-images, openai-audio, anthropic-messages, gemini, invoke, grpc, or http for any other call";

/// Functions beside those of CEL, each as it is written and what it gives.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("hour(\"Asia/Shanghai\")", "`hour` on the clocks of a time zone, by its IANA name"),
    ("weekday(\"Asia/Shanghai\")", "`weekday` there"),
    ("date(\"Asia/Shanghai\")", "`date` there"),
];

/// Type names that CEL resolves like variables, as in `type(model) == string`.
pub const TYPE_NAMES: &[&str] =
    &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
