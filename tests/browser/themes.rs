use harness::browser::PASSWORD;
use harness::chromium::{Chromium, Colours, Scripts};
use harness::sample_site::SampleSite;

const BACKGROUND: &str = "return getComputedStyle(document.body).backgroundColor";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colours_follow_the_system_until_someone_chooses() {
    let sample_site = SampleSite::bare().await;
    let chromium = sample_site.browser().await;
    sample_site.log_in(&chromium).await;
    let mut backgrounds = Vec::new();
    for colours in Colours::BOTH {
        chromium.prefers(colours).await;
        chromium.goes_to("/app").await;
        backgrounds.push(chromium.evaluates(BACKGROUND).await);
    }
    let [light, dark] = backgrounds.try_into().expect("two");
    assert_ne!(light, dark);

    chromium.prefers(Colours::Light).await;
    chromium.goes_to("/app/settings/tokens").await;
    chromium.clicks("details.menu summary").await;
    chromium.presses("dark").await;
    chromium.find("html[data-theme=dark]").await;
    assert_eq!(chromium.place().await, "/app/settings/tokens", "one stays where one is");
    assert_eq!(chromium.evaluates(BACKGROUND).await, dark);
    // No script has a part in it, so that there is no moment in which the page has other colours.
    let source =
        sample_site.installation.http_client().build().expect("a client").get(format!("{}/login", chromium.origin));
    let source = source.header("cookie", "taco-theme=dark").send().await.expect("it answers");
    assert!(source.text().await.expect("text").contains(r#"data-theme="dark""#), "the server's first answer says it");
    assert_eq!(chromium.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_theme_is_chosen_without_scripts() {
    let sample_site = SampleSite::bare().await;
    let chromium = Chromium::start(&sample_site.installation.origin, Scripts::Blocked).await;
    sample_site.log_in(&chromium).await;
    chromium.clicks("details.menu summary").await;
    chromium.presses("dark").await;
    chromium.find("html[data-theme=dark]").await;
    chromium.clicks("details.menu summary").await;
    chromium.presses("Log out").await;
    chromium.types("[name=username]", "admin").await;
    chromium.types("[name=password]", PASSWORD).await;
    chromium.clicks("main button").await;
    chromium.find("html[data-theme=dark]").await;
    assert_eq!(chromium.evaluates("return typeof htmx").await, "undefined", "no script of the page has run");
}
