//! Keys of attributes on metrics and spans. As Prometheus labels, dots are underscores.

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident = $key:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $key;)*

        /// All of them.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

attributes! {
    // GenAI conventions.

    /// `chat`, `embeddings`, `text_completion` …
    OPERATION = "gen_ai.operation.name";
    /// The dialect's registered name, for example `openai`.
    PROVIDER = "gen_ai.provider.name";
    /// On metrics: the target's model, never what the client wrote.
    REQUEST_MODEL = "gen_ai.request.model";
    /// The model that answered.
    RESPONSE_MODEL = "gen_ai.response.model";
    /// The vendor's id of the answer. Spans only.
    RESPONSE_ID = "gen_ai.response.id";
    /// Why each choice ended. Spans only.
    FINISH_REASONS = "gen_ai.response.finish_reasons";
    /// Was a stream asked for? Spans only.
    REQUEST_STREAM = "gen_ai.request.stream";
    /// The client's limit. Spans only.
    REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens";
    /// Seconds from sending to the first chunk. Spans only.
    TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk";
    /// `input` or `output`.
    TOKEN_TYPE = "gen_ai.token.type";
    /// Tokens of the prompt, cached ones included. Spans only.
    INPUT_TOKENS = "gen_ai.usage.input_tokens";
    /// Tokens of the prompt that the vendor had cached. Spans only.
    CACHED_INPUT_TOKENS = "gen_ai.usage.cache_read.input_tokens";
    /// Tokens of the answer. Spans only.
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens";
    /// Money, as a decimal. Spans only.
    COST_AMOUNT = "gen_ai.usage.cost.amount";
    /// ISO 4217.
    COST_CURRENCY = "gen_ai.usage.cost.currency";
    /// `local`: worked out here from the policy's prices. Spans only.
    COST_SOURCE = "gen_ai.usage.cost.source";

    // General and HTTP conventions.

    /// Why a call failed: an outcome's or an error code's name. Absent when it did not.
    ERROR_TYPE = "error.type";
    /// Host of the backend.
    SERVER_ADDRESS = "server.address";
    /// Port of the backend.
    SERVER_PORT = "server.port";
    /// HTTP method. Spans only.
    HTTP_METHOD = "http.request.method";
    /// Status sent or received.
    HTTP_STATUS = "http.response.status_code";
    /// The path of the API that was called, from a closed set.
    HTTP_ROUTE = "http.route";

    // Penstock's own.

    /// A route's name.
    ROUTE = "penstock.route";
    /// A capability's name.
    CAPABILITY = "penstock.capability";
    /// A backend's name.
    BACKEND = "penstock.backend";
    /// How an attempt ended.
    OUTCOME = "penstock.outcome";
    /// Which attempt of its request it was. Spans only.
    ATTEMPT = "penstock.attempt";
    /// How many attempts the request took. Spans only.
    ATTEMPTS = "penstock.attempts";
    /// Decision id, as in the response header. Spans only.
    DECISION_ID = "penstock.decision.id";
    /// Request id, as in the response header. Spans only.
    REQUEST_ID = "penstock.request.id";
    /// The policy's name.
    POLICY = "penstock.policy";
    /// The version that served the request. Spans only.
    POLICY_VERSION = "penstock.policy.version";
    /// What told the capability: `keyword`, `caller`, `route`, `default`. Spans only.
    CAPABILITY_SOURCE = "penstock.capability.source";
    /// Score preset. Spans only.
    PRESET = "penstock.preset";
    /// `apply` or `rollback`.
    ACTION = "penstock.action";
    /// Did it work? `ok` or `failed`.
    RESULT = "penstock.result";
    /// A term of the score: `success`, `latency`, `cost`, `stability`, `quality`.
    TERM = "penstock.term";
    /// State of a node: `connected` or `gone`.
    NODE_STATE = "penstock.node.state";
    /// What the store was asked for.
    STORE_OPERATION = "penstock.store.operation";
    /// `traces` or `metrics`.
    SIGNAL = "penstock.signal";
    /// Build version.
    VERSION = "penstock.version";
}
