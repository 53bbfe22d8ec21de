//! `/healthz`: the process is up. `/readyz`: it can do its work, because the bucket answers; organizations that cannot
//! be read are named there, and do not keep it from the work of others. A bucket that is full or read-only makes it
//! unready too; `/readyz?for=reads` asks whether it can serve what is stored all the same.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use taco_control_plane::Privileged;
use taco_ledger::{Bucket, BucketErrorKind, WriteHealth, layout};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::shutdown::Shutdown;

/// Lifetime of an answer of the bucket, however many probes there are.
const PROBE_CACHE_LIFETIME: Duration = Duration::from_secs(1);

/// Maximum number of unreadable objects that are named.
const MAX_LISTED_OBJECTS: usize = 20;

/// Timeout for the bucket: probes of load balancers give up after a few seconds too.
const BUCKET_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn routes(readiness: Readiness) -> Router {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(readiness)
}

#[derive(Deserialize)]
struct Purpose {
    #[serde(rename = "for")]
    purpose: Option<String>,
}

async fn ready(State(readiness): State<Readiness>, Query(asked): Query<Purpose>) -> (StatusCode, String) {
    match readiness.check().await {
        Ok(()) => (),
        Err(reason) => return (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
    let reads_are_enough = asked.purpose.as_deref() == Some("reads");
    if let Some(kind) = readiness.writes.now().filter(|_| !reads_are_enough) {
        let reason = match kind {
            BucketErrorKind::Full => "the bucket's disk is full",
            _ => "the bucket refuses writes: it is read-only, or permission is denied",
        };
        return (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}; what is stored can be read\n"));
    }
    let unreadable = readiness.control_plane.unreadable_ledgers();
    let (site, organizations): (Vec<_>, Vec<_>) =
        unreadable.into_iter().partition(|ledger| ledger.organization.is_none());
    match (site.first(), organizations.len()) {
        (Some(site), _) => {
            let text = format!("not ready: the site's own ledger cannot be read: {}\n", site.object);
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
        (None, 0) => (StatusCode::OK, "ready\n".to_owned()),
        (None, damaged) => {
            let mut text = format!("ready, but for organizations that cannot be read: {damaged}\n");
            // The object tells whose it is. What is wrong with it may quote what is stored: that is for the log.
            organizations.iter().take(MAX_LISTED_OBJECTS).for_each(|ledger| text += &format!("{}\n", ledger.object));
            (StatusCode::OK, text)
        }
    }
}

/// `Err` says why not, in a text that gives nothing away.
type Verdict = Result<(), &'static str>;

/// Readiness of this server to receive requests.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    bucket: Arc<dyn Bucket>,
    writes: WriteHealth,
    control_plane: Privileged,
    shutdown: Shutdown,
    last: Arc<Mutex<Option<(Instant, Verdict)>>>,
}

impl Readiness {
    /// `bucket` should not retry: a probe wants to know how things are now.
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        writes: WriteHealth,
        control_plane: Privileged,
        shutdown: Shutdown,
    ) -> Self {
        Self { bucket, writes, control_plane, shutdown, last: Arc::default() }
    }

    async fn check(&self) -> Verdict {
        if self.shutdown.has_begun() {
            return Err("shutting down");
        }
        // Requests that come while the bucket is being asked wait here, and then find the answer.
        let mut last = self.last.lock().await;
        match *last {
            Some((asked, verdict)) if asked.elapsed() < PROBE_CACHE_LIFETIME => verdict,
            before => {
                let verdict = self.ask_bucket(before.map(|(_, verdict)| verdict)).await;
                *last = Some((Instant::now(), verdict));
                verdict
            }
        }
    }

    async fn ask_bucket(&self, before: Option<Verdict>) -> Verdict {
        let key = layout::format();
        let (verdict, cause) = match timeout(BUCKET_PROBE_TIMEOUT, self.bucket.get(&key)).await {
            Ok(Ok(Some(_))) => (Ok(()), String::new()),
            Ok(Ok(None)) => (Err("the bucket is empty or gone"), format!("{key} is missing")),
            Ok(Err(error)) if error.kind == BucketErrorKind::Denied => {
                (Err("the bucket denies access"), error.to_string())
            }
            Ok(Err(error)) => (Err("the bucket does not answer"), error.to_string()),
            Err(_) => {
                (Err("the bucket does not answer"), format!("get {key}: no answer within {BUCKET_PROBE_TIMEOUT:?}"))
            }
        };
        match verdict {
            Err(reason) if before != Some(verdict) => tracing::warn!(event = "not_ready", cause, "not ready: {reason}"),
            Ok(()) if before.is_some_and(|before| before.is_err()) => tracing::info!("ready again"),
            _ => {}
        }
        verdict
    }
}
