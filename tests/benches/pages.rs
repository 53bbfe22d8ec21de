//! Response times of pages, and the transfer size of a first visit.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, HOST};
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use harness::large_site::LargeSite;
use taco_bench::{Sample, Table, time};
use taco_ledger::Location;
use taco_server::http;
use tower::ServiceExt as _;
use url::Url;

const TIMES: usize = 300;
const HOST_NAME: &str = "taco.test";

#[tokio::main]
async fn main() {
    let mut table = Table::new("Pages, on a local directory");
    let home = tempfile::tempdir().expect("a directory");
    let location = Location::directory(home.path());
    let site = LargeSite::on(std::sync::Arc::new(location.open().expect("a bucket"))).await;
    site.add_workspaces(5_000).await;
    let short = site.add_run("short", 300, 100).await;
    let long = site.add_run("long", 200_000, 100).await;
    let origin: Url = format!("http://{HOST_NAME}").parse().expect("an address");
    let bare = site.pages(&origin);
    let pages = http::packed(bare.clone());

    for (what, path, limit) in [
        ("list of 5,000 workspaces", "/app/acme/workspaces", 5),
        ("run page, plan of 100 resources", short.as_str(), 5),
        ("run page, log of 200,000 lines", long.as_str(), 1_000),
        ("the same as the console shows it", &format!("{long}?view=console"), 1_000),
    ] {
        let limit = Duration::from_millis(limit);
        let median = median(&bare, path).await;
        table.row(&format!("{what}: median"), time(median), format!("{} ms", limit.as_millis()), median < limit);
        let whole = get(&bare, path, false).await.len();
        table.row(&format!("{what}: whole page"), kilobytes(whole), "5000 KB", whole < 5_000_000);
        let transferred = first_visit(&pages, path).await;
        table.row(&format!("{what}: first visit"), kilobytes(transferred), "100 KB", transferred < 100_000);
    }
    table.close();
}

async fn median(pages: &Router, path: &str) -> Duration {
    let mut taken = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let begun = Instant::now();
        get(pages, path, false).await;
        taken.push(begun.elapsed());
    }
    Sample::of(taken).median()
}

async fn get(pages: &Router, path: &str, packed: bool) -> Bytes {
    let encoding = if packed { "gzip" } else { "identity" };
    let request = Request::get(path).header(HOST, HOST_NAME).header(ACCEPT_ENCODING, encoding);
    let request = request.body(Body::empty()).expect("a request");
    let response = pages.clone().oneshot(request).await.expect("a router never fails");
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    to_bytes(response.into_body(), usize::MAX).await.expect("a whole body")
}

/// The bytes of a page and of all files that it names, as they are packed on their way.
async fn first_visit(pages: &Router, path: &str) -> usize {
    let page = get(pages, path, false).await;
    let page = String::from_utf8_lossy(&page);
    let files: BTreeSet<&str> = page.split('"').filter(|text| text.starts_with("/static/")).collect();
    let mut transferred = get(pages, path, true).await.len();
    for file in files {
        transferred += get(pages, file, true).await.len();
    }
    transferred
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1} KB", bytes as f64 / 1000.0)
}
