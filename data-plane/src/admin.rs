//! The admin port: `/health`, `/ready`, `/metrics`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use penstock_telemetry::{MetricsSource, prometheus};
use serde_json::json;

use crate::worker::Shared;

#[derive(Clone)]
struct Admin {
    shared: Arc<Shared>,
    metrics: MetricsSource,
}

/// What is served on the admin port.
pub(crate) fn router(shared: Arc<Shared>, metrics: MetricsSource) -> Router {
    Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(Admin { shared, metrics })
}

/// Ready is: has a policy, and is not about to end (K8S-01, K8S-02).
async fn ready(State(admin): State<Admin>) -> Response {
    let holder = &admin.shared.holder;
    let table = holder.table.load();
    let draining = admin.shared.draining.load(Relaxed);
    let ready = table.is_some() && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let detail = json!({
        "ready": ready,
        "draining": draining,
        "policy_version": table.as_ref().map(|table| table.snapshot.version),
        "from_disk": holder.is_from_disk(),
        "live_state_age_ms": holder.live_age_ms(admin.shared.clock.now()),
    });
    (status, Json(detail)).into_response()
}

async fn metrics_text(State(admin): State<Admin>) -> Response {
    ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], prometheus::encode((admin.metrics)())).into_response()
}
