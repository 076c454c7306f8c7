//! The admin API as JSON over HTTP, and what machines ask for: `/health`, `/ready`, `/metrics`.
//!
//! | path | answer |
//! |---|---|
//! | `GET /api/v1/policies/{name}/versions` (`limit`) | versions, newest first |
//! | `GET /api/v1/policies/{name}/versions/{n}` | one version with its document; 0 is the stable one |
//! | `POST /api/v1/policies/{name}/apply` (`author`, `message`, `expected_version`, `dry_run`) | the body is the document |
//! | `POST /api/v1/policies/{name}/rollback` (`to_version`, `author`, `message`) | |
//! | `POST /api/v1/backends/{name}/drain`, `…/undrain` (`model`, `author`, `message`) | what is drained then |
//! | `GET /api/v1/nodes`, `/api/v1/backends`, `/api/v1/decisions` (`limit`, `failed_only`), `/api/v1/decisions/{id}`, `/api/v1/audit` (`limit`) | |
//!
//! Both changes of policies take an `idempotency-key` header. Errors are `{"code", "message", "problems"}`.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use penstock_proto::admin::v1::{
    ApplyPolicyRequest, ApplyPolicyResponse, DrainBackendRequest, DrainBackendResponse, GetDecisionRequest,
    GetDecisionResponse, GetPolicyVersionRequest, ListAuditRequest, ListAuditResponse, ListBackendsResponse,
    ListDecisionsRequest, ListDecisionsResponse, ListNodesResponse, ListPolicyVersionsRequest,
    ListPolicyVersionsResponse, PolicyVersion, RollbackPolicyRequest,
};
use penstock_telemetry::{MetricsSource, prometheus};
use serde::{Deserialize, Serialize};

use super::Service;
use super::failure::{Failure, Kind};
use crate::ready::Readiness;

/// Twice the largest document: what is larger is not even read.
const BODY_LIMIT: usize = 2 << 20;

type Answer<T> = Result<Json<T>, Failure>;
type Asked<T> = Result<Query<T>, QueryRejection>;

/// Everything on the HTTP port.
pub(crate) fn router(service: Service, readiness: Readiness, metrics: MetricsSource) -> Router {
    let api = Router::new()
        .route("/policies/{name}/versions", get(list_versions))
        .route("/policies/{name}/versions/{version}", get(get_version))
        .route("/policies/{name}/apply", post(apply))
        .route("/policies/{name}/rollback", post(rollback))
        .route("/nodes", get(nodes))
        .route("/backends", get(backends))
        .route("/backends/{name}/drain", post(drain))
        .route("/backends/{name}/undrain", post(undrain))
        .route("/decisions", get(decisions))
        .route("/decisions/{id}", get(decision))
        .route("/audit", get(audit))
        .fallback(async || Failure::new(Kind::NotFound, "not_found", "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            let message =
                "this path takes another method: changes are made with POST, all else is read with GET";
            Failure::new(Kind::MethodNotAllowed, "method_not_allowed", message)
        })
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn(same_origin))
        .with_state(service);
    Router::new()
        .nest("/api/v1", api)
        .route("/health", get(async || "ok\n"))
        .route("/ready", get(async move || readiness.answer()))
        .route("/metrics", get(async move || metrics_text(&metrics)))
}

fn metrics_text(metrics: &MetricsSource) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, prometheus::CONTENT_TYPE)], prometheus::encode(metrics()))
}

/// Web pages of other origins must not change policies through an operator's browser, which can reach a local port.
async fn same_origin(request: Request, next: Next) -> Response {
    if request.method() != Method::GET && is_foreign(request.headers()) {
        let message =
            "changes from web pages of another origin are refused; call from the command line or the console";
        return Failure::new(Kind::Forbidden, "cross_origin", message).into_response();
    }
    next.run(request).await
}

/// Does a browser say that the page is not ours? A page whose host is a name is not ours even if the name is the one we
/// are called by: its owner may have let it resolve to this machine (DNS rebinding).
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let local = host.and_then(|host| host.parse::<Authority>().ok()).is_some_and(|host| {
        let name = host.host();
        name == "localhost" || name.starts_with('[') || name.parse::<IpAddr>().is_ok()
    });
    !local || authority.map(|(_, authority)| authority) != host
}

#[derive(Deserialize)]
struct Limited {
    #[serde(default)]
    limit: u32,
}

async fn list_versions(
    State(service): State<Service>,
    name: Result<Path<String>, PathRejection>,
    query: Asked<Limited>,
) -> Answer<ListPolicyVersionsResponse> {
    let request = ListPolicyVersionsRequest { policy: name?.0, limit: query?.limit };
    service.list_versions(request).await.map(Json)
}

/// A version and its document, as text.
#[derive(Serialize)]
struct VersionAndDocument {
    version: Option<PolicyVersion>,
    document: String,
}

async fn get_version(
    State(service): State<Service>,
    path: Result<Path<(String, u64)>, PathRejection>,
) -> Answer<VersionAndDocument> {
    let Path((policy, version)) = path?;
    let found = service.get_version(GetPolicyVersionRequest { policy, version }).await?;
    // Only text is ever stored.
    let document = String::from_utf8_lossy(&found.document).into_owned();
    Ok(Json(VersionAndDocument { version: found.version, document }))
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct ApplyQuery {
    author: String,
    message: String,
    expected_version: Option<u64>,
    dry_run: bool,
}

async fn apply(
    State(service): State<Service>,
    name: Result<Path<String>, PathRejection>,
    query: Asked<ApplyQuery>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<ApplyPolicyResponse> {
    let Query(query) = query?;
    let request = ApplyPolicyRequest {
        policy: name?.0,
        document: body?.to_vec(),
        message: query.message,
        author: query.author,
        expected_version: query.expected_version,
        idempotency_key: idempotency_key(&headers),
        dry_run: query.dry_run,
    };
    let dry_run = request.dry_run;
    accepted(service.apply(request).await?, dry_run)
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct RollbackQuery {
    to_version: u64,
    author: String,
    message: String,
}

async fn rollback(
    State(service): State<Service>,
    name: Result<Path<String>, PathRejection>,
    query: Asked<RollbackQuery>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer<ApplyPolicyResponse> {
    let Query(query) = query?;
    if !body?.is_empty() {
        // Whoever names a version in a body must not get another one.
        let message = "a rollback takes no body; name the version in the query: ?to_version=7";
        return Err(Failure::new(Kind::Invalid, "invalid_argument", message));
    }
    let request = RollbackPolicyRequest {
        policy: name?.0,
        to_version: query.to_version,
        author: query.author,
        message: query.message,
        idempotency_key: idempotency_key(&headers),
    };
    accepted(service.rollback(request).await?, false)
}

/// A refused document is an error in HTTP.
fn accepted(response: ApplyPolicyResponse, dry_run: bool) -> Answer<ApplyPolicyResponse> {
    if response.version.is_some() || dry_run {
        return Ok(Json(response));
    }
    let message = "the document has errors and was not stored; correct them and apply again";
    let refused = Failure::new(Kind::Refused, "policy_invalid", message);
    Err(Failure { problems: response.problems, ..refused })
}

async fn nodes(State(service): State<Service>) -> Json<ListNodesResponse> {
    Json(service.nodes())
}

async fn backends(State(service): State<Service>) -> Json<ListBackendsResponse> {
    Json(service.backends())
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct DrainQuery {
    model: String,
    author: String,
    message: String,
}

impl DrainQuery {
    fn of(self, backend: String) -> DrainBackendRequest {
        DrainBackendRequest { backend, model: self.model, author: self.author, message: self.message }
    }
}

async fn drain(
    State(service): State<Service>,
    name: Result<Path<String>, PathRejection>,
    query: Asked<DrainQuery>,
) -> Answer<DrainBackendResponse> {
    service.drain(query?.0.of(name?.0), true).await.map(Json)
}

async fn undrain(
    State(service): State<Service>,
    name: Result<Path<String>, PathRejection>,
    query: Asked<DrainQuery>,
) -> Answer<DrainBackendResponse> {
    service.drain(query?.0.of(name?.0), false).await.map(Json)
}

#[derive(Deserialize)]
struct DecisionsQuery {
    #[serde(default)]
    limit: u32,
    #[serde(default)]
    failed_only: bool,
}

async fn decisions(
    State(service): State<Service>,
    query: Asked<DecisionsQuery>,
) -> Answer<ListDecisionsResponse> {
    let Query(DecisionsQuery { limit, failed_only }) = query?;
    Ok(Json(service.decisions(&ListDecisionsRequest { limit, failed_only })))
}

async fn decision(
    State(service): State<Service>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<GetDecisionResponse> {
    service.decision(&GetDecisionRequest { id: id?.0 }).map(Json)
}

async fn audit(State(service): State<Service>, query: Asked<Limited>) -> Answer<ListAuditResponse> {
    service.audit(ListAuditRequest { limit: query?.limit }).await.map(Json)
}

fn idempotency_key(headers: &HeaderMap) -> String {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok());
    key.unwrap_or_default().to_owned()
}

macro_rules! invalid {
    ($($rejection:ty),*) => {$(
        impl From<$rejection> for Failure {
            fn from(rejection: $rejection) -> Self {
                Self::new(Kind::Invalid, "invalid_argument", rejection.body_text())
            }
        }
    )*};
}

invalid!(PathRejection, QueryRejection);

impl From<BytesRejection> for Failure {
    fn from(rejection: BytesRejection) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let message =
                format!("the body has more than {BODY_LIMIT} bytes; a policy has at most half of that");
            return Self::new(Kind::TooLarge, "policy_too_large", message);
        }
        Self::new(Kind::Invalid, "invalid_argument", rejection.body_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_ours_only_at_an_address_that_nobody_else_can_point_at_us() {
        let foreign = |origin: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            headers.insert(header::HOST, host.parse().unwrap());
            is_foreign(&headers)
        };
        for host in ["127.0.0.1:7080", "localhost:7080", "[::1]:7080", "10.0.0.7"] {
            assert!(!foreign(&format!("http://{host}"), host), "{host}");
        }
        assert!(foreign("http://evil.example:7080", "evil.example:7080"), "DNS rebinding");
        assert!(foreign("http://evil.example", "127.0.0.1:7080"));
        assert!(foreign("null", "127.0.0.1:7080"));
        assert!(!is_foreign(&HeaderMap::new()), "no browser");
    }
}
