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

use crate::configuration_versions::given_configuration;
use crate::run_phases::token_of_the_next_phase;
use crate::runs::start_run;
use crate::states::{lock, push};

/// A site in which every path of the table leads somewhere.
struct Fixture {
    server: ApiServer,
    /// What stands for the words in braces.
    names: BTreeMap<&'static str, String>,
}

/// Who asks.
enum Who {
    Outsider,
    /// A user with such a role in the organization.
    Member(Role),
    /// The token of a team with such a role.
    Team(Role),
    Organization,
    AuditTrail,
    AgentPool,
    /// What runs inside the workspace's run.
    Run,
    SiteAdmin,
}

enum Role {
    NoTeam,
    /// A team that may do nothing.
    Nothing,
    /// Access to the workspace, as attributes.
    Workspace(&'static str),
    /// Access to its project.
    Project(&'static str),
    /// A right in the whole organization.
    Flag(&'static str),
    Owner,
}

const CALLERS: &[(&str, Who)] = &[
    ("outsider", Who::Outsider),
    ("member without a team", Who::Member(Role::NoTeam)),
    ("member of an idle team", Who::Member(Role::Nothing)),
    ("workspace reader", Who::Member(Role::Workspace(r#"{"access":"read"}"#))),
    ("workspace planner", Who::Member(Role::Workspace(r#"{"access":"plan"}"#))),
    ("workspace writer", Who::Member(Role::Workspace(r#"{"access":"write"}"#))),
    ("workspace admin", Who::Member(Role::Workspace(r#"{"access":"admin"}"#))),
    ("reads outputs", Who::Member(Role::Workspace(r#"{"access":"custom","state-versions":"read-outputs"}"#))),
    ("locks", Who::Member(Role::Workspace(r#"{"access":"custom","workspace-locking":true}"#))),
    (
        "writes states",
        Who::Member(Role::Workspace(r#"{"access":"custom","state-versions":"write","workspace-locking":true}"#)),
    ),
    ("applies", Who::Member(Role::Workspace(r#"{"access":"custom","runs":"apply","variables":"write"}"#))),
    ("project reader", Who::Member(Role::Project(r#"{"access":"read"}"#))),
    ("project writer", Who::Member(Role::Project(r#"{"access":"write"}"#))),
    ("project maintainer", Who::Member(Role::Project(r#"{"access":"maintain"}"#))),
    ("project admin", Who::Member(Role::Project(r#"{"access":"admin"}"#))),
    (
        "custom in the project",
        Who::Member(Role::Project(
            r#"{"access":"custom","project-access":{"settings":"update"},"workspace-access":{"create":true}}"#,
        )),
    ),
    ("manages workspaces", Who::Member(Role::Flag("manage-workspaces"))),
    ("manages membership", Who::Member(Role::Flag("manage-membership"))),
    ("owner", Who::Member(Role::Owner)),
    ("idle team's token", Who::Team(Role::Nothing)),
    ("writing team's token", Who::Team(Role::Workspace(r#"{"access":"write"}"#))),
    ("organization's token", Who::Organization),
    ("audit trail's token", Who::AuditTrail),
    ("agent pool's token", Who::AgentPool),
    ("the workspace's run", Who::Run),
    ("site admin", Who::SiteAdmin),
];

fn access_of(kind: &str, access: Value, team: &str, place: &str, id: &str) -> Value {
    json!({ "data": { "type": kind, "attributes": access, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        place: { "data": { "type": format!("{place}s"), "id": id } },
    } } })
}

fn attributes(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

impl Fixture {
    async fn new() -> Self {
        let server = ApiServer::start().await;
        let admin = server.admin();
        server.given_organization("acme").await;
        let body = attributes("projects", json!({ "name": "other" }));
        let project = admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id();
        let mut body = attributes("workspaces", json!({ "name": "web" }));
        body["data"]["relationships"]["project"]["data"] = json!({ "type": "projects", "id": project });
        let workspace =
            admin.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED).id();
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

        let source = server.given_workspace("acme", "source").await;
        let trigger = json!({ "data": { "relationships": {
            "sourceable": { "data": { "type": "workspaces", "id": source } },
        } } });
        let path = format!("/api/v2/workspaces/{workspace}/run-triggers");
        let trigger = admin.post(&path, &trigger).await.expect(StatusCode::CREATED).id();
        let configuration = given_configuration(&server, &workspace).await;
        let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
        let part = |name: &str| run.data()["relationships"][name]["data"].clone();
        let id_of = |thing: &Value| thing["id"].as_str().expect("an id").to_owned();
        let (plan, apply, event) = (id_of(&part("plan")), id_of(&part("apply")), id_of(&part("run-events")[0]));
        let run = run.id();
        let comment = attributes("comments", json!({ "body": "hello" }));
        let path = format!("/api/v2/runs/{run}/comments");
        let comment = admin.post(&path, &comment).await.expect(StatusCode::CREATED).id();
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let pool_token = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
        let agent = server.caller(pool_token.attribute("token").as_str().expect("a token")).await;
        let agent =
            server.control_plane.connect_agent(&agent, None, None, "one", "1.0.0").await.expect("an agent").agent;

        let invitation = attributes("organization-memberships", json!({ "email": "guest@acme.test" }));
        let path = format!("{within}/organization-memberships");
        let membership = admin.post(&path, &invitation).await.expect(StatusCode::CREATED).id();
        let access = |kind: &'static str, place: &'static str, id: &str| {
            let (admin, team, id) = (admin.clone(), team.clone(), id.to_owned());
            let path = format!("/api/v2/{kind}");
            async move {
                let body = access_of(kind, json!({ "access": "read" }), &team, place, &id);
                admin.post(&path, &body).await.expect(StatusCode::CREATED).id()
            }
        };
        let team_workspace = access("team-workspaces", "workspace", &workspace).await;
        let team_project = access("team-projects", "project", &project).await;
        let path = format!("{within}/authentication-token");
        admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
        let names = BTreeMap::from([
            ("organization", "acme".to_owned()),
            ("workspace", workspace),
            ("state_version", version),
            ("output", output),
            ("project", project),
            ("team", team),
            ("team_workspace", team_workspace),
            ("team_project", team_project),
            ("pool", pool),
            ("key", key),
            ("variable", variable_of_workspace),
            ("variable_set", set),
            ("set_variable", variable_of_set),
            ("tag", tag),
            ("user", user),
            ("token", token),
            ("membership", membership),
            ("source", source),
            ("run_trigger", trigger),
            ("configuration_version", configuration),
            ("run", run),
            ("plan", plan.clone()),
            ("log", plan),
            ("apply", apply),
            ("run_event", event),
            ("comment", comment),
            ("agent", agent.id.to_string()),
            ("pass", "1-00".to_owned()),
            ("action", "soft_delete_backing_data".to_owned()),
        ]);
        Self { server, names }
    }

    async fn issue(&self, path: &str) -> String {
        let issued = self.server.admin().post(path, &json!({})).await.expect(StatusCode::CREATED);
        issued.attribute("token").as_str().expect("a token").to_owned()
    }

    /// A token of such a caller.
    async fn token_of(&self, who: &Who) -> String {
        let within = "/api/v2/organizations/acme";
        match who {
            Who::SiteAdmin => self.issue(&format!("/api/v2/users/{}/authentication-tokens", self.names["user"])).await,
            Who::Outsider => self.server.given_user("outsider").await.1,
            Who::Organization => self.issue(&format!("{within}/authentication-token")).await,
            Who::AuditTrail => self.issue(&format!("{within}/authentication-token?token=audit-trails")).await,
            Who::AgentPool => {
                self.issue(&format!("/api/v2/agent-pools/{}/authentication-tokens", self.names["pool"])).await
            }
            Who::Run => token_of_the_next_phase(&self.server).await,
            Who::Member(role) => {
                let (_, token) = self.server.given_user("jane").await;
                let team = self.team_with(role).await;
                let teams = team.map(|team| json!([{ "type": "teams", "id": team }])).unwrap_or(json!([]));
                let body = json!({ "data": { "type": "organization-memberships",
                    "attributes": { "email": "jane@acme.test" }, "relationships": { "teams": { "data": teams } } } });
                let path = format!("{within}/organization-memberships");
                self.server.admin().post(&path, &body).await.expect(StatusCode::CREATED);
                token
            }
            Who::Team(role) => {
                let team = self.team_with(role).await.expect("a team");
                self.issue(&format!("/api/v2/teams/{team}/authentication-token")).await
            }
        }
    }

    /// A team that has nothing but this.
    async fn team_with(&self, role: &Role) -> Option<String> {
        let admin = self.server.admin();
        let mut wanted = json!({ "name": "janes" });
        match role {
            Role::NoTeam => return None,
            Role::Owner => {
                let listed = admin.get("/api/v2/organizations/acme/teams?filter[names]=owners").await;
                return Some(listed.data()[0]["id"].as_str().expect("an id").to_owned());
            }
            Role::Flag(flag) => wanted["organization-access"] = json!({ *flag: true }),
            Role::Nothing | Role::Workspace(_) | Role::Project(_) => {}
        }
        let team = admin.post("/api/v2/organizations/acme/teams", &attributes("teams", wanted)).await;
        let team = team.expect(StatusCode::CREATED).id();
        let (kind, place, access) = match role {
            Role::Workspace(access) => ("team-workspaces", "workspace", access),
            Role::Project(access) => ("team-projects", "project", access),
            _ => return Some(team),
        };
        let access = serde_json::from_str(access).expect("JSON");
        let body = access_of(kind, access, &team, place, &self.names[place]);
        admin.post(&format!("/api/v2/{kind}"), &body).await.expect(StatusCode::CREATED);
        Some(team)
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
        assert!(!path.contains('{'), "the fixture has no name for a word of {path}");
        match route.path {
            "/api/v2/state-versions" | "/api/v2/vars" => {
                format!("{path}?filter[organization][name]=acme&filter[workspace][name]=web")
            }
            "/api/v2/team-workspaces" => format!("{path}?filter[workspace][id]={}", self.names["workspace"]),
            "/api/v2/team-projects" => format!("{path}?filter[project][id]={}", self.names["project"]),
            _ => path,
        }
    }

    /// A body that says enough to get past the shape.
    fn body(&self, route: &Route, method: &str) -> String {
        let one = |kind: &str, name: &str| json!([{ "type": kind, "id": self.names[name] }]);
        let data = match route.path {
            "/api/v2/organizations/{organization}/workspaces" => json!({
                "attributes": { "name": "a-new-name" },
                "relationships": { "project": { "data": { "type": "projects", "id": self.names["project"] } } },
            }),
            "/api/v2/team-workspaces" => {
                let place = &self.names["workspace"];
                return access_of(
                    "team-workspaces",
                    json!({ "access": "read" }),
                    &self.names["team"],
                    "workspace",
                    place,
                )
                .to_string();
            }
            "/api/v2/team-projects" => {
                let place = &self.names["project"];
                return access_of("team-projects", json!({ "access": "read" }), &self.names["team"], "project", place)
                    .to_string();
            }
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
            "/api/v2/runs" => json!({ "relationships": {
                "workspace": { "data": { "type": "workspaces", "id": self.names["workspace"] } },
            } }),
            path if path.ends_with("/run-triggers") => json!({ "relationships": {
                "sourceable": { "data": { "type": "workspaces", "id": self.names["source"] } },
            } }),
            path if path.ends_with("/comments") => json!({ "attributes": { "body": "hello" } }),
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
            "/team-workspaces",
            "v2/runs",
            "{configuration_version}",
            "{run_event}",
            "{comment}",
            "{plan}",
            "{apply}",
            "{run_trigger}",
        ];
        let project = view.open.state.projects.iter().find(|project| project.name.as_str() == "other");
        let resource = match route.path {
            "/api/v2/vars" => view.resource(),
            path if path.contains("{user}") => Resource::Account(self.names["user"].parse().expect("an id")),
            path if path.contains("/admin/") || path == "/api/v2/organizations" => Resource::Site,
            path if path.contains("{project}")
                || path.contains("/team-projects")
                || (path.ends_with("{organization}/workspaces") && route.methods == ["POST"]) =>
            {
                Resource::Project(&view.open.state, project.expect("the project"))
            }
            path if names_workspace.iter().any(|word| path.contains(word)) => view.resource(),
            _ => view.open.resource(),
        };
        allow(&caller.actor, action, resource).allowed
    }
}

/// Some answers depend on more than the table's right.
fn depends_on_more(route: &Route) -> bool {
    // Secret teams, and who may manage a team's tokens; tags, which members see also of workspaces that they do not see.
    let more = ["/authentication-token", "/relationships/"];
    (route.path.contains("{team}") && (route.methods == ["GET"] || more.iter().any(|part| route.path.contains(part))))
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

#[tokio::test(flavor = "multi_thread")]
async fn the_api_does_what_the_one_function_decides() {
    let callers: Vec<_> = CALLERS.iter().map(|(name, who)| tokio::spawn(differences(name, who))).collect();
    let mut differences = Vec::new();
    for caller in callers {
        differences.extend(caller.await.expect("a list"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Whether a path may lead nowhere afterwards: a run that is over has no plan, for instance. What is only added stands
/// in nobody's way.
fn takes_away(route: &Route, method: &str) -> bool {
    let acts = ["/actions/safe-delete", "/actions/{action}"].iter().any(|action| route.path.ends_with(action));
    matches!(method, "DELETE" | "PATCH") || acts || route.path.contains("/runs/{run}/actions/")
}

/// Calls every route as this caller, and says where the answer is not what was decided.
async fn differences(name: &'static str, who: &'static Who) -> Vec<String> {
    let mut fixture = Fixture::new().await;
    let mut token = fixture.token_of(who).await;
    let mut differences = Vec::new();
    for route in routes::all() {
        if matches!(route.access, Access::Public | Access::SignedAddress) || depends_on_more(&route) {
            continue;
        }
        for method in route.methods {
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
            if expected && takes_away(&route, method) && status.is_success() {
                // Something is gone or has another name now.
                fixture = Fixture::new().await;
                token = fixture.token_of(who).await;
            }
        }
    }
    differences
}
