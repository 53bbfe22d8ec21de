//! README of a configuration, on the overview of its workspace.

use harness::browser::Page;
use serde_json::json;

use crate::run_scene::{NASTY, RunScene};

const OVERVIEW: &str = "/app/acme/workspaces/web";

/// Texts that would do something in a browser if they came through.
const POISON: &[&str] = &[
    NASTY,
    "<iframe src=\"https://evil.test\"></iframe>",
    "<svg onload=alert(1)>",
    "<form action=\"https://evil.test\"><input name=password></form>",
    "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.test\">",
    "<a href=\"javascript:alert(1)\">x</a>",
    "[x](javascript:alert(1)) [x](JAVASCRIPT:alert(1)) [x](data:text/html,x) [x](vbscript:x)",
    "[x]: javascript:alert(1)\n\n[x] ![x]",
    "![x](https://evil.test/pixel.png \"t\\\" onerror=alert(1)\")",
    "[x](https://a.test/\"onmouseover=\"alert(1))",
    "```\"><script>alert(1)</script>\nx\n```",
    "</details></main><script>alert(1)</script>",
];

/// The part of the page that the README fills.
fn readme(page: &Page) -> &str {
    let part = page.text.split("aria-label=\"README\">").nth(1).and_then(|rest| rest.split("</details>").next());
    part.unwrap_or_else(|| panic!("no README: {}", page.text))
}

#[tokio::test]
async fn the_overview_shows_the_readme_of_the_configuration() {
    let scene = RunScene::start().await;
    assert!(!scene.admin.get(OVERVIEW).await.text.contains("aria-label=\"README\""), "it has none");
    let text = "# Shop\n\nSee [the docs](https://docs.test/a?b&c) and [here](docs/x.md).\n\n- [ ] more\n";
    scene.given_files(&scene.workspace, &[("main.tf", ""), ("README.md", text)]).await;
    let page = scene.admin.get(OVERVIEW).await;
    for part in [
        "<h3>Shop</h3>",
        "<a href=\"https://docs.test/a?b&#38;c\" rel=\"noopener nofollow\">the docs</a> and here.",
        "<li>☐ more</li>",
    ] {
        assert!(readme(&page).contains(part), "{part}: {}", page.text);
    }
    assert!(page.text.contains("<details class=\"card readme\" open>"), "a short one is open");
    assert_eq!(page.text.matches("<h1").count(), 1);
    let long = "line\n\n".repeat(200);
    scene.given_files(&scene.workspace, &[("main.tf", ""), ("README.md", &long)]).await;
    assert!(scene.admin.get(OVERVIEW).await.text.contains("<details class=\"card readme\">"), "a long one is folded");
    let run = scene.given_run(json!({})).await;
    assert!(!scene.look(&run).await.text.contains("line\n"), "it stands on the overview alone");
    let eve = scene.server.stranger("eve").await;
    assert_eq!(eve.get(OVERVIEW).await.status, 404);
}

#[tokio::test]
async fn nothing_in_a_readme_does_anything_in_a_browser() {
    let scene = RunScene::start().await;
    for poison in POISON {
        scene.given_files(&scene.workspace, &[("main.tf", ""), ("README.md", poison)]).await;
        let page = scene.admin.get(OVERVIEW).await;
        let shown = readme(&page).to_lowercase();
        for tag in shown.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
            let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
            let known = ["p", "a", "em", "div", "pre", "code", "h3", "ul", "li"];
            assert!(known.contains(&name), "{tag} of {poison}: {shown}");
            let address = tag.split("href=\"").nth(1);
            assert!(address.is_none_or(|address| address.starts_with("https://")), "{tag} of {poison}");
            assert!(!tag.contains(" on") && !tag.contains("src=") && !tag.contains("style="), "{tag} of {poison}");
        }
        let scripts = page.text.matches("<script").count();
        assert_eq!(scripts, page.text.matches("<script src=\"/static/").count(), "{poison}");
        assert!(page.text.contains("id=\"outputs\""), "what follows is still there: {}", page.text);
    }
}
