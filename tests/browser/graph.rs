//! The graph in a browser: it is zoomed and moved, and its boxes lead to workspaces.

use std::net::SocketAddr;
use std::sync::Arc;

use harness::chromium::Chromium;
use harness::graph_states::{reading, state};
use harness::large_site::LargeSite;
use taco_ledger::ObjectBucket;

/// A site where each of thirty workspaces reads the one before it.
async fn given_chain() -> (LargeSite, Chromium) {
    let site = LargeSite::on(Arc::new(ObjectBucket::in_memory())).await;
    for number in 0..30 {
        let id = site.api.given_workspace("acme", &format!("unit-{number:02}")).await;
        let value = |number: usize| format!("value-of-{number:04}-4711");
        let mut text = state(1, &[("id", &value(number))]);
        if number > 0 {
            text = reading(text, &format!("unit-{:02}", number - 1), &[("id", &value(number - 1))]);
        }
        site.api.given_state(&id, &text).await;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let service = site.pages(&origin.parse().expect("an address"));
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    // It ends with the test's runtime.
    tokio::spawn(async move { axum::serve(listener, service).await });
    let chromium = Chromium::at(&origin).await;
    (site, chromium)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_graph_is_zoomed_moved_and_followed() {
    let (_site, chromium) = given_chain().await;
    chromium.goes_to("/app/acme/graph?around=unit-15").await;
    let number = async |script: &str| chromium.evaluates(&format!("return {script}")).await.as_f64().expect("a number");
    const WIDTH: &str = "document.querySelector('svg.graph').getBoundingClientRect().width";
    const LEFT: &str = "document.querySelector('#graph').scrollLeft";
    let (width, left) = (number(WIDTH).await, number(LEFT).await);
    assert!(left > 0.0, "what it is about is in sight");
    chromium.clicks("[data-zoom=in]").await;
    assert!((number(WIDTH).await / width - 1.25).abs() < 0.01);
    chromium.clicks("[data-zoom=fit]").await;
    let fitting = number(WIDTH).await;
    assert!(fitting <= number("document.querySelector('#graph').clientWidth").await + 1.0, "it is seen as a whole");
    chromium.clicks("[data-zoom=whole]").await;
    assert!((number(WIDTH).await - width).abs() < 0.01);
    chromium
        .evaluates(
            "const canvas = document.querySelector('#graph'); canvas.scrollLeft = 500;
             const at = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, { bubbles: true, button: 0, clientX: x, clientY: 300 }));
             at('pointerdown', 400); at('pointermove', 300); at('pointerup', 300);",
        )
        .await;
    assert!((number(LEFT).await - 600.0).abs() < 1.0, "a hand to the left moves what is right into sight");
    chromium.evaluates("document.querySelector('svg.graph .here').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))").await;
    assert!(chromium.place().await.starts_with("/app/acme/graph"), "the end of a movement is no click");
    chromium.evaluates("document.querySelector('svg.graph .here').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))").await;
    chromium.arrives_at("/app/acme/workspaces/unit-15").await;
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
