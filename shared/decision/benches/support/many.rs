//! Policies with many rules, and requests for them.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue};
use penstock_decision::context::RequestContext;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How many requests are taken in turn, so that no rule stays in the processor's cache by itself.
const REQUESTS: usize = 64;

/// One in this many rules has a condition that no index can look up.
const WITH_CEL: usize = 10;

/// Rules with three to five demands each: on eight texts of 4 to 500 values, two ranges, two flags, and here and there a
/// prefix.
pub(crate) fn rules(count: usize) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut routes = String::new();
    for index in 0..count {
        let mut demands: Vec<usize> = (0..12).collect();
        let wanted = random.random_range(3..=5);
        let mut matchers = Vec::new();
        let mut headers = Vec::new();
        for _ in 0..wanted {
            let demand = demands.swap_remove(random.random_range(0..demands.len()));
            let matcher = matcher(demand, &mut random);
            if matcher.starts_with("x-") { headers.push(matcher) } else { matchers.push(matcher) }
        }
        if !headers.is_empty() {
            matchers.push(format!("headers: {{{}}}", headers.join(", ")));
        }
        write!(routes, "  - {{name: r{index}, match: {{{}}}", matchers.join(", ")).expect("it is a string");
        if index % WITH_CEL == 0 {
            let tokens = random.random_range(1..2_000);
            write!(routes, ", condition: \"prompt_tokens + max_tokens > {tokens} && user != 'u1'\"")
                .expect("it is a string");
        }
        routes.push_str("}\n");
    }
    routes
}

fn matcher(demand: usize, random: &mut Pcg64Mcg) -> String {
    let mut of = |most: u32| random.random_range(0..most);
    match demand {
        0 => match of(4) {
            0 => format!("models: [\"m{}*\"]", of(10)),
            _ => format!("models: [m{}, m{}]", of(50), of(50)),
        },
        1 => format!("biz_types: [b{}]", of(20)),
        2 => format!("users: [u{}, u{}]", of(500), of(500)),
        3 => format!("hosts: [h{}.example]", of(20)),
        4 => format!("x-tenant: t{}", of(500)),
        5 => format!("x-app: a{}", of(100)),
        6 => format!("paths: [\"/v1/p{}\"]", of(4)),
        7 => format!("methods: [{}]", ["GET", "POST", "PUT", "DELETE"][of(4) as usize]),
        8 => {
            let least = of(4_000);
            format!("prompt_tokens: {{min: {least}, max: {}}}", least + 1_000)
        }
        9 => format!("max_tokens: {{max: {}}}", 100 + of(1_000)),
        10 => format!("stream: {}", of(2) == 0),
        _ => format!("tools: {}", of(2) == 0),
    }
}

/// What a request says, besides what all of them say.
pub(crate) struct Said {
    headers: HeaderMap,
    model: String,
    user: String,
    host: String,
    path: String,
    method: &'static str,
    prompt_tokens: u64,
    max_tokens: u64,
    stream: bool,
    tools: u32,
}

/// Requests whose values rules ask for.
pub(crate) fn requests() -> Vec<Said> {
    let mut random = Pcg64Mcg::seed_from_u64(8);
    let mut of = |most: u32| random.random_range(0..most);
    let text = |text: String| HeaderValue::try_from(text).expect("a header value");
    (0..REQUESTS)
        .map(|_| Said {
            headers: [
                ("x-biz-type", text(format!("b{}", of(20)))),
                ("x-tenant", text(format!("t{}", of(500)))),
                ("x-app", text(format!("a{}", of(100)))),
            ]
            .into_iter()
            .map(|(name, value)| (name.parse().expect("the name of a header"), value))
            .collect(),
            model: format!("m{}", of(50)),
            user: format!("u{}", of(500)),
            host: format!("h{}.example", of(20)),
            path: format!("/v1/p{}", of(4)),
            method: ["GET", "POST", "PUT", "DELETE"][of(4) as usize],
            prompt_tokens: of(5_000).into(),
            max_tokens: of(1_100).into(),
            stream: of(2) == 0,
            tools: of(2),
        })
        .collect()
}

impl Said {
    /// The request, with the rest of it from `base`.
    pub(crate) fn context<'a>(&'a self, base: RequestContext<'a>) -> RequestContext<'a> {
        RequestContext {
            headers: &self.headers,
            model: &self.model,
            user: &self.user,
            host: &self.host,
            path: &self.path,
            method: self.method,
            prompt_tokens: self.prompt_tokens,
            max_tokens: self.max_tokens,
            stream: self.stream,
            tools: self.tools,
            ..base
        }
    }
}
