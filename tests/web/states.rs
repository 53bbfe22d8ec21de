use harness::browser::{Browser, PageForm};
use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::{Value, json};

const PATH: &str = "/app/acme/workspaces/web/states";

/// A state of one resource with this content, and a password.
fn state(serial: u64, content: &str, password: &str) -> Value {
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "L",
        "outputs": {
            "secret": { "value": password, "type": "string", "sensitive": true },
            "plain": { "value": [content], "type": ["list", "string"] },
        },
        "resources": [{
            "module": "module.shop", "mode": "managed", "type": "terraform_data", "name": "one",
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{
                "attributes": { "input": content, "result": password },
                "sensitive_attributes": [[{ "type": "get_attr", "value": "result" }]],
            }],
        }],
    })
}

struct Given {
    site: PageServer,
    admin: Browser,
    workspace: String,
}

impl Given {
    async fn workspace() -> Self {
        let site = PageServer::start().await;
        site.api.given_organization("acme").await;
        let workspace = site.api.given_workspace("acme", "web").await;
        let admin = site.admin().await;
        Self { site, admin, workspace }
    }

    /// Writes a state as a client does, and tells its id.
    async fn push(&self, serial: u64, content: &str, password: &str) -> String {
        let id = self.site.api.given_state(&self.workspace, &state(serial, content, password)).await;
        // The clock stands still unless it is moved, and lists are in the order of time.
        self.site.api.pass(jiff::SignedDuration::from_secs(60));
        id
    }
}

#[tokio::test]
async fn versions_are_listed_and_shown_without_what_is_sensitive() {
    let given = Given::workspace().await;
    assert!(given.admin.get(PATH).await.text.contains("No state yet"));
    let first = given.push(1, "old <b>", "hunter2").await;
    let second = given.push(2, "new", "hunter3").await;
    let list = given.admin.get(PATH).await;
    let at = |id: &str| list.text.find(&format!("{PATH}/{id}\"")).unwrap_or_else(|| panic!("{id}:\n{}", list.text));
    assert!(at(&second) < at(&first), "newest first");

    let page = given.admin.get(&format!("{PATH}/{first}")).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for part in [
        "&#34;old &#60;b&#62;&#34;",
        "sensitive: hidden",
        "terraform_data.one",
        "<td data-label=\"Module\">shop</td>",
        "serial 1",
    ] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    assert!(!page.text.contains("hunter2"), "{}", page.text);
    let overview = given.admin.get("/app/acme/workspaces/web").await;
    for part in ["&#34;new&#34;", "sensitive: hidden", "terraform_data.one", "serial 2"] {
        assert!(overview.text.contains(part), "{part} is missing:\n{}", overview.text);
    }
    assert!(!overview.text.contains("hunter3"));
    let found = given.admin.get("/app/acme/workspaces/web?resource=nothing").await;
    assert!(found.text.contains("No resources match"), "{}", found.text);
}

#[tokio::test]
async fn a_state_is_downloaded_as_it_was_sent_by_who_may_read_it() {
    let given = Given::workspace().await;
    let id = given.push(7, "x", "hunter2").await;
    let file = given.admin.get(&format!("{PATH}/{id}/download")).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(file.text, state(7, "x", "hunter2").to_string());
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"web-7.tfstate\"");
    assert_eq!((file.header("cache-control"), file.header("x-content-type-options")), ("no-store", "nosniff"));
    let stranger = given.site.stranger("eve").await;
    for page in ["", "/diff", "/download"] {
        assert_eq!(stranger.get(&format!("{PATH}/{id}{page}")).await.status, StatusCode::NOT_FOUND, "{page}");
    }
    assert_eq!(stranger.get(PATH).await.status, StatusCode::NOT_FOUND);
    let nobody = given.site.browser().get(&format!("{PATH}/{id}/download")).await;
    assert_eq!(nobody.status, StatusCode::SEE_OTHER);
    for path in [format!("{PATH}/nonsense"), format!("{PATH}/sv-0000000000000000/download")] {
        assert_eq!(given.admin.get(&path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    given.site.api.given_workspace("acme", "other").await;
    let elsewhere = given.admin.get(&format!("/app/acme/workspaces/other/states/{id}")).await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND, "it is another workspace's");
}

#[tokio::test]
async fn two_versions_are_compared_and_secrets_stay_hidden() {
    let given = Given::workspace().await;
    let first = given.push(1, "old", "hunter2").await;
    let second = given.push(2, "new <i>", "hunter3").await;
    let third = given.push(3, "newer", "hunter3").await;
    let page = given.admin.get(&format!("{PATH}/{second}/diff")).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for part in [
        "from serial 1 to serial 2",
        "<code>module.shop</code>",
        "terraform_data.one",
        "&#34;old&#34;",
        "&#34;new &#60;i&#62;&#34;",
        "<code class=\"value old\">(sensitive)</code>",
    ] {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    let any = given.admin.get(&format!("{PATH}/{third}/diff?against={first}&view=json")).await;
    for part in ["from serial 1 to serial 3", "- ", "&#34;input&#34;: &#34;newer&#34;", "(sensitive)"] {
        assert!(any.text.contains(part), "{part} is missing:\n{}", any.text);
    }
    for page in [&page, &any] {
        assert!(!page.text.contains("hunter"), "{}", page.text);
    }
    let oldest = given.admin.get(&format!("{PATH}/{first}/diff")).await;
    assert!(oldest.text.contains("there is none before it"), "{}", oldest.text);
    let nonsense = given.admin.get(&format!("{PATH}/{first}/diff?against=nonsense")).await;
    assert_eq!(nonsense.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_old_state_is_restored_under_a_new_serial() {
    let given = Given::workspace().await;
    let first = given.push(1, "old", "x").await;
    let second = given.push(2, "new", "x").await;
    let page = given.admin.get(&format!("{PATH}/{first}")).await.text;
    assert!(!page.contains(&format!("<form method=\"post\" action=\"{PATH}/{first}/restore")), "it asks first: {page}");
    let question = given.admin.get(&format!("{PATH}/{first}/restore")).await;
    for part in [
        "Roll back to serial 1?",
        "from serial 2",
        "&#34;new&#34;",
        "&#34;old&#34;",
        "Real infrastructure is not touched",
    ] {
        assert!(question.text.contains(part), "{part} is missing:\n{}", question.text);
    }
    assert!(!question.text.contains("hunter"), "{}", question.text);
    let form = question.form(&format!("{PATH}/{first}/restore"));
    let done = given.admin.send(&form, &[]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let page = given.admin.get(done.location()).await;
    for part in
        ["serial 3", "current", "restored from serial 1", "State restored from serial 1 as serial 3.", "&#34;old&#34;"]
    {
        assert!(page.text.contains(part), "{part} is missing:\n{}", page.text);
    }
    assert!(page.text.contains("It is the current state already"), "and cannot be restored again: {}", page.text);
    let overview = given.admin.get("/app/acme/workspaces/web").await;
    assert!(overview.text.contains("<p>Unlocked.</p>"), "the lock was let go of: {}", overview.text);

    let unproven = PageForm { hidden: Vec::new(), ..form.clone() };
    assert_eq!(given.admin.send(&unproven, &[]).await.status, StatusCode::FORBIDDEN);
    let reader = given.site.member("joe", "acme", &given.workspace, "read").await;
    let page = reader.get(&format!("{PATH}/{second}")).await;
    assert!(page.text.contains("You may not write the workspace&#39;s state"), "{}", page.text);
    let page = reader.get(&format!("{PATH}/{second}/restore")).await;
    assert!(page.text.contains("You may not write the workspace&#39;s state"), "{}", page.text);
    let form = page.form(&format!("{PATH}/{second}/restore"));
    assert_eq!(reader.send(&form, &[]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_restore_waits_for_nobodys_lock_and_says_whose_it_is() {
    let given = Given::workspace().await;
    let first = given.push(1, "old", "x").await;
    given.push(2, "new", "x").await;
    let form = given.admin.get(&format!("{PATH}/{first}/restore")).await.form(&format!("{PATH}/{first}/restore"));
    let writer = given.site.member("jane", "acme", &given.workspace, "write").await;
    let overview = "/app/acme/workspaces/web";
    writer.send(&writer.get(overview).await.form(&format!("{overview}/lock")), &[("reason", "mine")]).await;

    let refused = given.admin.send(&form, &[]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("is locked by jane"), "{}", refused.text);
    let page = given.admin.get(&format!("{PATH}/{first}")).await;
    assert!(page.text.contains("is locked by jane"), "the button says so before: {}", page.text);

    let mine = writer.get(&format!("{PATH}/{first}/restore")).await.form(&format!("{PATH}/{first}/restore"));
    assert_eq!(writer.send(&mine, &[]).await.status, StatusCode::SEE_OTHER, "whoever holds the lock may");
    assert!(writer.get(overview).await.text.contains("by <strong>jane"), "and keeps it");
}

#[tokio::test]
async fn a_sensitive_output_is_shown_to_who_asks_and_that_they_asked_is_in_the_log() {
    let given = Given::workspace().await;
    let id = given.push(1, "x", "hunter2 <b>").await;
    let overview = "/app/acme/workspaces/web";
    let page = given.admin.get(overview).await;
    assert!(page.text.contains("sensitive: hidden") && !page.text.contains("hunter2"), "{}", page.text);
    let form = page.form(&format!("{overview}/outputs/"));
    assert!(form.action.ends_with("/reveal"), "{}", form.action);
    let revealed = || async {
        let plane = &given.site.api.control_plane;
        let org = plane.all_organizations().await.expect("organizations").remove(0);
        let version = plane.state(&org).state_versions.get(&id.parse().expect("an id")).cloned().expect("a version");
        version.revealed
    };
    assert_eq!(revealed().await, None);
    let shown = given.admin.send(&form, &[]).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(shown.text.contains("id=\"revealed\">hunter2 &#60;b&#62;</code>"), "{}", shown.text);
    assert_eq!(shown.header("cache-control"), "no-store");
    let look = revealed().await.expect("the look is remembered");
    assert!(form.action.contains(&look.output.to_string()) && look.times == 1, "{look:?}");
    given.admin.send(&form, &[]).await;
    assert_eq!(revealed().await.map(|look| look.times), Some(2), "each look is a change of its own");
    assert_eq!(given.admin.get(&form.action).await.status, StatusCode::METHOD_NOT_ALLOWED, "no link leads there");

    let unproven = PageForm { hidden: Vec::new(), ..form.clone() };
    assert_eq!(given.admin.send(&unproven, &[]).await.status, StatusCode::FORBIDDEN);
    let nothing = PageForm { action: format!("{overview}/outputs/wsout-nothing/reveal"), ..form.clone() };
    assert_eq!(given.admin.send(&nothing, &[]).await.status, StatusCode::NOT_FOUND);
    given.site.api.given_workspace("acme", "other").await;
    let elsewhere = PageForm { action: form.action.replace("/web/", "/other/"), ..form.clone() };
    assert_eq!(given.admin.send(&elsewhere, &[]).await.status, StatusCode::NOT_FOUND, "it is not theirs");
    assert_eq!(revealed().await.map(|look| look.times), Some(2));
    let stranger = given.site.stranger("eve").await;
    let form = PageForm { hidden: stranger.get("/app/settings/tokens").await.form("/logout").hidden, ..form };
    assert_eq!(stranger.send(&form, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_data_of_an_old_state_goes_in_two_steps_and_comes_back_from_the_first() {
    let given = Given::workspace().await;
    let first = given.push(1, "old", "x").await;
    let second = given.push(2, "new", "x").await;
    let (old, current) = (format!("{PATH}/{first}"), format!("{PATH}/{second}"));
    assert!(!given.admin.get(&current).await.text.contains("/data/"), "the current state keeps its data");
    let send = async |step: &str| {
        let form = given.admin.get(&old).await.form(&format!("{old}/data/{step}"));
        let done = given.admin.send(&form, &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{step}: {}", done.text);
        form
    };
    let delete = send("delete").await;
    assert!(given.admin.get(&old).await.text.contains("Its data was deleted"));
    assert_eq!(given.admin.send(&delete, &[]).await.status, StatusCode::UNPROCESSABLE_ENTITY, "it is gone already");
    send("bring-back").await;
    assert!(given.admin.get(&old).await.text.contains("Download"));
    let reader = given.site.member("joe", "acme", &given.workspace, "read").await;
    let refused = reader.get(&old).await;
    assert!(refused.text.contains("You may not write the workspace&#39;s state"), "{}", refused.text);
    let form = refused.form(&format!("{old}/data/delete"));
    assert_eq!(reader.send(&form, &[]).await.status, StatusCode::FORBIDDEN);
    send("delete").await;
    let writer = given.site.member("jane", "acme", &given.workspace, "write").await;
    let page = writer.get(&old).await;
    assert!(page.text.contains("You may not delete the data of a state for good"), "{}", page.text);
    let for_good = page.form(&format!("{old}/data/delete-for-good"));
    assert_eq!(writer.send(&for_good, &[]).await.status, StatusCode::FORBIDDEN);
    let back = page.form(&format!("{old}/data/bring-back"));
    assert_eq!(writer.send(&back, &[]).await.status, StatusCode::SEE_OTHER, "that they may");
    send("delete").await;
    send("delete-for-good").await;
    assert!(!given.admin.get(&old).await.text.contains("/data/"), "nothing is left to do");
    let nonsense = PageForm { action: format!("{old}/data/nonsense"), ..delete.clone() };
    assert_eq!(given.admin.send(&nonsense, &[]).await.status, StatusCode::NOT_FOUND);
    let forced = PageForm { action: format!("{current}/data/delete"), ..delete };
    assert_eq!(given.admin.send(&forced, &[]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn what_still_manages_resources_is_deleted_by_an_owner_or_where_others_may() {
    let given = Given::workspace().await;
    given.push(1, "x", "x").await;
    let keeper = given.site.member("jane", "acme", &given.workspace, "admin").await;
    let settings = "/app/acme/workspaces/web/settings";
    let page = keeper.get(&format!("{settings}/delete")).await;
    assert!(page.text.contains("only an owner of the organization may delete it"), "{}", page.text);
    let form = page.form(&format!("{settings}/delete"));
    let refused = keeper.send(&form, &[("confirmation", "web"), ("care", "force")]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("only an owner of the organization may delete it"), "{}", refused.text);
    assert_eq!(given.admin.get(settings).await.status, StatusCode::OK, "it is still there");

    let organization = given.admin.get("/app/acme/settings").await.form("/app/acme/settings");
    let fields = [("name", "acme"), ("email", "a@acme.test"), ("mode", "remote"), ("force_delete", "true")];
    let saved = given.admin.send(&organization, &fields).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let done = keeper.send(&form, &[("confirmation", "web"), ("care", "force")]).await;
    assert_eq!(done.done(), "/app/acme/workspaces: Workspace web deleted.", "{}", done.text);
}

#[tokio::test]
async fn a_state_is_uploaded_by_who_holds_the_lock_if_it_descends_from_the_current_one() {
    let given = Given::workspace().await;
    let current = given.push(5, "old", "hunter2").await;
    let page = given.admin.get(PATH).await;
    assert!(page.text.contains("The workspace is not locked: lock it first"), "{}", page.text);
    let form = page.form(PATH);
    let new = state(6, "new", "hunter3").to_string();
    let refused = given.admin.send(&form, &[("state", &new)]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("id=\"error-state\"") && !refused.text.contains("hunter3"), "{}", refused.text);

    let overview = given.admin.get("/app/acme/workspaces/web").await;
    given.admin.send(&overview.form("/app/acme/workspaces/web/lock"), &[]).await;
    let page = given.admin.get(PATH).await;
    assert!(!page.text.contains("upload-reason"), "{}", page.text);
    let other_lineage = new.replace("\"L\"", "\"M\"");
    for (sent, error) in [
        ("", "state"),
        ("{ \"version\": 4", "state"),
        (&state(5, "new", "hunter3").to_string(), "someone wrote in between"),
        (&other_lineage, "they do not descend from one another"),
    ] {
        let refused = given.admin.send(&form, &[("state", sent)]).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{sent}: {}", refused.text);
        let told = refused.text.split("id=\"error-state\">").nth(1).and_then(|rest| rest.split("</p>").next());
        assert!(told.is_some_and(|told| told.contains(error)), "{sent}: {told:?}");
    }

    let done = given.admin.send(&form, &[("state", &new)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let address = done.location().split('?').next().expect("a first part").to_owned();
    assert!(!address.contains(&current), "{address}");
    let shown = given.admin.get(done.location()).await;
    for part in ["State uploaded as serial 6.", "serial 6", "&#34;new&#34;"] {
        assert!(shown.text.contains(part), "{part} is missing:\n{}", shown.text);
    }
    assert_eq!(given.admin.get(&format!("{address}/download")).await.text, new);
    let again = given.admin.send(&form, &[("state", &new)]).await;
    assert_eq!(
        again.done(),
        format!("{address}: No change: this is already the current state."),
        "sent twice, it is there once"
    );
    assert!(page.text.contains("up to 4.0 MiB"), "{}", page.text);
    // Its content is in it twice, and each of these is two bytes, which a form writes as six.
    let large = state(7, &"é".repeat(1024 * 1024 - 1024), "hunter4").to_string();
    let done = given.admin.send(&form, &[("state", &large)]).await;
    assert!(done.flash().starts_with("State uploaded as serial 7."), "larger than other forms: {}", done.status);
    let forced = given.admin.send(&form, &[("state", &other_lineage), ("force", "true")]).await;
    assert!(forced.flash().starts_with("State uploaded as serial "), "{}", forced.text);
}

#[tokio::test]
async fn a_state_is_uploaded_by_nobody_who_may_not_write_it() {
    let given = Given::workspace().await;
    given.push(1, "old", "hunter2").await;
    let reader = given.site.member("rita", "acme", &given.workspace, "read").await;
    let page = reader.get(PATH).await;
    assert!(page.text.contains("You may not write the workspace&#39;s state"), "{}", page.text);
    let sent = [("state", state(2, "new", "x").to_string())];
    let sent: Vec<(&str, &str)> = sent.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert_eq!(reader.send(&page.form(PATH), &sent).await.status, StatusCode::FORBIDDEN);
    let stranger = given.site.stranger("eve").await;
    let proof = stranger.get("/app/organizations").await.form("/logout").hidden;
    let form = PageForm { action: PATH.to_owned(), hidden: proof };
    assert_eq!(stranger.send(&form, &sent).await.status, StatusCode::NOT_FOUND);
    let writer = given.site.member("wanda", "acme", &given.workspace, "write").await;
    let overview = given.admin.get("/app/acme/workspaces/web").await;
    given.admin.send(&overview.form("/app/acme/workspaces/web/lock"), &[]).await;
    let page = writer.get(PATH).await;
    assert!(page.text.contains("The workspace is locked by "), "someone else's lock is told: {}", page.text);
    let refused = writer.send(&page.form(PATH), &sent).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("is locked by"), "{}", refused.text);
}

/// A state with two resources, one of which has two instances and needs the other.
fn state_of_two() -> Value {
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "L", "outputs": {},
        "resources": [
            { "mode": "managed", "type": "random_password", "name": "db", "provider": "provider[\"registry.terraform.io/hashicorp/random\"]",
              "instances": [{ "attributes": { "result": "hunter2", "length": 8, "nothing": null, "keepers": { "a": "<b>" } },
                              "sensitive_attributes": [[{ "type": "get_attr", "value": "result" }]] }] },
            { "module": "module.shop", "mode": "managed", "type": "terraform_data", "name": "many", "provider": "p",
              "instances": [
                { "index_key": "a&b", "attributes": { "id": "first" }, "dependencies": ["random_password.db"] },
                { "index_key": 1, "status": "tainted", "attributes": { "id": "second" }, "dependencies": ["random_password.db"] },
              ] },
        ],
    })
}

#[tokio::test]
async fn a_resource_has_a_page_with_its_attributes_and_what_it_needs() {
    let given = Given::workspace().await;
    let id = given.site.api.given_state(&given.workspace, &state_of_two()).await;
    let resources = format!("{PATH}/{id}/resources");
    for page in [format!("{PATH}/{id}"), "/app/acme/workspaces/web".to_owned()] {
        let page = given.admin.get(&page).await;
        for address in ["random_password.db", "shop.terraform_data.many"] {
            assert!(page.text.contains(&format!("href=\"{resources}?address={address}\"")), "{address}: {}", page.text);
        }
    }
    let secret = given.admin.get(&format!("{resources}?address=random_password.db")).await;
    assert_eq!(secret.status, StatusCode::OK, "{}", secret.text);
    for part in [
        "<code>random_password.db</code>",
        "hashicorp/random",
        "<code>length</code>",
        "&#34;&#60;b&#62;&#34;",
        "sensitive: hidden",
        "Used by",
        &format!("href=\"{resources}?address=module.shop.terraform_data.many\""),
    ] {
        assert!(secret.text.contains(part), "{part} is missing:\n{}", secret.text);
    }
    assert!(!secret.text.contains("hunter2") && !secret.text.contains("nothing"), "{}", secret.text);

    let many = given.admin.get(&format!("{resources}?address=module.shop.terraform_data.many")).await;
    for part in [
        "2 instances",
        "many[&#34;a&#38;b&#34;]",
        "&#34;first&#34;",
        "many[1]",
        "tainted",
        "Depends on",
        "random_password.db",
    ] {
        assert!(many.text.contains(part), "{part} is missing:\n{}", many.text);
    }
    let one = given.admin.get(&format!("{resources}?address=module.shop.terraform_data.many%5B1%5D")).await;
    assert!(one.text.contains("&#34;second&#34;") && !one.text.contains("&#34;first&#34;"), "{}", one.text);
    assert!(one.text.contains("1 of 2 instances"), "{}", one.text);

    assert_eq!(given.admin.get(&format!("{resources}?address=a.b")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(given.admin.get(&resources).await.location(), format!("{PATH}/{id}#resources"));
    let address = format!("{resources}?address=random_password.db");
    assert_eq!(given.site.stranger("eve").await.get(&address).await.status, StatusCode::NOT_FOUND);
    let planner = given.site.member("pete", "acme", &given.workspace, "plan").await;
    assert_eq!(planner.get(&address).await.status, planner.get(&format!("{PATH}/{id}")).await.status);
}
