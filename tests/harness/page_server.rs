//! The pages and the API of a server in this process, and the browsers of people who have different rights.

use std::net::SocketAddr;

use reqwest::{Client, StatusCode};
use serde_json::json;
use taco_control_plane::FirstStart;
use taco_web::Web;
use url::Url;

use crate::api_server::ApiServer;
use crate::browser::Browser;

pub struct PageServer {
    pub api: ApiServer,
    origin: String,
}

impl PageServer {
    pub async fn start() -> Self {
        Self::with(ApiServer::start().await).await
    }

    /// The pages of a server that a test has started.
    pub async fn with(api: ApiServer) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let address: Url = origin.parse().expect("an address");
        let router = Web::new(api.control_plane.control_plane(), &address).into_router();
        // It ends with the test's runtime.
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { api, origin }
    }

    /// A browser without a login.
    pub fn browser(&self) -> Browser {
        Browser::at(self.origin.clone(), Client::builder())
    }

    /// A browser in which the site's admin is logged in. Once in a test: the link works once.
    pub async fn admin(&self) -> Browser {
        let FirstStart::SetPassword(link) = self.api.control_plane.first_start().await.expect("a first start") else {
            panic!("the admin has a password already");
        };
        let browser = self.browser();
        browser.set_password(&taco_web::password_link_address(&"", &link)).await;
        browser
    }

    /// A browser of someone who belongs to no organization.
    pub async fn stranger(&self, name: &str) -> Browser {
        let admin = self.api.admin_caller().await;
        let made = self.api.control_plane.create_user(&admin, name, &format!("{name}@acme.test"), false).await;
        let (_, link) = made.expect("a user");
        let browser = self.browser();
        browser.set_password(&taco_web::password_link_address(&"", &link)).await;
        browser
    }

    /// A browser of someone whose team has `access` to one workspace and nothing else: `read`, `plan`, `write`, `admin`.
    pub async fn member(&self, name: &str, organization: &str, workspace: &str, access: &str) -> Browser {
        let browser = self.stranger(name).await;
        let admin = self.api.admin();
        let path = format!("/api/v2/organizations/{organization}/teams");
        let body = json!({ "data": { "type": "teams", "attributes": { "name": format!("team-of-{name}") } } });
        let team = admin.post(&path, &body).await.expect(StatusCode::CREATED).id();
        let relationships = json!({ "teams": { "data": [{ "type": "teams", "id": team }] } });
        let attributes = json!({ "email": format!("{name}@acme.test") });
        let body = json!({ "data": { "type": "organization-memberships", "attributes": attributes, "relationships": relationships } });
        let path = format!("/api/v2/organizations/{organization}/organization-memberships");
        let membership = admin.post(&path, &body).await.expect(StatusCode::CREATED).id();
        browser.accepts_invitation(&membership).await;
        let relationships = json!({
            "team": { "data": { "type": "teams", "id": team } },
            "workspace": { "data": { "type": "workspaces", "id": workspace } },
        });
        let body = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access }, "relationships": relationships } });
        admin.post("/api/v2/team-workspaces", &body).await.expect(StatusCode::CREATED);
        browser
    }
}
