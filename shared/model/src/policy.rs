//! The validated policy: every name resolved to an index, every unit parsed, every impossible state gone.

use std::net::IpAddr;
use std::time::Duration;

pub use crate::document::{Preset, Provider};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// As a vector index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(/** Index into [`Policy::capabilities`]. */ CapabilityId);
index!(/** Index into [`Policy::backends`]. */ BackendId);
index!(/** Index into [`Policy::targets`]. */ TargetId);
index!(/** Index into [`Policy::routes`]. */ RouteId);
index!(/** Index into [`Policy::pools`]. */ PoolId);

/// A policy in force. Built only by [`crate::snapshot::load`].
#[derive(Debug)]
pub struct Policy {
    /// In the document's order of names.
    pub capabilities: Vec<Capability>,
    /// The capability of requests that nothing else claims.
    pub default_capability: CapabilityId,
    /// In the document's order of names.
    pub backends: Vec<Backend>,
    /// Every (backend, model), each once.
    pub targets: Vec<Target>,
    /// In matching order.
    pub routes: Vec<Route>,
    /// Every (route, capability) that has candidates.
    pub pools: Vec<Pool>,
    /// How targets are compared.
    pub scoring: Scoring,
    /// When a target is taken out.
    pub breaker: BreakerSettings,
    /// Largest request body in bytes.
    pub body_limit: usize,
}

/// See [`crate::document::Capability`].
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// Lower-cased.
    pub keywords: Vec<String>,
    /// As written.
    pub examples: Vec<String>,
}

/// See [`crate::document::Backend`].
#[derive(Debug, Clone, PartialEq)]
pub struct Backend {
    /// Its name.
    pub name: String,
    /// The dialect it speaks.
    pub provider: Provider,
    /// Where it is.
    pub address: Address,
    /// Where its key is found.
    pub credential: Option<Credential>,
    /// Where it runs.
    pub zone: Option<String>,
    /// Match per capability, 0..1, indexed by [`CapabilityId`]; 0 = does not have it.
    pub capability_match: Vec<f64>,
}

/// The parsed base URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// `https`?
    pub tls: bool,
    /// As a name or a literal address, without brackets.
    pub host: Host,
    /// Given or the scheme's.
    pub port: u16,
    /// The `Host` header's value: with the port unless it is the scheme's.
    pub authority: String,
    /// Prefix of every path: empty or `/v1`, never with a slash at the end.
    pub path: String,
}

/// A host name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// To be resolved.
    Name(String),
    /// A literal.
    Ip(IpAddr),
}

/// A reference to a secret; never the secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// An environment variable of the proxy.
    Env(String),
    /// A file, re-read when it changes.
    File(String),
}

/// What is chosen: one model of one backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Whose.
    pub backend: BackendId,
    /// The name the service knows it by.
    pub model: String,
    /// `model` as a JSON string with its quotes, ready to splice.
    pub model_json: String,
    /// Unknown stays unknown.
    pub price: Option<Price>,
    /// In tokens.
    pub context_window: Option<u32>,
}

/// Nano-units of the currency per million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// ISO 4217.
    pub currency: String,
    /// Uncached input.
    pub input: u64,
    /// Cached input.
    pub cached_input: u64,
    /// Output.
    pub output: u64,
}

/// See [`crate::document::Route`].
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// Patterns; empty matches all.
    pub paths: Vec<Pattern>,
    /// Patterns; empty matches all.
    pub models: Vec<Pattern>,
    /// Lower-case name and pattern.
    pub headers: Vec<(String, Pattern)>,
    /// Only streamed (or only others).
    pub stream: Option<bool>,
    /// The compiled expression.
    pub condition: Option<Condition>,
    /// Assumed instead of classified.
    pub capability: Option<CapabilityId>,
    /// The pool for each capability, indexed by [`CapabilityId`]; `None` where the route has no candidate for it.
    pub pools: Vec<Option<PoolId>>,
    /// Parsed.
    pub timeouts: Timeouts,
    /// Attempts in all, at least 1.
    pub attempts: u32,
}

/// A string with `*` for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// No star.
    Exact(String),
    /// The parts between stars; the first is anchored at the start, the last at the end.
    Glob(Vec<String>),
}

impl Pattern {
    /// Compiles `source`.
    #[must_use]
    pub fn new(source: &str) -> Self {
        if source.contains('*') {
            Self::Glob(source.split('*').map(str::to_owned).collect())
        } else {
            Self::Exact(source.to_owned())
        }
    }

    /// Does `value` match, whole?
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == value,
            Self::Glob(parts) => {
                let [first, middle @ .., last] = parts.as_slice() else {
                    return false;
                };
                let Some(mut rest) = value.strip_prefix(first.as_str()) else {
                    return false;
                };
                for part in middle {
                    match rest.find(part.as_str()) {
                        Some(at) => rest = &rest[at + part.len()..],
                        None => return false,
                    }
                }
                rest.ends_with(last.as_str())
            }
        }
    }
}

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

/// Interchangeable candidates of one route for one capability.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Whose.
    pub route: RouteId,
    /// For what.
    pub capability: CapabilityId,
    /// Never empty.
    pub candidates: Vec<Candidate>,
}

/// A target within a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which.
    pub target: TargetId,
    /// Configured weight, above 0.
    pub weight: f64,
    /// How well its backend matches the pool's capability, 0..1.
    pub capability_match: f64,
}

/// Parsed timeouts of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To a connected socket, TLS included.
    pub connect: Duration,
    /// To the first token, or the response head.
    pub first_token: Duration,
    /// Silence in the middle of an answer.
    pub idle: Duration,
    /// All attempts up to the first byte to the client, and non-streamed answers whole.
    pub total: Duration,
}

/// Parsed scoring settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    /// The formula.
    pub preset: Preset,
    /// β.
    pub sharpness: f64,
    /// Smallest share of a healthy target.
    pub floor: f64,
}

/// Parsed breaker settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerSettings {
    /// Hard failures in a row that open it.
    pub consecutive_failures: u32,
    /// Share of failures in the window that opens it.
    pub failure_ratio: f64,
    /// Calls the window must hold.
    pub minimum_calls: u32,
    /// First open period.
    pub open: Duration,
    /// Longest open period.
    pub open_max: Duration,
    /// Successful probes that close it.
    pub probes: u32,
    /// How long the share grows back.
    pub ramp: Duration,
    /// Largest ejected share of a pool's weight.
    pub max_ejected: f64,
}
