//! Every route of the table, with every kind of caller.
//!
//! What a caller may do is asked of the one function that decides; what the API does has to agree. A handler that is
//! not in the table cannot be reached, so none is forgotten.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::{Caller, WorkspaceRef};
use taco_domain::permission::{Resource, allow};
use taco_tfc_api::routes::{self, Access, Route};

use crate::states::{lock, push};

/// A site in which every path of the table leads somewhere.
struct Fixture {
    server: ApiServer,
    /// What stands for the words in braces.
    names: BTreeMap<&'static str, String>,
    tokens: Vec<(&'static str, String)>,
}

fn attributes(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

impl Fixture {
    async fn new() -> Self {
        let server = ApiServer::start().await;
        let admin = server.admin();
        server.given_organization("acme").await;
        let workspace = server.given_workspace("acme", "web").await;
        lock(&admin, &workspace).await.expect(StatusCode::OK);
        let version = push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED).id();
        admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
        let made = |path: &'static str, kind: &'static str, values: Value| {
            let admin = admin.clone();
            async move { admin.post(path, &attributes(kind, values)).await.expect(StatusCode::CREATED) }
        };
        let within = "/api/v2/organizations/acme";
        let outputs = admin.get(&format!("/api/v2/state-versions/{version}/outputs")).await;
        let output = outputs.data()[0]["id"].as_str().expect("an id").to_owned();
        let project = made("/api/v2/organizations/acme/projects", "projects", json!({ "name": "other" })).await.id();
        let team = made("/api/v2/organizations/acme/teams", "teams", json!({ "name": "idle" })).await.id();
        let pool = made("/api/v2/organizations/acme/agent-pools", "agent-pools", json!({ "name": "pool" })).await.id();
        let key = json!({ "name": "key", "value": "secret" });
        let key = made("/api/v2/organizations/acme/ssh-keys", "ssh-keys", key).await.id();
        let variable = json!({ "key": "k", "category": "env" });
        let path = format!("/api/v2/workspaces/{workspace}/vars");
        let variable_of_workspace =
            admin.post(&path, &attributes("vars", variable.clone())).await.expect(StatusCode::CREATED).id();
        let set = json!({ "name": "set", "global": false });
        let set = made("/api/v2/organizations/acme/varsets", "varsets", set).await.id();
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        let variable_of_set = admin.post(&path, &attributes("vars", variable)).await.expect(StatusCode::CREATED).id();
        let tags = json!({ "data": [{ "type": "tags", "attributes": { "name": "env" } }] });
        let path = format!("/api/v2/workspaces/{workspace}/relationships/tags");
        admin.post(&path, &tags).await.expect(StatusCode::NO_CONTENT);
        let tag = admin.get(&format!("{within}/tags")).await.data()[0]["id"].as_str().expect("an id").to_owned();
        let user = admin.get("/api/v2/account/details").await.id();
        let path = format!("/api/v2/users/{user}/authentication-tokens");
        let token = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED).id();

        let (_, outsider) = server.given_user("outsider").await;
        let (_, member) = server.given_user("member").await;
        let invitation = attributes("organization-memberships", json!({ "email": "member@acme.test" }));
        let path = format!("{within}/organization-memberships");
        let membership = admin.post(&path, &invitation).await.expect(StatusCode::CREATED).id();
        let issue = |path: String| {
            let admin = admin.clone();
            async move {
                let issued = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
                issued.attribute("token").as_str().expect("a token").to_owned()
            }
        };
        let team_token = issue(format!("/api/v2/teams/{team}/authentication-token")).await;
        let organization_token = issue(format!("{within}/authentication-token")).await;
        let audit_token = issue(format!("{within}/authentication-token?token=audit-trails")).await;
        let own = issue(format!("/api/v2/users/{user}/authentication-tokens")).await;
        let names = BTreeMap::from([
            ("organization", "acme".to_owned()),
            ("workspace", workspace),
            ("state_version", version),
            ("output", output),
            ("project", project),
            ("team", team),
            ("pool", pool),
            ("key", key),
            ("variable", variable_of_workspace),
            ("variable_set", set),
            ("set_variable", variable_of_set),
            ("tag", tag),
            ("user", user),
            ("token", token),
            ("membership", membership),
            ("pass", "1-00".to_owned()),
            ("action", "soft_delete_backing_data".to_owned()),
        ]);
        let tokens = vec![
            ("site admin", own),
            ("outsider", outsider),
            ("member without a team", member),
            ("idle team's token", team_token),
            ("organization's token", organization_token),
            ("audit trail's token", audit_token),
        ];
        Self { server, names, tokens }
    }

    /// A path of the table with names in place of the words in braces.
    fn path(&self, route: &Route) -> String {
        let mut path = route.path.to_owned();
        if route.path.contains("{organization}") {
            path = path.replace("{workspace}", "web");
        }
        for (word, name) in &self.names {
            path = path.replace(&format!("{{{word}}}"), name);
        }
        match route.path {
            "/api/v2/state-versions" | "/api/v2/vars" => {
                format!("{path}?filter[organization][name]=acme&filter[workspace][name]=web")
            }
            _ => path,
        }
    }

    /// A body that says enough to get past the shape.
    fn body(&self, route: &Route, method: &str) -> String {
        let one = |kind: &str, name: &str| json!([{ "type": kind, "id": self.names[name] }]);
        let data = match route.path {
            path if path.starts_with("/api/http-backend") => return json!({ "ID": "x" }).to_string(),
            "/api/v2/organizations/{organization}/tags" => one("tags", "tag"),
            path if path.ends_with("/relationships/tags") => one("tags", "tag"),
            path if path.ends_with("/tag-bindings") => {
                json!([{ "type": "tag-bindings", "attributes": { "key": "a" } }])
            }
            path if path.ends_with("/relationships/workspaces") => one("workspaces", "workspace"),
            path if path.ends_with("/relationships/projects") => one("projects", "project"),
            path if path.ends_with("/vars") => json!({
                "attributes": { "key": "new", "category": "env" },
                "relationships": { "workspace": { "data": { "type": "workspaces", "id": self.names["workspace"] } } },
            }),
            path if path.ends_with("/remote-state-consumers") => json!([]),
            path if path.ends_with("/state-versions") && method == "PATCH" => json!({ "relationships": {
                "rollback-state-version": { "data": { "type": "state-versions", "id": self.names["state_version"] } },
            } }),
            path if path.ends_with("/state-versions") => json!({ "attributes": { "serial": 9, "md5": "x" } }),
            _ => json!({ "attributes": { "name": "a-new-name", "email": "new@acme.test", "value": "v" } }),
        };
        json!({ "data": data }).to_string()
    }

    async fn send(&self, client: &Client, route: &Route, method: &str) -> StatusCode {
        let body = if method == "GET" { String::new() } else { self.body(route, method) };
        client.send(method, &self.path(route), Some("application/vnd.api+json"), body).await.status
    }

    /// What the one function says about the caller and the route.
    async fn may(&self, caller: &Caller, route: &Route) -> bool {
        let Access::Right(action) = route.access else { return true };
        let admin = self.server.admin_caller().await;
        let web = WorkspaceRef::Named { organization: "acme".to_owned(), name: "web".to_owned() };
        let view = self.server.control_plane.workspace(&admin, &web).await.expect("the workspace");
        let names_workspace = [
            "{variable}",
            "{workspace}",
            "{state_version}",
            "{output}",
            "/tags/{tag}",
            "organization}/tags",
            "v2/state-versions",
        ];
        let project = view.open.state.projects.iter().find(|project| project.name.as_str() == "other");
        let resource = match route.path {
            "/api/v2/vars" => view.resource(),
            path if path.contains("{user}") => Resource::Account(self.names["user"].parse().expect("an id")),
            path if path.contains("/admin/") || path == "/api/v2/organizations" => Resource::Site,
            path if path.contains("{project}") => Resource::Project(&view.open.state, project.expect("the project")),
            path if names_workspace.iter().any(|word| path.contains(word)) => view.resource(),
            _ => view.open.resource(),
        };
        allow(&caller.actor, action, resource).allowed
    }
}

/// Some answers depend on more than the table's right.
fn depends_on_more(route: &Route) -> bool {
    // Secret teams, and who may manage a team's tokens; tags, which members see also of workspaces that they do not see.
    (route.path.contains("{team}") && (route.methods == ["GET"] || route.path.contains("/authentication-token")))
        || route.methods == ["GET"] && route.path == "/api/v2/organizations/{organization}/tags"
}

#[tokio::test]
async fn nobody_gets_in_without_a_token() {
    let fixture = Fixture::new().await;
    for authorization in [None, Some("Bearer taco_u_0000000000000000000000000000000000000000000")] {
        let client = fixture.server.with_authorization(authorization);
        for route in routes::all() {
            for method in route.methods {
                let status = fixture.send(&client, &route, method).await;
                match route.access {
                    Access::Public => assert!(status.is_success(), "{method} {}", route.path),
                    Access::SignedAddress => assert_eq!(status, StatusCode::NOT_FOUND, "{method} {}", route.path),
                    Access::Token | Access::Right(_) => {
                        assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {}", route.path);
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn the_api_does_what_the_one_function_decides() {
    let mut fixture = Fixture::new().await;
    let callers = fixture.tokens.len();
    let mut differences = Vec::new();
    for number in 0..callers {
        for route in routes::all() {
            if matches!(route.access, Access::Public | Access::SignedAddress) || depends_on_more(&route) {
                continue;
            }
            for method in route.methods {
                let (name, token) = fixture.tokens[number].clone();
                let caller = fixture.server.caller(&token).await;
                let expected = fixture.may(&caller, &route).await;
                let status = fixture.send(&fixture.server.with_token(&token), &route, method).await;
                let agrees = match route.access {
                    Access::Right(_) => expected == (status != StatusCode::NOT_FOUND),
                    _ => status != StatusCode::UNAUTHORIZED,
                };
                if !agrees || status.is_server_error() {
                    differences.push(format!("{name}: {method} {} gave {status}, allowed: {expected}", route.path));
                }
                if expected && *method != "GET" && status.is_success() {
                    // Something may be gone or different now.
                    fixture = Fixture::new().await;
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
