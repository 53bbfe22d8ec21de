//! Pages of sites on which there is a lot.

use std::net::SocketAddr;
use std::sync::Arc;

use harness::chromium::Chromium;
use harness::large_site::LargeSite;
use taco_ledger::ObjectBucket;
use url::Url;

/// Larger pages are no pleasure on a train.
const MAX_PAGE_BYTES: usize = 5_000_000;

async fn serve(site: &LargeSite) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let address: Url = origin.parse().expect("an address");
    let service = site.pages(&address).into_make_service_with_connect_info::<SocketAddr>();
    // It ends with the test's runtime.
    tokio::spawn(async move { axum::serve(listener, service).await });
    origin
}

async fn size(origin: &str, path: &str) -> usize {
    let answer = reqwest::get(format!("{origin}{path}")).await.expect("it answers");
    assert_eq!(answer.status(), 200, "{path}");
    answer.bytes().await.expect("a whole page").len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_five_thousand_workspaces_is_searched_and_leafed_through() {
    let site = LargeSite::on(Arc::new(ObjectBucket::in_memory())).await;
    site.add_workspaces(5_000).await;
    let origin = serve(&site).await;
    let list = "/app/acme/workspaces";
    assert!(size(&origin, list).await < MAX_PAGE_BYTES / 10);
    let chromium = Chromium::at(&origin).await;
    chromium.goes_to(list).await;
    chromium.reads("5000").await;
    chromium.follows("Next ›").await;
    chromium.reads("of 5000").await;
    chromium.types("#search", "network-04321").await;
    chromium.reads("Matching workspaces 1").await;
    chromium.follows("network-04321").await;
    chromium.arrives_at("/app/acme/workspaces/network-04321").await;
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_of_two_hundred_thousand_lines_shows_its_end_and_any_line_that_a_link_names() {
    let site = LargeSite::on(Arc::new(ObjectBucket::in_memory())).await;
    let run = site.add_run("network", 200_000, 10).await;
    let origin = serve(&site).await;
    let console = format!("{run}?view=console");
    assert!(size(&origin, &console).await < MAX_PAGE_BYTES / 5);
    let chromium = Chromium::at(&origin).await;
    let lines = "return document.querySelectorAll('#log-plan div').length";
    chromium.goes_to(&console).await;
    assert_eq!(chromium.evaluates(lines).await, 2000, "the rest comes when it is asked for");
    chromium.reads("Refreshed 2000 resources").await;
    chromium.follows("Load earlier lines").await;
    while chromium.evaluates(lines).await != 4000 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }

    // The link names a line far from the end, and its part of the log is looked up.
    chromium.goes_to("/app/acme/workspaces").await;
    chromium.goes_to(&format!("{console}#p-L120")).await;
    chromium.arrives_at(&format!("{console}&line=p-L120#p-L120")).await;
    chromium.find(":target").await;
    let seen = "const line = document.querySelector(':target'); \
                return [line.id, line.textContent.includes('service[118]'), line.getBoundingClientRect().height > 0]";
    assert_eq!(chromium.evaluates(seen).await, serde_json::json!(["p-L120", true, true]));
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
