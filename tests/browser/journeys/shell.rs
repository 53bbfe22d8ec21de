//! What surrounds every page: search, shortcuts, dialogs, times and copying.

use harness::chromium::{Chromium, Scripts};
use serde_json::json;

use super::Journey;

super::told_with_and_without_scripts!(someone_finds_a_workspace, something_destructive_is_asked_about);

/// Presses keys on whatever has the focus.
async fn types_key(chromium: &Chromium, key: &str, with_control: bool) {
    let script = "(document.activeElement || document.body).dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], \
                  ctrlKey: arguments[1], bubbles: true, cancelable: true }))";
    let script = script.replace("arguments[0]", &json!(key).to_string());
    chromium.evaluates(&script.replace("arguments[1]", if with_control { "true" } else { "false" })).await;
}

/// Presses Escape as a keyboard does.
async fn escapes(chromium: &Chromium) {
    for kind in ["keyDown", "keyUp"] {
        let event = json!({ "type": kind, "key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27 });
        chromium.devtools("Input.dispatchKeyEvent", event).await;
    }
}

async fn someone_finds_a_workspace(journey: Journey) {
    journey.makes_workspace("network-prod").await;
    let admin = &journey.admin;
    admin.goes_to("/app/acme/queue").await;
    match journey.scripts {
        Scripts::Run => {
            types_key(admin, "k", true).await;
            admin.find("#palette:popover-open").await;
            admin.types("#palette-query", "net pro").await;
            admin.clicks("#palette-results a[href='/app/acme/workspaces/network-prod']").await;
        }
        Scripts::Blocked => {
            admin.clicks(".search-button").await;
            admin.arrives_at("/app/acme/search").await;
            admin.types("#q", "net pro").await;
            admin.clicks("main form button").await;
            admin.clicks(".hits a[href='/app/acme/workspaces/network-prod']").await;
        }
    }
    admin.arrives_at("/app/acme/workspaces/network-prod").await;
    admin.clicks(".switch").await;
    match journey.scripts {
        Scripts::Run => {
            admin.find("#palette:popover-open a[href='/app/acme/workspaces/network-prod']").await;
        }
        Scripts::Blocked => {
            admin.find(".hits a[href='/app/acme/workspaces/network-prod']").await;
        }
    }
    journey.ends().await;
}

async fn something_destructive_is_asked_about(journey: Journey) {
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    let variables = "/app/acme/workspaces/web/variables";
    admin.goes_to(variables).await;
    admin.presses("New variable").await;
    admin.types("#key", "region").await;
    admin.types("#value", "eu").await;
    admin.presses("Create variable").await;
    admin.find(".flash").await;
    let place = "const box = document.querySelector('tbody .actions').getBoundingClientRect(); return [box.x, box.y]";
    let before = admin.evaluates(place).await;
    admin.clicks("tbody button[popovertarget]").await;
    admin.find(".dialog:popover-open").await;
    assert_eq!(admin.evaluates(place).await, before, "nothing jumps");
    escapes(admin).await;
    admin.find("body:not(:has(.dialog:popover-open))").await;
    admin.goes_to(variables).await;
    assert!(admin.text().await.contains("region") && !admin.shows(".flash").await, "nothing was done, nothing is told");
    admin.clicks("tbody button[popovertarget]").await;
    admin.clicks(".dialog:popover-open button.destroy").await;
    admin.reads("Variable region deleted.").await;
    journey.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_open_what_they_promise_and_escape_closes_it() {
    let journey = super::begin(Scripts::Run).await;
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    admin.goes_to("/app/acme").await;
    types_key(admin, "?", false).await;
    admin.find("#shortcuts:popover-open").await;
    escapes(admin).await;
    admin.find("body:not(:has(#shortcuts:popover-open))").await;
    types_key(admin, "/", false).await;
    admin.find("#palette:popover-open").await;
    escapes(admin).await;
    admin.find("body:not(:has(#palette:popover-open))").await;
    admin.clicks(".menu > summary").await;
    admin.find(".menu[open]").await;
    types_key(admin, "Escape", false).await;
    admin.find(".menu:not([open])").await;
    admin.goes_to("/app/acme/workspaces").await;
    types_key(admin, "/", false).await;
    admin.find("#search:focus").await;
    journey.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_local_and_the_header_is_one_row_on_a_phone() {
    let journey = super::begin(Scripts::Run).await;
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    admin.devtools("Emulation.setTimezoneOverride", json!({ "timezoneId": "Asia/Kolkata" })).await;
    admin.goes_to("/app/settings/sessions").await;
    admin.find("time[data-local]").await;
    let titles = "return [...document.querySelectorAll('time[data-local]')].every((time) => time.title.includes('UTC') \
                  && !time.textContent.includes('UTC'))";
    assert_eq!(admin.evaluates(titles).await, true, "{}", admin.source().await);

    admin.is_wide(390).await;
    admin.goes_to("/app/acme/workspaces/web/variables").await;
    let seen = "const here = document.querySelector('header.top .tabs-button').getBoundingClientRect(); \
                return here.left >= 0 && here.right <= innerWidth && document.querySelector('header.top').offsetHeight < 60 \
                && document.querySelector('.below').offsetHeight < 60";
    assert_eq!(admin.evaluates(seen).await, true);
    assert!(admin.text_of(".below .tabs-button").await.contains("Variables"), "it says where one is");
    admin.clicks("header.top .tabs-button").await;
    admin.follows("Agents").await;
    admin.arrives_at("/app/acme/agents").await;
    journey.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_copied_by_a_button_that_is_there_only_if_it_works() {
    for scripts in [Scripts::Run, Scripts::Blocked] {
        let journey = super::begin(scripts).await;
        let admin = &journey.admin;
        admin.goes_to("/app/organizations").await;
        admin.presses("New organization").await;
        admin.types("#name", "acme").await;
        admin.types("#email", "ops@acme.test").await;
        admin.presses("Create organization").await;
        admin.arrives_at("/app/acme/workspaces").await;
        match scripts {
            Scripts::Run => {
                admin.devtools("Browser.grantPermissions", json!({ "permissions": ["clipboardSanitizedWrite"] })).await;
                admin.clicks("main [data-copy]").await;
                admin.find("main [data-copy].done").await;
                admin.goes_to("/app/settings/account").await;
                admin.clicks("main .id + .copy").await;
                admin.find("main .id + .copy.done").await;
            }
            Scripts::Blocked => {
                let shown = "return getComputedStyle(document.querySelector('main [data-copy]')).display";
                assert_eq!(admin.evaluates(shown).await, "none");
            }
        }
        journey.ends().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_visit_is_small() {
    const BUDGET: u64 = 120_000;
    let journey = super::begin(Scripts::Run).await;
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    for path in ["/app/acme", "/app/acme/workspaces/web"] {
        admin.goes_to(path).await;
        admin.devtools("Network.clearBrowserCache", json!({})).await;
        admin.goes_to(path).await;
        let sent = "return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]\
                    .reduce((sum, entry) => sum + entry.transferSize, 0)";
        let sent = admin.evaluates(sent).await.as_f64().expect("a number") as u64;
        assert!((5_000..BUDGET).contains(&sent), "{path}: {sent} bytes");
    }
    journey.ends().await;
}
