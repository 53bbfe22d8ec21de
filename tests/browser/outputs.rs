//! Values that hide until someone asks for them.

use harness::gallery::Gallery;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensitive_output_shows_itself_in_its_place() {
    let gallery = Gallery::open().await;
    let chromium = gallery.browser().await;
    gallery.let_in(&chromium).await;
    let overview = "/app/acme/workspaces/network";
    chromium.goes_to(overview).await;
    assert!(!chromium.source().await.contains("hunter2"));
    chromium.presses("Show").await;
    chromium.reads("hunter2").await;
    assert_eq!(chromium.place().await, overview, "the page stays");
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
