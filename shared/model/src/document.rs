//! The policy document as an operator writes it. Doc comments here become the JSON Schema and the reference page.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::features::Supports;
use crate::vendor::{MaxTokens, Vendor};

/// A Penstock policy, version 1: which services there are and which of them answers which request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Penstock policy")]
pub struct Document {
    /// The version of this format: always 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// What requests can need. Exactly one capability is the default.
    pub capabilities: BTreeMap<String, Capability>,
    /// The services requests can be sent to, by name.
    pub backends: BTreeMap<String, Backend>,
    /// Tried from top to bottom; the first that matches decides.
    pub routes: Vec<Route>,
    /// How targets are compared.
    #[serde(default)]
    pub scoring: Scoring,
    /// When a target is taken out, and how it comes back.
    #[serde(default)]
    pub breaker: Breaker,
    /// Bounds on what clients may send.
    #[serde(default)]
    pub limits: Limits,
}

/// Something a request needs and a backend offers: `chat`, `summarize`, `code`, or any name.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Capability {
    /// The capability of requests that nothing else claims.
    pub default: bool,
    /// A request whose text contains one of these needs this capability. Case is ignored; a Latin word matches whole
    /// words only, other scripts match anywhere.
    pub keywords: Vec<String>,
    /// Prompts as users write them, some dozens, in every language that is used. Where two capabilities or more have
    /// some, the control plane trains a model from them that tells prompts without keywords apart. Give the default some
    /// as well.
    pub examples: Vec<String>,
}

/// A service that can answer: provider, address, credential, and the models it has.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Whose service it is, or whose it is like: this decides the wire dialect, the paths, how the credential is
    /// shown, which parameters are sent, and what errors mean.
    #[schemars(schema_with = "providers")]
    pub provider: String,
    /// Where it is, up to and including the version segment. Where it is not given, the provider's own service.
    /// `{region}` and `{resource}` in it stand for the fields of these names.
    #[serde(default)]
    #[schemars(example = "https://api.openai.com/v1")]
    pub base_url: Option<String>,
    /// The provider's region, where its address or its calls have one: `us-east-1`, `europe-west4`, `global`.
    #[serde(default)]
    #[schemars(example = "us-east-1")]
    pub region: Option<String>,
    /// The name of the resource that is part of an Azure address.
    #[serde(default)]
    #[schemars(example = "my-resource")]
    pub resource: Option<String>,
    /// The Google Cloud project.
    #[serde(default)]
    #[schemars(example = "my-project")]
    pub project: Option<String>,
    /// The version of the interface, where the provider wants one with every call.
    #[serde(default)]
    #[schemars(example = "2024-10-21")]
    pub api_version: Option<String>,
    /// Where the proxy finds the key: `env:NAME` or `file:/path`. Never the key itself. Without it no credential is
    /// sent.
    #[serde(default)]
    #[schemars(example = "env:OPENAI_API_KEY")]
    pub credential: Option<String>,
    /// Where the service runs; compared with the proxy's own zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// Where what is sent to it is kept and worked on, by any name that routes ask for: `eu`, `cn`, `us-east-1`. Its
    /// `region` where it is not given.
    #[serde(default)]
    #[schemars(example = &"eu")]
    pub residency: Option<String>,
    /// Share of traffic relative to other targets that score the same. 0 takes the backend out of every pool whose
    /// route gives no weight of its own.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub weight: f64,
    /// What it is good at, and how good (0 to 1). A list means 1 for each.
    pub capabilities: BackendCapabilities,
    /// The models it serves; the first is used where a route names none. A backend of provider `http` or `grpc` may leave
    /// them out: then it has one, called `default`.
    #[serde(default)]
    pub models: Vec<Model>,
    /// With provider `http`: how requests are reshaped for it and its answers for the client, so that services with
    /// different formats look like one. Without it, bytes pass as they are.
    #[serde(default)]
    pub adapter: Option<Adapter>,
}

/// What is given takes the place of what the client, or the service, sent; what is not, passes as it is. Templates are JSON
/// in whose strings stand CEL expressions: `"${request.user.id}"` is the value, of whatever type; `"user ${request.user.id}"`
/// is text; `"${?request.note}"` is left out where there is no value; `"$${"` is a plain `${`. Expressions see `request` (the
/// client's body), `model`, `headers` (the client's, by lower-case name) and, in `response`, `response` (the service's body).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adapter {
    /// The method.
    #[schemars(example = &"POST")]
    pub method: Option<String>,
    /// Path and query, behind the path of `base_url`. Text with expressions, whose values are percent-encoded.
    #[schemars(example = "/v2/models/${model}/infer")]
    pub path: Option<String>,
    /// The body of the request.
    #[schemars(example = json!({"amount": "${request.amount}"}))]
    pub request: Option<Value>,
    /// The body of a successful answer, which is read as a whole for it: such a backend does not stream.
    #[schemars(example = json!({"score": "${response.result.value}"}))]
    pub response: Option<Value>,
}

fn one() -> f64 {
    1.0
}

/// `[chat, code]` or `{chat: 1.0, code: 0.6}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BackendCapabilities {
    /// Each with match 1.
    List(Vec<String>),
    /// Match per capability, 0 to 1.
    Graded(BTreeMap<String, f64>),
}

/// The names of all vendors, as a choice.
fn providers(_: &mut SchemaGenerator) -> Schema {
    let choice = |vendor: &Vendor| json!({"const": vendor.name, "description": format!("{}.", vendor.title)});
    json_schema!({"oneOf": Vendor::all().iter().map(choice).collect::<Vec<_>>()})
}

/// A model of a backend.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name the service knows it by.
    pub name: String,
    /// What it costs. Unknown cost stays unknown; it is never taken for free.
    #[serde(default)]
    pub price: Option<Price>,
    /// Largest prompt plus answer, in tokens. Requests that cannot fit are not sent here.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub context_window: Option<u32>,
    /// What it can do. A request that needs what it cannot is not sent here.
    #[serde(default)]
    pub supports: Supports,
    /// The name under which the service takes the output limit, where this deployment differs from what is usual with
    /// its provider: reasoning models take `max_completion_tokens` only, many older servers `max_tokens` only.
    #[serde(default)]
    pub max_tokens_name: Option<MaxTokens>,
    /// The output limit of requests that set none, where the service requires one.
    #[serde(default = "default_max_tokens")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub default_max_tokens: u32,
}

impl Model {
    /// A model of which nothing is known but its name.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            price: None,
            context_window: None,
            supports: Supports::default(),
            max_tokens_name: None,
            default_max_tokens: default_max_tokens(),
        }
    }
}

fn default_max_tokens() -> u32 {
    4096
}

/// Price per million tokens, as decimal strings so that nothing is lost: `"0.15"`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// ISO 4217, for example `USD` or `CNY`. The same for all prices of a policy, since they are compared.
    #[serde(default = "usd")]
    pub currency: String,
    /// Per million input tokens.
    #[schemars(example = "0.15")]
    pub input: String,
    /// Per million input tokens the service had cached; the input price where it is not given.
    #[serde(default)]
    #[schemars(example = "0.075")]
    pub cached_input: Option<String>,
    /// Per million input tokens written to the service's cache; the input price where it is not given.
    #[serde(default)]
    #[schemars(example = "3.75")]
    pub cache_write: Option<String>,
    /// Per million input tokens written to the cache for an hour; `cache_write` where it is not given.
    #[serde(default)]
    #[schemars(example = "6.00")]
    pub cache_write_1h: Option<String>,
    /// Per million output tokens.
    #[schemars(example = "0.60")]
    pub output: String,
}

fn usd() -> String {
    "USD".to_owned()
}

/// One entry of the route list: what it matches and what happens then.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Unique; shown in metrics, logs and explanations.
    pub name: String,
    /// Cheap matchers, all of which must hold. Nothing given matches everything.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// A CEL expression over the routing context that must be true as well. An expression that fails, for example on
    /// a header that is absent, is not true. What could as well be a matcher, like `model == "x" && stream`, costs no more
    /// than one.
    #[serde(default)]
    #[schemars(example = "stream && headers[\"x-tenant\"] == \"acme\"")]
    pub condition: Option<String>,
    /// The capability to assume, instead of looking at the text.
    #[serde(default)]
    pub capability: Option<String>,
    /// Where to send it. Without it: every backend that has the capability, with its first model. With it: those of
    /// the targets whose backend has the capability, or all of them when none has.
    #[serde(default)]
    pub targets: Option<Vec<RouteTarget>>,
    /// Where data may go: only to backends whose `residency` is one of these. `*` stands for any run of characters. A
    /// backend of which it is not known gets nothing.
    #[serde(default)]
    #[schemars(example = json!(["eu", "eu-*"]))]
    pub residency: Vec<String>,
    /// How long to wait for what.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// When to try again.
    #[serde(default)]
    pub retry: Retry,
    /// What happens when client and service speak different protocols.
    #[serde(default)]
    pub translation: Translation,
    /// Answers are kept for identical requests. Off where it is not given.
    #[serde(default)]
    pub cache: Option<Cache>,
    /// Up to eight words that decision records, the access log and spans carry for requests that come this way.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// All that is given must hold: each list must have an entry that matches the request's value. In lists of text, `*` stands
/// for any run of characters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Request paths, for example `/v1/chat/completions`.
    pub paths: Vec<String>,
    /// HTTP methods, in capitals. Calls of a model are all `POST`; other services have others.
    pub methods: Vec<String>,
    /// Names of hosts that clients call, without the port, for example `*.ai.example.com`.
    pub hosts: Vec<String>,
    /// Requested models, for example `gpt-4o*`.
    pub models: Vec<String>,
    /// Header values by name, for example `{x-tenant: acme}`; a header that is absent never matches.
    pub headers: BTreeMap<String, String>,
    /// Lines of business: what the header `x-biz-type` says.
    pub biz_types: Vec<String>,
    /// End users, as the request's body names them.
    pub users: Vec<String>,
    /// What the request needs: names under `capabilities`, no patterns. A route with these has the text looked at before
    /// the route is known, at the cost of a classification for requests that get that far.
    pub capabilities: Vec<String>,
    /// Languages of what the user said last, told by their script.
    pub languages: Vec<Language>,
    /// Networks that clients call from, in CIDR notation, for example `10.0.0.0/8`. The address is that of the peer.
    pub networks: Vec<String>,
    /// `true`: only streamed requests; `false`: only the others.
    pub stream: Option<bool>,
    /// `true`: only requests that declare tools; `false`: only the others.
    pub tools: Option<bool>,
    /// `true`: only requests with an image; `false`: only the others.
    pub images: Option<bool>,
    /// `true`: only requests with sound, or for it; `false`: only the others.
    pub audio: Option<bool>,
    /// `true`: only requests whose answer must follow a JSON Schema; `false`: only the others.
    pub json_schema: Option<bool>,
    /// How long the prompt is, in tokens, as estimated.
    pub prompt_tokens: Option<TokenRange>,
    /// The client's limit on the answer, in tokens; 0 when it has set none.
    pub max_tokens: Option<TokenRange>,
    /// When it arrives.
    pub time: Option<TimeWindow>,
    /// This share of requests, in percent: those whose `bucket` is below it (see the conditions). Requests of one session
    /// are in or out together. A route below that takes 30 after one that took 10 takes the 20 in between.
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<u8>,
}

/// From the least to the most tokens, both included.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRange {
    /// At least so many.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub min: Option<u32>,
    /// At most so many.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max: Option<u32>,
}

/// Hours of the day, on some days of the week, on the clocks of a time zone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimeWindow {
    /// Whose clocks, by its IANA name.
    #[schemars(example = "Asia/Shanghai")]
    pub zone: String,
    /// First minute.
    #[schemars(example = "08:00")]
    pub from: String,
    /// The minute after the last; `24:00` is the end of the day. Earlier than `from`: on the next day.
    #[schemars(example = "18:00")]
    pub to: String,
    /// Days on which it begins: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`, or from one to another as in `mon-fri`.
    /// Every day where none is given.
    pub weekdays: Vec<String>,
}

impl Default for TimeWindow {
    fn default() -> Self {
        Self {
            zone: "UTC".to_owned(),
            from: "00:00".to_owned(),
            to: "24:00".to_owned(),
            weekdays: Vec::new(),
        }
    }
}

/// A language, as far as its script tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Chinese: Han characters without kana.
    Zh,
    /// English, and whatever else is written in Latin letters.
    En,
    /// Japanese: kana.
    Ja,
    /// Korean: hangul.
    Ko,
    /// Another script, or no text.
    Other,
}

impl Language {
    /// Every one of them.
    pub const ALL: &[Self] = &[Self::Zh, Self::En, Self::Ja, Self::Ko, Self::Other];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zh => "zh",
            Self::En => "en",
            Self::Ja => "ja",
            Self::Ko => "ko",
            Self::Other => "other",
        }
    }
}

/// A backend and, where it has several, which of its models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTarget {
    /// A name under `backends`.
    pub backend: String,
    /// One of its models; the first where it is not given.
    #[serde(default)]
    pub model: Option<String>,
    /// In place of the backend's own weight. 0 takes the target out.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub weight: Option<f64>,
}

/// Durations like `250ms`, `2s`, `1m`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To a connected, TLS-ready socket.
    #[schemars(example = "1s")]
    pub connect: String,
    /// From sending the request to the first token (streams) or the response head (others). Leads to another try.
    #[schemars(example = "15s")]
    pub first_token: String,
    /// The longest silence in the middle of an answer.
    #[schemars(example = "30s")]
    pub idle: String,
    /// The whole request, all attempts together. Does not cut a stream that is flowing.
    #[schemars(example = "120s")]
    pub total: String,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: "1s".to_owned(),
            first_token: "15s".to_owned(),
            idle: "30s".to_owned(),
            total: "120s".to_owned(),
        }
    }
}

/// Trying again, always before the client has seen a byte.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts in all, the first included. Each goes to a target that was not tried yet, where there is one.
    #[schemars(range(min = 1, max = 5))]
    pub attempts: u32,
    /// Retries per request, over the last ten seconds of this route in each proxy: 0.1 lets an outage add a tenth to the
    /// calls. Besides it, ten retries a second are always allowed, by all proxies together.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub budget: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 2, budget: 0.1 }
    }
}

/// Complete, good answers are kept and given to identical requests: same route, same call, same body but for the order of
/// fields and white space. Of identical requests that arrive together one goes to a service. A change of the policy begins
/// anew. Clients may send `cache-control: no-cache` or `no-store`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// How long an answer is good.
    #[schemars(example = "10m")]
    pub ttl: String,
}

impl Default for Cache {
    fn default() -> Self {
        Self { ttl: "10m".to_owned() }
    }
}

/// What happens when client and service speak different protocols.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Translation {
    /// `true`: a request of which something would be lost is refused. `false`: parameters that the service has no
    /// equivalent for are left out and named in the header `x-penstock-dropped`.
    pub strict: bool,
}

/// How targets are compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scoring {
    /// Which formula turns observations into a score.
    pub preset: Preset,
    /// Sharpness β: how strongly a better score attracts traffic.
    #[schemars(range(min = 0.5, max = 4.0))]
    pub sharpness: f64,
    /// The smallest share a healthy target keeps, so that it goes on being measured.
    #[schemars(range(min = 0.0, max = 0.2))]
    pub floor: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self { preset: Preset::default(), sharpness: 2.0, floor: 0.01 }
    }
}

/// The score formulas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Weight over normalised latency, less a penalty for errors, plus a reward for capability; all in equivalent seconds.
    #[default]
    Classic,
    /// 0.4 · success + 0.3 · latency + 0.2 · cost + 0.1 · stability.
    Quality,
}

/// When a target is taken out, and how it comes back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// Open after this many hard failures in a row.
    #[schemars(range(min = 1, max = 100))]
    pub consecutive_failures: u32,
    /// Open when this share of the calls in the window failed.
    #[schemars(range(min = 0.05, max = 1.0))]
    pub failure_ratio: f64,
    /// Calls the window must hold before the ratio counts.
    #[schemars(range(min = 1, max = 10000))]
    pub minimum_calls: u32,
    /// First open period; doubles with each failed return.
    #[schemars(example = "2s")]
    pub open: String,
    /// Longest open period.
    #[schemars(example = "60s")]
    pub open_max: String,
    /// Successful probes that close it.
    #[schemars(range(min = 1, max = 100))]
    pub probes: u32,
    /// How long the share takes to grow back.
    #[schemars(example = "30s")]
    pub ramp: String,
    /// At most this share of a pool's weight is taken out; the last target never is.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_ejected: f64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            failure_ratio: 0.5,
            minimum_calls: 10,
            open: "2s".to_owned(),
            open_max: "60s".to_owned(),
            probes: 3,
            ramp: "30s".to_owned(),
            max_ejected: 0.5,
        }
    }
}

/// Bounds on what clients may send.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest request body. More is answered with 413.
    #[schemars(example = "8MiB")]
    pub body: String,
    /// Room for kept answers in each proxy, where a route keeps any. Those used least go first.
    #[schemars(example = "64MiB")]
    pub cache: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: "8MiB".to_owned(), cache: "64MiB".to_owned() }
    }
}
