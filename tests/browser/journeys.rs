//! What people come for, from the first click to the last, with scripts and without.

use harness::browser::PASSWORD;
use harness::chromium::{Chromium, Scripts};
use harness::gallery::Gallery;

/// Lets a journey be told with scripts and without.
macro_rules! told_with_and_without_scripts {
    ($($journey:ident),* $(,)?) => { $(
        mod $journey {
            use harness::chromium::Scripts;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn with_scripts() {
                super::$journey(Scripts::Run).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn without_scripts() {
                super::$journey(Scripts::Blocked).await;
            }
        }
    )* };
}

told_with_and_without_scripts!(a_token_is_made_and_revoked);

async fn a_token_is_made_and_revoked(scripts: Scripts) {
    let gallery = Gallery::bare().await;
    let chromium = Chromium::start(&gallery.installation.origin, scripts).await;
    gallery.let_in(&chromium).await;
    chromium.clicks("details.menu summary").await;
    chromium.presses("Log out").await;
    chromium.arrives_at("/login").await;

    chromium.goes_to("/app/settings/tokens").await;
    chromium.types("[name=username]", "admin").await;
    chromium.types("[name=password]", PASSWORD).await;
    chromium.clicks("main button").await;
    chromium.arrives_at("/app/settings/tokens").await;

    chromium.types("[name=description]", "laptop").await;
    chromium.clicks("main form button").await;
    chromium.reads("taco_u_").await;
    chromium.goes_to("/app/settings/tokens").await;
    let text = chromium.text().await;
    assert!(text.contains("laptop") && !text.contains("taco_u_"), "it is shown once: {text}");
    chromium.presses("Revoke").await;
    chromium.find("main").await;
    assert!(!chromium.text().await.contains("laptop"));
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}
