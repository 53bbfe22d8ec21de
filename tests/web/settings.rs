use harness::browser::PageForm;
use reqwest::StatusCode;
use serde_json::json;

use crate::form_scene::{FormScene, WORKSPACE};

const WORKSPACE_SETTINGS: &str = "/app/acme/workspaces/web/settings";
const ORGANIZATION_SETTINGS: &str = "/app/acme/settings";

#[tokio::test]
async fn a_workspace_gets_another_name_and_tags() {
    let scene = FormScene::new().await;
    let form = scene.admin.get(WORKSPACE_SETTINGS).await.form(&format!("{WORKSPACE_SETTINGS}/general"));
    let fields = [("name", "web-2"), ("description", "the <shop>"), ("tags", "prod\r\nteam=web\r\n")];
    let done = scene.admin.send(&form, &fields).await;
    assert_eq!(done.done(), "/app/acme/workspaces/web-2/settings: Workspace web-2 saved.", "{}", done.text);
    let workspace = scene.api.workspace("acme", "web-2").await;
    assert_eq!(workspace["attributes"]["description"], "the <shop>");
    assert_eq!(workspace["attributes"]["tag-names"], json!(["prod", "team"]));
    let page = scene.admin.get("/app/acme/workspaces/web-2/settings").await;
    assert!(page.text.contains("team=web") && page.text.contains("the &#60;shop&#62;"), "{}", page.text);

    let form = page.form("/app/acme/workspaces/web-2/settings/general");
    for (name, tags, field) in [("a b", "", "error-name"), ("web", "<b>", "error-tags")] {
        let page = scene.admin.send(&form, &[("name", name), ("description", "kept text"), ("tags", tags)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.text.contains(field) && page.text.contains("kept text"), "{}", page.text);
    }
}

#[tokio::test]
async fn how_runs_happen_is_chosen_and_mistakes_stand_beside_their_field() {
    let scene = FormScene::new().await;
    let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": "metal" } } });
    let pool = scene.api.post("/api/v2/organizations/acme/agent-pools", pool).await["data"]["id"].clone();
    let pool = pool.as_str().expect("an id");
    let form = scene
        .admin
        .get(&format!("{WORKSPACE_SETTINGS}/execution"))
        .await
        .form(&format!("{WORKSPACE_SETTINGS}/execution"));
    let fields = |mode, pool, version, directory| {
        [
            ("mode", mode),
            ("agent_pool", pool),
            ("engine", "tofu"),
            ("version", version),
            ("directory", directory),
            ("auto_apply", "true"),
        ]
    };
    let done = scene.admin.send(&form, &fields("agent", pool, "~> 1.9", "infra")).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let attributes = scene.workspace().await["attributes"].clone();
    assert_eq!(
        [&attributes["execution-mode"], &attributes["terraform-version"], &attributes["working-directory"]],
        [&json!("agent"), &json!("~> 1.9"), &json!("infra")]
    );
    assert_eq!([&attributes["auto-apply"], &attributes["allow-destroy-plan"]], [&json!(true), &json!(false)]);
    for (mode, pool, version, directory, field) in [
        ("agent", "", "latest", "", "error-agent-pool-id"),
        ("remote", "", "newest", "", "error-terraform-version"),
        ("remote", "", "latest", "../up", "error-working-directory"),
    ] {
        let page = scene.admin.send(&form, &fields(mode, pool, version, directory)).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert!(page.text.contains(field), "{field}: {}", page.text);
    }
    let done = scene.admin.send(&form, &fields("", pool, "latest", "")).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let attributes = scene.workspace().await["attributes"].clone();
    assert_eq!(attributes["execution-mode"], "local", "the organization's default");
    assert_eq!(attributes["setting-overwrites"]["execution-mode"], false);
}

#[tokio::test]
async fn the_lock_is_told_and_changed_in_the_settings_and_on_the_overview() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "admin").await;
    let form = scene.admin.get(WORKSPACE).await.form(&format!("{WORKSPACE}/lock"));
    assert_eq!(scene.admin.send(&form, &[("reason", "moving <house>")]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(scene.workspace().await["attributes"]["locked"], true);
    const LOCKING: &str = "/app/acme/workspaces/web/settings/locking";
    let settings = jane.get(LOCKING).await;
    for part in ["moving &#60;house&#62;", "<time datetime=", "Force unlock workspace web?"] {
        assert!(settings.text.contains(part), "{part}: {}", settings.text);
    }
    let page = jane.get(WORKSPACE).await;
    assert!(page.text.contains("moving &#60;house&#62;") && page.text.contains("Force unlock"), "{}", page.text);
    let again = jane.send(&PageForm { action: format!("{WORKSPACE}/lock"), ..page.form("/app") }, &[]).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "someone else holds it");
    let since = again.text.split(" since ").nth(1).expect("since when");
    assert!(since.starts_with("<time datetime=\"20") && since.contains(" UTC</time> from "), "{since}");
    let unlock = scene.admin.get(WORKSPACE).await.form(&format!("{WORKSPACE}/unlock"));
    assert_eq!(scene.admin.send(&unlock, &[]).await.status, StatusCode::SEE_OTHER);
    scene.admin.send(&form, &[]).await;
    let force = jane.get(WORKSPACE).await.form(&format!("{WORKSPACE}/force-unlock"));
    assert_eq!(jane.send(&force, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(scene.workspace().await["attributes"]["locked"], false);
    let locking = jane.get(LOCKING).await;
    assert!(locking.text.contains("Unlocked.") && locking.text.contains("Lock workspace"), "{}", locking.text);
}

#[tokio::test]
async fn state_is_shared_and_triggers_are_set_by_name() {
    let scene = FormScene::new().await;
    scene.api.given_workspace("acme", "network").await;
    let at = |path: &str| format!("{WORKSPACE_SETTINGS}/{path}");
    let (sharing, triggers) = (scene.admin.get(&at("sharing")).await, scene.admin.get(&at("triggers")).await);
    let form = |path: &str| if path == "triggers" { &triggers } else { &sharing }.form(&at(path));
    for (path, section, word) in
        [("consumers", "sharing", "Remote state sharing saved."), ("triggers", "triggers", "Run trigger added.")]
    {
        let done = scene.admin.send(&form(path), &[("workspace", "network")]).await;
        assert_eq!(done.done(), format!("{}: {word}", at(section)), "{}", done.text);
        for wrong in ["nowhere", "web", ""] {
            let page = scene.admin.send(&form(path), &[("workspace", wrong)]).await;
            assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {wrong}");
            assert!(page.text.contains("error-workspace"), "{}", page.text);
        }
    }
    scene.admin.send(&form("sharing"), &[("with_project", "true")]).await;
    let attributes = scene.workspace().await["attributes"].clone();
    assert_eq!([&attributes["global-remote-state"], &attributes["project-remote-state"]], [false, true]);
    let source = scene.admin.get("/app/acme/workspaces/network/settings/triggers").await;
    assert!(source.text.contains("After an apply here, a run starts in:"), "{}", source.text);

    let page = scene.admin.get(&at("sharing")).await;
    let remove = page.form(&at("consumers/remove"));
    assert!(page.text.contains("Stop sharing the state with network?"), "it asks first: {}", page.text);
    assert_eq!(scene.admin.send(&remove, &[]).await.status, StatusCode::SEE_OTHER);
    let page = scene.admin.get(&at("triggers")).await;
    let remove = page.form(&at("triggers/rt-"));
    assert_eq!(scene.admin.send(&remove, &[]).await.status, StatusCode::SEE_OTHER);
    let page = scene.admin.get(&at("triggers")).await;
    assert!(page.text.contains("No run triggers."), "{}", page.text);
}

#[tokio::test]
async fn teams_get_access_more_of_it_and_none() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "read").await;
    const TEAMS: &str = "/app/acme/workspaces/web/settings/teams";
    let page = scene.admin.get(TEAMS).await;
    let change = page.form(&format!("{WORKSPACE_SETTINGS}/teams/tws-"));
    assert_eq!(scene.admin.send(&change, &[("access", "admin")]).await.status, StatusCode::SEE_OTHER);
    let settings = jane.get(WORKSPACE_SETTINGS).await;
    assert!(!settings.text.contains("You may not change the workspace&#39;s settings"), "{}", settings.text);
    let wrong = scene.admin.send(&change, &[("access", "everything")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let remove = PageForm { action: format!("{}/remove", change.action), ..change };
    assert_eq!(scene.admin.send(&remove, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(jane.get(WORKSPACE_SETTINGS).await.status, StatusCode::NOT_FOUND);

    let page = scene.admin.get(TEAMS).await;
    let add = page.form(&format!("{WORKSPACE_SETTINGS}/teams"));
    let option = page.text.split("value=\"team-").skip(1).find(|rest| rest.contains("janes")).expect("her team");
    let team = format!("team-{}", option.split('"').next().expect("an id"));
    let done = scene.admin.send(&add, &[("team", &team), ("access", "plan")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(jane.get(WORKSPACE_SETTINGS).await.status, StatusCode::OK);
}

#[tokio::test]
async fn whoever_may_not_change_a_workspace_sees_why() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "read").await;
    let page = jane.get(WORKSPACE_SETTINGS).await;
    assert!(page.text.contains("You may not change the workspace&#39;s settings"), "{}", page.text);
    let deletion = jane.get(&format!("{WORKSPACE_SETTINGS}/delete")).await;
    assert!(deletion.text.contains("You may not delete the workspace"), "{}", deletion.text);
    let proof = page.form(&format!("{WORKSPACE_SETTINGS}/general"));
    let fields = [("name", "mine"), ("workspace", "web"), ("confirmation", "web"), ("care", "force"), ("version", "1")];
    for path in ["general", "execution", "sharing", "ssh-key", "delete"] {
        let form = PageForm { action: format!("{WORKSPACE_SETTINGS}/{path}"), ..proof.clone() };
        assert_eq!(jane.send(&form, &fields).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let forged = PageForm { action: format!("{WORKSPACE_SETTINGS}/general"), hidden: Vec::new() };
    assert_eq!(scene.admin.send(&forged, &fields).await.status, StatusCode::FORBIDDEN, "without a proof");
    assert_eq!(scene.workspace().await["attributes"]["name"], "web");
}

#[tokio::test]
async fn a_workspace_goes_when_its_name_is_typed() {
    let scene = FormScene::new().await;
    const DELETION: &str = "/app/acme/workspaces/web/settings/delete";
    let form = scene.admin.get(DELETION).await.form(&format!("{WORKSPACE_SETTINGS}/delete"));
    let page = scene.admin.send(&form, &[("confirmation", "wep"), ("care", "safe")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("error-confirmation"), "{}", page.text);
    let lock = scene.admin.get(WORKSPACE).await.form(&format!("{WORKSPACE}/lock"));
    scene.admin.send(&lock, &[]).await;
    let refused = scene.admin.send(&form, &[("confirmation", "web"), ("care", "safe")]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "it is locked");
    assert!(refused.text.contains("locked") && refused.text.contains("Log out"), "{}", refused.text);
    let page = scene.admin.get(DELETION).await;
    assert!(page.text.contains("Force delete") && page.text.contains("not-safe"), "{}", page.text);
    let done = scene.admin.send(&form, &[("confirmation", "web"), ("care", "force")]).await;
    assert_eq!(done.done(), "/app/acme/workspaces: Workspace web deleted.", "{}", done.text);
    assert_eq!(scene.admin.get(&format!("{WORKSPACE}/settings")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_organizations_settings_are_saved_and_mistakes_shown() {
    let scene = FormScene::new().await;
    let form = scene.admin.get(ORGANIZATION_SETTINGS).await.form(ORGANIZATION_SETTINGS);
    let fields = |name, email, mode| [("name", name), ("email", email), ("mode", mode), ("user_tokens", "true")];
    let done = scene.admin.send(&form, &fields("acme", "new@acme.test", "remote")).await;
    assert_eq!(done.done(), "/app/acme/settings: Settings saved.", "{}", done.text);
    let attributes = scene.api.get("/api/v2/organizations/acme").await["data"]["attributes"].clone();
    assert_eq!([&attributes["email"], &attributes["default-execution-mode"]], ["new@acme.test", "remote"]);
    for (name, email, mode, field) in [
        ("settings", "a@b.test", "remote", "error-name"),
        ("acme", "nonsense", "remote", "error-email"),
        ("acme", "a@b.test", "agent", "error-default-agent-pool-id"),
    ] {
        let page = scene.admin.send(&form, &fields(name, email, mode)).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert!(page.text.contains(field), "{field}: {}", page.text);
    }
}

#[tokio::test]
async fn an_organizations_token_is_shown_once_replaced_and_revoked() {
    let scene = FormScene::new().await;
    let tokens = format!("{ORGANIZATION_SETTINGS}/tokens");
    let shown = |text: &str| {
        let token = text.split("<code id=\"organization-token\">").nth(1).expect("a token");
        token.split('<').next().expect("its text").to_owned()
    };
    let mut made = Vec::new();
    for kind in ["organization", "audit-trail", "organization"] {
        let form = scene.admin.get(&tokens).await.form(&format!("{tokens}/{kind}"));
        let page = scene.admin.sends_and_follows(&form, &[("days", "30")]).await;
        made.push(shown(&page.text));
    }
    let status = |token: &str| {
        let (admin, token) = (&scene.admin, token.to_owned());
        async move { admin.api_status("/api/v2/organizations/acme", &token).await }
    };
    assert_eq!([status(&made[0]).await, status(&made[2]).await], [401, 200], "the second one took its place");
    let page = scene.admin.get(&tokens).await;
    assert!(!made.iter().any(|token| page.text.contains(token.as_str())), "never again");
    let revoke = page.form(&format!("{tokens}/organization/revoke"));
    assert_eq!(scene.admin.send(&revoke, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(status(&made[2]).await, 401);
    let unknown = PageForm { action: format!("{tokens}/nonsense"), ..revoke };
    assert_eq!(scene.admin.send(&unknown, &[("days", "30")]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_ssh_key_is_added_chosen_renamed_and_deleted_and_never_shown() {
    let scene = FormScene::new().await;
    const EXECUTION: &str = "/app/acme/workspaces/web/settings/execution";
    let keys = format!("{ORGANIZATION_SETTINGS}/ssh-keys");
    let form = scene.admin.get(&keys).await.form(&keys);
    let value = "-----BEGIN KEY-----\r\ns3cr3t\r\n-----END KEY-----";
    assert_eq!(scene.admin.send(&form, &[("name", "deploy"), ("value", value)]).await.status, StatusCode::SEE_OTHER);
    let wrong = scene.admin.send(&form, &[("name", "deploy"), ("value", value)]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("error-name") && !wrong.text.contains("s3cr3t"), "{}", wrong.text);
    let settings = scene.admin.get(EXECUTION).await;
    let id = settings.text.split("value=\"sshkey-").nth(1).and_then(|rest| rest.split('"').next()).expect("an id");
    let choose = settings.form(&format!("{WORKSPACE_SETTINGS}/ssh-key"));
    let done = scene.admin.send(&choose, &[("key", &format!("sshkey-{id}"))]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let page = scene.admin.get(&keys).await;
    assert!(page.text.contains("used by 1 workspace<") && !page.text.contains("s3cr3t"), "{}", page.text);
    let rename = page.form(&format!("{keys}/sshkey-{id}"));
    assert_eq!(rename.action, format!("{keys}/sshkey-{id}"));
    assert_eq!(scene.admin.send(&rename, &[("name", "fetch")]).await.status, StatusCode::SEE_OTHER);
    let refused = scene.admin.send(&rename, &[("name", "")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let row = refused
        .text
        .split(&format!("action=\"{keys}/sshkey-{id}\">"))
        .nth(1)
        .and_then(|row| row.split("</form>").next());
    let row = row.expect("the form again");
    assert!(row.contains("value=\"\"") && row.contains("id=\"error-name\">"), "{row}");
    let page = scene.admin.get(&keys).await;
    assert!(
        page.text.contains("<strong>fetch</strong>") && page.text.contains("used by 1 workspace<"),
        "{}",
        page.text
    );
    let delete = page.form(&format!("{keys}/sshkey-{id}/delete"));
    assert_eq!(scene.admin.send(&delete, &[]).await.status, StatusCode::SEE_OTHER);
    assert!(!scene.admin.get(EXECUTION).await.text.contains("fetch</option>"));
}

#[tokio::test]
async fn an_organization_goes_when_its_name_is_typed_by_an_owner() {
    let scene = FormScene::new().await;
    let jane = scene.member("jane", "admin").await;
    let page = jane.get(ORGANIZATION_SETTINGS).await;
    for part in ["You may not change the organization&#39;s settings", "You may not delete the organization"] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let delete = page.form(&format!("{ORGANIZATION_SETTINGS}/delete"));
    assert_eq!(jane.send(&delete, &[("confirmation", "acme")]).await.status, StatusCode::FORBIDDEN);
    let members = jane.get(&format!("{ORGANIZATION_SETTINGS}/members")).await;
    for path in ["", "/tokens/organization", "/ssh-keys", "/members"] {
        let form = PageForm { action: format!("{ORGANIZATION_SETTINGS}{path}"), ..delete.clone() };
        let team = members.text.split("name=\"team\" value=\"team-").nth(1).and_then(|rest| rest.split('"').next());
        let team = format!("team-{}", team.expect("a team to choose"));
        let fields = [
            ("team", team.as_str()),
            ("name", "mine"),
            ("value", "x"),
            ("days", "30"),
            ("email", "a@b.test"),
            ("mode", "remote"),
        ];
        assert_eq!(jane.send(&form, &fields).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let eve = scene.stranger("eve").await;
    assert_eq!(eve.get(ORGANIZATION_SETTINGS).await.status, StatusCode::NOT_FOUND);

    let delete = scene.admin.get(ORGANIZATION_SETTINGS).await.form(&format!("{ORGANIZATION_SETTINGS}/delete"));
    let page = scene.admin.send(&delete, &[("confirmation", "amce")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    let done = scene.admin.send(&delete, &[("confirmation", "acme")]).await;
    assert_eq!(done.done(), "/app/organizations: Organization acme deleted.", "{}", done.text);
    assert_eq!(scene.admin.get(ORGANIZATION_SETTINGS).await.status, StatusCode::NOT_FOUND);
}
