//! The metrics.

use super::{
    DURATION_BUCKETS, Descriptor, FIRST_TOKEN_BUCKETS, INTERNAL_BUCKETS, Kind, OUTPUT_TOKEN_BUCKETS,
    TOKEN_BUCKETS,
};

macro_rules! metrics {
    ($($(#[doc = $doc:literal])* $const:ident = $kind:ident $name:literal $unit:literal $help:literal $(in $buckets:ident)?;)*) => {
        $(
            #[doc = $help]
            $(#[doc = $doc])*
            pub static $const: Descriptor = Descriptor {
                name: $name,
                unit: $unit,
                kind: Kind::$kind,
                help: $help,
                buckets: metrics!(@ $($buckets)?),
            };
        )*

        /// All of them.
        pub static ALL: &[&Descriptor] = &[$(&$const),*];
    };
    (@) => { &[] };
    (@ $buckets:ident) => { $buckets };
}

metrics! {
    // What a proxy's clients see. Attributes: operation, route, capability, request model, provider, backend,
    // error type.
    SERVER_REQUEST_DURATION = Histogram "gen_ai.server.request.duration" "s" "Duration of requests, all attempts together" in DURATION_BUCKETS;
    SERVER_FIRST_TOKEN = Histogram "gen_ai.server.time_to_first_token" "s" "Time from a request's arrival to its first token" in FIRST_TOKEN_BUCKETS;
    SERVER_OUTPUT_TOKEN = Histogram "gen_ai.server.time_per_output_token" "s" "Time per output token after the first" in OUTPUT_TOKEN_BUCKETS;

    // What services do for a proxy. One value per attempt. Attributes: operation, provider, request model, backend,
    // error type.
    CLIENT_OPERATION_DURATION = Histogram "gen_ai.client.operation.duration" "s" "Duration of attempts" in DURATION_BUCKETS;
    CLIENT_FIRST_CHUNK = Histogram "gen_ai.client.operation.time_to_first_chunk" "s" "Time from sending an attempt to its first chunk, streams only" in DURATION_BUCKETS;
    CLIENT_TOKEN_USAGE = Histogram "gen_ai.client.token.usage" "{token}" "Tokens per attempt, by token type" in TOKEN_BUCKETS;

    // A proxy's traffic.
    REQUESTS = Counter "penstock.requests" "{request}" "Requests that ended, by route, capability, backend and status";
    REQUESTS_IN_FLIGHT = Gauge "penstock.requests.in_flight" "{request}" "Requests being served";
    ATTEMPTS = Counter "penstock.attempts" "{attempt}" "Attempts that ended, by backend, model and outcome";
    ATTEMPTS_IN_FLIGHT = Gauge "penstock.attempts.in_flight" "{attempt}" "Attempts being made, by backend and model";
    COST = Counter "penstock.cost" "{currency}" "Money spent as worked out from the policy's prices, by backend, model and currency";
    USAGE_UNKNOWN = Counter "penstock.usage.unknown" "{attempt}" "Attempts whose tokens the service did not tell, by backend and model";
    /// Everything between a request's arrival and its end that was not waiting for a service.
    OVERHEAD = Histogram "penstock.request.overhead" "s" "Time that Penstock itself added to requests" in INTERNAL_BUCKETS;
    CACHE_HITS = Counter "penstock.cache.hits" "{request}" "Requests that were answered from kept answers";
    CACHE_MISSES = Counter "penstock.cache.misses" "{request}" "Requests on routes that keep answers for which there was none";
    CACHE_SIZE = Gauge "penstock.cache.size" "By" "What the kept answers take";
    RETRIES_DENIED = Counter "penstock.retries.denied" "{retry}" "Retries that were not made because their route's budget was used up";
    CONNECTIONS = Gauge "penstock.connections" "{connection}" "Open client connections";
    DECISIONS_DROPPED = Counter "penstock.decisions.dropped" "{record}" "Decision records and log lines given up because a buffer was full";

    // What a proxy has from the control plane.
    POLICY_VERSION = Gauge "penstock.policy.version" "" "Policy version being served, or for the control plane, to be served";
    POLICY_REJECTED = Counter "penstock.policy.rejected" "{snapshot}" "Policy versions that were refused";
    POLICY_FROM_DISK = Gauge "penstock.policy.from_disk" "" "1 while the served policy comes from disk and no control plane has confirmed it";
    CONTROL_CONNECTED = Gauge "penstock.control.connected" "" "1 while the proxy is connected to a control plane";
    LIVE_STATE_AGE = Gauge "penstock.live_state.age" "s" "Age of the newest scores and shares from the control plane";

    // Targets and pools, from either plane.
    BREAKER_STATE = Gauge "penstock.breaker.state" "" "Breaker of a target: 0 closed, 1 growing back, 2 half-open, 3 open, 4 out for having become slow";
    POOL_WEIGHT = Gauge "penstock.pool.weight" "1" "Planned share of a target in its pool, by route and capability";
    TARGET_TERM = Gauge "penstock.target.term" "1" "Terms of a target's score, by backend, model and term";
    TARGET_LATENCY = Gauge "penstock.target.latency" "s" "Expected duration of a standard request, by backend and model";

    // The control plane.
    NODES = Gauge "penstock.nodes" "{node}" "Nodes known to the control plane, by state";
    REPORTS = Counter "penstock.reports" "{report}" "Reports taken in from nodes";
    REPORTS_DUPLICATE = Counter "penstock.reports.duplicate" "{report}" "Reports that came a second time and were not counted again";
    POLICY_CHANGES = Counter "penstock.policy.changes" "{change}" "Policy changes, by action and result";
    POLICY_ACKS = Counter "penstock.policy.acks" "{ack}" "Policy versions that nodes took";
    POLICY_NACKS = Counter "penstock.policy.nacks" "{nack}" "Policy versions that nodes refused";
    POLICY_PUSH_DURATION = Histogram "penstock.policy.push.duration" "s" "Time from sending a policy version to a node until it served it" in INTERNAL_BUCKETS;
    SCORING_DURATION = Histogram "penstock.scoring.duration" "s" "Time to compute scores, shares and breakers" in INTERNAL_BUCKETS;
    STORE_DURATION = Histogram "penstock.store.duration" "s" "Time of calls to the store, by operation" in INTERNAL_BUCKETS;
    STORE_RESYNCS = Counter "penstock.store.resyncs" "{resync}" "How often a watch had to read everything anew";
    STORE_REVISION_AGE = Gauge "penstock.store.revision.age" "s" "Time since the store last confirmed that all changes are known";
    STORE_ERRORS = Counter "penstock.store.errors" "{error}" "Failed calls to the store, by operation";

    // The process.
    EXPORT_FAILURES = Counter "penstock.telemetry.export.failures" "{export}" "Exports to the collector that failed, by signal";
    RUNTIME_LAG = Gauge "penstock.runtime.lag" "s" "Longest delay of a one-second timer, per last second";
    BUILD_INFO = Gauge "penstock.build.info" "" "Always 1; the version is an attribute";
    PROCESS_CPU = Counter "process.cpu.time" "s" "Processor time used";
    PROCESS_MEMORY = Gauge "process.memory.usage" "By" "Resident memory";
}
