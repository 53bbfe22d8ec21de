//! Texts that people write for other people's browsers to execute.

use harness::api_seed::POISON;
use harness::browser::{Browser, PASSWORD};
use harness::chromium::Chromium;
use harness::pages::PAGES;
use harness::sample_site::SampleSite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_write_is_text_on_every_page() {
    let sample_site = SampleSite::poisoned().await;
    let chromium = sample_site.browser().await;
    sample_site.log_in(&chromium).await;
    log_in_with_a_poisoned_agent(&sample_site).await;
    let mut seen = Vec::new();
    let mut faults = Vec::new();
    for page in PAGES.iter().filter(|page| !page.is_for_everyone() && !page.is_missing()) {
        let address = sample_site.address(page);
        chromium.goes_to(&address).await;
        assert_eq!(chromium.place().await, address, "nothing leads away from {}", page.name);
        faults.extend(taken_for_markup(&chromium).await.into_iter().map(|fault| format!("{}: {fault}", page.name)));
        if chromium.source().await.contains("data-poison") {
            seen.push(page.name);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for name in SEEN {
        let there = PAGES.iter().any(|page| page.name == *name);
        assert!(!there || seen.contains(name), "{name} no longer shows what others wrote, and so proves nothing");
    }
}

/// Pages that show the poison as text.
#[rustfmt::skip]
const SEEN: &[&str] = &[
    "tokens", "sessions", "dashboard", "runs", "queue", "agent-pool", "projects", "project", "variable-sets",
    "variable-set", "set-variable", "workspace", "workspace-empty", "workspace-locked", "workspace-runs", "run-planned",
    "run-console", "run-applied", "run-pending", "run-errored", "run-plan-only", "run-discarded", "run-applying", "state",
    "state-diff", "state-diff-json", "state-old", "variables", "variables-empty", "variable", "workspace-settings",
];

async fn taken_for_markup(chromium: &Chromium) -> Vec<String> {
    let found = "return [...document.querySelectorAll('[data-poison]')].map((element) => element.outerHTML)";
    let found = chromium.evaluates(found).await;
    let found = found.as_array().expect("a list").iter().map(ToString::to_string);
    found.chain(chromium.complaints().await).collect()
}

/// Pages that list sessions show what browsers call themselves.
async fn log_in_with_a_poisoned_agent(sample_site: &SampleSite) {
    let client = sample_site.installation.http_client().user_agent(POISON);
    let browser = Browser::at(sample_site.installation.origin.clone(), client);
    let form = browser.get("/login").await.form("/login");
    let done = browser.send(&form, &[("username", "admin"), ("password", PASSWORD)]).await;
    assert_eq!(done.status, 303, "{}", done.text);
}
