//! `/metrics`: what this process counts and times, for Prometheus.

use std::sync::OnceLock;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::shutdown::Shutdown;

/// Histogram buckets, from a file's `stat` to an object store on a bad day.
const SECONDS_BUCKETS: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Interval of folding recorded times into their histograms. Nothing else would do it if there is no scraping.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Starts to record. The recorder belongs to the process, so servers in one process (as in tests) share it.
pub(crate) fn recorder() -> PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(install).clone()
}

fn install() -> PrometheusHandle {
    let recorder = PrometheusBuilder::new().set_buckets(SECONDS_BUCKETS).expect("there are buckets").build_recorder();
    let handle = recorder.handle();
    // A program that embeds us may have installed its own recorder; then ours stays empty.
    metrics::set_global_recorder(recorder).ok();
    metrics::describe_gauge!("taco_build_info", "Always 1; the version is in its label");
    metrics::describe_counter!("taco_http_requests_total", "Requests that were answered or given up by the client");
    metrics::describe_histogram!("taco_http_request_seconds", "Time from a request's head to its answer's head");
    metrics::describe_counter!("taco_connections_refused_total", "Connections refused since too many were open");
    metrics::describe_counter!("taco_bucket_operations_total", "Operations on the bucket, by outcome");
    metrics::describe_histogram!("taco_bucket_operation_seconds", "Time that an operation on the bucket took");
    metrics::describe_counter!("taco_bucket_retries_total", "Operations on the bucket that had to be tried again");
    metrics::describe_counter!("taco_ledger_commits_total", "Commits written by this server");
    metrics::describe_counter!("taco_ledger_transactions_total", "Changes that those commits hold");
    metrics::describe_counter!("taco_ledger_conflicts_total", "Commits that another server wrote first");
    metrics::describe_counter!("taco_ledger_own_commits_recognised_total", "Commits whose answer had been lost");
    metrics::describe_counter!("taco_ledger_snapshots_total", "Snapshots that this server tried to write, by result");
    metrics::describe_counter!("taco_ledger_snapshot_bytes_total", "Bytes of snapshots that this server wrote");
    metrics::describe_counter!("taco_ledger_snapshots_removed_total", "Old snapshots that were removed");
    metrics::describe_counter!("taco_ledger_snapshots_unreadable_total", "Snapshots that were passed over");
    metrics::describe_counter!("taco_ledger_newest_commit_damaged_total", "Newest commits found missing or altered");
    metrics::describe_gauge!("taco_ledger_unreadable", "1 for a ledger that cannot be read, 0 when it can be again");
    metrics::describe_gauge!("taco_unreadable_records", "Records that a newer server wrote, or that are damaged");
    metrics::describe_counter!(
        "taco_history_bundles_total",
        "Finished runs, states and configurations that left memory"
    );
    metrics::describe_counter!("taco_history_objects_removed_total", "Objects of history that nothing names any more");
    metrics::describe_counter!("taco_ledger_packs_total", "Packs of commits that this server wrote");
    metrics::describe_counter!("taco_notifications_total", "Attempts to deliver notifications, by outcome");
    metrics::describe_counter!("taco_task_requests_total", "Requests to run tasks, by outcome");
    metrics::describe_gauge!("taco_peers_alive", "Other servers on this bucket");
    metrics::gauge!("taco_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
    handle
}

pub(crate) async fn run_upkeep(handle: PrometheusHandle, shutdown: Shutdown) {
    while tokio::time::timeout(UPKEEP_INTERVAL, shutdown.begun()).await.is_err() {
        // After many requests it takes milliseconds, for which those that come meanwhile should not wait.
        let handle = handle.clone();
        tokio::task::spawn_blocking(move || handle.run_upkeep()).await.ok();
    }
}

/// `GET /metrics`
pub(crate) fn routes(handle: PrometheusHandle) -> Router {
    let render = move || async move {
        // The version is what Prometheus asks a text exposition to declare.
        ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], handle.render()).into_response()
    };
    Router::new().route("/metrics", get(render))
}
