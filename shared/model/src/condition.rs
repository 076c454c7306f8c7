//! CEL conditions of routes.

/// A compiled CEL condition.
#[derive(Debug)]
pub struct Condition {
    /// As written.
    pub source: String,
    /// Checked: it only refers to [`CONTEXT_FIELDS`].
    pub program: cel::Program,
}

/// The names a condition may use, each with its CEL type and what it is.
pub const CONTEXT_FIELDS: &[(&str, &str, &str)] = &[
    ("method", "string", "HTTP method"),
    ("path", "string", "request path without the query"),
    ("host", "string", "the Host header or :authority"),
    ("headers", "map(string, string)", "request headers, lower-case names"),
    ("client_ip", "string", "address of the peer"),
    ("protocol", "string", "openai-chat, openai-embeddings or invoke"),
    ("model", "string", "the model the client asked for"),
    ("stream", "bool", "does the client want a stream?"),
    ("message_count", "int", "how many messages the conversation has"),
    ("system_prompt", "bool", "is there a system or developer message?"),
    ("prompt_tokens", "int", "estimate of the prompt's tokens"),
    ("max_tokens", "int", "the client's limit, 0 when not given"),
    ("tools", "int", "how many tools the request declares"),
    ("images", "bool", "does a message hold an image?"),
    ("user", "string", "the request's user field, empty when absent"),
    ("biz_type", "string", "the x-biz-type header, empty when absent"),
    ("hour", "int", "0 to 23, UTC"),
    ("weekday", "int", "1 = Monday to 7 = Sunday, UTC"),
    ("zone", "string", "the proxy's zone"),
    ("region", "string", "the proxy's region"),
    ("node", "string", "the proxy's id"),
];
