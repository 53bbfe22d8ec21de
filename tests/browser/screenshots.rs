//! `screenshots DIRECTORY [NAME]…`: pictures of every page, or of those whose names contain one of these.

use std::path::{Path, PathBuf};

use harness::chromium::{Chromium, Colours};
use harness::gallery::Gallery;
use harness::pages::{DESK, PAGES, PHONE, Page};

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

    let gallery = Gallery::open().await;
    let chromium = gallery.browser().await;
    for page in PAGES.iter().filter(wanted).filter(|page| page.is_for_everyone()) {
        take(&gallery, &chromium, page, &directory).await;
    }
    gallery.let_in(&chromium).await;
    for page in PAGES.iter().filter(wanted).filter(|page| !page.is_for_everyone()) {
        take(&gallery, &chromium, page, &directory).await;
    }
}

async fn take(gallery: &Gallery, chromium: &Chromium, page: &Page, directory: &Path) {
    for (look, colours, width) in LOOKS {
        chromium.prefers(colours).await;
        chromium.is_wide(width).await;
        chromium.goes_to(&gallery.address(page)).await;
        let file = directory.join(format!("{}-{look}.png", page.name));
        std::fs::write(&file, chromium.picture().await).expect("there is room for a picture");
    }
    println!("{}", page.name);
}
