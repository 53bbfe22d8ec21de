//! The tags that an organization's workspaces carry.

use harness::browser::PageForm;
use harness::page_server::PageServer;
use reqwest::StatusCode;
use serde_json::json;

const PATH: &str = "/app/acme/settings/tags";

/// Gives a workspace tags through the API.
async fn tag(site: &PageServer, workspace: &str, keys: &[&str]) {
    let tags: Vec<_> = keys.iter().map(|key| json!({ "type": "tags", "attributes": { "name": key } })).collect();
    let path = format!("/api/v2/workspaces/{workspace}/relationships/tags");
    site.api.admin().post(&path, &json!({ "data": tags })).await.expect(StatusCode::NO_CONTENT);
}

/// The line of a tag, from its box to its end.
fn row(text: &str, key: &str) -> String {
    let rows = text.split("<input type=\"checkbox\"").skip(1);
    let mut rows = rows.filter_map(|row| row.split("</tr>").next());
    rows.find(|row| row.contains(&format!(">{key}</label>"))).unwrap_or_else(|| panic!("no {key}:\n{text}")).to_owned()
}

fn id(row: &str) -> String {
    row.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id").to_owned()
}

#[tokio::test]
async fn tags_are_counted_and_deleted_from_every_workspace() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let admin = site.admin().await;
    assert!(admin.get("/app/acme/settings").await.text.contains(&format!("<a href=\"{PATH}\">")));
    assert!(admin.get(PATH).await.text.contains("No tags yet."));
    let web = site.api.given_workspace("acme", "web").await;
    let shop = site.api.given_workspace("acme", "shop").await;
    tag(&site, &web, &["prod", "old", "tmp"]).await;
    tag(&site, &shop, &["prod", "tmp"]).await;

    let page = admin.get(PATH).await;
    for (key, count) in [("prod", 2), ("old", 1), ("tmp", 2)] {
        assert!(row(&page.text, key).contains(&format!(">{count}</a>")), "{}", row(&page.text, key));
    }
    let found = admin.get(&format!("{PATH}?search=ol")).await;
    assert!(found.text.contains(">old</label>") && !found.text.contains(">prod</label>"), "{}", found.text);
    assert!(admin.get(&format!("{PATH}?search=nothing")).await.text.contains("No tags match."));

    let form = page.form(&format!("{PATH}/delete"));
    let nothing = admin.send(&form, &[]).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(nothing.text.contains("Choose the tags to delete"), "{}", nothing.text);
    assert_eq!(admin.send(&form, &[("tag", "nonsense")]).await.status, StatusCode::NOT_FOUND);

    let (old, tmp) = (id(&row(&page.text, "old")), id(&row(&page.text, "tmp")));
    let done = admin.send(&form, &[("tag", &old), ("tag", &tmp)]).await;
    assert_eq!(done.done(), format!("{PATH}: 2 tags deleted."), "{}", done.text);
    let page = admin.get(PATH).await;
    assert!(row(&page.text, "prod").contains(">2</a>"), "{}", page.text);
    assert!(!page.text.contains(">old</label>") && !page.text.contains(">tmp</label>"), "{}", page.text);
    for name in ["web", "shop"] {
        let workspace = site.api.admin().get(&format!("/api/v2/organizations/acme/workspaces/{name}")).await;
        assert_eq!(workspace.expect(StatusCode::OK).attribute("tag-names"), json!(["prod"]), "{name}");
    }
}

#[tokio::test]
async fn a_tag_on_a_workspace_that_is_not_theirs_stays_and_says_why() {
    let site = PageServer::start().await;
    site.api.given_organization("acme").await;
    let (web, shop) = (site.api.given_workspace("acme", "web").await, site.api.given_workspace("acme", "shop").await);
    tag(&site, &web, &["own", "shared"]).await;
    tag(&site, &shop, &["shared"]).await;
    let member = site.member("wanda", "acme", &web, "admin").await;
    let page = member.get(PATH).await;
    let (own, shared) = (row(&page.text, "own"), row(&page.text, "shared"));
    assert!(!own.contains("disabled"), "{own}");
    assert!(shared.contains("disabled") && shared.contains("You may not change"), "{shared}");
    let form = page.form(&format!("{PATH}/delete"));
    let refused = member.send(&form, &[("tag", &id(&own)), ("tag", &id(&shared))]).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    let page = member.get(PATH).await;
    // Of the two that carry it she sees one.
    assert!(row(&page.text, "own").contains(">1</a>") && row(&page.text, "shared").contains(">1</a>"), "{}", page.text);
    let tags = site.api.admin().get("/api/v2/organizations/acme/tags?q=shared").await.data();
    assert_eq!(tags[0]["attributes"]["instance-count"], 2, "it stayed");
    let done = member.send(&form, &[("tag", &id(&own))]).await;
    assert_eq!(done.done(), format!("{PATH}: 1 tag deleted."), "{}", done.text);

    let stranger = site.stranger("eve").await;
    assert_eq!(stranger.get(PATH).await.status, StatusCode::NOT_FOUND);
    let proof = stranger.get("/app/organizations").await.form("/logout").hidden;
    let form = PageForm { action: form.action, hidden: proof };
    assert_eq!(stranger.send(&form, &[("tag", &id(&shared))]).await.status, StatusCode::NOT_FOUND);
}
