//! `screenshots DIRECTORY [NAME]…`: pictures of every page, or of those whose names contain one of these.

use std::path::{Path, PathBuf};

use harness::chromium::{Chromium, Colours};
use harness::pages::{DESK, PAGES, PHONE, Page};
use harness::sample_site::SampleSite;

/// Suffix of a picture's name after its page, and the colours and width with which it is taken.
const LOOKS: [(&str, Colours, u32); 3] =
    [("light", Colours::Light, DESK), ("dark", Colours::Dark, DESK), ("phone", Colours::Light, PHONE)];

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let directory = PathBuf::from(words.next().expect("the directory for the pictures"));
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    let names: Vec<String> = words.collect();
    let wanted = |page: &&Page| names.is_empty() || names.iter().any(|name| page.name.contains(name.as_str()));

    let sample_site = SampleSite::open().await;
    let chromium = sample_site.browser().await;
    for page in PAGES.iter().filter(wanted).filter(|page| page.is_for_everyone()) {
        take(&sample_site, &chromium, page, &directory).await;
    }
    sample_site.log_in(&chromium).await;
    for page in PAGES.iter().filter(wanted).filter(|page| !page.is_for_everyone()) {
        take(&sample_site, &chromium, page, &directory).await;
    }
}

async fn take(sample_site: &SampleSite, chromium: &Chromium, page: &Page, directory: &Path) {
    for (look, colours, width) in LOOKS {
        chromium.prefers(colours).await;
        chromium.is_wide(width).await;
        chromium.goes_to(&sample_site.address(page)).await;
        let file = directory.join(format!("{}-{look}.png", page.name));
        std::fs::write(&file, chromium.picture().await).expect("there is room for a picture");
    }
    println!("{}", page.name);
}
