//! Values that hide until someone asks for them.

use harness::sample_site::SampleSite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensitive_output_shows_itself_in_its_place() {
    let sample_site = SampleSite::open().await;
    let chromium = sample_site.browser().await;
    sample_site.log_in(&chromium).await;
    let overview = "/app/acme/workspaces/network";
    chromium.goes_to(overview).await;
    assert!(!chromium.source().await.contains("hunter2"));
    chromium.presses("Show").await;
    chromium.reads("hunter2").await;
    assert_eq!(chromium.place().await, overview, "the page stays");
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
