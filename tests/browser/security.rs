//! Security properties of every page and every form, however many there are.

use std::collections::HashMap;

use harness::browser::{Browser, PageForm};
use harness::pages::PAGES;
use harness::sample_site::SampleSite;
use reqwest::Method;
use taco_web::routes;

/// Forms for which no page of the sender's has to exist: those who log in have none yet, the CLIs never have, and the
/// theme changes nothing but the sender's own browser.
const WITHOUT_PROOF: [&str; 4] = ["/login", "/setup/{secret}", "/oauth/token", "/theme"];

/// Programs send it, and browsers do it no harm: it takes nothing from a cookie.
const FROM_ANYWHERE: [&str; 1] = ["/oauth/token"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_and_every_form_is_guarded() {
    let sample_site = SampleSite::open().await;
    let stranger = Browser::at(sample_site.installation.origin.clone(), sample_site.installation.http_client());
    let admin = sample_site.installation.browser().await;
    pages_say_what_they_never_do(&sample_site, &stranger, &admin).await;
    strangers_see_nothing(&sample_site, &stranger).await;
    forms_of_others_are_refused(&sample_site, &admin).await;
}

async fn pages_say_what_they_never_do(sample_site: &SampleSite, stranger: &Browser, admin: &Browser) {
    for page in PAGES.iter() {
        let browser = if page.is_for_everyone() { stranger } else { admin };
        let shown = browser.get(&sample_site.address(page)).await;
        assert!(shown.status.as_u16() < 500, "{}: {}", page.name, shown.status);
        let policy = shown.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self';",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "object-src 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{}: {policy}", page.name);
        }
        assert!(!policy.contains("unsafe"), "{}: {policy}", page.name);
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(shown.header(header), value, "{header} of {}", page.name);
        }
        let scripts = shown.text.matches("<script").count();
        assert_eq!(scripts, shown.text.matches("<script src=\"/static/").count(), "only files of ours: {}", page.name);
        for forbidden in [" style=", "<style", " hx-on", "javascript:", " onclick="] {
            assert!(!shown.text.contains(forbidden), "{} has {forbidden:?}", page.name);
        }
    }
}

async fn strangers_see_nothing(sample_site: &SampleSite, stranger: &Browser) {
    for page in PAGES.iter().filter(|page| !page.is_for_everyone() && !page.is_missing()) {
        let address = sample_site.address(page);
        let answer = stranger.get(&address).await;
        assert!(answer.location().starts_with("/login"), "{address} is answered with {}", answer.status);
        assert!(answer.text.is_empty(), "{address} tells something: {}", answer.text);
    }
}

async fn forms_of_others_are_refused(sample_site: &SampleSite, admin: &Browser) {
    let own = admin.origin.clone();
    let ours = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    let foreign = [
        vec![("origin", "https://evil.test")],
        vec![("origin", "null")],
        vec![("sec-fetch-site", "cross-site"), ("origin", own.as_str())],
        vec![("sec-fetch-site", "same-site")],
    ];
    let proof = admin.get("/app/settings/tokens").await.form("/logout").hidden;
    for route in routes::all().into_iter().filter(|route| route.method == Method::POST) {
        let form = PageForm { action: filled(sample_site, route.path), hidden: proof.clone() };
        for headers in &foreign {
            if !FROM_ANYWHERE.contains(&route.path) {
                let refused = admin.send_from(&form, &[], headers).await;
                assert_eq!(refused.status, 403, "{} takes a form with {headers:?}", form.action);
            }
        }
        for hidden in [Vec::new(), vec![("proof".to_owned(), "00".repeat(32))]] {
            if !WITHOUT_PROOF.contains(&route.path) {
                let refused = admin.send_from(&PageForm { hidden, ..form.clone() }, &[], &ours).await;
                assert_eq!(refused.status, 403, "{} takes a form without proof", form.action);
            }
        }
    }
    assert_eq!(admin.get("/app/settings/tokens").await.status, 200, "still logged in");
}

/// The path of a route in which something real takes the place of each name.
fn filled(sample_site: &SampleSite, path: &str) -> String {
    let real = HashMap::from([
        ("{organization}", "acme".to_owned()),
        ("{workspace}", "network".to_owned()),
        ("{run}", sample_site.placeholder("run-planned")),
        ("{state}", sample_site.placeholder("state")),
        ("{pool}", sample_site.placeholder("pool")),
        ("{walk}", sample_site.placeholder("walk")),
        ("{project}", sample_site.placeholder("project")),
        ("{variable}", sample_site.placeholder("variable")),
        ("{variable_set}", sample_site.placeholder("variable-set")),
    ]);
    let parts = path.split('/').map(|part| match (part.starts_with('{'), real.get(part)) {
        (false, _) => part.to_owned(),
        (true, Some(value)) => value.clone(),
        // A client without a proof does not learn whether it exists.
        (true, None) => "x".to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}
