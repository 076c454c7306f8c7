//! Is this control plane of use yet, and how well is it connected?

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::watch;

use crate::policy::{Published, StoreHealth};

/// What `/ready` looks at. Ready once the store has been read; losing it later takes nothing away, as scores and known
/// versions go on being served: then the age of the store's last word grows.
#[derive(Clone)]
pub(crate) struct Readiness {
    pub(crate) health: Arc<StoreHealth>,
    pub(crate) published: watch::Receiver<Option<Arc<Published>>>,
}

#[derive(Serialize)]
struct Answer {
    ready: bool,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<&'static str>,
    policy_version: u64,
    /// Seconds since the store last confirmed that all changes are known here.
    store_age_seconds: Option<f64>,
}

impl Readiness {
    pub(crate) fn answer(&self) -> Response {
        let age = self.health.age();
        let version = self.published.borrow().as_ref().map_or(0, |published| published.version.version);
        let answer = Answer {
            ready: age.is_some(),
            waiting_for: age.is_none().then_some("the policy store: it has not answered yet"),
            policy_version: version,
            store_age_seconds: age.map(|age| age.as_secs_f64()),
        };
        let status = if answer.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Json(answer)).into_response()
    }
}
