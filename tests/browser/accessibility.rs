use harness::chromium::{Chromium, Colours};
use harness::pages::{DESK, NO_PAGES, PAGES, PHONE, Page};
use harness::sample_site::SampleSite;
use reqwest::Method;
use taco_web::routes;

use crate::axe;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_keeps_anyone_out_and_none_complains_in_the_console() {
    let sample_site = SampleSite::open().await;
    let chromium = sample_site.browser().await;
    let (open, closed): (Vec<&Page>, Vec<&Page>) = PAGES.iter().partition(|page| page.is_for_everyone());
    let mut found = Vec::new();
    for page in open {
        found.extend(faults(&sample_site, &chromium, page).await);
    }
    sample_site.log_in(&chromium).await;
    for page in closed {
        found.extend(faults(&sample_site, &chromium, page).await);
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

async fn faults(sample_site: &SampleSite, chromium: &Chromium, page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    let address = sample_site.address(page);
    for colours in Colours::BOTH {
        chromium.prefers(colours).await;
        chromium.goes_to(&address).await;
        assert_eq!(chromium.place().await, address, "{} is not where it should be", page.name);
        let seen = axe::violations(chromium).await;
        found.extend(seen.into_iter().map(|fault| format!("{}, {}: {fault}", page.name, colours.word())));
    }
    chromium.is_wide(PHONE).await;
    let seen = axe::violations(chromium).await;
    found.extend(seen.into_iter().map(|fault| format!("{}, on a phone: {fault}", page.name)));
    let beyond = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let beyond = chromium.evaluates(beyond).await.as_f64().expect("a number");
    if beyond > 0.0 {
        found.push(format!("{}: it is {beyond} pixels wider than a phone", page.name));
    }
    chromium.is_wide(DESK).await;
    let mut complaints = chromium.complaints().await;
    complaints.retain(|complaint| !(page.is_missing() && complaint.contains("404")));
    found.extend(complaints.into_iter().map(|complaint| format!("{}: {complaint}", page.name)));
    found
}

#[test]
fn every_page_is_looked_at() {
    let shown = routes::all().into_iter().filter(|route| route.method == Method::GET).map(|route| route.path);
    let pages = shown.filter(|path| !NO_PAGES.contains(path));
    let missing: Vec<&str> = pages.filter(|path| PAGES.iter().all(|page| page.route != *path)).collect();
    assert!(missing.is_empty(), "harness/pages.rs lists no address for: {missing:?}");
}
