//! Every route of the table, with every kind of caller.
//!
//! Permissions come from the one function that decides; the API's behaviour has to agree. A handler that is not in the
//! table cannot be reached, so none is forgotten. A refused caller gets 404, and a stranger gets the very bytes that
//! everyone gets where nothing is.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::{Caller, PhaseRequest, TakenPhase, WorkspaceRef};
use taco_domain::permission::{Action, Actor, Resource, allow};
use taco_ledger::ObjectBucket;
use taco_tfc_api::routes::{self, Access, Place, Route};

use crate::agent_door;
use crate::configuration_versions::given_configuration;
use crate::runs::{act, start_run};
use crate::states::{lock, push};

/// A site in which every path of the table leads somewhere.
pub(crate) struct Fixture {
    pub(crate) server: ApiServer,
    bucket: Arc<ObjectBucket>,
    /// Values of the placeholders in braces.
    pub(crate) names: BTreeMap<&'static str, String>,
}

/// Caller of a request.
enum Who {
    Outsider,
    /// A user with such a role in the organization.
    Member(Role),
    /// The token of a team with such a role.
    Team(Role),
    Organization,
    AuditTrail,
    AgentPool,
    OtherAgentPool,
    /// Holder of a token of a phase of the workspace's run.
    Phase(Phase, Holder),
    /// Code inside the run of a workspace that knows nothing of this one.
    RunElsewhere,
    /// Code inside the run of a workspace that may read this one's state.
    RunOfConsumer,
    SiteAdmin,
    /// Someone who may do much in another organization.
    Rival(Rival),
}

/// A phase that is under way in the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Plan,
    SpeculativePlan,
    Apply,
}

/// Holder of a phase's token.
#[derive(Clone, Copy)]
enum Holder {
    /// Code that runs in it.
    Run,
    /// Its agent, which comes to the API by this token as well: older agents give it to what they run.
    Agent,
}

enum Rival {
    Owner,
    OwnersToken,
    Organization,
    AuditTrail,
    AgentPool,
    Run,
}

impl Who {
    /// True if they must not even learn that the organization exists.
    fn is_stranger(&self) -> bool {
        matches!(self, Self::Outsider | Self::Rival(_))
    }
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
    ("other agent pool's token", Who::OtherAgentPool),
    ("run token of a plan", Who::Phase(Phase::Plan, Holder::Run)),
    ("run token of a speculative plan", Who::Phase(Phase::SpeculativePlan, Holder::Run)),
    ("run token of an apply", Who::Phase(Phase::Apply, Holder::Run)),
    ("agent token in a plan", Who::Phase(Phase::Plan, Holder::Agent)),
    ("agent token in a speculative plan", Who::Phase(Phase::SpeculativePlan, Holder::Agent)),
    ("agent token in an apply", Who::Phase(Phase::Apply, Holder::Agent)),
    ("another workspace's run", Who::RunElsewhere),
    ("a consuming workspace's run", Who::RunOfConsumer),
    ("site admin", Who::SiteAdmin),
    ("owner of another organization", Who::Rival(Rival::Owner)),
    ("token of another organization's owners", Who::Rival(Rival::OwnersToken)),
    ("another organization's token", Who::Rival(Rival::Organization)),
    ("another organization's token for the audit trail", Who::Rival(Rival::AuditTrail)),
    ("agent pool's token of another organization", Who::Rival(Rival::AgentPool)),
    ("another organization's run", Who::Rival(Rival::Run)),
];

/// One request to a route. Where its answer depends on which thing it names, a route has several.
pub(crate) struct Request {
    pub(crate) path: String,
    access: Access,
}

/// Response for everything that does not exist, or that the caller must not know of.
const NOT_FOUND: &str = r#"{"errors":[{"status":"404","title":"not found"}]}"#;

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
    pub(crate) async fn new() -> Self {
        let bucket = Arc::new(ObjectBucket::in_memory());
        let server = ApiServer::start_on(Arc::clone(&bucket) as _).await;
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
        let visible = json!({ "name": "visible", "visibility": "organization" });
        let visible_team = made("/api/v2/organizations/acme/teams", "teams", visible).await.id();
        let owners = owners_of(&server, "acme").await;
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
        let account = admin.get("/api/v2/account/details").await;
        let (user, username) = (account.id(), account.attribute("username").as_str().expect("a name").to_owned());
        let issued = |path: String| {
            let admin = admin.clone();
            async move { admin.post(&path, &json!({})).await.expect(StatusCode::CREATED).id() }
        };
        let token_of_user = issued(format!("/api/v2/users/{user}/authentication-tokens")).await;
        let token_of_team = issued(format!("/api/v2/teams/{team}/authentication-token")).await;
        let token_of_owners = issued(format!("/api/v2/teams/{owners}/authentication-token")).await;
        let token_of_organization = issued(format!("{within}/authentication-token")).await;
        let token_of_audit_trail = issued(format!("{within}/authentication-token?token=audit-trails")).await;
        let token_of_pool = issued(format!("/api/v2/agent-pools/{pool}/authentication-tokens")).await;

        let source = server.given_workspace("acme", "source").await;
        let trigger = json!({ "data": { "relationships": {
            "sourceable": { "data": { "type": "workspaces", "id": source } },
        } } });
        let path = format!("/api/v2/workspaces/{workspace}/run-triggers");
        let trigger = admin.post(&path, &trigger).await.expect(StatusCode::CREATED).id();
        let estimating = attributes("organizations", json!({ "cost-estimation-enabled": true }));
        admin.patch(within, &estimating).await.expect(StatusCode::OK);
        let configuration = given_configuration(&server, &workspace).await;
        let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
        let part = |name: &str| run.data()["relationships"][name]["data"].clone();
        let id_of = |thing: &Value| thing["id"].as_str().expect("an id").to_owned();
        let (plan, apply, event) = (id_of(&part("plan")), id_of(&part("apply")), id_of(&part("run-events")[0]));
        let estimate = id_of(&part("cost-estimate"));
        let run = run.id();
        let comment = attributes("comments", json!({ "body": "hello" }));
        let path = format!("/api/v2/runs/{run}/comments");
        let comment = admin.post(&path, &comment).await.expect(StatusCode::CREATED).id();
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let pool_token = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
        let agent = server.agent_caller(pool_token.attribute("token").as_str().expect("a token")).await;
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
        let names = BTreeMap::from([
            ("organization", "acme".to_owned()),
            ("workspace", workspace),
            ("workspace_name", "web".to_owned()),
            ("state_version", version),
            ("output", output),
            ("project", project),
            ("team", team),
            ("visible team", visible_team),
            ("owners", owners),
            ("team_workspace", team_workspace),
            ("team_project", team_project),
            ("pool", pool),
            ("key", key),
            ("variable", variable_of_workspace),
            ("variable_set", set),
            ("set_variable", variable_of_set),
            ("tag", tag),
            ("user", user),
            ("username", username),
            ("token of the user", token_of_user),
            ("token of the team", token_of_team),
            ("token of the owners", token_of_owners),
            ("token of the organization", token_of_organization),
            ("token of the audit trail", token_of_audit_trail),
            ("token of the pool", token_of_pool),
            ("membership", membership),
            ("source", source),
            ("run_trigger", trigger),
            ("configuration_version", configuration),
            ("run", run),
            ("plan", plan.clone()),
            ("log", plan),
            ("apply", apply),
            ("cost_estimate", estimate),
            ("run_event", event),
            ("comment", comment),
            ("agent", agent.id.to_string()),
            ("pass", "1-00".to_owned()),
            ("action", "soft_delete_backing_data".to_owned()),
        ]);
        Self { server, bucket, names }
    }

    /// The same site once more: what is done to one, the other does not know.
    async fn fork(&self) -> Self {
        self.server.control_plane.flush().await;
        let bucket = Arc::new(self.bucket.fork().expect("it is in memory"));
        let server = self.server.on_copy(Arc::clone(&bucket) as _).await;
        Self { server, bucket, names: self.names.clone() }
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
            Who::OtherAgentPool => self.pool_token("acme").await,
            Who::Phase(phase, holder) => self.token_of_phase(*phase, *holder).await,
            Who::RunElsewhere => self.run_of_source().await,
            Who::RunOfConsumer => {
                let consumers =
                    format!("/api/v2/workspaces/{}/relationships/remote-state-consumers", self.names["workspace"]);
                let body = json!({ "data": [{ "type": "workspaces", "id": self.names["source"] }] });
                self.server.admin().post(&consumers, &body).await.expect(StatusCode::NO_CONTENT);
                self.run_of_source().await
            }
            Who::Rival(rival) => self.token_of_rival(rival).await,
            Who::Member(role) => {
                let (_, token) = self.server.given_user("jane").await;
                let team = self.team_with(role).await;
                self.server.with_token(&token).accepts(&invited(&self.server, "acme", "jane", team).await).await;
                token
            }
            Who::Team(role) => {
                let team = self.team_with(role).await.expect("a team");
                self.issue(&format!("/api/v2/teams/{team}/authentication-token")).await
            }
        }
    }

    /// A token of such a phase, which is under way from now on.
    async fn token_of_phase(&self, phase: Phase, holder: Holder) -> String {
        let server = &self.server;
        let mut taken = match phase {
            Phase::Plan | Phase::Apply => next_phase(server, "acme").await,
            Phase::SpeculativePlan => {
                let only = json!({ "plan-only": true });
                let run = start_run(&server.admin(), &self.names["workspace"], only).await.expect(StatusCode::CREATED);
                // The other run is ready as well, and either may come first.
                loop {
                    let taken = next_phase(server, "acme").await;
                    if taken.run.id.to_string() == run.id() {
                        break taken;
                    }
                }
            }
        };
        if phase == Phase::Apply {
            for word in ["plan", "json-plan", "redacted-plan"] {
                agent_door::send(server, &taken, word, "{}").await.expect(StatusCode::NO_CONTENT);
            }
            agent_door::send(server, &taken, "outcome", agent_door::planned()).await.expect(StatusCode::NO_CONTENT);
            act(&server.admin(), &self.names["run"], "apply").await.expect(StatusCode::ACCEPTED);
            taken = next_phase(server, "acme").await;
        }
        match holder {
            Holder::Run => taken.run_token,
            Holder::Agent => taken.token,
        }
    }

    /// A token of such a caller in another organization.
    async fn token_of_rival(&self, rival: &Rival) -> String {
        let (server, within) = (&self.server, "/api/v2/organizations/globex");
        server.given_organization("globex").await;
        let owners = owners_of(server, "globex").await;
        match rival {
            Rival::Owner => {
                let (_, token) = server.given_user("rival").await;
                server.with_token(&token).accepts(&invited(server, "globex", "rival", Some(owners)).await).await;
                token
            }
            Rival::OwnersToken => self.issue(&format!("/api/v2/teams/{owners}/authentication-token")).await,
            Rival::Organization => self.issue(&format!("{within}/authentication-token")).await,
            Rival::AuditTrail => self.issue(&format!("{within}/authentication-token?token=audit-trails")).await,
            Rival::AgentPool => self.pool_token("globex").await,
            Rival::Run => {
                let workspace = server.given_workspace("globex", "web").await;
                given_configuration(server, &workspace).await;
                start_run(&server.admin(), &workspace, json!({})).await.expect(StatusCode::CREATED);
                next_phase(server, "globex").await.run_token
            }
        }
    }

    /// A token of a pool that nothing else uses.
    async fn pool_token(&self, organization: &str) -> String {
        let path = format!("/api/v2/organizations/{organization}/agent-pools");
        let body = attributes("agent-pools", json!({ "name": "another" }));
        let pool = self.server.admin().post(&path, &body).await.expect(StatusCode::CREATED).id();
        self.issue(&format!("/api/v2/agent-pools/{pool}/authentication-tokens")).await
    }

    /// The token of a run in the workspace whose applies trigger the other's runs.
    async fn run_of_source(&self) -> String {
        given_configuration(&self.server, &self.names["source"]).await;
        start_run(&self.server.admin(), &self.names["source"], json!({})).await.expect(StatusCode::CREATED);
        // The other workspace's run is ready as well, and either may come first.
        loop {
            let token = next_phase(&self.server, "acme").await.run_token;
            if let Actor::Run { workspace, .. } = self.server.caller(&token).await.actor
                && workspace.to_string() == self.names["source"]
            {
                return token;
            }
        }
    }

    /// A team that has nothing but this.
    async fn team_with(&self, role: &Role) -> Option<String> {
        let admin = self.server.admin();
        let mut wanted = json!({ "name": "janes" });
        match role {
            Role::NoTeam => return None,
            Role::Owner => return Some(self.names["owners"].clone()),
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

    /// All requests that a route is tried with.
    pub(crate) fn requests(&self, route: &Route) -> Vec<Request> {
        match route.access {
            Access::Depends(cases) => {
                let request = |case: &routes::Case| {
                    let named = route.path.replacen(first_word(route.path), &self.names[case.named], 1);
                    Request { path: self.path(route, &named), access: Access::All(case.rights) }
                };
                cases.iter().map(request).collect()
            }
            access => vec![Request { path: self.path(route, route.path), access }],
        }
    }

    /// A path of the table with names in place of the placeholders, and with the query that it cannot do without.
    fn path(&self, route: &Route, path: &str) -> String {
        let within_organization = route.path.contains("{organization}");
        let path = if within_organization { path.replace("{workspace}", "{workspace_name}") } else { path.to_owned() };
        let query = route.sample_query.map(|query| format!("?{query}")).unwrap_or_default();
        let path = self.filled(&format!("{path}{query}"));
        assert!(!path.contains('{'), "the fixture has no name for a word of {path}");
        path
    }

    /// A text with names in place of the placeholders.
    fn filled(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (word, name)| text.replace(&format!("{{{word}}}"), name))
    }

    pub(crate) async fn send(&self, client: &Client, route: &Route, method: &str, path: &str) -> Answer {
        let body = if method == "GET" { String::new() } else { self.filled(route.sample_body) };
        client.send(method, path, Some("application/vnd.api+json"), body).await
    }

    /// Decision of the one function about the caller and these rights.
    async fn may(&self, caller: &Caller, rights: &[(Action, Place)]) -> bool {
        let admin = self.server.admin_caller().await;
        let web = WorkspaceRef::Named { organization: "acme".to_owned(), name: "web".to_owned() };
        let view = self.server.control_plane.workspace(&admin, &web).await.expect("the workspace");
        let state = self.server.control_plane.state(&view.org);
        let project = state.projects.iter().find(|project| project.name.as_str() == "other");
        let source = state.workspace_named("source").expect("the source");
        rights.iter().all(|(action, place)| {
            let resource = match place {
                Place::Site => Resource::Site,
                Place::Account => Resource::Account(self.names["user"].parse().expect("an id")),
                Place::Organization => view.org.resource(),
                Place::Project => Resource::Project(state, project.expect("the project")),
                Place::Workspace => view.resource(),
                Place::Source => Resource::Workspace(state, source),
            };
            allow(&caller.actor, *action, resource).allowed
        })
    }
}

/// The first placeholder of a path, with its braces.
fn first_word(path: &str) -> &str {
    let begin = path.find('{').expect("a word in braces");
    let length = path[begin..].find('}').expect("its end");
    &path[begin..=begin + length]
}

async fn owners_of(server: &ApiServer, organization: &str) -> String {
    let path = format!("/api/v2/organizations/{organization}/teams?filter[names]=owners");
    server.admin().get(&path).await.data()[0]["id"].as_str().expect("an id").to_owned()
}

/// Invites a user to an organization, into such a team. The membership's id.
async fn invited(server: &ApiServer, organization: &str, user: &str, team: Option<String>) -> String {
    let teams: Vec<_> = team.into_iter().map(|team| json!({ "type": "teams", "id": team })).collect();
    let body = json!({ "data": { "type": "organization-memberships",
        "attributes": { "email": format!("{user}@acme.test") }, "relationships": { "teams": { "data": teams } } } });
    let path = format!("/api/v2/organizations/{organization}/organization-memberships");
    server.admin().post(&path, &body).await.expect(StatusCode::CREATED).id()
}

/// Takes the next phase of an organization, as an agent within a server does.
async fn next_phase(server: &ApiServer, organization: &str) -> TakenPhase {
    let plane = &server.control_plane;
    let taker = PhaseRequest::within(plane.id_for_agent_within(), "within");
    let org = plane.organization_named(&server.admin_caller().await, organization).await.expect("an organization");
    let taken = plane.take_phase(&org, taker).await.expect("a bucket");
    taken.expect("a phase is ready")
}

#[tokio::test]
async fn nobody_gets_in_without_a_token() {
    let fixture = Fixture::new().await;
    for authorization in [None, Some("Bearer taco_u_0000000000000000000000000000000000000000000")] {
        let client = fixture.server.with_authorization(authorization);
        for route in routes::all() {
            for method in route.methods {
                for request in fixture.requests(&route) {
                    let answer = fixture.send(&client, &route, method, &request.path).await;
                    let expected = match request.access {
                        Access::Public => Expected::Success,
                        Access::SignedAddress => Expected::Status(StatusCode::NOT_FOUND),
                        _ => Expected::Status(StatusCode::UNAUTHORIZED),
                    };
                    assert!(expected.is(&answer, &Who::Outsider), "{method} {}: {}", request.path, answer.status);
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

/// Expected response.
#[derive(Debug)]
enum Expected {
    /// This, exactly.
    Status(StatusCode),
    Success,
    /// Success, or an error about some other obstacle.
    Allowed,
    /// 404.
    Refused,
}

impl Expected {
    fn is(&self, answer: &Answer, who: &Who) -> bool {
        let status = answer.status;
        match self {
            Self::Status(expected) => status == *expected,
            Self::Success => status.is_success(),
            Self::Allowed => {
                let obstacles = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::LOCKED];
                status.is_success() || status.is_redirection() || obstacles.contains(&status)
            }
            Self::Refused => status == StatusCode::NOT_FOUND && (!who.is_stranger() || answer.bytes == NOT_FOUND),
        }
    }
}

/// Expected response to this request, from the decision of the one function about the caller.
async fn expected(fixture: &Fixture, caller: &Caller, access: Access) -> Expected {
    let rights = |may: bool| if may { Expected::Allowed } else { Expected::Refused };
    match access {
        Access::Public | Access::Token => Expected::Success,
        Access::SignedAddress => Expected::Status(StatusCode::NOT_FOUND),
        Access::User => rights(matches!(caller.actor, Actor::User { .. })),
        Access::OrganizationToken => match caller.actor {
            Actor::Organization(_) | Actor::AuditTrail(_) => Expected::Allowed,
            // It tells where else to ask, and nothing about anyone.
            _ => Expected::Status(StatusCode::NOT_FOUND),
        },
        Access::Right(action, place) => rights(fixture.may(caller, &[(action, place)]).await),
        Access::All(all) => rights(fixture.may(caller, all).await),
        Access::Depends(_) => unreachable!("a request names one of the things"),
    }
}

/// Calls every route as this caller, and says where the answer is not what was decided.
async fn differences(name: &'static str, who: &'static Who) -> Vec<String> {
    let site = Fixture::new().await;
    let token = site.token_of(who).await;
    let mut fixture = site.fork().await;
    let mut differences = Vec::new();
    for route in routes::all() {
        for method in route.methods {
            for Request { path, access } in site.requests(&route) {
                let caller = fixture.server.caller(&token).await;
                let expected = expected(&fixture, &caller, access).await;
                let answer = fixture.send(&fixture.server.with_token(&token), &route, method, &path).await;
                if !expected.is(&answer, who) {
                    let said = String::from_utf8_lossy(&answer.bytes);
                    let status = answer.status;
                    differences.push(format!("{name}: {method} {path} gave {status}, expected {expected:?}: {said}"));
                }
                if *method != "GET" && answer.status.is_success() {
                    // Something is gone, or has another name now.
                    fixture = site.fork().await;
                }
            }
        }
    }
    differences
}

/// Every token may ask for all organizations: it finds its own.
#[tokio::test(flavor = "multi_thread")]
async fn everyone_finds_the_organizations_that_they_may_see() {
    let seen = CALLERS.iter().map(|(name, who)| async move {
        let fixture = Fixture::new().await;
        let token = fixture.token_of(who).await;
        let listed = fixture.server.with_token(&token).get("/api/v2/organizations").await.expect(StatusCode::OK);
        let listed = listed.data().as_array().expect("a list").iter().any(|organization| organization["id"] == "acme");
        let caller = fixture.server.caller(&token).await;
        let may = fixture.may(&caller, &[(Action::ReadOrganization, Place::Organization)]).await;
        assert_eq!(listed, may, "{name}");
    });
    futures::future::join_all(seen).await;
}
