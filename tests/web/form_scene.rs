//! A site with an organization and a workspace, an admin's browser and token, and people who may do less.

use harness::api_client::ApiClient;
use harness::browser::{Browser, PASSWORD, Page, PageForm};
use reqwest::{Client, StatusCode};
use serde_json::json;

use crate::site::Site;

pub(crate) struct FormScene {
    pub(crate) site: Site,
    pub(crate) admin: Browser,
    pub(crate) api: ApiClient,
}

/// The organization and its workspace.
pub(crate) const WORKSPACE: &str = "/app/acme/workspaces/web";

impl FormScene {
    pub(crate) async fn new() -> Self {
        let site = Site::start();
        let admin = site.admin().await;
        let token = token_of(&admin).await;
        let api = ApiClient { origin: admin.origin.clone(), client: Client::new(), token };
        api.given_organization("acme").await;
        api.given_workspace("acme", "web").await;
        Self { site, admin, api }
    }

    /// The workspace as the API returns it.
    pub(crate) async fn workspace(&self) -> serde_json::Value {
        self.api.workspace("acme", "web").await
    }

    /// Someone with an account, who belongs to nothing.
    pub(crate) async fn stranger(&self, name: &str) -> Browser {
        let users = "/app/admin/users";
        let form = exactly(&self.admin.get(users).await, users);
        let email = format!("{name}@acme.test");
        let made = self.admin.send(&form, &[("username", name), ("email", &email)]).await;
        assert_eq!((made.status, made.location()), (StatusCode::SEE_OTHER, users), "{}", made.text);
        let page = self.admin.get(users).await;
        let link = page.text.split("/setup/").nth(1).and_then(|rest| rest.split('<').next()).expect("a link");
        let browser = self.site.browser();
        browser.set_password(&format!("/setup/{link}")).await;
        browser
    }

    /// Someone whose team has this access to the workspace, and nothing else.
    pub(crate) async fn member(&self, name: &str, access: &str) -> Browser {
        let browser = self.stranger(name).await;
        let body = json!({ "data": { "type": "teams", "attributes": { "name": format!("{name}s") } } });
        let team = self.api.post("/api/v2/organizations/acme/teams", body).await["data"]["id"].clone();
        let body = json!({ "data": { "type": "organization-memberships",
            "attributes": { "email": format!("{name}@acme.test") },
            "relationships": { "teams": { "data": [{ "type": "teams", "id": team }] } } } });
        let invited = self.api.post("/api/v2/organizations/acme/organization-memberships", body).await;
        browser.accepts_invitation(invited["data"]["id"].as_str().expect("an id")).await;
        let workspace = self.workspace().await["id"].clone();
        let body = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access },
            "relationships": { "team": { "data": { "type": "teams", "id": team } },
                "workspace": { "data": { "type": "workspaces", "id": workspace } } } } });
        self.api.post("/api/v2/team-workspaces", body).await;
        browser
    }
}

async fn token_of(browser: &Browser) -> String {
    let path = "/app/settings/tokens";
    let form = browser.get(path).await.form(path);
    let made = browser.sends_and_follows(&form, &[("description", "test"), ("days", "30")]).await;
    let text = made.text.split("taco_u_").nth(1).and_then(|rest| rest.get(..43)).expect("the token is shown");
    format!("taco_u_{text}")
}

/// The form that goes to this very address, where others go further.
pub(crate) fn exactly(page: &Page, action: &str) -> PageForm {
    assert!(page.text.contains(&format!("action=\"{action}\"")), "no form for {action}:\n{}", page.text);
    // All forms of a page hold the same proof.
    PageForm { action: action.to_owned(), ..page.form("/logout") }
}

/// Logs in again, in another browser.
pub(crate) async fn log_in(site: &Site, name: &str) -> Browser {
    let browser = site.browser();
    let form = browser.get("/login").await.form("/login");
    let done = browser.send(&form, &[("username", name), ("password", PASSWORD)]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    browser
}
