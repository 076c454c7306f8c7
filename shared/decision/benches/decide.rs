//! What deciding costs: per request in a proxy, per second in the control plane.

#[path = "support/many.rs"]
mod many;

use std::borrow::Cow;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use http::HeaderMap;
use penstock_decision::capability::Classifier;
use penstock_decision::context::RequestContext;
use penstock_decision::facts::Texts;
use penstock_decision::fleet::{Fleet, Gauges, RowSums};
use penstock_decision::local::{Recent, Slot};
use penstock_decision::pick::{LocalSignal, LocalView, Mask, Question, Standing, pick};
use penstock_decision::plan::{Planned, Plans};
use penstock_decision::rules::Rules;
use penstock_decision::{Facts, decide};
use penstock_model::Policy;
use penstock_model::condition::NoFacts;
use penstock_model::policy::{PoolId, TargetId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn policy(document: &str) -> Policy {
    let loaded = penstock_model::load(document);
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

/// A policy with so many backends in one pool and these routes.
fn wide(backends: usize, routes: &str) -> Policy {
    let backends: String = (0..backends)
        .map(|index| {
            format!(
                "  b{index}: {{provider: openai, base_url: \"http://127.0.0.1:{}/v1\", capabilities: [chat], models: [{{name: m}}]}}\n",
                1_000 + index
            )
        })
        .collect();
    policy(&format!(
        "version: 1\ncapabilities: {{chat: {{default: true}}}}\nbackends:\n{backends}routes:\n{routes}  - {{name: rest}}\n"
    ))
}

fn request(headers: &HeaderMap) -> RequestContext<'_> {
    RequestContext {
        method: "POST",
        path: "/v1/chat/completions",
        host: "ai.example",
        headers,
        client_ip: Ipv4Addr::LOCALHOST.into(),
        protocol: "openai-chat",
        model: "gpt-4o",
        stream: true,
        message_count: 2,
        system_prompt: true,
        prompt_tokens: 1_200,
        max_tokens: 256,
        temperature: None,
        tools: 0,
        images: false,
        audio: false,
        json_schema: false,
        user: "u-1",
        session: "",
        request_id: "req-1",
        unix_seconds: 1_796_130_300,
        zone: "zone-a",
        region: "eu",
        node: "node-1",
    }
}

/// A proxy that is busy with every candidate.
struct Busy<'a> {
    plan: &'a [Planned],
}

impl LocalView for Busy<'_> {
    fn standing(&self, _: usize) -> Standing {
        Standing::Usable { ramp: 1.0 }
    }

    fn signal(&self, index: usize) -> LocalSignal {
        let slot = Slot { ok: 3, failed: 0, latency_sum_us: 600_000 };
        let recent = Recent::new((0..10).map(|age| (age, slot)));
        let cost_ratio = recent.cost_ratio(&self.plan[index], 0.1);
        LocalSignal { in_flight: index as u32 % 5, cost_ratio }
    }
}

fn classify(criterion: &mut Criterion) {
    let classifier = Classifier::new(&policy(penstock_model::DEMO_POLICY), None);
    let english = "the quick brown fox jumps over the lazy dog and asks for a summary ".repeat(16);
    let chinese = "你好今天天气怎么样我们去公园散步吧".repeat(20);
    for (name, text) in [("english", &english[..1_024]), ("chinese", &chinese[..1_020])] {
        criterion.bench_function(&format!("classify/1 KB {name}"), |bencher| {
            bencher.iter(|| classifier.classify([black_box(text)]));
        });
    }
}

/// What a proxy knows of a request before a rule asks for more.
struct Ready {
    policy: Policy,
    rules: Rules,
    classifier: Classifier,
}

impl Ready {
    fn new(policy: Policy) -> Self {
        Self { rules: Rules::new(&policy), classifier: Classifier::new(&policy, None), policy }
    }

    fn facts<'a>(&'a self, request: RequestContext<'a>, texts: &'a Texts<'a>) -> Facts<'a> {
        Facts::new(request, &self.policy, &self.classifier, None, texts, &NoFacts)
    }
}

/// A user's last message.
fn said() -> Vec<Cow<'static, str>> {
    vec![Cow::Borrowed("帮我写一个快速排序算法")]
}

fn rules(criterion: &mut Criterion) {
    let mut headers = HeaderMap::new();
    headers.insert("x-tenant", "acme".parse().expect("a header value"));
    let request = request(&headers);
    let matcher = "  - {name: r, match: {models: [m*], headers: {x-tenant: acme}, stream: true}}\n";
    let cel = "  - {name: cel, condition: \"headers['x-tenant'] != 'other' && prompt_tokens + max_tokens > 9000\"}\n";
    for (name, routes) in [("1 route", ""), ("2 routes", matcher), ("1 condition", cel)] {
        let ready = Ready::new(wide(2, routes));
        criterion.bench_function(&format!("match/{name}"), |bencher| {
            bencher.iter(|| ready.rules.match_route(&ready.facts(black_box(request), &|| said())));
        });
    }
}

/// The index beside a look at every rule, on the same rules and requests.
fn many_rules(criterion: &mut Criterion) {
    let (headers, requests) = (HeaderMap::new(), many::requests());
    for count in [200, 1_000, 10_000] {
        let ready = Ready::new(wide(50, &many::rules(count)));
        let mut group = criterion.benchmark_group(format!("{count} rules"));
        let facts = |next: &many::Said, then: &mut dyn FnMut(&Facts<'_>)| {
            then(&ready.facts(next.context(request(&headers)), &|| said()));
        };
        let mut turn = requests.iter().cycle();
        group.bench_function("index", |bencher| {
            bencher.iter(|| {
                let next = turn.next().expect("it never ends");
                facts(next, &mut |facts| _ = black_box(ready.rules.match_route(facts)));
            });
        });
        group.bench_function("every rule", |bencher| {
            bencher.iter(|| {
                let next = turn.next().expect("it never ends");
                facts(next, &mut |facts| _ = black_box(ready.rules.scan(facts)));
            });
        });
        let plans = Plans::new(&ready.policy, None);
        let mut random = Pcg64Mcg::seed_from_u64(1);
        group.bench_function("whole decision, 50 candidates", |bencher| {
            bencher.iter(|| {
                let next = turn.next().expect("it never ends");
                let texts = || said();
                let facts = ready.facts(next.context(request(&headers)), &texts);
                let decided = decide(&ready.rules, &facts).expect("the last route takes everything");
                let plan = plans.pool(decided.pool);
                let question = Question { plan, tried: Mask::default(), in_flight: 40, max_ejected: 0.5 };
                pick(black_box(&question), &Busy { plan }, || random.random())
            });
        });
        group.finish();
    }
}

fn compile(criterion: &mut Criterion) {
    for count in [1_000, 10_000] {
        let policy = wide(50, &many::rules(count));
        let mut group = criterion.benchmark_group("compile");
        group.sample_size(10);
        group.bench_function(format!("{count} rules"), |bencher| {
            bencher.iter(|| Rules::new(black_box(&policy)))
        });
        group.finish();
    }
}

fn picks(criterion: &mut Criterion) {
    for candidates in [2, 10, 50] {
        let policy = wide(candidates, "");
        let plans = Plans::new(&policy, None);
        let plan = plans.pool(PoolId(0));
        let question = Question { plan, tried: Mask::default(), in_flight: 40, max_ejected: 0.5 };
        let mut random = Pcg64Mcg::seed_from_u64(1);
        criterion.bench_function(&format!("pick/{candidates} candidates"), |bencher| {
            bencher.iter(|| pick(black_box(&question), &Busy { plan }, || random.random()));
        });
    }
}

fn whole(criterion: &mut Criterion) {
    let ready = Ready::new(policy(penstock_model::DEMO_POLICY));
    let plans = Plans::new(&ready.policy, None);
    let headers = HeaderMap::new();
    let request = request(&headers);
    let mut random = Pcg64Mcg::seed_from_u64(1);
    criterion.bench_function("decide and pick/short prompt", |bencher| {
        bencher.iter(|| {
            let decided =
                decide(&ready.rules, &ready.facts(black_box(request), &|| said())).expect("it matches");
            let plan = plans.pool(decided.pool);
            let question = Question { plan, tried: Mask::default(), in_flight: 4, max_ejected: 0.5 };
            pick(&question, &Busy { plan }, || random.random())
        });
    });
}

fn per_second(criterion: &mut Criterion) {
    let policy = Arc::new(wide(100, ""));
    let mut fleet = Fleet::new(Arc::clone(&policy));
    let row = RowSums { ended: 20, ok: 20, latency_sum: 4.0, latency_square_sum: 1.0, ..RowSums::default() };
    let gauges = Gauges { in_flight: 4, waiting: 4, oldest_wait: 0.3, nodes_using: 8, ..Gauges::default() };
    let mut tick = || {
        (0..100).for_each(|target| fleet.absorb(TargetId(target), &row));
        fleet.tick(1.0, 1, 8, |_| gauges)
    };
    let live = tick();
    criterion.bench_function("fleet tick/100 targets", |bencher| bencher.iter(&mut tick));
    criterion.bench_function("plans/100 targets", |bencher| {
        bencher.iter(|| Plans::new(&policy, Some((black_box(&live), Duration::ZERO))));
    });
}

criterion_group!(benches, classify, rules, many_rules, compile, picks, whole, per_second);
criterion_main!(benches);
