//! Over https, as sites on the open net are reached.

use harness::browser::PASSWORD;
use harness::chromium::Chromium;
use harness::installation::{Installation, Transport};
use serde_json::{Value, json};

/// Cookie that the browser stores for the site.
async fn session_cookie(chromium: &Chromium) -> Option<Value> {
    let kept = chromium.devtools("Network.getCookies", json!({})).await;
    let cookies = kept["cookies"].as_array().expect("a list").clone();
    cookies.into_iter().find(|cookie| cookie["name"].as_str().is_some_and(|name| name.contains("taco")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_in_a_cookie_that_scripts_and_other_hosts_never_see() {
    let installation = Installation::on_a_laptop(Transport::Https);
    assert!(installation.origin.starts_with("https://"), "{}", installation.origin);
    let chromium = Chromium::at(&installation.origin).await;
    chromium.goes_to(&installation.setup_link()).await;
    assert_eq!(session_cookie(&chromium).await, None, "nobody is logged in yet");
    chromium.types("[name=password]", PASSWORD).await;
    chromium.types("[name=repeated]", PASSWORD).await;
    chromium.clicks("main button").await;
    chromium.arrives_at("/app").await;

    let first = session_cookie(&chromium).await.expect("the browser took the cookie");
    assert_eq!(first["name"], "__Host-taco");
    assert_eq!([&first["secure"], &first["httpOnly"]], [true, true], "{first}");
    assert_eq!([&first["sameSite"], &first["path"]], ["Lax", "/"], "{first}");
    assert!(!first["domain"].as_str().expect("a host").starts_with('.'), "this very host, and none below it: {first}");
    assert_eq!(chromium.evaluates("return document.cookie").await, "", "no script sees it");

    // Out and in again, by the form that everyone uses.
    chromium.clicks("details.menu > summary").await;
    chromium.presses("Log out").await;
    chromium.arrives_at("/login").await;
    assert_eq!(session_cookie(&chromium).await, None);
    chromium.types("#username", "admin").await;
    chromium.types("#password", PASSWORD).await;
    chromium.presses("Log in").await;
    chromium.arrives_at("/app").await;
    let second = session_cookie(&chromium).await.expect("a session");
    assert_eq!(second["name"], "__Host-taco");
    assert_ne!(first["value"], second["value"], "each login has a session of its own");
    chromium.goes_to("/app/settings/sessions").await;
    chromium.reads("Sessions").await;
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
