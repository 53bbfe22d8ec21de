//! Pages for visitors who may see little, or nothing.

use harness::api_seed::ApiSeed;
use harness::browser::PASSWORD;
use harness::chromium::Chromium;
use harness::configurations::SMALL;
use serde_json::json;

use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(a_person_without_rights_sees_why);

async fn a_person_without_rights_sees_why(journey: Journey) {
    let admin = &journey.admin;
    let seed = ApiSeed::of_organization(journey.sample_site.installation.admin(), "acme", true).await;
    let project = seed.create("projects", json!({ "name": "platform" }), json!({})).await;
    let workspace = seed.workspace(&project, "web", "").await;
    seed.configuration(&workspace, &[("main.tf", SMALL)]).await;
    let run = seed.run(&workspace, json!({ "message": "Four of them" }), "planned").await;
    let address = format!("/app/acme/workspaces/web/runs/{run}");

    admin.goes_to("/app/admin/users").await;
    admin.presses("New user").await;
    admin.types("#username", "jane").await;
    admin.types("#email", "jane@acme.test").await;
    admin.presses("Create user").await;
    let link = admin.text_of(".secret code").await;
    let jane = Chromium::start(&admin.origin, journey.scripts).await;
    jane.goes_to(link.trim().strip_prefix(&admin.origin).expect("a link to this site")).await;
    jane.types("[name=password]", PASSWORD).await;
    jane.types("[name=repeated]", PASSWORD).await;
    jane.clicks("main button").await;
    jane.arrives_at("/app").await;

    for path in ["/app/acme", "/app/acme/workspaces", "/app/acme/workspaces/web", &address, "/app/admin"] {
        jane.goes_to(path).await;
        let text = jane.text().await;
        assert!(text.contains("404") && !text.contains("Four of them"), "{path} tells a stranger: {text}");
    }

    let team = seed.create("teams", json!({ "name": "readers" }), json!({})).await;
    let teams = json!({ "teams": { "data": [{ "type": "teams", "id": team }] } });
    seed.create("organization-memberships", json!({ "email": "jane@acme.test" }), teams).await;
    jane.goes_to("/app").await;
    jane.presses("Accept").await;
    jane.reads("You are now a member").await;
    let relationships = json!({
        "team": { "data": { "type": "teams", "id": team } },
        "workspace": { "data": { "type": "workspaces", "id": workspace } },
    });
    let access = json!({ "access": "read" });
    seed.create_at("/api/v2/team-workspaces", "team-workspaces", access, relationships).await;

    jane.goes_to(&address).await;
    jane.reads("Four of them").await;
    let why = "return [...document.querySelectorAll('main button:disabled')].map((button) => \
        [button.textContent.trim(), document.getElementById(button.getAttribute('aria-describedby'))?.textContent ?? ''])";
    let refused = jane.evaluates(why).await;
    let refused = refused.as_array().expect("a list");
    assert!(refused.iter().any(|button| button[0] == "Confirm & apply"), "{refused:?}");
    assert!(refused.iter().all(|button| button[1] != ""), "each tells why: {refused:?}");
    jane.goes_to("/app/acme/workspaces/web/settings").await;
    assert!(!jane.shows("main button.danger:not(:disabled)").await, "nothing dangerous is offered");
    journey.ends().await;
}
