//! Pages of sites on which there is a lot.

use std::net::SocketAddr;
use std::sync::Arc;

use harness::chromium::Chromium;
use harness::large_site::LargeSite;
use taco_ledger::ObjectBucket;
use url::Url;

/// Larger pages are no pleasure on a train.
const LARGEST_PAGE: usize = 5_000_000;

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
    assert!(size(&origin, list).await < LARGEST_PAGE / 10);
    let chromium = Chromium::at(&origin).await;
    chromium.goes_to(list).await;
    chromium.reads("5000").await;
    chromium.follows("Next ›").await;
    chromium.reads("of 5000").await;
    chromium.types("#search", "network-04321").await;
    chromium.reads("Workspaces that fit 1").await;
    chromium.follows("network-04321").await;
    chromium.arrives_at("/app/acme/workspaces/network-04321").await;
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
